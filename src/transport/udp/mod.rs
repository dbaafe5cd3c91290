//! UDP: packets in datagrams, over any network that carries IP.
//!
//! * [`device`]: a lossy device, which carries datagrams.
//! * [`socket`]: the device on real sockets.
//! * [`seal`]: what makes a datagram the job's own: tags, encryption, and the refusal of replays.
//! * [`reliable`]: the reliable core, which has no socket and no clock.
//!
//! [`UdpTransport`] is the endpoint that joins them. A task has one device, and with each peer,
//! from first contact on, one incarnation of a connection ([`contact`]): its reliable core and its
//! keys. What has arrived and the time drive it ([`progress`]); what is to be sent is sealed and
//! given to the device in batches ([`outgoing`]). [`handshake`] says how connections are made, and
//! what another incarnation of a peer means.
//!
//! A job uses it with `MP_EUILIB=ip` (`src/job/join/udp.rs`): which of the [`interfaces`] it uses,
//! the tasks agree there.

pub mod address;
mod address_validation;
mod close;
mod contact;
mod credentials;
mod deaths;
pub mod device;
mod endpoint;
mod handshake;
pub mod interfaces;
mod notices;
mod outgoing;
mod peer;
mod progress;
pub mod reliable;
mod schedule;
pub mod seal;
pub mod sockaddr;
pub mod socket;
mod wakeup;

use super::{HEAD_MAX, Limits, MIN_BODY, Task};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::base::clock;
#[cfg(test)]
use crate::base::process::Process;
use crate::error::{Error, Result};
use crate::transport::directory::Directory;
use crate::transport::poll_pause::PollPause;
use crate::transport::sleeper::Sleeper;
use crate::wire::datagram::{HEADER, MAP};
use contact::Peer;
use credentials::Credentials;
use deaths::Deaths;
use device::Device;
use endpoint::Arrivals;
use outgoing::Outlet;
use peer::Table;
use reliable::{Buffers, Nanos, Parameters};
use schedule::Schedule;
use seal::{ENVELOPE, Security};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The longest packet: what the longest train of datagrams over Ethernet carries, which the kernel
/// takes as one message. The same in all tasks.
const LONGEST: usize = 44 * 1400;

/// Bytes of a datagram that every path takes, without the headers of UDP and IP: what IPv6
/// promises, and tunnels leave of it.
const BASE: usize = 1200;

/// Memory for what has arrived from a peer and was not released, in bytes; within the bounds of the
/// fragments that a window has.
const WINDOW: usize = 1 << 20;

/// How long it is believed that the device is still this task's. To look costs 0.1 µs, where a poll
/// that finds nothing costs 0.3 µs: before each use of the device it would make messages slower.
const BELIEF: Nanos = 50_000;

/// Why no peer can be reached by a task whose program has closed the device.
const LOST: &str = "cannot be reached any more: the program of this task has closed the socket of LAPI";

/// What a task needs to know of the job and of its settings. All of it but `me`, `datagram` and
/// `opening` is equal in all tasks.
#[derive(Clone, Debug)]
pub struct UdpSettings {
    /// This task.
    pub me: Task,
    /// Tasks of the job.
    pub tasks: u32,
    /// The job's secret.
    pub secret: [u8; 16],
    /// What protects datagrams.
    pub security: Security,
    /// Bytes of the longest datagram that this task takes, without the headers of UDP and IP. At
    /// least [`SHORTEST`].
    pub datagram: usize,
    /// Datagrams that are acknowledged together, at most.
    pub acknowledge_every: u16,
    /// The longest time after which something is sent again.
    pub longest_interval: Duration,
    /// Which opening of LAPI in the job this is, where tasks of several may meet.
    pub opening: u32,
    /// The tasks start on their own: after how long one that has not replied at first contact
    /// counts as dead. `None`: all of them are there.
    pub patience: Option<Duration>,
}

/// The least that [`UdpSettings::datagram`] may be: with it the longest packet fits
/// into the window.
pub const SHORTEST: usize = 512;

/// What has arrived and had no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Datagrams that no task of the job has made, were changed on the way, or belong to a
    /// connection that is no more.
    pub forged: u64,
    /// Datagrams that had been accepted before.
    pub replayed: u64,
}

