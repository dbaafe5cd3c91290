//! Task 0's side: it listens, and serves all connections at a time, so that one that is silent
//! delays no other.

use super::super::{failed, late};
use super::key::Key;
use super::ports;
use super::session::{Got, Refusal, Responder, hash};
use crate::base::open_files;
use crate::base::poll::await_readable;
use crate::error::Result;
use crate::job::reach::watch_over;
use crate::wire::exchange::{Request, Values, encode_table};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long a connection may take to give its values.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Connections that have not proved to be tasks, at a time, beside those of the tasks. Where there
/// are more, the oldest one is closed.
const STRANGERS: usize = 64;
/// Connections that are accepted before the others are served again.
const AT_A_TIME: usize = 32;
/// Descriptors of the program and of the library besides.
const BESIDES: usize = 64;
/// Reads of one connection before the others are served.
const READS: usize = 8;
/// The longest sleep.
const LOOK_AROUND: Duration = Duration::from_millis(500);

struct Peer {
    stream: TcpStream,
    responder: Responder,
    /// What remains to be written; short, but for the table.
    output: Vec<u8>,
    /// When it counts as a stranger.
    end: Instant,
    has_values: bool,
}

/// The values of all tasks; each task has got them, too.
pub(super) fn gather(request: Request, key: &Key, own: &Values, deadline: Instant) -> Result<Vec<Values>> {
    let tasks = request.tasks as usize;
    let needed = (tasks + STRANGERS + BESIDES) as u64;
    let limit = open_files::allow(needed);
    let listener = listen(&request)?;
    let mut table: Vec<Option<Values>> = vec![None; tasks];
    table[0] = Some(own.clone());
    let mut peers: Vec<Peer> = Vec::new();
    let (mut refused, mut is_full) = (None, false);
    while table.iter().any(Option::is_none) {
        if Instant::now() >= deadline {
            let come = table.iter().flatten().count();
            let why = match refused {
                Some(Refusal::WrongKey) => format!("; one had another secret ({})", key.source),
                Some(Refusal::Twice) => "; two had one number".to_owned(),
                _ if is_full => limit.map_or_else(
                    || "; its descriptors are used up".to_owned(),
                    |limit| {
                        format!("; task 0 needs about {needed} open files, its limit is {limit} (ulimit -Hn)")
                    },
                ),
                _ => String::new(),
            };
            return Err(late(format!("Slurm: only {come} of {tasks} tasks have come in time{why}")));
        }
        wait(&listener, &peers, deadline);
        for _ in 0..AT_A_TIME {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    // No descriptor is free: the oldest stranger gives its own back.
                    if [libc::EMFILE, libc::ENFILE].map(Some).contains(&error.raw_os_error()) {
                        is_full = true;
                        let stranger = stranger(peers.iter().map(|peer| &peer.responder));
                        stranger.into_iter().for_each(|at| drop(peers.remove(at)));
                    }
                    // Not at once again, or this would be a busy loop.
                    std::thread::sleep(Duration::from_millis(10));
                    break;
                }
            };
            watch_over(&stream);
            if stream.set_nonblocking(true).is_ok() {
                let responder = Responder::new(key.secret, request);
                let end = Instant::now() + TIMEOUT;
                peers.push(Peer { stream, responder, output: Vec::new(), end, has_values: false });
            }
        }
        peers.retain_mut(|peer| match peer.serve(&mut table) {
            Ok(()) => peer.has_values || Instant::now() < peer.end,
            Err(why) => {
                refused = why.filter(|why| matches!(why, Refusal::WrongKey | Refusal::Twice)).or(refused);
                // A task whose connection has failed may try again.
                if peer.has_values
                    && let Some(task) = peer.responder.task()
                {
                    table[task as usize] = None;
                }
                false
            }
        });
        // A task has proved itself after two round trips: a stranger that says nothing is older.
        let mut too_many = peers.len().saturating_sub(tasks + STRANGERS);
        peers.retain(|peer| {
            let closed = too_many != 0 && !peer.has_values;
            too_many -= usize::from(closed);
            !closed
        });
    }
    drop(listener);
    let table: Vec<Values> = table.into_iter().flatten().collect();
    peers.retain(|peer| peer.has_values);
    distribute(peers, &encode_table(&table), deadline)?;
    Ok(table)
}

/// The one of these connections, the oldest one first, that is to be closed: none that has proved
/// itself, and one that has not even sent a request before all others.
fn stranger<'a>(connections: impl Iterator<Item = &'a Responder>) -> Option<usize> {
    let unproved = connections.enumerate().filter(|(_, one)| !one.has_proved());
    unproved.min_by_key(|(_, one)| one.task().is_some()).map(|(at, _)| at)
}

