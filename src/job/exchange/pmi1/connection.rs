//! The descriptor `PMI_FD`: one conversation of the task with its launcher, for all its exchanges.

use super::super::{failed, late, mpi};
use super::wire::{Fault, Incoming, Reply, Request};
use crate::base::descriptor::Foreign;
use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The conversation of a task with its launcher, once it has begun.
#[derive(Default)]
pub(in super::super) struct Conversation(Mutex<Option<Connection>>);

/// How long the end of the process waits for the launcher.
const FINALIZE_PATIENCE: Duration = Duration::from_secs(5);

/// What the launcher has said of itself.
pub(super) struct Connection {
    socket: Foreign,
    /// The process that has begun the conversation.
    process: u32,
    /// The name of the job's table.
    pub(super) kvsname: String,
    /// The longest key, in characters.
    pub(super) longest_key: usize,
    /// The longest value, in characters.
    pub(super) longest_value: usize,
    /// Why the conversation cannot continue.
    broken: Option<Error>,
}

impl Conversation {
    /// Does something with the conversation, which begins now if it has not begun yet. `value` is
    /// that of `PMI_FD`.
    pub(super) fn with<T>(
        &self,
        value: &str,
        deadline: Instant,
        action: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = match &mut *connection {
            Some(begun) => begun,
            none => {
                let mut new = Connection::new(value)?;
                if let Err(why) = new.begin(deadline) {
                    // "init" is said once: its reply may still come.
                    new.broken.get_or_insert(why);
                }
                none.insert(new)
            }
        };
        if begun.process != std::process::id() {
            return Err(failed("PMI-1: this is a forked child of the process that uses PMI_FD"));
        }
        if let Some(why) = &begun.broken {
            return Err(why.clone());
        }
        action(begun)
    }

    /// Says "finalize", in the process that has said "init": without it the launcher calls the end
    /// of this task abnormal, and ends the others.
    pub(in super::super) fn end(&self) {
        // Another thread that is in the middle of a request does not have its reply taken away.
        let mut connection = match self.0.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if connection.as_ref().is_none_or(|begun| begun.process != std::process::id()) {
            return;
        }
        // An MPI library that was initialised later has said "init", too: "finalize" is its to say,
        // and may have been said.
        if matches!(mpi::State::of_this_process(), mpi::State::Initialized | mpi::State::Finalized) {
            return;
        }
        if let Some(mut begun) = connection.take()
            && begun.broken.is_none()
        {
            let _ = begun.ask(Request::Finalize, Instant::now() + FINALIZE_PATIENCE);
        }
    }
}

impl Connection {
    fn new(value: &str) -> Result<Self> {
        let wrong = |why: &str| match mpi::State::of_this_process() {
            mpi::State::Finalized => closed_by_mpi(),
            _ => failed(format!("PMI_FD is {value}, which is {why}")),
        };
        let number: i32 = value.parse().ok().filter(|fd| *fd >= 0).ok_or_else(|| wrong("no descriptor"))?;
        let socket = Foreign::socket_now(number).ok_or_else(|| wrong("not an open socket"))?;
        Ok(Self {
            socket,
            process: std::process::id(),
            kvsname: String::new(),
            longest_key: 0,
            longest_value: 0,
            broken: None,
        })
    }

    /// Begins the conversation.
    fn begin(&mut self, deadline: Instant) -> Result<()> {
        self.ask(Request::Init, deadline)?;
        let maxes = self.ask(Request::GetMaxes, deadline)?;
        let (key, value) = (maxes.number("keylen_max"), maxes.number("vallen_max"));
        // The launcher counts a zero byte at the end.
        let (Some(key), Some(value)) = (key, value) else {
            return Err(failed("PMI-1: the launcher does not say how long values may be"));
        };
        (self.longest_key, self.longest_value) = (key.saturating_sub(1), value.saturating_sub(1));
        let name = self.ask(Request::GetMyKvsname, deadline)?;
        self.kvsname = name.word("kvsname").unwrap_or_default().to_owned();
        if self.kvsname.is_empty() || self.longest_key < 16 || self.longest_value < 16 {
            let limits = format!("keys of {} and values of {}", self.longest_key, self.longest_value);
            return Err(failed(format!("PMI-1: the launcher's limits are too low: {limits} characters")));
        }
        Ok(())
    }

