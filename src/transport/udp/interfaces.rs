//! The addresses of this host at which the job's datagrams can arrive.

use super::socket::LONGEST;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// The subnet, such as `192.0.2.0/24`: hosts with equal ones reach each other.
    pub network: String,
    /// The bytes of the longest datagram that it takes whole, without the headers of UDP and IP.
    pub longest: u16,
    /// The interface reaches this host alone.
    pub is_loopback: bool,
}

/// All of them, in the system's order, those of IPv4 first. Without addresses that are valid on
/// one link only.
///
/// # Errors
/// The system's.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = getifaddrs()?.filter_map(|entry| interface(&entry)).collect();
    found.sort_by_key(|interface| interface.address.is_ipv6());
    Ok(found)
}

fn interface(entry: &InterfaceAddress) -> Option<Interface> {
    if !entry.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING) {
        return None;
    }
    let (address, mask) = (entry.address.as_ref()?, entry.netmask.as_ref()?);
    let (address, network, headers) = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(address), _) => {
            let mask = mask.as_sockaddr_in()?.ip().to_bits();
            let subnet = Ipv4Addr::from_bits(address.ip().to_bits() & mask);
            (IpAddr::from(address.ip()), format!("{subnet}/{}", mask.leading_ones()), 20 + 8)
        }
        (_, Some(address)) => {
            let mask = mask.as_sockaddr_in6()?.ip().to_bits();
            let subnet = Ipv6Addr::from_bits(address.ip().to_bits() & mask);
            (IpAddr::from(address.ip()), format!("{subnet}/{}", mask.leading_ones()), 40 + 8)
        }
        _ => return None,
    };
    if matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local()) {
        return None;
    }
    let name = entry.interface_name.clone();
    // Every link that carries IP takes 576 bytes.
    let mtu = fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok();
    let mtu: usize = mtu.and_then(|text| text.trim().parse().ok()).unwrap_or(576);
    let longest = mtu.saturating_sub(headers).min(LONGEST) as u16;
    let is_loopback = entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
    Some(Interface { name, address, network, longest, is_loopback })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found() {
        let all = interfaces().expect("interfaces");
        let own = all.iter().find(|interface| interface.address == IpAddr::from(Ipv4Addr::LOCALHOST));
        let own = own.expect("every machine has it");
        assert!(own.is_loopback && own.name == "lo" && own.network == "127.0.0.0/8", "{own:?}");
        assert!(own.longest >= 1024);
    }
}
