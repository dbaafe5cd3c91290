//! Questions and answers in datagrams.

use super::trial::{LENGTH, LOOK_AROUND, Progress, Step, Trial};
use crate::base::poll::await_readable;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The time between a question and its repetition, at first; it doubles.
const AGAIN: Duration = Duration::from_millis(25);
/// Questions between two looks at the answers.
const AT_A_TIME: usize = 256;

/// The sockets, for IPv4 and IPv6.
pub(super) struct Datagrams {
    sockets: [Option<UdpSocket>; 2],
    /// When all questions without an answer are asked again, and the time after that.
    next: (Instant, Duration),
}

impl Datagrams {
    pub(super) fn new(sockets: [Option<UdpSocket>; 2]) -> Self {
        Self { sockets, next: (Instant::now(), AGAIN) }
    }

    fn ask(&mut self, trial: &Trial, progress: &mut Progress) {
        let (at, pause) = self.next;
        if Instant::now() < at {
            return;
        }
        let open: Vec<_> = trial.pairs().into_iter().filter(|pair| progress.is_open(pair)).collect();
        for some in open.chunks(AT_A_TIME) {
            for pair in some {
                let Some(to) = trial.place(pair.party, pair.other) else { continue };
                let Some(socket) = &self.sockets[usize::from(to.is_ipv6())] else { continue };
                if let Err(why) = socket.send_to(&trial.question(pair), to) {
                    progress.refused(*pair, &why);
                }
            }
            self.take(trial, progress);
        }
        self.next = (Instant::now() + pause, pause * 2);
    }

    fn take(&self, trial: &Trial, progress: &mut Progress) {
        for socket in self.sockets.iter().flatten() {
            let mut bytes = [0; LENGTH + 1];
            // An error may be the report about an earlier datagram: the socket is as
            // good as before.
            for _ in 0..AT_A_TIME {
                let Ok((len, _)) = socket.recv_from(&mut bytes) else { break };
                if let Some(pair) = trial.answered(&bytes[..len]) {
                    progress.works(trial, pair);
                } else if let Some((answer, to)) = trial.answer(&bytes[..len]) {
                    let _ = socket.send_to(&answer, to);
                }
            }
        }
    }
}

impl Step for Datagrams {
    fn step(&mut self, trial: &Trial, progress: &mut Progress) {
        self.ask(trial, progress);
        let sockets: Vec<_> = self.sockets.iter().flatten().map(AsFd::as_fd).collect();
        await_readable(&sockets, Some(LOOK_AROUND));
        self.take(trial, progress);
    }
}
