//! Tasks that no launcher has started, whose addresses the program gives (chapter 16 of the manual,
//! docs/design/0020-standalone.md).
//!
//! LAPI_Init waits for no other task: what the tasks must agree upon is a part of their key, or
//! agreed upon when two of them connect.

use super::agreed::{Near, failed, may_use_network};
use super::{Joined, Joining, networks, on_one_machine, udp};
use crate::abi::{
    LAPI_ERR_NO_ENV_VAR, LAPI_ERR_NO_NETSTR_SET, LAPI_ERR_NO_UDP_HNDLR, LAPI_ERR_UDP_PORT_INFO,
    LAPI_ERR_UDP_SOCKET, UDP_DEV,
};
use crate::base::process::Process;
use crate::config::{self, Config, Euilib, NetSecurity, UseShm};
use crate::error::{Error, Result};
use crate::job::addresses::{Address, Addresses};
use crate::job::exchange;
use crate::job::hosts::numbered;
use crate::job::secret::{self, Secret};
use crate::job::{Hosts, Identity, Openings, key_file};
use crate::transport::Task;
use crate::transport::directory::Directory;
use crate::transport::udp::interfaces::{Interface, interfaces};
use crate::transport::udp::socket::{Options, Socket};
use crate::transport::udp::{UdpSettings, UdpTransport};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How the program gives addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Not at all, although it has the structure for them.
    Nothing,
    /// By a list.
    List,
    /// By a handler.
    Handler {
        /// The handler returns addresses of IPv4 and IPv6, and not of IPv4 alone.
        any_family: bool,
    },
}

/// The addresses that the program gives.
pub trait Listing {
    /// How it gives them, for a job of this number of tasks.
    fn way(&self, tasks: u32) -> Way;

    /// The addresses, one for each task. `own` is where a socket of this task receives already, if
    /// there is a handler.
    ///
    /// # Errors
    /// `LAPI_ERR_USER_UDP_HNDLR_FAIL`: the handler has failed. `LAPI_ERR_UDP_PORT_INFO`:
    /// there are too few.
    fn read(&mut self, identity: &Identity, own: Option<Address>) -> Result<Vec<Address>>;
}

/// Whether addresses of the program are used: no launcher has any.
pub(super) fn is_meant(place: &Joining<'_>) -> bool {
    place.config.euilib != Some(Euilib::Us) && !exchange::is_offered(place.identity, place.link.env())
}

/// Opens shared memory to the tasks of this host, and UDP to the others. Waits for none of them.
///
/// # Errors
/// `LAPI_ERR_NO_UDP_HNDLR`, `LAPI_ERR_USER_UDP_HNDLR_FAIL`, `LAPI_ERR_UDP_PORT_INFO`: there are no
/// addresses, or wrong ones. `LAPI_ERR_UDP_SOCKET`: this task cannot receive at its own.
/// `LAPI_ERR_NO_ENV_VAR`: there is no secret. `LAPI_ERR_SHM_SETUP`: LAPI_USE_SHM is `only`, and
/// there is another host. The detail says what to set.
pub(super) fn open(place: &Joining<'_>, listing: &mut dyn Listing) -> Result<Joined> {
    let Joining { config, identity, .. } = *place;
    let all = interfaces().map_err(|reason| failed(format!("udp: no list of interfaces: {reason}")))?;
    let early = match listing.way(identity.tasks) {
        Way::Nothing => {
            let detail = "set udp_hndlr or add_udp_addrs of lapi_extend_t, or num_udp_addr to the number of tasks and udp_ext_hndlr or \
                 add_udp_ext_addrs, or add_info of lapi_info_t to NULL";
            return Err(Error::new(LAPI_ERR_NO_UDP_HNDLR, detail));
        }
        Way::List => None,
        Way::Handler { any_family } => Some(early_port(config, &all, any_family)?),
    };
    let local = early.as_ref().map(Socket::local);
    let listed = listing.read(identity, local.map(Address::of))?;
    let is_here = |ip: IpAddr| ip.is_loopback() || all.iter().any(|own| own.address == ip);
    let addresses = Addresses::new(&listed, is_here)?;
    let Some(own) = addresses.of(identity.task) else {
        return Err(Error::new(LAPI_ERR_UDP_PORT_INFO, format!("task {} has no address", identity.task)));
    };
    check_own(config, identity, own, &all)?;
    let one_host = addresses.are_on_one_host();
    if one_host && config.use_shm != UseShm::No {
        return Ok(Joined { addresses: Some(addresses), ..on_one_machine(place)? });
    }
    let keys = addresses.hosts();
    let hosts = Hosts::new(identity.task, keys.iter());
    may_use_network(place, &hosts)?;
    let secret = derived(place, &own_secret(place, one_host)?, &numbered(keys));
    let socket = match early.filter(|_| local == Some(own)) {
        Some(socket) => socket,
        None => open_port(own)?,
    };
    let near = Near::open(place, &hosts, (&identity.key, &secret), Box::default())?;
    let own_interface = all.iter().find(|interface| interface.address == own.ip());
    let takes = own_interface.map_or(u16::MAX, |interface| interface.longest);
    let settings = UdpSettings {
        opening: place.opening,
        patience: Some(config.init_timeout),
        ..udp::settings(place, secret, usize::from(takes).min(config.udp_packet_size as usize))
    };
    let directory = ByList {
        addresses: addresses.clone(),
        here: near.here.clone(),
        processes: vec![Process::default(); identity.tasks as usize].into(),
        openings: place.openings.clone(),
    };
    let far = UdpTransport::new(&settings, Box::new(socket), Box::new(directory))?;
    let transport = near.join(far, config.coalesce)?;
    let notes = vec![format!(
        "network: udp at {own}, datagrams of up to {} bytes; addresses of the program",
        settings.datagram
    )];
    let hosts = if config.use_shm == UseShm::No { hosts.without_shared_memory() } else { hosts };
    Ok(Joined { notes, addresses: Some(addresses), ..Joined::new(transport, UDP_DEV, hosts) })
}

