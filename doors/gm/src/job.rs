//! The session of the core that carries all ports of this process, as a task of a job.

use crate::nodes::Nodes;
use crate::protocol::{Data, Output};
use crate::wire::Header;
use openlapi::abi::lapi_handle_t;
use openlapi::api::request::{Get, Hint, Places, PlainMessage};
use openlapi::api::session::{Interrupts, LOOK_AROUND, Session, Settings};
use openlapi::api::{
    Clear, Context, Events, Failure, Link, Piece, active_message, address, env, fence, progress, put_get,
    recovery,
};
use openlapi::error::{Log, Result};
use openlapi::job::Identity;
use openlapi_runtime::once::Once;
use openlapi_runtime::{console, environment};
use rustix::event::{PollFd, PollFlags, poll};
use std::cell::UnsafeCell;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The index of the header handler.
const HANDLER: u64 = 1;
/// The handle that the core gives to handlers: no door looks at it, and LAPI's are lower.
const HANDLE: lapi_handle_t = 0x676d;
/// The instance of the job in which the ports meet: the last one, so that a program can have LAPI's
/// beside it.
const INSTANCE: usize = 15;
/// The bytes of a host's name, with the 0 at its end.
const NAME: usize = 128;

/// The session, and who is where.
pub struct Job {
    session: Session,
    task: u32,
    /// The names of all tasks' hosts.
    names: Vec<HostName>,
    _own_name: Box<[u8; NAME]>,
    /// How many messages were watched, and of how many of them the core has counted the arrival.
    watched: AtomicI32,
    arrived: Box<AtomicI32>,
    /// Locked by the thread that sleeps on the session's descriptor.
    sleeper: Mutex<()>,
}

/// The name of a task's host, which the task has in its memory, and this one reads when it is asked
/// for.
struct HostName {
    /// Where the task has it.
    remote: u64,
    is_asked: AtomicBool,
    /// Raised when it is here.
    arrived: AtomicI32,
    bytes: UnsafeCell<[u8; NAME]>,
}

// SAFETY: the bytes are written by the core before it raises `arrived`, and read after that.
unsafe impl Sync for HostName {}

/// Why there is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoName {
    /// The task is gone.
    Gone,
    /// The task has not sent it in time.
    Late,
}

/// What a task of a job must know before ports can be opened.
pub struct Joined {
    /// The session.
    pub job: Job,
    /// The nodes.
    pub nodes: Nodes,
    /// The job's name: another one in other jobs of the host.
    pub name: String,
}

/// What the core reports.
struct Reports {
    /// Called with each task that is gone.
    lost: fn(u32),
}

impl Events for Reports {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, context: &Context, failure: &Failure<'_>) {
        let source = failure.source;
        if source == failure.task {
            return;
        }
        let is_lost = context.enter().and_then(|mut held| recovery::is_lost(&mut held, source));
        if is_lost.unwrap_or(true) {
            (self.lost)(source);
        }
    }

    fn fatal(&self) {}

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

static LINK: Once<Link> = Once::new();

/// The link of this process with its launcher, from the first gm_init on.
fn link() -> &'static Link {
    LINK.get(|| {
        extern "C" fn leave() {
            if let Some(link) = LINK.made() {
                link.leave();
            }
        }
        // SAFETY: a function that may run at exit.
        unsafe { libc::atexit(leave) };
        Link::new(environment::process_env)
    })
}

/// In a forked child: what the launcher has said of the parent's job holds no more.
pub fn forget_in_child() {
    if let Some(link) = LINK.made() {
        link.ends().forget();
    }
}

impl HostName {
    fn at(remote: u64) -> Self {
        let (is_asked, arrived) = (AtomicBool::new(false), AtomicI32::new(0));
        Self { remote, is_asked, arrived, bytes: UnsafeCell::new([0; NAME]) }
    }
}

