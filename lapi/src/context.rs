//! Opening and ending a context.

use crate::instances::{self, Instance};
use crate::port::Port;
use libc::c_int;
use openlapi::abi::*;
use openlapi::error::{Error, Result};
use openlapi_runtime::init::{self, Request};
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

type ErrorHandler = Box<dyn Fn(&Port, &Failure) + Send + Sync>;

/// What no call can return: a task was lost, or a message could not be handled.
#[derive(Clone, Debug)]
pub struct Failure {
    /// LAPI's number, with its text.
    pub error: Error,
    /// The task that it is about.
    pub task: u32,
}

/// How a context is opened.
#[derive(Default)]
pub struct Builder {
    instance: u32,
    completion_threads: i32,
    polling: bool,
    on_error: Option<ErrorHandler>,
}

impl Builder {
    /// The instance, 1 to 16; the lowest free one unless given. The tasks of one instance
    /// find each other.
    pub fn instance(mut self, instance: u32) -> Self {
        self.instance = instance;
        self
    }

    /// How many threads run completion handlers; 1 unless given.
    pub fn completion_threads(mut self, threads: u16) -> Self {
        self.completion_threads = threads.into();
        self
    }

    /// Messages are handled in calls of this program alone, not by a thread of the library.
    pub fn polling(mut self) -> Self {
        self.polling = true;
        self
    }

    /// Called when a task is lost or a message could not be handled. Without it such a failure ends
    /// this process, as in every program of LAPI. With it what waits for a lost task returns
    /// `LAPI_ERR_NO_CONNECTIVITY`, and the program continues.
    pub fn on_error(mut self, handler: impl Fn(&Port, &Failure) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Box::new(handler));
        self
    }

    /// Opens the context (LAPI_Init). A program without a launcher is a job of one task.
    ///
    /// # Errors
    /// As the man page of LAPI_Init has them; the text names variable, task or limit.
    pub fn open(self) -> Result<Context> {
        let place = Instance::take(self.instance)?;
        let index = place.index();
        let core = Arc::new(openlapi::api::Context::new());
        let identity = init::identify()?;
        let job = (identity.task, identity.tasks);
        let port = Arc::new(Port::new(core, place, job, self.on_error.is_some()));
        let info = lapi_info_t {
            protocol: if self.polling { LAPI_INTERRUPT_OFF } else { 0 },
            lib_vers: LAST_LIB,
            epoch_num: 0,
            num_compl_hndlr_thr: self.completion_threads,
            instance_no: self.instance,
            info6: 0,
            err_hndlr: self.on_error.is_some().then_some(failed as LAPI_err_hndlr),
            lapi_thread_attr: ptr::null_mut(),
            adapter_name: ptr::null_mut(),
            add_info: ptr::null_mut(),
        };
        // SAFETY: neither thread attributes nor addresses are given.
        let request = unsafe { Request::new(port.handle(), index, &info) };
        let owner = Owner { port: port.clone(), on_error: self.on_error };
        // Before the threads run: they call handlers.
        instances::set_owner(index, Some(Arc::new(owner)));
        let opened = init::init(port.context(), &request);
        if opened.is_err() {
            instances::set_owner(index, None);
        }
        opened.map(|_device| Context { port })
    }
}

/// An open context: this process as a task of the job. Dropping it ends LAPI for it (LAPI_Term).
///
/// Its operations are those of [`Port`].
#[derive(Debug)]
pub struct Context {
    port: Arc<Port>,
}

impl Context {
    /// Opens a context with LAPI's defaults.
    ///
    /// # Errors
    /// The errors of [`Builder::open`].
    pub fn open() -> Result<Self> {
        Builder::default().open()
    }

    /// Opens a context as the builder says.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The port, to be kept beside this context: by threads and handlers.
    pub fn port(&self) -> Arc<Port> {
        self.port.clone()
    }
}

impl Deref for Context {
    type Target = Arc<Port>;

    fn deref(&self) -> &Arc<Port> {
        &self.port
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.port.is_own() {
            return;
        }
        // Nothing else ends it, so that this succeeds. A call in a handler of this very context
        // ends it as well.
        let _ = init::term(self.port.context(), self.port.context().handle());
        self.port.set_ended();
        instances::set_owner(self.port.index(), None);
        // Windows, counters and threads may keep the port longer.
        self.port.release();
    }
}

/// What a handle stands for.
struct Owner {
    port: Arc<Port>,
    on_error: Option<ErrorHandler>,
}

/// Calls `run` with the port of the handle that the core has passed to a handler.
///
/// # Safety
/// `handle` must be the pointer that the core has passed.
pub(crate) unsafe fn with_port<R>(
    handle: *const lapi_handle_t,
    run: impl FnOnce(&Arc<Port>) -> R,
) -> Option<R> {
    // SAFETY: the caller's promise.
    let (owner, handle) = unsafe { owner(handle)? };
    let owner = owner.downcast_ref::<Owner>()?;
    // A handler may have ended the context, and another one have been opened in its place.
    (owner.port.handle() == handle).then(|| run(&owner.port))
}

/// The handle that the core has passed to a handler, and its owner.
///
/// # Safety
/// The conditions of [`with_port`] hold.
unsafe fn owner(handle: *const lapi_handle_t) -> Option<(instances::Owner, lapi_handle_t)> {
    // SAFETY: the caller's promise. The end of the context changes it, in any thread.
    let handle = unsafe { AtomicU32::from_ptr(handle.cast_mut()) }.load(Ordering::Relaxed);
    (handle != LAPI_VOID_HANDLE).then(|| instances::owner(handle))?.map(|owner| (owner, handle))
}

unsafe extern "C" fn failed(
    handle: *mut lapi_handle_t,
    code: *mut c_int,
    _kind: *mut lapi_err_t,
    _task: *mut c_int,
    source: *mut c_int,
) {
    // SAFETY: the core's pointers, which live during the call.
    let (owner, code, task) = unsafe { (owner(handle), code.read(), source.read() as u32) };
    let Some((owner, _)) = owner else { return };
    let Some(owner) = owner.downcast_ref::<Owner>() else { return };
    if matches!(code, LAPI_ERR_NO_CONNECTIVITY | LAPI_ERR_TIMEOUT) {
        owner.port.lose(task);
    }
    if let Some(on_error) = &owner.on_error {
        on_error(&owner.port, &Failure { error: Error::from(code), task });
    }
}
