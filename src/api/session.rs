//! A task of a job in this process, in Rust's terms.
//!
//! A thread may wait in a call, or the program has an event loop, which sleeps on the session's
//! descriptor among its own. Two tasks in one process; they could as well be two processes:
//!
//! ```
//! use openlapi::api::request::{Hint, Places, Put};
//! use openlapi::api::session::{Interrupts, Session, Settings};
//! use openlapi::api::{Link, NoEvents, SendDone, fence, put_get};
//! use openlapi::job::{Common, Identity};
//! use rustix::event::{PollFd, PollFlags, poll};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let open = |task| {
//!     let key = format!("an example, by process {}", std::process::id());
//!     let identity = Identity { task, tasks: 2, key, common: Common::All, source: "the example" };
//!     // Without a thread of the session: the event loop makes progress.
//!     let settings = Settings { interrupts: Interrupts::Never, ..Settings::default() };
//!     Session::open(&identity, settings, &Link::none(), Arc::new(NoEvents))
//! };
//! let (origin, target) = (open(0)?, open(1)?);
//!
//! // What the target has for others: memory, and a counter of what has arrived in it.
//! let memory = [const { AtomicU8::new(0) }; 5];
//! let arrived = AtomicI32::new(0);
//! let put_hello = || {
//!     let data = b"hello";
//!     let put = Put {
//!         tgt: 1,
//!         places: Places::Contiguous {
//!             local: data.as_ptr().addr(),
//!             remote: memory.as_ptr().addr() as u64,
//!             len: data.len(),
//!         },
//!         tgt_cntr: arrived.as_ptr().addr() as u64,
//!         cmpl_cntr: 0,
//!         done: SendDone { bytes: data.len() as u64, user: true, ..SendDone::nothing(1) },
//!         hint: Hint::None,
//!     };
//!     let mut call = origin.enter()?;
//!     // SAFETY: the memory at both sides lives until the fence has returned.
//!     unsafe { put_get::put(&mut call, &put)? };
//!     fence::fence(&mut call)
//! };
//!
//! let over = AtomicBool::new(false);
//! std::thread::scope(|scope| {
//!     // The target's part is in this thread, by its event loop.
//!     let sender = scope.spawn(|| {
//!         let sent = put_hello();
//!         over.store(true, Ordering::Release);
//!         target.wake();
//!         sent
//!     });
//!     while !over.load(Ordering::Acquire) {
//!         if let Some(until) = target.arm()? {
//!             let left = until.saturating_duration_since(Instant::now()).try_into()?;
//!             // The program's other descriptors are polled here, too.
//!             poll(&mut [PollFd::new(&target, PollFlags::IN)], Some(&left))?;
//!         }
//!         target.disarm()?;
//!         while target.poll()? {}
//!     }
//!     sender.join().expect("it does not panic")?;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! assert_eq!(arrived.load(Ordering::Acquire), 1);
//! assert_eq!(memory.map(AtomicU8::into_inner), *b"hello");
//! origin.close()?;
//! target.close()?;
//! # Ok(())
//! # }
//! ```

mod settings;
#[cfg(test)]
mod tests;

pub use self::settings::{Interrupts, MOST_COMPLETION_THREADS, Settings};
pub use crate::engine::context::settings::LOOK_AROUND;
pub use crate::engine::progress::closing::{close, leave};

use crate::abi::lapi_dev_t;
use crate::base::limits;
use crate::base::machine::processors;
use crate::config::{Config, build};
use crate::engine::context::events::Events;
use crate::engine::context::request::Policy;
use crate::engine::context::settings::{Options, TIMEOUT};
use crate::engine::context::wait_policy::WaitPolicy;
use crate::engine::context::{Context, Held};
use crate::engine::progress::{closing, completion_threads, event_loop, interrupt_thread};
use crate::error::{Log, Result};
use crate::job::{self, Identity, Joined, Link};
use crate::proto::pieces;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// With more bytes than this waiting for one target, beside the buffers that the settings give
/// (MP_REXMIT_BUF_CNT and MP_REXMIT_BUF_SIZE), calls that send to it pause.
const LANE_BYTES: usize = 1 << 20;

/// An open session: this process as a task of a job. A process has any number of them, of one job
/// or of several, each with a number of its own. Calls are made by [`Self::enter`], in any thread.
///
/// Dropping it closes it.
pub struct Session {
    context: Arc<Context>,
    device: lapi_dev_t,
    /// The transport's descriptor, which lives as long as the session, closed or not.
    descriptor: OwnedFd,
}