impl Job {
    /// Joins the job that the environment describes. Over a network, and in any job for the
    /// exchange of who is where, this is collective.
    ///
    /// # Errors
    /// The errors of LAPI_Init.
    pub fn join(by_task: bool, handler: usize, lost: fn(u32)) -> Result<Joined> {
        let identity = Identity::from_env(&environment::process_env)?;
        console::set_task((identity.tasks > 1).then_some(identity.task));
        let settings = Settings {
            config: environment::config()?,
            instance: INSTANCE,
            handle: HANDLE,
            completion_threads: 0,
            interrupts: Interrupts::On,
            look_around: LOOK_AROUND,
            log: Log::new(console::log),
            ..Settings::default()
        };
        let session = Session::open(&identity, settings, link(), Arc::new(Reports { lost }))?;
        let own_name = Box::new(own_name());
        let (lowest, names) = {
            let mut held = session.enter()?;
            held.register_function(HANDLER as i32, handler)?;
            let here = if by_task { Vec::new() } else { env::here(&mut held) };
            let own = here.first().copied().unwrap_or(identity.task);
            let lowest = address::exchange(&mut held, own.into())?;
            let at = own_name.as_ptr().expose_provenance() as u64;
            (lowest, address::exchange(&mut held, at)?)
        };
        let lowest: Vec<u32> = lowest.into_iter().map(|task| task as u32).collect();
        let nodes = Nodes::by_lowest(&lowest);
        let names = names.into_iter().map(HostName::at).collect();
        let (watched, arrived, sleeper) = (AtomicI32::new(0), Box::default(), Mutex::new(()));
        let name = format!("{} {}", rustix::process::getuid().as_raw(), identity.key);
        let task = identity.task;
        let job = Self { session, task, names, _own_name: own_name, watched, arrived, sleeper };
        Ok(Joined { job, nodes, name: digest(&name) })
    }

    /// This task.
    pub fn task(&self) -> u32 {
        self.task
    }

