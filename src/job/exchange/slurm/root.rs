//! Task 0's side: it listens, and serves all connections at a time, so that one that is silent
//! delays no other.

use super::super::{failed, late};
use super::{Fence, Key, ports};
use crate::base::open_files;
use crate::base::poll::await_readable;
use crate::error::Result;
use crate::job::start_up::arrivals::{self, Arrivals, Arrived, UNPROVED};
use crate::job::start_up::greeting::{By, Proofs, hash};
use crate::wire::exchange::{LONGEST_VALUES, Values, decode_values, encode_table, take_frame};
use rustix::event::{PollFd, PollFlags};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Descriptors of the program and of the library besides.
const BESIDES: usize = 64;
/// Reads of one connection before the others are served.
const READS: usize = 8;
/// The longest sleep.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// A task that has proved itself.
struct Peer {
    task: u32,
    stream: TcpStream,
    proofs: Proofs,
    input: Vec<u8>,
    has_values: bool,
}

/// The values of all tasks; each task has got them, too.
pub(super) fn gather(fence: &Fence, key: &Key, own: &Values, deadline: Instant) -> Result<Vec<Values>> {
    let tasks = fence.tasks as usize;
    let needed = (tasks + UNPROVED + BESIDES) as u64;
    let limit = open_files::allow(needed);
    let mut arrivals = Arrivals::new(listen(fence)?, key.secret, tasks)
        .map_err(|error| failed(format!("Slurm: task 0 cannot listen: {error}")))?;
    let mut table: Vec<Option<Values>> = vec![None; tasks];
    table[0] = Some(own.clone());
    let (mut peers, mut twice) = (Vec::new(), false);
    while table.iter().any(Option::is_none) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let come = table.iter().flatten().count();
            let why = match limit {
                _ if arrivals.seen.wrong_secret => format!("; one had another secret ({})", key.source),
                _ if twice => "; two had one number".to_owned(),
                Some(limit) if arrivals.seen.full => {
                    format!("; task 0 needs about {needed} open files, its limit is {limit} (ulimit -Hn)")
                }
                None if arrivals.seen.full => "; its descriptors are used up".to_owned(),
                _ => String::new(),
            };
            return Err(late(format!("Slurm: only {come} of {tasks} tasks have come in time{why}")));
        }
        let connected = peers.iter().map(|peer: &Peer| peer.stream.as_fd());
        let mut all: Vec<BorrowedFd<'_>> = connected.collect();
        all.extend(arrivals.descriptors());
        let mut readable = await_readable(&all, Some(left.min(LOOK_AROUND)));
        // Those that come now may have said everything already.
        readable.truncate(peers.len());
        let mut readable = readable.into_iter().chain(std::iter::repeat(true));
        for Arrived { stream, subject, proofs } in arrivals.serve(|subject| fence.caller(subject).is_some()) {
            let Some(task) = fence.caller(&subject) else { continue };
            peers.push(Peer { task, stream, proofs, input: Vec::new(), has_values: false });
        }
        peers.retain_mut(|peer| match if readable.next() == Some(true) { peer.read() } else { Ok(None) } {
            Ok(None) => true,
            Ok(Some(values)) => {
                let place = &mut table[peer.task as usize];
                peer.has_values = place.is_none();
                twice |= !peer.has_values;
                place.get_or_insert(values);
                peer.has_values
            }
            Err(()) => {
                // A task whose connection has failed may try again.
                if peer.has_values {
                    table[peer.task as usize] = None;
                }
                false
            }
        });
    }
    drop(arrivals);
    let table: Vec<Values> = table.into_iter().flatten().collect();
    peers.retain(|peer| peer.has_values);
    distribute(peers, &encode_table(&table), deadline)?;
    Ok(table)
}

impl Peer {
    /// Reads what is there, and returns the task's values when they have arrived. An error: it has
    /// gone, or sends something else.
    fn read(&mut self) -> std::result::Result<Option<Values>, ()> {
        let mut bytes = [0; 16 << 10];
        for _ in 0..READS {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(()),
                Ok(_) if self.has_values => return Err(()),
                Ok(got) => self.input.extend_from_slice(&bytes[..got]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(()),
            }
            if let Some(frame) = take_frame(&mut self.input, LONGEST_VALUES).map_err(drop)? {
                let values = self.proofs.opened(By::Caller, &frame).and_then(decode_values);
                return values.filter(|_| self.input.is_empty()).map(Some).ok_or(());
            }
        }
        Ok(None)
    }
}

/// The first port that is free.
fn listen(fence: &Fence) -> Result<TcpListener> {
    for port in ports(&fence.job) {
        if let Ok(listener) = arrivals::listen(port) {
            return Ok(listener);
        }
    }
    let ports: Vec<String> = ports(&fence.job).take(3).map(|port| port.to_string()).collect();
    Err(failed(format!("Slurm: task 0 finds no free port (tried {}, ...)", ports.join(", "))))
}

/// Writes the table to every task.
fn distribute(peers: Vec<Peer>, table: &[u8], deadline: Instant) -> Result<()> {
    // Each has a beginning of its own, and then the same bytes.
    let hash = hash(table);
    let mut left: Vec<(TcpStream, Vec<u8>, usize)> = peers
        .into_iter()
        .map(|peer| {
            let head = peer.proofs.before(By::Called, table.len(), &hash);
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
        let limit = remaining.min(LOOK_AROUND).try_into().ok();
        let mut polled: Vec<PollFd<'_>> =
            left.iter().map(|(stream, ..)| PollFd::new(stream, PollFlags::OUT)).collect();
        // An interrupted wait is a wait that ended early.
        let _ = rustix::event::poll(&mut polled, limit.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::start_up::greeting::{Answer, Called, Caller, HASHES, Heard, SUBJECT};

    /// The two sides of a connection whose greeting is over: that of task 0, and that of a task.
    fn connection() -> [Proofs; 2] {
        let (mut caller, mut called) = (Caller::new([7; 16], &[0; SUBJECT]), Called::new([7; 16]));
        let Heard::Reply(reply) = called.read(caller.hello(), |_| true) else { panic!("no hello") };
        let Answer::Proved(proof, theirs) = caller.read(&reply) else { panic!("no reply") };
        let Heard::Proved(_, ours) = called.read(&proof, |_| true) else { panic!("no proof") };
        [ours, theirs]
    }

    /// A job of thousands of tasks has a table of megabytes.
    #[test]
    fn the_table_is_hashed_once_for_all_tasks() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (mut peers, mut tasks) = (Vec::new(), Vec::new());
        for task in 1..5 {
            tasks.push(TcpStream::connect(address).expect("it listens"));
            let [proofs, theirs] = connection();
            let (stream, _) = listener.accept().expect("it has connected");
            stream.set_nonblocking(true).expect("it is a socket");
            peers.push((Peer { task, stream, proofs, input: Vec::new(), has_values: true }, theirs));
        }
        let (peers, theirs): (Vec<_>, Vec<_>) = peers.into_iter().unzip();
        let (table, before) = (b"the values of all tasks", HASHES.get());
        distribute(peers, table, Instant::now() + Duration::from_secs(30)).expect("all is written");
        assert_eq!(HASHES.get() - before, 1);
        for (mut task, proofs) in tasks.into_iter().zip(theirs) {
            let mut input = Vec::new();
            task.read_to_end(&mut input).expect("task 0 has closed it");
            let frame = take_frame(&mut input, 100).expect("a frame").expect("all of it");
            assert_eq!(proofs.opened(By::Called, &frame), Some(&table[..]));
        }
    }
}
