//! The threads that the library makes: with the program's attributes and init function, a name that shows in `ps -T`,
//! and all signals blocked, so that the program's signal handlers run on the program's threads.

use crate::abi::{LAPI_ERR_MEMORY_EXHAUSTED, com_thread_info_t, thread_init_func_p};
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

/// How the program wants threads to be made: lapi_thread_attr of lapi_info_t, copied.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    attributes: *const libc::pthread_attr_t,
    init: thread_init_func_p,
    parameter: *mut libc::c_void,
    extra: *mut libc::c_void,
}

// SAFETY: the pointers are handed on to pthread_create and to the program's own function, never looked into here.
unsafe impl Send for Recipe {}

impl Recipe {
    /// Nothing special.
    pub const PLAIN: Self =
        Self { attributes: ptr::null(), init: None, parameter: ptr::null_mut(), extra: ptr::null_mut() };

    fn detached(&self) -> bool {
        if self.attributes.is_null() {
            return false;
        }
        unsafe extern "C" {
            fn pthread_attr_getdetachstate(
                attr: *const libc::pthread_attr_t,
                state: *mut libc::c_int,
            ) -> libc::c_int;
        }
        let mut state = libc::PTHREAD_CREATE_JOINABLE;
        // SAFETY: the program's attributes, which live until LAPI_Init returns.
        unsafe { pthread_attr_getdetachstate(self.attributes, &mut state) };
        state == libc::PTHREAD_CREATE_DETACHED
    }

    /// As the program says. Its attributes are used until LAPI_Init returns, not later.
    pub fn of(info: &com_thread_info_t) -> Self {
        Self {
            attributes: info.thread_attr,
            init: info.thread_init_func,
            parameter: info.parm_ptr,
            extra: info.extra_ptr,
        }
    }
}

/// A thread to be waited for.
pub struct Thread {
    id: libc::pthread_t,
    /// The program's attributes made it detached: the system forgets it when it ends.
    detached: bool,
    ended: Arc<Ended>,
}

#[derive(Default)]
struct Ended {
    yes: Mutex<bool>,
    changed: Condvar,
}

impl Thread {
    /// Lets the thread end by itself.
    pub fn detach(self) {
        if !self.detached {
            // SAFETY: the thread was made by `spawn`, is not detached, and is let go once, since `self` is consumed.
            unsafe { libc::pthread_detach(self.id) };
        }
    }

    /// Waits for the thread's end; not for itself.
    pub fn join(self) {
        // SAFETY: pthread_self and pthread_equal have no preconditions.
        if unsafe { libc::pthread_equal(self.id, libc::pthread_self()) } != 0 {
            return self.detach();
        }
        let mut ended = self.ended.yes.lock();
        while !*ended {
            self.ended.changed.wait(&mut ended);
        }
        if !self.detached {
            // SAFETY: the thread was made by `spawn`, is not detached, and is joined once, since `self` is consumed.
            unsafe { libc::pthread_join(self.id, ptr::null_mut()) };
        }
    }
}

struct Start {
    recipe: Recipe,
    run: Box<dyn FnOnce() + Send>,
    ended: Arc<Ended>,
}

/// Starts a thread.
pub fn spawn(name: &str, recipe: Recipe, run: impl FnOnce() + Send + 'static) -> Result<Thread> {
    let ended = Arc::new(Ended::default());
    let start = Box::into_raw(Box::new(Start { recipe, run: Box::new(run), ended: ended.clone() }));
    // SAFETY: all arguments are valid for the calls; `start` is taken back by the new thread, or here when there is none.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let mut id = std::mem::zeroed();
        let failed = libc::pthread_create(&mut id, recipe.attributes, enter, start.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if failed != 0 {
            drop(Box::from_raw(start));
            let reason = std::io::Error::from_raw_os_error(failed);
            return Err(Error::new(
                LAPI_ERR_MEMORY_EXHAUSTED,
                format!("the thread {name} cannot be started: {reason}"),
            ));
        }
        if let Ok(name) = CString::new(name) {
            libc::pthread_setname_np(id, name.as_ptr());
        }
        Ok(Thread { id, detached: recipe.detached(), ended })
    }
}

extern "C" fn enter(start: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `spawn` made this from a box and gave it to this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    if let Some(init) = start.recipe.init {
        // SAFETY: the program's own function with the program's own parameters.
        unsafe { init(start.recipe.parameter, start.recipe.extra) };
    }
    (start.run)();
    *start.ended.yes.lock() = true;
    start.ended.changed.notify_all();
    ptr::null_mut()
}
