//! Addresses of sockets as the system and C programs have them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

/// Writes an address; returns its length.
pub fn write(name: &mut libc::sockaddr_storage, address: SocketAddr) -> libc::socklen_t {
    match address {
        SocketAddr::V4(address) => {
            let name = ptr::from_mut(name).cast::<libc::sockaddr_in>();
            // SAFETY: the storage is large enough and aligned for every kind of address.
            unsafe {
                (*name).sin_family = libc::AF_INET as libc::sa_family_t;
                (*name).sin_port = address.port().to_be();
                (*name).sin_addr.s_addr = u32::from(*address.ip()).to_be();
            }
            size_of::<libc::sockaddr_in>() as _
        }
        SocketAddr::V6(address) => {
            let name = ptr::from_mut(name).cast::<libc::sockaddr_in6>();
            // SAFETY: the same.
            unsafe {
                (*name).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*name).sin6_port = address.port().to_be();
                (*name).sin6_flowinfo = address.flowinfo();
                (*name).sin6_addr.s6_addr = address.ip().octets();
                (*name).sin6_scope_id = address.scope_id();
            }
            size_of::<libc::sockaddr_in6>() as _
        }
    }
}

/// The address in the first `len` bytes; `None`: it is of another family, or longer.
pub fn read(name: &libc::sockaddr_storage, len: libc::socklen_t) -> Option<SocketAddr> {
    let len = len as usize;
    match i32::from(name.ss_family) {
        libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the storage is large enough and aligned for every kind of address, and this
            // one is of this kind.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: the same.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            // The flow is not part of a peer's address.
            Some(SocketAddrV6::new(ip, u16::from_be(name.sin6_port), 0, name.sin6_scope_id).into())
        }
        _ => None,
    }
}