    /// One request and its reply.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_CONNECTIVITY` at the deadline. `LAPI_ERR_CSS_LOAD_FAILED`: the launcher refuses
    /// the request, or has closed the conversation, or says something else.
    pub(super) fn ask(&mut self, request: Request<'_>, deadline: Instant) -> Result<Reply> {
        let reply = self.try_ask(request, deadline)?;
        reply.map_err(|why| failed(format!("PMI-1: {} is refused: {why}", request.command())))
    }

    /// Asks, and returns the reason when the launcher refuses the request.
    ///
    /// # Errors
    /// The errors of [`Self::ask`].
    pub(super) fn try_ask(
        &mut self,
        request: Request<'_>,
        deadline: Instant,
    ) -> Result<std::result::Result<Reply, String>> {
        let command = request.command();
        let error = match converse(self.socket, &request, deadline) {
            Ok(line) => match request.reply_in(&line) {
                Ok(reply) => return Ok(Ok(reply)),
                // The next request has its own reply.
                Err(Fault::Refused(why)) => return Ok(Err(why)),
                Err(fault) => failed(format!("PMI-1: {fault} to {command}")),
            },
            Err(Broken::Late) => match request {
                Request::BarrierIn => late("PMI-1: not all tasks have come to the start-up exchange in time"),
                _ => late(format!("PMI-1: the launcher has not replied to {command} in time")),
            },
            Err(Broken::Closed | Broken::Replaced)
                if mpi::State::of_this_process() == mpi::State::Finalized =>
            {
                closed_by_mpi()
            }
            Err(Broken::Closed) => failed(format!(
                "PMI-1: the launcher has closed PMI_FD before {command} (an earlier program of this task?)"
            )),
            Err(Broken::Replaced) => failed("PMI-1: the program has closed PMI_FD"),
            Err(Broken::System(errno)) => failed(format!("PMI-1: {command} on PMI_FD: {errno}")),
            Err(Broken::Garbage(fault)) => failed(format!("PMI-1: {fault} to {command}")),
        };
        // A late reply would be taken for that of the next request.
        self.broken = Some(error.clone());
        Err(error)
    }
}

#[cold]
fn closed_by_mpi() -> Error {
    failed("PMI-1: MPI_Finalize has closed PMI_FD; call LAPI_Init before it")
}

enum Broken {
    Late,
    Closed,
    Replaced,
    System(Errno),
    Garbage(Fault),
}

fn converse(
    socket: Foreign,
    request: &Request<'_>,
    deadline: Instant,
) -> std::result::Result<Vec<u8>, Broken> {
    let fd = socket.socket().ok_or(Broken::Replaced)?;
    let line = request.line();
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        // A launcher that has gone is an error, not a signal.
        match rustix::net::send(fd, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => rest = &rest[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::OUT, deadline)?,
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(Broken::Closed),
            Err(errno) => return Err(Broken::System(errno)),
        }
    }
    let mut incoming = Incoming::default();
    let mut bytes = [0; 2048];
    loop {
        match rustix::net::recv(fd, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => return Err(Broken::Closed),
            Ok((_, got)) => {
                if let Some(line) = incoming.add(&bytes[..got]).map_err(Broken::Garbage)? {
                    return Ok(line);
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::IN, deadline)?,
            Err(errno) => return Err(Broken::System(errno)),
        }
    }
}

fn wait(fd: BorrowedFd<'_>, event: PollFlags, deadline: Instant) -> std::result::Result<(), Broken> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Broken::Late);
    }
    let limit = left.try_into().ok();
    // What it returns does not matter: the caller tries again, and the deadline counts.
    let _ = rustix::event::poll(&mut [PollFd::new(&fd, event)], limit.as_ref());
    Ok(())
}
