//! How a session is opened.

use crate::abi::{
    LAPI_ERR_HNDL_INVALID, LAPI_ERR_SET_VAL, LAPI_VOID_HANDLE, LAST_LIB, lapi_handle_t, lapi_lib_t,
};
use crate::api::env::INSTANCES;
use crate::base::thread::ThreadConfig;
use crate::config::Config;
use crate::engine::context::settings::LOOK_AROUND;
use crate::engine::context::wait_policy::SPIN_TIME;
use crate::error::{Error, Log, Result};
use crate::job::Listing;
use std::time::Duration;

/// The most threads of a session that run completion handlers. A larger number is a mistake, or was
/// never set; it would take the memory for their stacks.
pub const MOST_COMPLETION_THREADS: usize = 128;

/// Which thread handles messages while the program is in no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// A thread of the session: interrupt mode.
    On,
    /// None. The session has a thread that keeps the deadlines of its network, and handles messages
    /// from the time on when INTERRUPT_SET is set (LAPI_Senv).
    Off,
    /// None, and the session has no such thread: the program calls often enough, or sleeps by
    /// [`super::Session::arm`]. INTERRUPT_SET cannot be set.
    Never,
}

/// How a session is opened.
pub struct Settings<'a> {
    /// What the environment of a program of LAPI would say: transports, sizes, times.
    pub config: Config,
    /// The instance, from 0 to 15: the tasks of one instance find each other. A task opens each
    /// once at a time.
    pub instance: usize,
    /// A number that handlers get a pointer to, as LAPI's handle: neither 0 nor `LAPI_VOID_HANDLE`,
    /// and another one for each session whose handlers must know theirs.
    pub handle: lapi_handle_t,
    /// The level of the interface: some calls exist from `L2_LIB` on.
    pub level: lapi_lib_t,
    /// How many threads run completion handlers, at most [`MOST_COMPLETION_THREADS`]. Without any
    /// the handlers run where header handlers do, in calls of the program: they must not wait. With
    /// [`Interrupts::Never`] the session then has no thread of its own: one of the process listens
    /// for all such sessions.
    pub completion_threads: usize,
    /// How threads are made.
    pub thread_config: ThreadConfig,
    /// Which thread handles messages while the program computes.
    pub interrupts: Interrupts,
    /// How long a sleep lasts at most that nothing ends: then the session looks whether its peers
    /// still run. A program that learns of their ends by itself gives a longer time.
    pub look_around: Duration,
    /// How long a thread that waits polls at most before it yields the processor, unless `config`
    /// says how often. Not below 100 µs: then no peer that sleeps is woken to reply.
    pub spin_time: Duration,
    /// Other tasks may do nothing but send messages, to handlers with an index
    /// ([`crate::api::Held::register_function`]): a packet that names an address of this task's
    /// memory is refused, and its sender given up. Holds for what comes over UDP. Tasks that share
    /// memory are of one user, and reach each other's by the kernel; libfabric's cards do it alone.
    pub guarded: bool,
    /// The addresses of the tasks, where no launcher has any.
    pub addresses: Option<&'a mut dyn Listing>,
    /// Where messages go, as many as `config` asks for.
    pub log: Log,
}

/// As LAPI has them where the environment sets nothing, with interrupts, and without messages.
impl Default for Settings<'_> {
    fn default() -> Self {
        Self {
            config: Config::default(),
            instance: 0,
            handle: 1,
            level: LAST_LIB,
            completion_threads: 1,
            thread_config: ThreadConfig::PLAIN,
            interrupts: Interrupts::On,
            look_around: LOOK_AROUND,
            spin_time: SPIN_TIME,
            guarded: false,
            addresses: None,
            log: Log::none(),
        }
    }
}

impl Settings<'_> {
    /// Whether each number is in its range.
    ///
    /// # Errors
    /// `LAPI_ERR_SET_VAL`, `LAPI_ERR_HNDL_INVALID`: one is not; the detail names it.
    pub(super) fn check(&self) -> Result<()> {
        let Self { instance, handle, completion_threads: threads, .. } = *self;
        if instance >= INSTANCES {
            let detail = format!("instance {instance}; valid: 0 to {}", INSTANCES - 1);
            return Err(Error::new(LAPI_ERR_SET_VAL, detail));
        }
        if handle == 0 || handle == LAPI_VOID_HANDLE {
            return Err(Error::new(LAPI_ERR_HNDL_INVALID, format!("handle {handle:#x} names no session")));
        }
        if threads > MOST_COMPLETION_THREADS {
            let detail = format!("completion_threads {threads}; valid: 0 to {MOST_COMPLETION_THREADS}");
            return Err(Error::new(LAPI_ERR_SET_VAL, detail));
        }
        Ok(())
    }
}
