//! The thread that tries the addresses of the other parties, and answers them: over what the
//! transport uses, UDP or TCP.

use super::trial::{Progress, Step, Trial};
use super::{tcp, udp};
use crate::base::sync::{Condvar, Mutex};
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::config::Env;
use crate::error::Result;
use crate::job::join::agreed::failed;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What packets travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::job::join) enum Carrier {
    Tcp,
    Udp,
    /// Cards have networks of their own, which cannot be tried before an endpoint is there.
    None,
}

/// Where a task answers: a socket for IPv4, and one for IPv6.
pub(in crate::job::join) enum Sockets {
    Tcp([Option<TcpListener>; 2]),
    Udp([Option<UdpSocket>; 2]),
}

impl Sockets {
    /// Opens them; without one of a family that this system does not have. `None`: nothing can be
    /// tried.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: it has neither, or no port is free.
    pub(in crate::job::join) fn open(carrier: Carrier, env: &Env<'_>) -> Result<Option<Self>> {
        let wildcards: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let datagrams = |at: IpAddr| {
            let socket = UdpSocket::bind(SocketAddr::new(at, 0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        Ok(match carrier {
            Carrier::None => None,
            Carrier::Tcp => Some(Self::Tcp(both(wildcards.map(|at| tcp::listen(at, env)))?)),
            Carrier::Udp => Some(Self::Udp(both(wildcards.map(datagrams))?)),
        })
    }

    /// Their ports; 0: there is no such socket.
    pub(in crate::job::join) fn ports(&self) -> [u16; 2] {
        let port = |at: Option<io::Result<SocketAddr>>| at.and_then(|at| at.ok()).map_or(0, |at| at.port());
        match self {
            Self::Tcp(sockets) => {
                sockets.each_ref().map(|one| port(one.as_ref().map(TcpListener::local_addr)))
            }
            Self::Udp(sockets) => sockets.each_ref().map(|one| port(one.as_ref().map(UdpSocket::local_addr))),
        }
    }

    /// Further descriptors of the sockets, for the thread that uses them.
    pub(super) fn share(&self) -> Result<Self> {
        let why = |reason: io::Error| failed(format!("no socket to try the networks with: {reason}"));
        Ok(match self {
            Self::Tcp([four, six]) => {
                let share = |one: &Option<TcpListener>| one.as_ref().map(TcpListener::try_clone).transpose();
                Self::Tcp([share(four).map_err(why)?, share(six).map_err(why)?])
            }
            Self::Udp([four, six]) => {
                let share = |one: &Option<UdpSocket>| one.as_ref().map(UdpSocket::try_clone).transpose();
                Self::Udp([share(four).map_err(why)?, share(six).map_err(why)?])
            }
        })
    }
}

/// What has been opened; at least one.
fn both<T>(opened: [io::Result<T>; 2]) -> Result<[Option<T>; 2]> {
    match opened {
        [Err(why), Err(_)] => Err(failed(format!("no socket to try the networks with: {why}"))),
        opened => Ok(opened.map(|one| one.ok())),
    }
}

/// What the thread and its maker share.
struct Shared {
    outcomes: Mutex<Option<Vec<u8>>>,
    settled: Condvar,
    ends: AtomicBool,
}

/// A thread that tries the pairs of a party, and answers the other parties until this is dropped.
pub(super) struct Probe {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

impl Probe {
    /// Begins.
    ///
    /// # Errors
    /// There can be no more threads.
    pub(super) fn start(trial: Trial, sockets: Sockets) -> Result<Self> {
        Self::spawn(move |its| {
            let mut progress = Progress::new(&trial, trial.longest);
            let mut work: Box<dyn Step> = match sockets {
                Sockets::Tcp(listeners) => Box::new(tcp::Connections::new(&trial, listeners)),
                Sockets::Udp(sockets) => Box::new(udp::Datagrams::new(sockets)),
            };
            let mut is_settled = false;
            while !its.ends.load(Ordering::Acquire) {
                work.step(&trial, &mut progress);
                if !is_settled && progress.is_settled() {
                    is_settled = true;
                    *its.outcomes.lock() = Some(progress.listed(&trial));
                    its.settled.notify_all();
                }
            }
        })
    }

    /// A thread that does nothing: the tasks of a host for which another one tries the addresses
    /// have as many threads as that one, since what the program maps after LAPI_Init is to lie at
    /// the same address in all tasks.
    ///
    /// # Errors
    /// The errors of [`Self::start`].
    pub(super) fn idle() -> Result<Self> {
        Self::spawn(|_| ())
    }

    fn spawn(run: impl FnOnce(&Shared) + Send + 'static) -> Result<Self> {
        let shared = Arc::new(Shared {
            outcomes: Mutex::new(None),
            settled: Condvar::new(),
            ends: AtomicBool::new(false),
        });
        let its = shared.clone();
        // It runs nothing of the program's, so the program's attributes are not for it.
        let thread = thread::spawn("lapi-networks", ThreadConfig::PLAIN, move || run(&its))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits until nothing more is to be tried: what has become of each pair, in the order of
    /// `outcomes::pairs`.
    pub(super) fn outcomes(&self) -> Vec<u8> {
        let mut outcomes = self.shared.outcomes.lock();
        loop {
            if let Some(outcomes) = &*outcomes {
                return outcomes.clone();
            }
            self.shared.settled.wait(&mut outcomes);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}
