//! The pairs over TCP: a connection for each, from the one address to the other, on which both
//! sides prove what they are ([`crate::job::start_up`]).

use super::outcomes::Pair;
use super::rounds::ALL;
use super::trial::{LOOK_AROUND, PATIENCE, Progress, REPEATED, Step, Trial};
use crate::base::open_files;
use crate::config::Env;
use crate::job::start_up::arrivals::{Arrivals, UNPROVED, bound};
use crate::job::start_up::reach::{Attempt, Miss};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Connections of this party at a time, at least: the limit of open files is often 1,024.
const AT_A_TIME: usize = 200;
/// One after the other this many connections have the time of all trials.
const ONE_AFTER_THE_OTHER: usize =
    1 + ((ALL.as_millis() - PATIENCE.as_millis()) / REPEATED.as_millis()) as usize;
/// Connections of others at a time. Where there are more, the oldest one is closed.
const OTHERS: usize = 400;
/// Descriptors of the program and of the library besides.
const BESIDES: usize = 64;

/// A connection of this party's.
struct Own {
    attempt: Attempt,
    since: Instant,
    pair: Pair,
}

/// All connections.
pub(super) struct Connections {
    others: Vec<Arrivals>,
    queue: VecDeque<Pair>,
    own: Vec<Own>,
    at_a_time: usize,
}

/// Listens at any port that libfabric's provider would use: a firewall may let only those pass. A
/// task takes one number of the range, for both families.
pub(super) fn listen(at: IpAddr, env: &Env<'_>) -> io::Result<TcpListener> {
    let port = |name: &str| env(name).and_then(|text| text.trim().parse::<u16>().ok());
    let range = port("FI_TCP_PORT_LOW_RANGE").zip(port("FI_TCP_PORT_HIGH_RANGE"));
    let range = range.filter(|(low, high)| *low > 0 && low <= high);
    let (low, high) = range.unwrap_or_default();
    let mut last = ErrorKind::AddrInUse.into();
    for port in low..=high {
        match bound(SocketAddr::new(at, port), true) {
            Ok(listener) => return Ok(listener),
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// How many of this many pairs are tried at a time.
pub(super) fn at_a_time(pairs: usize) -> usize {
    AT_A_TIME.max(pairs.div_ceil(ONE_AFTER_THE_OTHER))
}

/// How long so many pairs may take: each until it counts as silent where it keeps others waiting.
pub(super) fn needed(pairs: usize) -> Duration {
    let others = pairs.saturating_sub(1) / at_a_time(pairs);
    PATIENCE + REPEATED * others as u32
}

impl Connections {
    pub(super) fn new(trial: &Trial, listeners: [Option<TcpListener>; 2]) -> Self {
        let others = listeners.into_iter().flatten();
        let others = others.map(|one| Arrivals::new(one, trial.secret, OTHERS - UNPROVED));
        let (others, queue) = (others.flatten().collect(), VecDeque::from(trial.queue()));
        let at_a_time = at_a_time(queue.len());
        // Without them fewer are tried at a time.
        let _ = open_files::allow((at_a_time + OTHERS + BESIDES) as u64);
        Self { others, queue, own: Vec::new(), at_a_time }
    }

    /// Begins connections, as many as there may be.
    fn begin(&mut self, trial: &Trial, progress: &mut Progress) {
        while self.own.len() < self.at_a_time {
            let Some(pair) = self.queue.pop_front() else { return };
            let Some((from, to)) = trial.own_address(&pair).zip(trial.place(pair.party, pair.other)) else {
                continue;
            };
            match Attempt::begin(Some(from), to, trial.secret, &trial.subject(&pair)) {
                Ok(attempt) => self.own.push(Own { attempt, since: Instant::now(), pair }),
                // The limit of open files: this one waits for those that are under way.
                Err(why)
                    if !self.own.is_empty()
                        && [libc::EMFILE, libc::ENFILE].map(Some).contains(&why.raw_os_error()) =>
                {
                    return self.queue.push_front(pair);
                }
                Err(why) => {
                    progress.refused(pair, &why);
                    progress.given_up();
                }
            }
        }
    }

    fn wait(&self) {
        let others = self.others.iter().flat_map(Arrivals::descriptors);
        let others = others.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> =
            others.chain(self.own.iter().map(|own| own.attempt.polled())).collect();
        let time = LOOK_AROUND.try_into().ok();
        // A wait that ended early: all are looked at anyway.
        let _ = poll(&mut all, time.as_ref());
    }
}

impl Step for Connections {
    fn step(&mut self, trial: &Trial, progress: &mut Progress) {
        self.begin(trial, progress);
        self.wait();
        for others in &mut self.others {
            // The other side knows what it wants to know.
            drop(others.serve(|subject| trial.is_asked(subject)));
        }
        let longest = if self.queue.is_empty() { PATIENCE } else { REPEATED };
        self.own.retain_mut(|Own { attempt, since, pair }| match attempt.serve() {
            Ok(None) => {
                let goes = since.elapsed() < longest;
                if !goes {
                    progress.given_up();
                }
                goes
            }
            Ok(Some(_)) => {
                progress.works(trial, *pair);
                false
            }
            Err(miss) => {
                let number = if let Miss::Failed(number, _) = miss { number } else { Some(libc::EPROTO) };
                progress.refused(*pair, &io::Error::from_raw_os_error(number.unwrap_or(libc::EPROTO)));
                progress.given_up();
                false
            }
        });
    }
}

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
