//! The other PEs of the job: barriers, and the end of all of them.

use super::options::Runtime;
use crate::error::{Failure, FamError, Result};
use openlapi::abi::{LAPI_BURY_MSG, compl_hndlr_p, lapi_handle_t, lapi_return_info_t};
use openlapi::api::request::PlainMessage;
use openlapi::api::session::{Interrupts, Session, Settings};
use openlapi::api::{Link, NoEvents, Piece, active_message, fence};
use openlapi::error::Log;
use openlapi::job::Identity;
use openlapi_runtime::{console, environment};
use std::ffi::{c_uint, c_ulong, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The index of the handler that ends a process.
const HANDLER: u64 = 1;
/// The handle that the core gives to handlers: no door looks at it, and LAPI's are lower.
const HANDLE: lapi_handle_t = 0x6661;
/// The instance of the job in which PEs meet: LAPI's begin at 0, and gm has 15.
const INSTANCE: usize = 14;

/// This PE and the others.
pub struct Pes {
    /// This one's number, from 0.
    pub own: u32,
    /// How many there are.
    pub count: u32,
    /// `None`: it is alone.
    session: Option<Arc<Session>>,
}

/// The session of the job, which stays when a program finalizes and initializes again.
static JOINED: Mutex<Option<Arc<Session>>> = Mutex::new(None);

fn link() -> &'static Link {
    static LINK: OnceLock<Link> = OnceLock::new();
    LINK.get_or_init(|| {
        extern "C" fn leave() {
            if LINK.get().is_some() {
                link().leave();
            }
        }
        // SAFETY: a function that may run at exit.
        unsafe { libc::atexit(leave) };
        Link::new(environment::process_env)
    })
}

impl Pes {
    /// Joins the job that the launcher has started; over a network this is collective.
    ///
    /// # Errors
    /// [`FamError::Pmi`]: what the launcher says does not fit together, or the others are not
    /// reached.
    pub fn join(runtime: Runtime) -> Result<Self> {
        let identity = match runtime {
            Runtime::None => Identity::alone(),
            Runtime::Launcher => Identity::from_env(&environment::process_env).map_err(failed)?,
        };
        let session = if identity.tasks > 1 { Some(joined(&identity)?) } else { None };
        Ok(Self { own: identity.task, count: identity.tasks, session })
    }

    /// Waits until all PEs are here.
    ///
    /// # Errors
    /// [`FamError::Pmi`]: one is gone.
    pub fn barrier(&self) -> Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        session.enter().and_then(|mut held| fence::gfence(&mut held)).map_err(failed)
    }

    /// Ends all PEs with this status. One that is alone goes on.
    pub fn abort(&self, status: i32) {
        let Some(session) = &self.session else { return };
        let header = status.to_ne_bytes();
        for task in (0..self.count).filter(|task| *task != self.own) {
            let message = PlainMessage {
                tgt: task,
                handler: HANDLER,
                header: Piece { ptr: header.as_ptr(), len: header.len() },
                data: Piece::EMPTY,
                tgt_cntr: 0,
                org_cntr: 0,
                cmpl_cntr: 0,
            };
            let sent = session.enter().and_then(|mut held| {
                // SAFETY: a header alone, which is copied before this returns.
                unsafe { active_message::amsend(&mut held, &message.into()) }
            });
            // One that is gone need not know.
            drop(sent);
        }
        // Some may be gone already.
        let _ = session.enter().and_then(|mut held| fence::fence(&mut held));
        // SAFETY: ends the process at once, as the call is to.
        unsafe { libc::_exit(status) }
    }
}

fn joined(identity: &Identity) -> Result<Arc<Session>> {
    let mut joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(session) = &*joined {
        return Ok(session.clone());
    }
    console::set_task(Some(identity.task));
    let open = || {
        let settings = Settings {
            config: environment::config()?,
            instance: INSTANCE,
            handle: HANDLE,
            completion_threads: 0,
            interrupts: Interrupts::On,
            log: Log::new(console::log),
            ..Settings::default()
        };
        let session = Session::open(identity, settings, link(), Arc::new(NoEvents))?;
        let mut held = session.enter()?;
        held.register_function(HANDLER as i32, (ended as *const ()).expose_provenance())?;
        // Nobody sends before the handler is there.
        fence::gfence(&mut held)?;
        drop(held);
        Ok(Arc::new(session))
    };
    let session = open().map_err(failed)?;
    *joined = Some(session.clone());
    Ok(session)
}

/// The header handler: another PE ends the job.
///
/// # Safety
/// Called by the core.
unsafe extern "C" fn ended(
    _: *mut lapi_handle_t,
    header: *mut c_void,
    length: *mut c_uint,
    info: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the core's pointers, valid during the call; a header has the length beside it.
    unsafe {
        (*info.cast::<lapi_return_info_t>()).ctl_flags = LAPI_BURY_MSG;
        if *length as usize == size_of::<i32>() {
            libc::_exit(header.cast::<i32>().read_unaligned());
        }
    }
    std::ptr::null_mut()
}

fn failed(error: openlapi::error::Error) -> Failure {
    FamError::Pmi.because(error.to_string())
}