impl Session {
    /// Joins the job as `identity` says, and starts the session's threads. On one machine this
    /// waits for no other task; over a network it is collective, unless the settings have the
    /// addresses. `events` gets what no call can return.
    ///
    /// # Errors
    /// `LAPI_ERR_SET_VAL`: a number of the identity or of the settings is out of its range.
    /// `LAPI_ERR_HNDL_INVALID`: so is the handle. Otherwise what LAPI_Init can return for the job,
    /// the network and the system: the detail names the setting, by its variable, the task or the
    /// limit. `LAPI_ERR_SHM_SETUP`: shared memory, or the
    /// task's name in the job is taken. `LAPI_ERR_CSS_LOAD_FAILED`, `LAPI_ERR_NO_CONNECTIVITY`: no
    /// network, or not all tasks in time. `LAPI_ERR_MEMORY_EXHAUSTED`: no memory, or no thread.
    pub fn open(
        identity: &Identity,
        settings: Settings<'_>,
        link: &Link,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let context = Arc::new(Context::new());
        let device = open(&context, identity, settings, link, events)?;
        match context.enter().and_then(|mut held| held.descriptor()) {
            Ok(descriptor) => Ok(Self { context, device, descriptor }),
            Err(error) => {
                // It may have ended by a failure.
                let _ = close(&context, context.handle());
                Err(error)
            }
        }
    }

    /// Takes the session's lock for a call. A thread has one [`Held`] of a session at a time; a
    /// handler that the dispatcher has called, in the thread of another call, has one of its own.
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the session was closed, is being closed, or has ended by a failure.
    /// `LAPI_ERR_UNKNOWN`: the thread has a [`Held`] of it.
    pub fn enter(&self) -> Result<Held<'_>> {
        self.context.enter()
    }

    /// One round of progress: takes what has arrived, and sends what waits. Returns whether
    /// anything moved.
    ///
    /// # Errors
    /// The errors of [`Self::enter`].
    pub fn poll(&self) -> Result<bool> {
        Ok(event_loop::poll(&mut self.enter()?))
    }

    /// Takes what a peer has sent that has ended, or is to be purged: by rounds of progress as
    /// [`Self::poll`] makes them, 10,000 at most, so that a peer which goes on sending does not
    /// keep the caller. What the peer has sent before its first contact with this task was
    /// complete here is taken, too. `goes_on` is asked before each round, with the session's lock
    /// held; once it returns `false` no more is taken.
    ///
    /// # Errors
    /// The errors of [`Self::enter`].
    pub fn drain(&self, peer: u32, goes_on: impl FnMut() -> bool) -> Result<()> {
        event_loop::drain(&mut self.enter()?, peer, goes_on);
        Ok(())
    }

    /// Gets ready for a sleep of the program's event loop: until the time that this returns, or
    /// until the session's descriptor ([`AsFd`]) is readable. Then follows [`Self::disarm`].
    /// `None`: something may have changed since the last [`Self::poll`] that found nothing, so the
    /// loop polls and looks again, and nothing is armed; the first call always returns that.
    ///
    /// The descriptor becomes readable by whatever arrives, in whichever thread it is handled, and
    /// by [`Self::wake`]. What other threads of the program change by themselves, a queue or a
    /// counter, may change between the loop's look and this call: they call [`Self::wake`] after
    /// that. The session has deadlines of its own, for which the sleep ends at the time that was
    /// named. When another thread closes the session, the descriptor may stay as it is until then.
    ///
    /// One thread at a time runs the loop. Others may make calls and wait in them meanwhile. With
    /// [`Interrupts::On`] the session's own thread handles no messages between this and
    /// [`Self::disarm`].
    ///
    /// # Errors
    /// The errors of [`Self::enter`]. `LAPI_ERR_UNKNOWN`: in a handler.
    pub fn arm(&self) -> Result<Option<Instant>> {
        event_loop::arm(&mut self.enter()?)
    }

    /// Ends what [`Self::arm`] began, and makes one round of progress; whether anything moved.
    /// Nothing is armed any more whether this returns an error or not. A peer that waits for this
    /// task may make the descriptor readable also when nothing is armed; then the next sleep is a
    /// short one.
    ///
    /// # Errors
    /// The errors of [`Self::enter`].
    pub fn disarm(&self) -> Result<bool> {
        Ok(event_loop::disarm(&mut self.enter()?))
    }

    /// How many bytes of copies wait for room at task `tgt`. Calls that send to it pause when they
    /// are many: a loop that serves others, too, keeps what it has to send instead.
    ///
    /// # Errors
    /// The errors of [`Self::enter`].
    pub fn waiting(&self, tgt: u32) -> Result<usize> {
        Ok(event_loop::waiting(&mut self.enter()?, tgt))
    }

    /// Ends the sleep of the event loop, or keeps its next [`Self::arm`] from arming; and threads
    /// in [`crate::api::progress::wait_until`] look at their conditions again. Any thread may call
    /// it, also in a handler; not a signal's function, nor the functions of [`Events`] that are
    /// called with the lock held.
    pub fn wake(&self) {
        event_loop::wake(&self.context);
    }

    /// The state behind it, for the calls that take no lock.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The device in use: one of the LAPI_*_DEV.
    pub fn device(&self) -> lapi_dev_t {
        self.device
    }

    /// Closes the session; calls of other threads that are inside end with `LAPI_ERR_HNDL_INVALID`.
    /// What was sent is served before, for 5 seconds at most, and then peers for as long; not in a
    /// handler, nor after a failure, when it returns at once. A thread that has a [`Held`] drops it
    /// before.
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: it is closed, or another thread is closing it. `LAPI_ERR_UNKNOWN`:
    /// the calling thread has a [`Held`] of it.
    pub fn close(&self) -> Result<()> {
        close(&self.context, self.context.handle())
    }
}