impl Peer {
    /// Reads and writes what goes without waiting; puts the task's values into the table.
    fn serve(&mut self, table: &mut [Option<Values>]) -> std::result::Result<(), Option<Refusal>> {
        let mut bytes = [0; 16 << 10];
        for _ in 0..READS {
            self.write()?;
            let got = match self.stream.read(&mut bytes) {
                Ok(0) => return Err(None),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(None),
            };
            match self.responder.read(&bytes[..got]).map_err(Some)? {
                Got::Read => {}
                Got::Write(more) => self.output.extend(more),
                Got::Values(task, values) => match &mut table[task as usize] {
                    Some(_) => return Err(Some(Refusal::Twice)),
                    empty => {
                        *empty = Some(values);
                        self.has_values = true;
                    }
                },
            }
        }
        Ok(())
    }

    fn write(&mut self) -> std::result::Result<(), Option<Refusal>> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(None),
            }
        }
        Ok(())
    }
}

/// The first port that is free.
fn listen(request: &Request) -> Result<TcpListener> {
    for port in ports(&request.job) {
        let bound = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
        if let Ok(listener) = bound
            && listener.set_nonblocking(true).is_ok()
        {
            return Ok(listener);
        }
    }
    let ports: Vec<String> = ports(&request.job).take(3).map(|port| port.to_string()).collect();
    Err(failed(format!("Slurm: task 0 finds no free port (tried {}, ...)", ports.join(", "))))
}

fn wait(listener: &TcpListener, peers: &[Peer], deadline: Instant) {
    let all: Vec<BorrowedFd<'_>> =
        std::iter::once(listener.as_fd()).chain(peers.iter().map(|peer| peer.stream.as_fd())).collect();
    let left = deadline.saturating_duration_since(Instant::now());
    await_readable(&all, Some(left.min(LOOK_AROUND)));
}

/// Writes the table to every task.
fn distribute(peers: Vec<Peer>, table: &[u8], deadline: Instant) -> Result<()> {
    // Each has a beginning of its own, and then the same bytes.
    let hash = hash(table);
    let mut left: Vec<(TcpStream, Vec<u8>, usize)> = peers
        .into_iter()
        .map(|peer| {
            let head = [peer.output, peer.responder.before_table(table.len(), &hash)].concat();
            (peer.stream, head, 0)
        })
        .collect();
    loop {
        left.retain_mut(|(stream, head, written)| {
            loop {
                let rest = match head.get(*written..) {
                    Some(rest) if !rest.is_empty() => rest,
                    _ => &table[*written - head.len()..],
                };
                if rest.is_empty() {
                    return false;
                }
                match stream.write(rest) {
                    Ok(more) => *written += more,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // That task has ended: what finds tasks dead will find it.
                    Err(_) => return false,
                }
            }
        });
        if left.is_empty() {
            return Ok(());
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(late(format!("Slurm: {} tasks do not read the values of all", left.len())));
        }
        let limit = remaining.min(LOOK_AROUND);
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let mut polled: Vec<PollFd<'_>> =
            left.iter().map(|(stream, ..)| PollFd::new(stream, PollFlags::OUT)).collect();
        // An interrupted wait is a wait that ended early.
        let _ = rustix::event::poll(&mut polled, Some(&limit));
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::{Initiator, Next};
    use super::*;

    #[test]
    fn a_task_that_has_proved_itself_is_not_closed_for_another() {
        let request = Request { job: [1; 16], task: 2, tasks: 4, opening: 1, fence: 1, nonce: [3; 16] };
        let expected = Request { task: 0, ..request };
        let (mut task, first) = Initiator::new([7; 16], request, &Values::new());
        let [mut proved, mut requested, silent] =
            [expected; 3].map(|expected| Responder::new([7; 16], expected));
        let _ = requested.read(&first);
        let Ok(Got::Write(reply)) = proved.read(&first) else { panic!("a reply") };
        let Ok(Next::Write(sealed)) = task.read(&reply) else { panic!("a proof") };
        // Without the last byte its values are not there yet.
        assert_eq!(proved.read(&sealed[..sealed.len() - 1]), Ok(Got::Read));
        assert_eq!(stranger([&proved, &requested, &silent].into_iter()), Some(2));
        assert_eq!(stranger([&proved, &requested].into_iter()), Some(1));
        assert_eq!(stranger([&proved].into_iter()), None);
    }
}
