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
mod alarms;
mod close;
mod contact;
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
pub mod seal;
pub mod sockaddr;
pub mod socket;
mod wakeup;

use super::{HEAD_MAX, Limits, MIN_BODY, Tally, Task};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::base::clock;
use crate::base::process::Process;
use crate::base::random::random;
use crate::error::{Error, Result};
use crate::transport::directory::Directory;
use crate::transport::poll_pause::PollPause;
use crate::transport::sleeper::Sleeper;
use crate::wire::datagram::{HEADER, MAP};
use alarms::Alarms;
use contact::Peer;
use deaths::{Receipts, Watch};
use device::Device;
use outgoing::Batch;
use reliable::{Arrived, Buffers, Nanos, Parameters};
use seal::{ENVELOPE, GREETING, JobKey, Security};
use std::collections::VecDeque;
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

/// A packet that was handed out and not released.
struct Out {
    from: Task,
    /// The number of this side of the connection.
    connection: u128,
    packet: Arrived,
}

/// One task's end of the network.
pub struct UdpTransport {
    me: Task,
    key: JobKey,
    /// Makes the numbers of challenges unpredictable.
    salt: [u8; 16],
    /// Of connections with datagrams as long as this task takes them.
    parameters: Parameters,
    /// The longest datagram that it takes.
    longest: u16,
    opening: u16,
    patience: Option<Duration>,
    /// How long its end waits for the receipts of those that watch it.
    linger_for_notices: Duration,
    limits: Limits,
    /// None while it receives, and after the end.
    device: Option<Box<dyn Device>>,
    batch: Batch,
    directory: Box<dyn Directory<SocketAddr>>,
    peers: Vec<Option<Box<Peer>>>,
    /// The peers with which there has been contact, in the order of that.
    met: Vec<Task>,
    buffers: Buffers,
    alarms: Alarms,
    /// For each packet that has arrived its sender, in the order of arrival, but those of peers
    /// that are held.
    ready: VecDeque<Task>,
    out: Option<Out>,
    /// Peers that have rejoined and were not named yet.
    back: VecDeque<(Task, u64)>,
    /// Peers that are to look for packets.
    kicks: Vec<Task>,
    /// Peers from which something has arrived that was not acted upon.
    touched: Vec<Task>,
    /// Peers that may be owed an acknowledgement.
    owed: Vec<Task>,
    /// Greetings that are to be sent.
    greetings: Vec<(SocketAddr, [u8; GREETING])>,
    receipts: Receipts,
    /// What former connections have counted.
    past: Tally,
    refusals: Refusals,
    /// Something has happened since the task was last armed that a sleeper waits for.
    noted: bool,
    rest: PollPause,
    armed: bool,
    closed: bool,
    /// When it is asked next which peers have died, and about which of those in `met` first.
    next_look: Nanos,
    looked_at: usize,
    /// This process has taken the place of another one: the peers let it rejoin.
    replaces: bool,
    process: Process,
    /// What the last number that was drawn has as its order.
    last_order: u64,
    /// By task: whether packets to it go by another transport. Empty: none does.
    elsewhere: Box<[bool]>,
    /// The watch of the tasks for each other.
    watch: Option<Box<Watch>>,
    start: Instant,
    sleeper: Sleeper,
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
        let longest = settings.datagram.clamp(SHORTEST, socket::LONGEST) as u16;
        let parameters = parameters(settings, longest);
        let content = parameters.unit + HEADER;
        let (unit, window) = (parameters.unit, usize::from(parameters.window));
        let max_body = LONGEST - HEAD_MAX;
        Ok(Self {
            me: settings.me,
            key: JobKey::new(&settings.secret, settings.security),
            salt: random(),
            parameters,
            longest,
            opening: settings.opening as u16,
            patience: settings.patience,
            linger_for_notices: close::LINGER_FOR_NOTICES,
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
            device: Some(device),
            batch: Batch::new(ENVELOPE + content),
            directory,
            peers: std::iter::repeat_with(|| None).take(settings.tasks as usize).collect(),
            met: Vec::new(),
            buffers: Buffers::new(unit, LONGEST),
            alarms: Alarms::default(),
            ready: VecDeque::new(),
            out: None,
            back: VecDeque::new(),
            kicks: Vec::new(),
            touched: Vec::new(),
            owed: Vec::new(),
            greetings: Vec::new(),
            receipts: Receipts::new(),
            past: Tally::default(),
            refusals: Refusals::default(),
            noted: false,
            rest: PollPause::default(),
            armed: false,
            closed: false,
            next_look: 0,
            looked_at: 0,
            replaces: false,
            process: Process::own(),
            last_order: 0,
            elsewhere: Box::default(),
            watch: None,
            start: clock::now(),
            sleeper,
        })
    }

    /// This process has taken the place of another one: packets to a peer find no room until the
    /// peer has let it rejoin.
    pub fn replaces_another(&mut self) {
        self.replaces = true;
    }

    /// This end is that of another process than the one that runs it.
    #[cfg(test)]
    pub(crate) fn acts_as(&mut self, process: Process) {
        self.process = process;
    }

    /// Between some tasks of the job packets have bodies of at most `most` bytes.
    pub fn limit_job_body(&mut self, most: usize) {
        self.limits.job_body = self.limits.job_body.min(most);
    }

    /// What has arrived and had no effect.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    #[inline]
    fn now(&self) -> Nanos {
        clock::elapsed(self.start).as_nanos() as Nanos
    }

    #[inline]
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task as usize)?.as_deref()
    }

    #[inline]
    fn peer_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.peers.get_mut(task as usize)?.as_deref_mut()
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
mod tests;
