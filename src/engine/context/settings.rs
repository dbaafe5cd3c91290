//! The settings of a context: from the environment and LAPI_Init when it is opened, from LAPI_Senv
//! while it lives.

use crate::abi::lapi_lib_t;
use crate::engine::context::events::Events;
use crate::engine::context::request::Policy;
use crate::engine::context::wait_policy::WaitPolicy;
use crate::error::Log;
use crate::job::addresses::Addresses;
use crate::job::ended::Ends;
use crate::job::{Hosts, Opening};
use crate::transport::Task;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::time::Duration;

/// What the program may change while the context lives; read without the lock.
pub struct Tunables {
    /// ERROR_CHK
    pub error_check: AtomicBool,
    /// INTERRUPT_SET
    pub interrupts: AtomicBool,
    /// TIMEOUT, in seconds.
    pub timeout: AtomicI32,
    /// ACK_THRESHOLD
    pub ack_threshold: AtomicI32,
    /// MP_INFOLEVEL
    pub info_level: AtomicI32,
}

/// TIMEOUT of a context that is opened, in seconds.
pub const TIMEOUT: i32 = 900;

impl Default for Tunables {
    fn default() -> Self {
        Self {
            error_check: AtomicBool::new(false),
            interrupts: AtomicBool::new(true),
            timeout: AtomicI32::new(TIMEOUT),
            ack_threshold: AtomicI32::new(30),
            info_level: AtomicI32::new(0),
        }
    }
}

/// A sleeper wakes at least this often, unless the settings say otherwise, and checks whether its
/// peers still run.
pub const LOOK_AROUND: Duration = Duration::from_millis(250);

/// What is fixed when a context is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// This task.
    pub me: Task,
    /// The number of tasks in the job.
    pub tasks: u32,
    /// Which tasks share a host.
    pub hosts: Hosts,
    /// Messages of up to this many bytes (header and data) are copied at once when the transport
    /// has no room: BUF_CP_SIZE.
    pub copy_limit: usize,
    /// How many messages within that limit may be copied at a time (MP_REXMIT_BUF_CNT, when the
    /// program's environment limits it); the origin counters of others wait.
    pub buffers: usize,
    /// How many RDMA contexts of each other task the program may hold (MP_RDMA_COUNT); 0: no RDMA
    /// transfers.
    pub rdma_contexts: u32,
    /// With more bytes than this waiting for one target, calls that send to it pause.
    pub lane_bytes: usize,
    /// How copies across address spaces and streams of packets are chosen.
    pub bulk: Policy,
    /// How long threads poll before they sleep.
    pub wait_policy: WaitPolicy,
    /// This process has taken the place of one that has died, as the launcher says.
    pub replaces: bool,
    /// Which opening of the job this is, where that is counted: another process may take its place.
    pub opening: Option<Opening>,
    /// Where the tasks receive, if the program has said that: LAPI_ADD_UDP_DEST_PORT changes it.
    pub addresses: Option<Addresses>,
    /// Lines about the addresses of all hosts, and what has become of each; in task 0 only.
    pub networks: Vec<String>,
    /// Whether a task that is silent for TIMEOUT seconds is given up.
    pub give_up: bool,
    /// The level of the library that the program is written for: lib_vers.
    pub level: lapi_lib_t,
    /// After how long without progress a waiting call reports that; zero: never.
    pub stall: Duration,
    /// How long a sleep lasts at most that nothing ends, see [`LOOK_AROUND`].
    pub look_around: Duration,
    /// Other tasks may do nothing but send messages, to handlers that were registered by an index,
    /// and what ends by itself: a packet that names an address of this task's memory is refused,
    /// and its sender given up.
    pub guarded: bool,
    /// The tasks that have ended, as the launcher reports them.
    pub ends: Arc<Ends>,
    /// Where messages go.
    pub log: Log,
    /// Who decides what follows from events.
    pub events: Arc<dyn Events>,
    /// NUM_REX_BUFS, as the next two a value that only LAPI_Qenv returns.
    pub rexmit_buffers: i32,
    /// REX_BUF_SZ
    pub rexmit_size: i32,
    /// BULK_MIN_MSG_SIZE
    pub bulk_minimum: i32,
}
