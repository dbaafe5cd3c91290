//! Tasks on several machines, by the reliable-datagram endpoints of libfabric.
//!
//! A task has one endpoint ([`ofi::Device`]), chosen by [`provider`]. It sends packets from buffers
//! ([`posting`]) or from the program's memory, and receives them into buffers for many messages
//! ([`receive`]). Credits bound what is on its way to a peer: the receiver returns one for each
//! packet that is released.
//!
//! There is no connection to be made: a peer's address is entered at first contact, and the peer
//! counts as up. Each frame has the tag that its receiver wants. The first one follows from the
//! job's secret; tasks that part and rejoin choose others ([`peer`]), so that what is under way
//! from before is recognised and dropped.

mod close;
mod contact;
mod control;
mod credentials;
mod deaths;
mod endpoint;
mod filled;
mod ofi;
mod own;
mod own_memory;
mod peer;
mod posting;
mod progress;
mod provider;
mod rail;
mod receive;
mod rejoin;
mod remote;
mod single;
mod wakeup;
mod workarounds;

use super::{Limits, Task};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::error::{Error, Result};
use crate::transport::HEAD_MAX;
use crate::transport::directory::Directory;
use crate::transport::poll_pause::PollPause;
use crate::transport::rails::RailEvent;
use crate::transport::sleeper::Sleeper;
use crate::wire::network::FRAME;
use contact::Peer;
use credentials::Credentials;
use deaths::Watch;
use ofi::{Device, Errno, Info};
use posting::{Posting, SENDS};
use receive::{BUFFERS, Receiving};
use rejoin::Rejoining;
use remote::{Accesses, CHUNKS};

use single::SINGLES;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

pub use provider::{Carrier, Choice, Preferences, Reach, preview, reaches, version};

/// The longest message: 32 KiB of data, and 1 KiB for frame, head and user header.
const LONGEST: usize = 33 << 10;
/// The longest message where the provider has buffers for less than that.
const SHORTER: usize = 16 << 10;
/// Packets on their way to a peer, at most.
const WINDOW: u32 = 64;
/// Messages of up to this number of bytes are injected: one call, no report.
const INJECT: usize = 4096;
/// Packets of more bytes than this are sent from the program's memory.
const COPY: usize = 8192;

/// What a task needs to open its endpoint.
#[derive(Clone, Debug)]
pub struct FabricSettings {
    /// This task.
    pub me: Task,
    /// Tasks of the job.
    pub tasks: u32,
    /// Which provider is to be used.
    pub preferences: Preferences,
}

/// An open endpoint that is not used yet.
pub struct Own {
    settings: FabricSettings,
    /// Which provider was chosen, and why not the others.
    pub choice: Choice,
    device: Device,
    /// The address that the peers need.
    pub published: Vec<u8>,
    /// The network that it is connected with: rails of two tasks with equal names reach each other.
    pub network: String,
    /// The interface or card, as libfabric names it.
    pub interface: String,
}

/// Opens endpoints of one provider at these addresses, each with the name of its network.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: libfabric is not installed, an address is gone, or the provider
/// refuses.
pub fn open_at(settings: FabricSettings, choice: &Choice, at: Vec<(Reach, String)>) -> Result<Vec<Own>> {
    let (reaches, networks): (Vec<Reach>, Vec<String>) = at.into_iter().unzip();
    let infos = provider::at(&choice.provider, &reaches).map_err(failed)?;
    infos.into_iter().zip(networks).map(|rail| open_one(&settings, choice, rail)).collect()
}

fn open_one(settings: &FabricSettings, choice: &Choice, (info, network): (Info, String)) -> Result<Own> {
    let interface = info.domain_name();
    let provider = info.provider();
    let refused = |(what, errno): (&str, Errno)| failed(format!("{provider}: {what}: {}", errno.text()));
    let longest = longest(&info);
    let device = Device::open(info, BUFFERS + SENDS + CHUNKS + SINGLES, longest, !settings.preferences.polls)
        .map_err(refused)?;
    let name = device.name().map_err(|errno| refused(("fi_getname", errno)))?;
    let published = publish(&device, &name);
    let (settings, choice) = (settings.clone(), choice.clone());
    Ok(Own { settings, choice, device, published, network, interface })
}

fn failed(why: String) -> Error {
    Error::new(LAPI_ERR_CSS_LOAD_FAILED, why)
}

/// The longest message that is sent in one packet. What a provider injects it has buffers for.
fn longest(info: &Info) -> usize {
    if info.inject_size() >= LONGEST { LONGEST } else { SHORTER }
}

