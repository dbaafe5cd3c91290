//! Each run of a handler of the program, for a profiler that times them.
//!
//! The library exports [`HOOK`] as `lapi_handler_hook`. Without a profiler it is null, and costs
//! each handler a load.

use libc::c_void;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// What kind of handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// A header handler.
    Header = 1,
    /// A send completion handler.
    SendCompletion = 2,
    /// A completion handler.
    Completion = 3,
    /// A data distribution function, which CONTROL in a DGSP calls.
    Distribution = 4,
}

/// A handler that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// Which kind.
    pub kind: HandlerKind,
    /// The handler's address.
    pub address: usize,
    /// The other task, of a header handler and of a send completion handler; otherwise 0.
    pub peer: u32,
    /// User header and data of the message, of a header handler; otherwise 0.
    pub bytes: u64,
}

/// Called with a [`Handler`] in the place of it: its kind, address, peer and bytes. It calls `run`
/// with `state` exactly once, which runs the handler, and must not call LAPI by itself.
pub type Hook = extern "C" fn(
    kind: u32,
    address: usize,
    peer: u32,
    bytes: u64,
    run: extern "C" fn(state: *mut c_void),
    state: *mut c_void,
);

/// A [`Hook`], or null. Set at most once, by the profiler.
pub static HOOK: AtomicPtr<Hook> = AtomicPtr::new(null_mut());

/// Whether there is a hook.
#[inline]
pub fn watched() -> bool {
    !HOOK.load(Ordering::Relaxed).is_null()
}

/// Runs a handler by the hook.
#[cold]
pub fn run_watched<R>(handler: Handler, run: impl FnOnce() -> R) -> R {
    let hook = HOOK.load(Ordering::Acquire);
    if hook.is_null() {
        return run();
    }
    let mut state = (Some(run), None);
    let Handler { kind, address, peer, bytes } = handler;
    // SAFETY: what is not null points to a function of this type that is never unloaded.
    unsafe { (*hook)(kind as u32, address, peer, bytes, runner(&state), ptr::from_mut(&mut state).cast()) };
    state.1.expect("the hook runs the handler")
}

/// The state of one run: what runs, and its result.
type State<F, R> = (Option<F>, Option<R>);

/// What takes a state of this type.
fn runner<R, F: FnOnce() -> R>(_: &State<F, R>) -> extern "C" fn(*mut c_void) {
    extern "C" fn run<R, F: FnOnce() -> R>(state: *mut c_void) {
        // SAFETY: the state of `run_watched`, which waits for the hook and touches it no
        // more until then.
        let state = unsafe { &mut *state.cast::<State<F, R>>() };
        state.1 = state.0.take().map(|run| run());
    }
    run::<R, F>
}

#[cfg(test)]
mod tests {
    use super::{Handler, HandlerKind, runner};
    use std::ptr;

    #[test]
    fn a_runner_runs_once_and_keeps_the_result() {
        let mut runs = 0;
        let mut state = (
            Some(|| {
                runs += 1;
                "done".to_owned()
            }),
            None,
        );
        let run = runner(&state);
        run(ptr::from_mut(&mut state).cast());
        assert_eq!(state.1.take().as_deref(), Some("done"));
        assert!(state.0.is_none());
        assert_eq!(runs, 1);
        let handler = Handler { kind: HandlerKind::Header, address: 1, peer: 0, bytes: 0 };
        assert_eq!(super::run_watched(handler, || 5), 5, "without a hook");
    }
}
