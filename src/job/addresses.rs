//! Where the tasks of a job without a launcher receive, as the program says it (`lapi_extend_t`, LAPI_ADD_UDP_DEST_PORT).
//!
//! Tasks with equal IP addresses share a host. All tasks of a job come to the same result from equal lists, and it does not change while
//! the job runs: collective operations follow it.

use crate::abi::{LAPI_ERR_UDP_PORT_INFO, lapi_udp_t};
use crate::base::sync::Mutex;
use crate::error::{Error, Result};
use crate::wire::frame::Task;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// The addresses of all tasks. Copies share them.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// By task.
    all: Arc<Mutex<Vec<SocketAddrV4>>>,
    /// All tasks are on one host, although their addresses may differ.
    one_host: bool,
}

impl Addresses {
    /// From the program's list, by task. `is_here` says whether this host has an address.
    ///
    /// # Errors
    /// `LAPI_ERR_UDP_PORT_INFO`: no job can have such addresses; the detail names the tasks.
    pub fn new(listed: &[lapi_udp_t], is_here: impl Fn(Ipv4Addr) -> bool) -> Result<Self> {
        let listed: Vec<SocketAddrV4> = listed.iter().copied().map(decode).collect();
        for (task, address) in listed.iter().enumerate() {
            check(task, *address)?;
        }
        let mut tasks = HashMap::with_capacity(listed.len());
        for (task, address) in listed.iter().enumerate() {
            if let Some(other) = tasks.insert(address, task) {
                return Err(wrong(format!("tasks {other} and {task} have the same address {address}")));
            }
        }
        let one_host = listed.iter().all(|address| is_here(*address.ip()));
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
    pub fn of(&self, task: Task) -> Option<SocketAddrV4> {
        self.all.lock().get(task as usize).copied()
    }

    /// Whether all tasks are on one host.
    pub fn are_on_one_host(&self) -> bool {
        self.one_host
    }

    /// What identifies the host of each task.
    pub fn hosts(&self) -> Vec<Ipv4Addr> {
        let host = |address: &SocketAddrV4| match self.one_host {
            true => Ipv4Addr::LOCALHOST,
            false => *address.ip(),
        };
        self.all.lock().iter().map(host).collect()
    }

    /// Another process has taken the place of a task, and receives there.
    ///
    /// # Errors
    /// `LAPI_ERR_UDP_PORT_INFO`: no task can receive there, another one does, or other tasks would share a host with it than before.
    pub fn change(&self, task: Task, to: lapi_udp_t) -> Result<()> {
        let to = decode(to);
        check(task as usize, to)?;
        let mut all = self.all.lock();
        let others = || all.iter().enumerate().filter(|(other, _)| *other != task as usize);
        if let Some((other, _)) = others().find(|(_, address)| **address == to) {
            return Err(wrong(format!("task {other} has the address {to}")));
        }
        let before = *all[task as usize].ip();
        let stays = match self.one_host {
            true => all.iter().any(|address| address.ip() == to.ip()),
            false => others().all(|(_, other)| (*other.ip() == before) == (other.ip() == to.ip())),
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

/// An address as programs have it.
pub fn encode(address: SocketAddrV4) -> lapi_udp_t {
    lapi_udp_t { ip_addr: u32::from_ne_bytes(address.ip().octets()), port_no: address.port() }
}

/// The IP address is in network order, the port in that of the host.
fn decode(address: lapi_udp_t) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(address.ip_addr.to_ne_bytes()), address.port_no)
}

fn check(task: usize, address: SocketAddrV4) -> Result<()> {
    let ip = address.ip();
    if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
        return Err(wrong(format!("task {task} has {address}: no task can receive there")));
    }
    Ok(())
}

#[cold]
fn wrong(detail: String) -> Error {
    Error::new(LAPI_ERR_UDP_PORT_INFO, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Result<Addresses> {
        let all: Vec<_> =
            text.split(' ').map(|address| encode(address.parse().expect("an address"))).collect();
        Addresses::new(&all, |ip| ip.is_loopback() || ip == Ipv4Addr::new(192, 0, 2, 1))
    }

    fn why(result: Result<impl Sized>) -> String {
        let Err(error) = result else { panic!("it was accepted") };
        assert_eq!(error.code, LAPI_ERR_UDP_PORT_INFO);
        error.detail
    }

    #[test]
    fn tasks_with_one_address_share_a_host() {
        let some = listed("192.0.2.1:1 192.0.2.9:1 192.0.2.1:2").expect("sound");
        let [one, other] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 9)];
        assert_eq!((some.are_on_one_host(), some.hosts()), (false, vec![one, other, one]));
        assert_eq!((some.of(2), some.of(3)), (Some(SocketAddrV4::new(one, 2)), None));
        let all = listed("192.0.2.1:1 127.0.0.1:1 127.0.0.2:1").expect("all of this host");
        assert_eq!((all.are_on_one_host(), all.hosts()), (true, vec![Ipv4Addr::LOCALHOST; 3]));
    }

    #[test]
    fn what_no_job_can_have_is_refused() {
        for (list, text) in [
            ("192.0.2.1:1 192.0.2.2:0", "task 1 has 192.0.2.2:0"),
            ("0.0.0.0:1 192.0.2.2:1", "task 0 has 0.0.0.0:1"),
            ("192.0.2.1:1 224.0.0.1:1", "task 1 has 224.0.0.1:1"),
            ("192.0.2.1:1 255.255.255.255:1", "task 1 has 255.255.255.255:1"),
            ("192.0.2.1:1 192.0.2.9:1 192.0.2.1:1", "tasks 0 and 2 have the same address 192.0.2.1:1"),
            ("192.0.2.9:1 127.0.0.1:1", "task 1 has 127.0.0.1:1, which its own host alone reaches"),
        ] {
            let why = why(listed(list));
            assert!(why.contains(text), "{list}: {why}");
        }
    }

    #[test]
    fn a_task_is_replaced_where_the_same_tasks_share_its_host() {
        let some = listed("192.0.2.1:1 192.0.2.9:1 192.0.2.1:2").expect("sound");
        let copy = some.clone();
        let to = |text: &str| text.parse::<SocketAddrV4>().expect("an address");
        for (task, address) in [(0, "192.0.2.1:7"), (1, "192.0.2.9:2"), (1, "192.0.2.77:2")] {
            some.change(task, encode(to(address))).expect("allowed");
            assert_eq!(copy.of(task), Some(to(address)));
        }
        for (task, address, text) in [
            (0, "192.0.2.5:7", "task 0 was on 192.0.2.1"),
            (1, "192.0.2.1:8", "task 1 was on 192.0.2.77"),
            (1, "127.0.0.1:7", "task 1 was on 192.0.2.77"),
            (0, "192.0.2.1:2", "task 2 has the address 192.0.2.1:2"),
            (0, "192.0.2.1:0", "task 0 has 192.0.2.1:0"),
        ] {
            let why = why(some.change(task, encode(to(address))));
            assert!(why.contains(text), "{task} {address}: {why}");
        }
        assert_eq!(some.of(0), Some(to("192.0.2.1:7")));
        let one = listed("192.0.2.1:1 127.0.0.1:1").expect("all of this host");
        one.change(0, encode(to("127.0.0.1:9"))).expect_err("the task had an address that others reach");
        one.change(1, encode(to("192.0.2.1:9"))).expect("of this host");
        one.change(1, encode(to("192.0.2.2:9"))).expect_err("not known to be of this host");
    }
}