/// What a task publishes: its protocol, so that a peer with another one is recognised,
/// and its address.
fn publish(device: &Device, name: &[u8]) -> Vec<u8> {
    let (protocol, version) = device.info().protocol();
    let numbers = [device.info().address_format(), protocol, version, longest(device.info()) as u32, WINDOW];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(name);
    bytes
}

/// Why tasks that have published these, of whom the first one is named, do not understand each
/// other, if so.
pub fn difference(name: &str, one: &[u8], other: &[u8]) -> Option<String> {
    let (one, other) = (one.get(..PUBLISHED_BEFORE)?, other.get(..PUBLISHED_BEFORE)?);
    let longest = |numbers: &[u8]| numbers[12..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let (at_most, own) = (longest(one), longest(other));
    if one == other {
        None
    } else if at_most != own {
        Some(format!(
            "its messages have at most {own} bytes, those of {name} {at_most}: set \
             FI_OFI_RXM_BUFFER_SIZE={LONGEST} on all hosts"
        ))
    } else {
        Some(format!("it has another version of libfabric or of its provider than {name}"))
    }
}

/// The bytes before the address.
const PUBLISHED_BEFORE: usize = 20;

/// One task's end of the network.
pub struct FabricTransport {
    /// Closed before the memory that it uses: fields are dropped in order.
    device: Device,
    posting: Posting,
    receiving: Receiving,
    limits: Limits,
    credentials: Credentials,
    /// Messages that no task of the job has made.
    foreign: u64,
    directory: Box<dyn Directory<Vec<u8>>>,
    accesses: Accesses,
    peers: Vec<Option<Box<Peer>>>,
    rejoining: Rejoining,
    /// Peers to which messages of the transport's own are to be sent.
    pending: RefCell<Vec<Task>>,
    /// Peers that have left, for which nothing must be under way any more.
    left: Vec<Task>,
    recalling: bool,
    /// How often the end of what is under way with some peers was awaited.
    #[cfg(test)]
    deadlines: u32,
    rest: PollPause,
    closed: bool,
    /// How long the end of this task waits for its peers.
    linger: Duration,
    /// The watch of the tasks for each other.
    watch: Option<Box<Watch>>,
    /// Where this is one of several rails: what its owner is to take note of.
    rail: Option<VecDeque<RailEvent>>,
    sleeper: Sleeper,
}

impl FabricTransport {
    /// A task that has not had contact with any peer yet. `secret` is the job's: a task with
    /// another one is not understood.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: memory cannot be registered, or no descriptor is left.
    pub fn new(own: Own, secret: &[u8], directory: Box<dyn Directory<Vec<u8>>>) -> Result<Self> {
        let Own { settings, mut device, published, .. } = own;
        let FabricSettings { me, tasks, .. } = settings;
        let provider = device.info().provider();
        let failed = |why: String| failed(format!("{provider}: {why}"));
        let memory = |errno: Errno| failed(format!("no memory for packets: {}", errno.text()));
        let longest = longest(device.info());
        let receiving = Receiving::new(&mut device, longest).map_err(memory)?;
        let posting = Posting::new(&mut device, longest).map_err(memory)?;
        let sleeper = Sleeper::new().map_err(|reason| failed(format!("no event descriptor: {reason}")))?;
        let window = WINDOW as usize;
        let max_body = longest - FRAME - HEAD_MAX;
        let limits = Limits {
            name: "fabric",
            keeps_time: true,
            standing_keys: device.info().registers_any_address(),
            max_body,
            job_body: max_body,
            ordered: device.info().ordered(),
            window,
            receive_buffer: window * max_body,
        };
        Ok(Self {
            device,
            posting,
            receiving,
            limits,
            credentials: Credentials::new(me, published, secret),
            foreign: 0,
            directory,
            accesses: Accesses::new(BUFFERS + SENDS),
            peers: std::iter::repeat_with(|| None).take(tasks as usize).collect(),
            rejoining: Rejoining::new(),
            pending: RefCell::default(),
            left: Vec::new(),
            recalling: false,
            #[cfg(test)]
            deadlines: 0,
            rest: PollPause::default(),
            closed: false,
            linger: close::LINGER,
            watch: None,
            rail: None,
            sleeper,
        })
    }
}

impl Drop for FabricTransport {
    /// A task that ends without a message, as after a LAPI_Init that fails, must not be waited for.
    fn drop(&mut self) {
        crate::transport::Endpoint::close(self);
    }
}

#[cfg(test)]
pub(crate) mod tests;