/// One task's end of the network.
pub struct UdpTransport {
    credentials: Credentials,
    /// Of connections with datagrams as long as this task takes them.
    parameters: Parameters,
    limits: Limits,
    outlet: Outlet,
    directory: Box<dyn Directory<SocketAddr>>,
    table: Table,
    buffers: Buffers,
    arrivals: Arrivals,
    schedule: Schedule,
    deaths: Deaths,
    sleeper: Sleeper,
    rest: PollPause,
    closed: bool,
    /// When it is looked at next whether the device is still this task's, and whether it was not.
    next_look: Nanos,
    lost: bool,
    start: Instant,
}

impl UdpTransport {
    /// A task that has not had contact with any peer yet.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: no descriptor is left.
    pub fn new(
        settings: &UdpSettings,
        device: Box<dyn Device>,
        directory: Box<dyn Directory<SocketAddr>>,
    ) -> Result<Self> {
        let sleeper = Sleeper::new().map_err(|reason| {
            Error::new(LAPI_ERR_CSS_LOAD_FAILED, format!("udp: no event descriptor: {reason}"))
        })?;
        let credentials = Credentials::new(settings);
        let parameters = parameters(settings, credentials.longest);
        let (unit, window) = (parameters.unit, usize::from(parameters.window));
        let max_body = LONGEST - HEAD_MAX;
        Ok(Self {
            credentials,
            parameters,
            limits: Limits {
                name: "udp",
                keeps_time: true,
                standing_keys: false,
                max_body,
                job_body: max_body,
                ordered: false,
                window,
                receive_buffer: window * unit,
            },
            outlet: Outlet::new(device, ENVELOPE + HEADER + unit),
            directory,
            table: Table::new(settings.tasks),
            buffers: Buffers::new(unit, LONGEST),
            arrivals: Arrivals::default(),
            schedule: Schedule::default(),
            deaths: Deaths::new(),
            sleeper,
            rest: PollPause::default(),
            closed: false,
            next_look: 0,
            lost: false,
            start: clock::now(),
        })
    }

    /// This process has taken the place of another one: packets to a peer find no room until the
    /// peer has let it rejoin.
    pub fn replaces_another(&mut self) {
        self.credentials.replaces = true;
    }

    /// This end is that of another process than the one that runs it.
    #[cfg(test)]
    pub(crate) fn acts_as(&mut self, process: Process) {
        self.credentials.process = process;
    }

    #[inline]
    fn now(&self) -> Nanos {
        clock::elapsed(self.start).as_nanos() as Nanos
    }

    #[inline]
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.table.get(task)
    }

    #[inline]
    fn peer_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.table.get_mut(task)
    }
}

/// What connections have whose datagrams are at most this long.
fn parameters(settings: &UdpSettings, longest: u16) -> Parameters {
    let common = Parameters {
        unit: 1,
        base: 1,
        window: 0,
        acknowledge_every: settings.acknowledge_every.max(1),
        acknowledge_after: 500_000,
        longest_interval: settings.longest_interval.as_nanos() as Nanos,
    };
    with_datagrams(common, longest)
}

/// The parameters for datagrams of another length.
fn with_datagrams(parameters: Parameters, longest: u16) -> Parameters {
    let unit = usize::from(longest).max(SHORTEST) - ENVELOPE - HEADER;
    let base = unit.min(BASE - ENVELOPE - HEADER);
    let window = (WINDOW / unit).clamp(LONGEST.div_ceil(base).max(32), 64 * MAP) as u16;
    Parameters { unit, base, window, ..parameters }
}

const _: () =
    assert!(LONGEST.div_ceil(SHORTEST - ENVELOPE - HEADER) <= 64 * MAP && LONGEST - HEAD_MAX >= MIN_BODY);

impl Drop for UdpTransport {
    /// A task that ends without a message, as after a LAPI_Init that fails, must not be waited for.
    fn drop(&mut self) {
        crate::transport::Endpoint::close(self);
    }
}

#[cfg(test)]
pub(crate) mod tests;