/// A socket whose address a handler may give to the other tasks.
fn early_port(config: &Config, all: &[Interface], any_family: bool) -> Result<Socket> {
    // The program gives the addresses: a device that this system does not have, such as
    // en0, is no error.
    let any = Config { euidevice: None, ..config.clone() };
    let usable = |config| {
        let is_usable =
            |interface: &Interface| !interface.is_loopback && (any_family || interface.address.is_ipv4());
        let listed = networks::listed(config, all.to_vec()).ok()?;
        listed.into_iter().find(is_usable).map(|interface| interface.address)
    };
    let ip = usable(config).or_else(|| usable(&any)).unwrap_or(Ipv4Addr::LOCALHOST.into());
    open_port(SocketAddr::new(ip, 0))
}

fn open_port(at: SocketAddr) -> Result<Socket> {
    Socket::open(at, Options::default()).map_err(|reason| {
        Error::new(LAPI_ERR_UDP_SOCKET, format!("this task cannot receive at {at}: {reason}"))
    })
}

/// This task can receive where the list says.
fn check_own(config: &Config, identity: &Identity, own: SocketAddr, all: &[Interface]) -> Result<()> {
    let (task, ip) = (identity.task, own.ip());
    if !ip.is_loopback() && !all.iter().any(|interface| interface.address == ip) {
        let there = all.iter().map(|interface| format!("{} {}", interface.name, interface.address));
        let there = there.collect::<Vec<_>>().join(", ");
        let detail = format!(
            "task {task} (MP_CHILD) is to receive at {own} (the program's list), which is no address of this host; it has {there}"
        );
        return Err(Error::new(LAPI_ERR_UDP_SOCKET, detail));
    }
    match config.inet_addr.as_deref() {
        Some(statement) if !networks::stated(statement).contains(&ip) => {
            let detail =
                format!("MP_LAPI_INET_ADDR={statement} does not have {ip}, the address of task {task}");
            Err(Error::new(LAPI_ERR_NO_NETSTR_SET, detail))
        }
        _ => Ok(()),
    }
}

/// What the user's tasks know, and no other process.
fn own_secret(place: &Joining<'_>, one_host: bool) -> Result<Secret> {
    let config = place.config;
    let configured = config.job_secret.as_ref().and_then(|secret| secret.as_bytes().try_into().ok());
    if let Some(secret) = configured {
        return Ok(secret);
    }
    if config.net_security == NetSecurity::None {
        return Ok(Secret::default());
    }
    let path = key_file::path(place.link.env());
    if let Some(path) = &path {
        if let Some(secret) = key_file::read(path)? {
            return Ok(secret);
        }
        // All tasks of this job find it.
        if one_host
            && key_file::make(path).is_ok()
            && let Some(secret) = key_file::read(path)?
        {
            return Ok(secret);
        }
    }
    let file = path.map_or_else(String::new, |path| {
        format!(", make the key file {} (lapi_info --make-key)", path.display())
    });
    Err(Error::new(
        LAPI_ERR_NO_ENV_VAR,
        format!(
            "the tasks have no shared secret on the network: set LAPI_JOB_SECRET to the same 32 hexadecimal digits in \
             all tasks{file}, or set LAPI_NET_SECURITY=none"
        ),
    ))
}

/// The job's secret: tasks that do not agree upon what follows have different ones.
fn derived(place: &Joining<'_>, secret: &Secret, hosts: &[u32]) -> Secret {
    let Joining { config, identity, instance, .. } = *place;
    let partition = config::given(place.link.env(), "MP_PARTITION").unwrap_or_default();
    let shares = config.use_shm != UseShm::No;
    let hosts: Vec<u8> = hosts.iter().flat_map(|host| host.to_le_bytes()).collect();
    let numbers = [identity.tasks, instance, shares.into()].map(u32::to_le_bytes).concat();
    secret::derive(secret, &[b"standalone", partition.as_bytes(), &numbers, &hosts])
}

/// The addresses as the program has given them, and what the tasks of this host have said when
/// they connected.
struct ByList {
    addresses: Addresses,
    /// By task: whether it is on this host.
    here: Box<[bool]>,
    /// By task: its process, where this task sees it.
    processes: Box<[Process]>,
    openings: Openings,
}

impl Directory<SocketAddr> for ByList {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        self.addresses.of(peer).ok_or_else(|| failed(format!("task {peer} has no address")))
    }

    fn has_died(&mut self, peer: Task) -> bool {
        self.processes[peer as usize].is_gone()
    }

    fn note_process(&mut self, peer: Task, process: Process) {
        // One that seems to have ended, although it has just replied, has a number of
        // another numbering.
        let is_seen = self.here[peer as usize] && !process.is_gone();
        self.processes[peer as usize] = if is_seen { process } else { Process::default() };
    }

    fn note_opening(&mut self, opening: u16) {
        self.openings.adopt(opening);
    }
}
