//! Wrappers of completion and send completion handlers: a loan keeps the handler and its parameter until it has run.
//!
//! The number of loans is fixed, and a flag in each is set while it is taken. The search begins behind the loan that was
//! taken last, where the oldest are, which are the first to be free again. A handler for which no loan is free is passed on without
//! a wrapper, and counted. A handler that never runs, because its message never came, keeps its loan.

use super::not_timed;
use crate::calls::Call;
use crate::record::{NO_PEER, Seen, Traffic, handler_begins, record_handler};
use libc::c_void;
use openlapi::abi::{compl_hndlr_t, lapi_handle_t, lapi_sh_info_t, scompl_hndlr_t};
use openlapi::base::clock::ticks;
use std::mem::transmute;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// How many handlers can be under way.
const LOANS: usize = 4096;
/// How many loans are checked for a free one.
const REACH: usize = 256;

/// A handler that has not run yet.
struct Loan {
    /// Set by the thread that takes the loan, which may then write the rest; cleared by the thread that returns it.
    taken: AtomicBool,
    handler: AtomicUsize,
    parameter: AtomicPtr<c_void>,
}

static ALL: [Loan; LOANS] = [const {
    Loan {
        taken: AtomicBool::new(false),
        handler: AtomicUsize::new(0),
        parameter: AtomicPtr::new(null_mut()),
    }
}; LOANS];
/// Where the next search begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A wrapper and its parameter in place of a completion handler and its own.
pub fn completion(handler: compl_hndlr_t, parameter: *mut c_void) -> Option<(compl_hndlr_t, *mut c_void)> {
    Some((run_completion, lend(handler as usize, parameter)?))
}

/// A wrapper and its parameter in place of a send completion handler and its own.
pub fn send_completion(
    handler: scompl_hndlr_t,
    parameter: *mut c_void,
) -> Option<(scompl_hndlr_t, *mut c_void)> {
    Some((run_send_completion, lend(handler as usize, parameter)?))
}

/// Returns a loan whose handler will not run.
pub fn give_up(loan: *mut c_void) {
    take_back(loan);
}

unsafe extern "C" fn run_completion(hndl: *mut lapi_handle_t, loan: *mut c_void) {
    let (handler, parameter) = take_back(loan);
    // SAFETY: lent as a completion handler.
    let real: compl_hndlr_t = unsafe { transmute(handler) };
    let start = ticks();
    let around = handler_begins(Call::CompletionHandler, handler, start);
    // SAFETY: the library's handle, and the parameter that goes with the handler.
    unsafe { real(hndl, parameter) };
    let seen =
        Seen { call: Call::CompletionHandler, site: handler, start, end: ticks(), good: true, traffic: None };
    record_handler(seen, around);
}

unsafe extern "C" fn run_send_completion(
    hndl: *mut lapi_handle_t,
    loan: *mut c_void,
    info: *mut lapi_sh_info_t,
) {
    let (handler, parameter) = take_back(loan);
    // SAFETY: lent as a send completion handler.
    let real: scompl_hndlr_t = unsafe { transmute(handler) };
    // SAFETY: the library's own structure, or null.
    let peer = unsafe { info.as_ref() }.map_or(NO_PEER, |info| info.src);
    let start = ticks();
    let around = handler_begins(Call::SendHandler, handler, start);
    // SAFETY: the library's handle and structure, and the parameter that goes with the handler.
    unsafe { real(hndl, parameter, info) };
    let traffic = Some(Traffic { peer, bytes: 0 });
    let seen = Seen { call: Call::SendHandler, site: handler, start, end: ticks(), good: true, traffic };
    record_handler(seen, around);
}

fn lend(handler: usize, parameter: *mut c_void) -> Option<*mut c_void> {
    let start = NEXT.fetch_add(1, Ordering::Relaxed);
    let Some(loan) = (start..start.wrapping_add(REACH)).map(|at| &ALL[at % LOANS]).find(|loan| loan.take())
    else {
        not_timed();
        return None;
    };
    loan.handler.store(handler, Ordering::Relaxed);
    loan.parameter.store(parameter, Ordering::Relaxed);
    Some(ptr::from_ref(loan).cast_mut().cast())
}

/// Returns what was lent, and frees the loan.
fn take_back(loan: *mut c_void) -> (usize, *mut c_void) {
    // SAFETY: comes from `lend`, by way of the library.
    let loan = unsafe { &*loan.cast::<Loan>() };
    // The library hands the parameter from thread to thread under its lock, which orders these.
    let held = (loan.handler.load(Ordering::Relaxed), loan.parameter.load(Ordering::Relaxed));
    // Release: they have been read before the next one writes.
    loan.taken.store(false, Ordering::Release);
    held
}

impl Loan {
    fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{LOANS, lend, take_back};
    use std::ptr::without_provenance_mut;
    use std::thread;

    #[test]
    fn loans_come_back_with_what_was_lent() {
        thread::scope(|scope| {
            for thread in 0..4usize {
                scope.spawn(move || {
                    for round in 0..2000 {
                        let mine: Vec<_> = (0..=round % 9)
                            .map(|at| {
                                (at, lend(thread * 1000 + at + 1, without_provenance_mut(round + 1)).unwrap())
                            })
                            .collect();
                        for (at, loan) in mine {
                            let (handler, parameter) = take_back(loan);
                            assert_eq!((handler, parameter.addr()), (thread * 1000 + at + 1, round + 1));
                        }
                    }
                });
            }
        });
        let all: Vec<_> = std::iter::from_fn(|| lend(1, without_provenance_mut(1))).collect();
        assert_eq!(all.len(), LOANS);
        for loan in all {
            take_back(loan);
        }
        assert!(lend(1, without_provenance_mut(1)).is_some());
    }
}
