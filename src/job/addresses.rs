//! Where the tasks of a job without a launcher receive, as the program says it (`lapi_extend_t`,
//! LAPI_ADD_UDP_DEST_PORT).
//!
//! Tasks with equal IP addresses share a host. All tasks of a job come to the same result from
//! equal lists, and it does not change while the job runs: collective operations follow it.

use crate::abi::{LAPI_ERR_UDP_PORT_INFO, lapi_udp_t};
use crate::base::sync::Mutex;
use crate::error::{Error, Result};
use crate::transport::udp::sockaddr;
use crate::wire::frame::Task;
use libc::sockaddr_storage;
use std::collections::HashMap;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

/// One address, as programs have it in their structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(SocketAddr);

impl Address {
    /// One of IPv4: the IP address is in network order, the port in that of the host.
    pub fn of_four(address: lapi_udp_t) -> Self {
        let ip = Ipv4Addr::from(address.ip_addr.to_ne_bytes());
        Self(SocketAddrV4::new(ip, address.port_no).into())
    }

    /// The address as LAPI's structure for IPv4 has it; 0 for an address of IPv6.
    pub fn four(self) -> lapi_udp_t {
        match self.0 {
            SocketAddr::V4(own) => {
                lapi_udp_t { ip_addr: u32::from_ne_bytes(own.ip().octets()), port_no: own.port() }
            }
            SocketAddr::V6(_) => lapi_udp_t { ip_addr: 0, port_no: 0 },
        }
    }

    /// Reads the address of a task, of any family.
    ///
    /// # Errors
    /// `LAPI_ERR_UDP_PORT_INFO`: it is neither of IPv4 nor of IPv6.
    pub fn of_any(task: Task, address: &sockaddr_storage) -> Result<Self> {
        let found = sockaddr::read(address, size_of::<sockaddr_storage>() as _);
        let family = address.ss_family;
        found.map(Self).ok_or_else(|| {
            wrong(format!("task {task} has an address of family {family}, and not of IPv4 or IPv6"))
        })
    }

    /// The address as a structure for any family.
    pub fn any(self) -> sockaddr_storage {
        // SAFETY: every field of the structure may be 0.
        let mut address = unsafe { zeroed() };
        sockaddr::write(&mut address, self.0);
        address
    }

    /// Where a socket receives, of either family.
    pub fn of(address: SocketAddr) -> Self {
        Self(address)
    }
}

/// The addresses of all tasks. Copies share them.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// By task.
    all: Arc<Mutex<Vec<SocketAddr>>>,
    /// All tasks are on one host, although their addresses may differ.
    one_host: bool,
}

impl Addresses {
    /// From the program's list, by task. `is_here` says whether this host has an address.
    ///
    /// # Errors
    /// `LAPI_ERR_UDP_PORT_INFO`: no job can have such addresses; the detail names the tasks.
    pub fn new(listed: &[Address], is_here: impl Fn(IpAddr) -> bool) -> Result<Self> {
        let listed: Vec<SocketAddr> = listed.iter().map(|address| plain(address.0)).collect();
        for (task, address) in listed.iter().enumerate() {
            check(task, *address)?;
        }
        let family = |address: &SocketAddr| address.is_ipv4();
        if let Some(other) = listed.iter().position(|address| family(address) != family(&listed[0])) {
            let (first, other) =
                (format!("task 0 has {}", listed[0]), format!("task {other} has {}", listed[other]));
            return Err(wrong(format!("{first}, and {other}: a task reaches addresses of one family only")));
        }
        let mut tasks = HashMap::with_capacity(listed.len());
        for (task, address) in listed.iter().enumerate() {
            if let Some(other) = tasks.insert(address, task) {
                return Err(wrong(format!("tasks {other} and {task} have the same address {address}")));
            }
        }
        let one_host = listed.iter().all(|address| is_here(address.ip()));
        let own_only = listed.iter().position(|address| address.ip().is_loopback());
        if let (Some(task), false) = (own_only, one_host) {
            let address = listed[task];
            return Err(wrong(format!(
                "task {task} has {address}, which its own host alone reaches, and there are other hosts"
            )));
        }
        Ok(Self { all: Arc::new(Mutex::new(listed)), one_host })
    }

    /// Where a task receives.
    pub fn of(&self, task: Task) -> Option<SocketAddr> {
        self.all.lock().get(task as usize).copied()
    }

    /// Whether all tasks are on one host.
    pub fn are_on_one_host(&self) -> bool {
        self.one_host
    }

    /// What identifies the host of each task.
    pub fn hosts(&self) -> Vec<IpAddr> {
        let host = |address: &SocketAddr| match self.one_host {
            true => Ipv4Addr::LOCALHOST.into(),
            false => address.ip(),
        };
        self.all.lock().iter().map(host).collect()
    }

    /// Another process has taken the place of a task, and receives there.
    ///
    /// # Errors
    /// `LAPI_ERR_UDP_PORT_INFO`: no task can receive there, another one does, or other tasks would
    /// share a host with it than before.
    pub fn change(&self, task: Task, to: Address) -> Result<()> {
        let to = plain(to.0);
        check(task as usize, to)?;
        let mut all = self.all.lock();
        let others = || all.iter().enumerate().filter(|(other, _)| *other != task as usize);
        if let Some((other, _)) = others().find(|(_, address)| **address == to) {
            return Err(wrong(format!("task {other} has the address {to}")));
        }
        let before = all[task as usize].ip();
        if before.is_ipv4() != to.is_ipv4() {
            return Err(wrong(format!("task {task} was on {before}, and {to} is of another family")));
        }
        let stays = match self.one_host {
            true => all.iter().any(|address| address.ip() == to.ip()),
            false => others().all(|(_, other)| (other.ip() == before) == (other.ip() == to.ip())),
        };
        if !stays || (to.ip().is_loopback() && !before.is_loopback()) {
            return Err(wrong(format!(
                "task {task} was on {before}, and {to} is not there: a task that shares its host with others is replaced on that \
                 host only, and another one on a host of its own"
            )));
        }
        all[task as usize] = to;
        Ok(())
    }
}

/// Without what belongs to one link or message only. An IPv4 address that is written as one of IPv6
/// is what it is.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn check(task: usize, address: SocketAddr) -> Result<()> {
    let ip = address.ip();
    let on_link = match ip {
        IpAddr::V4(ip) => ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || on_link {
        return Err(wrong(format!("task {task} has {address}: no task can receive there")));
    }
    Ok(())
}

#[cold]
fn wrong(detail: String) -> Error {
    Error::new(LAPI_ERR_UDP_PORT_INFO, detail)
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