    /// The name of a task's host, which is fetched once. `is_lost`: whether the task is known to be
    /// gone.
    ///
    /// # Errors
    /// The task is gone, or the deadline has passed; then the name may come until a later call.
    pub fn host_name(
        &self,
        task: u32,
        deadline: Option<Instant>,
        is_lost: impl Fn() -> bool,
    ) -> std::result::Result<String, NoName> {
        let name = self.names.get(task as usize).ok_or(NoName::Gone)?;
        let mut held = self.session.enter().map_err(|_| NoName::Gone)?;
        if !name.is_asked.swap(true, Ordering::AcqRel) {
            let get = Get {
                tgt: task,
                places: Places::Contiguous {
                    local: name.bytes.get().expose_provenance(),
                    remote: name.remote,
                    len: NAME,
                },
                tgt_cntr: 0,
                org_cntr: name.arrived.as_ptr().expose_provenance(),
                handler: None,
                parameter: 0,
                hint: Hint::None,
            };
            // SAFETY: bytes and counter live as long as the process, since this is part of a
            // world that is never freed.
            if unsafe { put_get::get(&mut held, &get) }.is_err() {
                name.is_asked.store(false, Ordering::Release);
                return Err(NoName::Gone);
            }
        }
        let is_there = || name.arrived.load(Ordering::Acquire) != 0;
        let waited = progress::wait_until(&mut held, deadline, || is_there() || is_lost());
        if !is_there() {
            return Err(if waited.is_err() || is_lost() { NoName::Gone } else { NoName::Late });
        }
        // SAFETY: written by the core, which does not use it any more.
        let bytes = unsafe { name.bytes.get().read_volatile() };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Whether the session has not ended by a failure.
    pub fn is_there(&self) -> bool {
        self.session.enter().is_ok()
    }

    /// Whether this thread, interrupted somewhere, may call the core: it is in no call of it, and
    /// gets its lock within this time. Between taking the lock and being its owner it would not.
    pub fn may_call(&self, at_most: Duration) -> bool {
        let context = self.session.context();
        !context.is_in_call() && matches!(context.enter_within(at_most), Ok(Some(_)))
    }

    /// Gives a message to the network. `watched`: the target's death is to be noticed though no
    /// reply is awaited, and [`Self::has_arrived`] looks at it.
    ///
    /// # Errors
    /// The task is gone, or the session.
    #[inline]
    pub fn post(&self, output: &Output, watched: bool) -> Result<()> {
        let given = self.give(output, watched);
        if watched && given.is_ok() {
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        given
    }

    #[inline]
    fn give(&self, output: &Output, watched: bool) -> Result<()> {
        let encoded = output.header.encode();
        let header = encoded.as_bytes();
        let (data, counter) = match output.data {
            Data::None => (Piece::EMPTY, 0),
            Data::Memory { address, length, counter } => {
                let ptr = std::ptr::with_exposed_provenance(address);
                (Piece { ptr, len: length as usize }, counter)
            }
        };
        let message = PlainMessage {
            tgt: output.task,
            handler: HANDLER,
            header: Piece::of(header),
            data,
            tgt_cntr: 0,
            org_cntr: counter,
            cmpl_cntr: if watched { self.arrived.as_ptr().expose_provenance() } else { 0 },
        };
        // SAFETY: the header is copied before this returns, since it is short; the program leaves
        // the data as it is until its send has ended, which is after the counter has changed.
        unsafe {
            if let Some(call) = self.session.context().enter_short(Clear::TO_SEND)
                && match active_message::is_long(&message) {
                    true => active_message::amsend_shortly::<true>(call, &message),
                    false => active_message::amsend_shortly::<false>(call, &message),
                }
            {
                return Ok(());
            }
            active_message::amsend(&mut self.session.enter()?, &message.into())
        }
    }

    /// Whether all messages that were watched have arrived. Those of a task that is gone, or has
    /// left, never do.
    pub fn has_arrived(&self) -> bool {
        self.arrived.load(Ordering::Acquire).wrapping_sub(self.watched.load(Ordering::Relaxed)) >= 0
    }

    /// One round of progress.
    #[inline]
    pub fn poll(&self) {
        if let Some(call) = self.session.context().enter_short(Clear::TO_POLL)
            && progress::probe_shortly(call)
        {
            return;
        }
        if let Ok(mut held) = self.session.enter() {
            progress::probe(&mut held);
        }
    }

    /// Waits until the condition holds, or the deadline has passed, and makes progress meanwhile.
    pub fn wait(&self, deadline: Option<Instant>, condition: impl FnMut() -> bool) {
        if let Ok(mut held) = self.session.enter() {
            let _ = progress::wait_until(&mut held, deadline, condition);
        }
    }

    /// As [`Self::wait`], but sleeps at once.
    pub fn sleep(&self, deadline: Option<Instant>, mut condition: impl FnMut() -> bool) {
        let Ok(_one) = self.sleeper.try_lock() else { return self.wait(deadline, condition) };
        loop {
            let moved = self.session.poll();
            if condition() || moved.is_err() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return;
            }
            let Ok(armed) = self.session.arm() else { return };
            if let Some(until) = armed
                && !condition()
            {
                let until = deadline.map_or(until, |deadline| deadline.min(until));
                let left = until.saturating_duration_since(Instant::now());
                // A signal ends it, too.
                let _ = poll(&mut [PollFd::new(&self.session, PollFlags::IN)], left.try_into().ok().as_ref());
            }
            if self.session.disarm().is_err() {
                return;
            }
        }
    }

    /// Threads that wait look again.
    pub fn wake(&self) {
        self.session.wake();
    }

    /// Leaves the job.
    pub fn close(&self) {
        if let Ok(mut held) = self.session.enter() {
            let _ = fence::fence(&mut held);
        }
        let _ = self.session.close();
    }
}

/// A short name for a long one: those of sockets have 107 bytes.
fn digest(name: &str) -> String {
    let mut hash = std::hash::DefaultHasher::new();
    hash.write(name.as_bytes());
    format!("{:016x}", hash.finish())
}

/// The host's name, with a 0 at its end.
fn own_name() -> [u8; NAME] {
    let mut name = [0; NAME];
    let known = rustix::system::uname();
    let bytes = known.nodename().to_bytes();
    let length = bytes.len().min(NAME - 1);
    name[..length].copy_from_slice(&bytes[..length]);
    name
}

/// Whether an arriving message is a reply, and not one for a buffer.
pub fn is_reply(header: &Header) -> bool {
    use crate::wire::Kind::{Data, Datagram, Get, Put, Send};
    !matches!(header.kind, Send | Put | Get | Data | Datagram)
}