/// What the program's event loop sleeps on, see [`Session::arm`]: the program polls it, and neither
/// reads nor writes. Over a network it is an epoll descriptor with others inside; five inside each
/// other are the most that Linux allows, so a loop that has one of its own inside another may find
/// no room.
impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may be closed.
        let _ = self.close();
    }
}

/// [`Session::open`] in a closed context, for an owner whose handlers must find the context before
/// this returns. Returns the device in use.
///
/// # Errors
/// The errors of [`Session::open`]. `LAPI_ERR_ALL_HNDL_IN_USE`: a handler that has closed this
/// context has not returned.
pub fn open(
    context: &Arc<Context>,
    identity: &Identity,
    settings: Settings<'_>,
    link: &Link,
    events: Arc<dyn Events>,
) -> Result<lapi_dev_t> {
    identity.check()?;
    settings.check()?;
    limits::check_address_space()?;
    let Settings { config, instance, handle, level, thread_config, interrupts, log, .. } = settings;
    let threads = settings.completion_threads;
    let has_threads = threads != 0 || interrupts != Interrupts::Never;
    let own_threads = has_threads.then_some(thread_config);
    let joined = job::join(&config, identity, instance, own_threads, settings.addresses, (link, &log))?;
    if config.info_level >= 2 && identity.task == 0 {
        describe(&joined, identity, &log);
    }
    let Joined { transport, device, hosts, networks, replaces, opening, addresses, .. } = joined;
    let begun = opening.clone();
    let (here, processors) = (hosts.here().len() as u32, processors());
    let options = Options {
        me: identity.task,
        tasks: identity.tasks,
        hosts,
        copy_limit: config.buf_cp_size as usize,
        buffers: config.rexmit_limit.map_or(usize::MAX, |limit| limit as usize),
        rdma_contexts: config.rdma_count,
        lane_bytes: lane_bytes(&config),
        bulk: bulk(&config, here > processors),
        wait_policy: WaitPolicy::new(here, processors, config.spin, settings.spin_time),
        replaces,
        opening,
        addresses,
        networks: if identity.task == 0 { networks } else { Vec::new() },
        give_up: !config.no_timeout,
        level,
        look_around: settings.look_around,
        stall: Duration::from_secs(config.stall_seconds.into()),
        guarded: settings.guarded,
        ends: link.ends().clone(),
        log,
        events,
        rexmit_buffers: config.rexmit_buf_cnt as i32,
        rexmit_size: config.rexmit_buf_size as i32,
        bulk_minimum: config.bulk_min_msg_size.min(i32::MAX as u64) as i32,
    };
    let variables = &context.settings;
    variables.error_check.store(false, Relaxed);
    variables.interrupts.store(interrupts == Interrupts::On, Relaxed);
    variables.timeout.store(TIMEOUT, Relaxed);
    variables.ack_threshold.store(config.ack_thresh as i32, Relaxed);
    variables.info_level.store(config.info_level as i32, Relaxed);
    let started = context.open(handle, options, transport).and_then(|()| {
        let started =
            completion_threads::start(context, threads, thread_config).and_then(|()| match interrupts {
                Interrupts::On | Interrupts::Off => interrupt_thread::start(context, thread_config),
                Interrupts::Never => Ok(()),
            });
        started.inspect_err(|_| closing::stop(context))
    });
    match (&started, begun) {
        (Ok(()), Some(opening)) => opening.has_begun(),
        (Err(_), Some(opening)) => opening.close(),
        (_, None) => {}
    }
    started.map(|()| device)
}

/// Messages about the choice of transports.
fn describe(joined: &Joined, identity: &Identity, log: &Log) {
    log.line(format_args!(
        "OpenLAPI {}: {} tasks, transport {}, found by {}",
        build::identity(),
        identity.tasks,
        crate::transport::name(&*joined.transport, identity.task, identity.tasks),
        identity.source
    ));
    joined.notes.iter().for_each(|note| log.line(format_args!("{note}")));
    joined.networks.iter().for_each(|line| log.line(format_args!("network: {line}")));
}

fn lane_bytes(config: &Config) -> usize {
    let limited = config.rexmit_limit.map(|count| count as usize);
    LANE_BYTES.saturating_add(limited.map_or(0, |count| count.saturating_mul(config.buf_cp_size as usize)))
}

/// How long messages go.
fn bulk(config: &Config, crowded: bool) -> Policy {
    Policy {
        by_key: config.use_bulk_xfer,
        minimum: usize::try_from(config.bulk_min_msg_size).unwrap_or(usize::MAX),
        preference: config.shm_bulk,
        crowded,
        batch: pieces::MOST,
    }
}
