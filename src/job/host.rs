//! Which tasks share a host: those that can pass each other memory. That is decided by the kernel
//! that they run under, not by a name: containers and network namespaces of one machine may have
//! the same name, and hosts of a network may, too.

use crate::base::random::random;
use crate::transport::udp::interfaces::interfaces;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

/// A host, as the tasks on it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Equal in two tasks exactly if they share a host.
    pub id: u128,
    /// For messages; several hosts may have the same.
    pub name: String,
}

impl Host {
    /// The host of this task. Tasks share it when boot (the machine, and the kernel's start),
    /// effective user, user namespace (it gives user numbers their meaning) and network namespace
    /// (abstract sockets belong to one) are the same. When one of them cannot be read, the result
    /// equals no other.
    pub fn of_this_task() -> Self {
        let parts = Parts {
            boot: boot(),
            user: geteuid().as_raw(),
            user_namespace: namespace("/proc/thread-self/ns/user"),
            network_namespace: namespace("/proc/thread-self/ns/net"),
        };
        let id = parts.id().unwrap_or_else(|| u128::from_le_bytes(random()));
        Self { id, name: host_name() }
    }
}

/// The network namespace of this task, by machine: tasks with equal numbers have the same
/// addresses. When it cannot be read, tasks with one host name and the same addresses count
/// as being in one.
pub fn network_namespace() -> u128 {
    let boot = boot();
    match (&boot, namespace("/proc/thread-self/ns/net")) {
        (Some(boot), Some(words)) => network_by(boot, words),
        _ => {
            let addresses: Vec<IpAddr> = interfaces().iter().flatten().map(|one| one.address).collect();
            network_like(&boot.unwrap_or_default(), &host_name(), &addresses)
        }
    }
}

fn network_by(boot: &str, namespace: [u64; 2]) -> u128 {
    let mut hash = Sha256::new_with_prefix(b"LAPI network\0");
    hash.update(boot);
    namespace.iter().for_each(|word| hash.update(word.to_le_bytes()));
    hash.finalize().first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

fn network_like(boot: &str, host_name: &str, addresses: &[IpAddr]) -> u128 {
    let mut hash = Sha256::new_with_prefix(b"LAPI addresses\0");
    for text in [boot, host_name] {
        hash.update(text);
        hash.update([0]);
    }
    addresses.iter().for_each(|address| hash.update(format!("{address} ")));
    hash.finalize().first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

/// The machine, and the start of its kernel.
fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The numbering of this task's process; 0 when it cannot be read.
pub fn pid_namespace() -> u64 {
    namespace("/proc/thread-self/ns/pid").map_or(0, |[_, inode]| inode)
}

/// What makes a host.
#[derive(Clone, Debug)]
struct Parts {
    boot: Option<String>,
    user: u32,
    user_namespace: Option<[u64; 2]>,
    network_namespace: Option<[u64; 2]>,
}

impl Parts {
    /// Their hash; none when one is missing.
    fn id(&self) -> Option<u128> {
        let mut hash = Sha256::new();
        hash.update(b"LAPI host\0");
        hash.update(self.boot.as_ref()?);
        hash.update([0]);
        hash.update(self.user.to_le_bytes());
        for word in self.user_namespace?.iter().chain(&self.network_namespace?) {
            hash.update(word.to_le_bytes());
        }
        hash.finalize().first_chunk().map(|bytes| u128::from_le_bytes(*bytes))
    }
}

/// A namespace by device and inode. Those of this thread: the process's first one may have ended,
/// and shows none then.
fn namespace(path: &str) -> Option<[u64; 2]> {
    fs::metadata(path).ok().map(|file| [file.dev(), file.ino()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts() {
        let parts = Parts {
            boot: Some("one".to_owned()),
            user: 7,
            user_namespace: Some([4, 5]),
            network_namespace: Some([4, 6]),
        };
        let id = parts.id().expect("all parts are there");
        assert_eq!(parts.clone().id(), Some(id));
        for other in [
            Parts { boot: Some("two".to_owned()), ..parts.clone() },
            Parts { user: 8, ..parts.clone() },
            Parts { user_namespace: Some([4, 6]), ..parts.clone() },
            Parts { network_namespace: Some([5, 6]), ..parts.clone() },
        ] {
            assert!(other.id().is_some_and(|other| other != id), "{other:?}");
        }
        for unknown in [
            Parts { boot: None, ..parts.clone() },
            Parts { user_namespace: None, ..parts.clone() },
            Parts { network_namespace: None, ..parts },
        ] {
            assert_eq!(unknown.id(), None, "{unknown:?}");
        }
    }

    #[test]
    fn a_network_that_cannot_be_read_is_known_by_its_addresses() {
        let addresses = ["127.0.0.1", "10.0.0.1"].map(|text| text.parse().expect("an address"));
        let network = network_like("one", "node0", &addresses);
        assert_eq!(network, network_like("one", "node0", &addresses));
        for other in [
            network_like("", "node0", &addresses),
            network_like("one", "node1", &addresses),
            network_like("one", "node0", &addresses[..1]),
            network_by("one", [4, 6]),
        ] {
            assert_ne!(other, network);
        }
        assert_eq!(network_namespace(), network_namespace());
    }

    #[test]
    fn this_host() {
        let host = Host::of_this_task();
        assert_eq!(host, Host::of_this_task());
        assert!(!host.name.is_empty() && host.id != 0);
        assert_eq!(namespace("/proc/thread-self/ns/nothing"), None);
    }
}
