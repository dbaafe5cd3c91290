//! The links of several interfaces as the kernel sees them: rtnetlink reports each change.

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The state of the links of several interfaces.
pub trait Links: Send {
    /// Which links are up, bit by bit, when that may have changed since the last call.
    fn poll(&mut self) -> Option<u8>;

    /// Becomes readable when [`Self::poll`] should be called.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Every change of a link is reported to this group of receivers.
const RTMGRP_LINK: u32 = 1;

/// A link of which both are set carries packets.
const RUNNING: u32 = (libc::IFF_UP | libc::IFF_RUNNING) as u32;

/// The length of the head of a message, of what follows it for a link, and of the head
/// of an attribute.
const HEAD: usize = 16;
const LINK: usize = 16;
const ATTRIBUTE: usize = 4;

/// The state of some interfaces, which count as up until the kernel says otherwise.
pub struct LinkState {
    socket: OwnedFd,
    names: Vec<Option<String>>,
    /// The interfaces' numbers, as far as they are known.
    numbers: Vec<Option<u32>>,
    up: u8,
    /// The kernel was asked for the state of all links, and its reply has not ended.
    asked: bool,
    /// Reports were lost since the last question.
    stale: bool,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    Link(Report),
    /// The reply to a question has ended; with `false` some of it is missing.
    End(bool),
}

/// What a message says of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    number: u32,
    name: Option<String>,
    running: bool,
}

impl LinkState {
    /// Follows the interfaces with these names: one for each interface, `None` for one
    /// that has none.
    ///
    /// # Errors
    /// The kernel has no rtnetlink, or refuses it.
    pub fn open(names: Vec<Option<String>>) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        // Without a protocol it is NETLINK_ROUTE.
        let socket = net::socket_with(family, SocketType::RAW, flags, None)?;
        net::bind(&socket, &netlink::SocketAddrNetlink::new(0, RTMGRP_LINK))?;
        let numbers = vec![None; names.len()];
        let mut links = Self { socket, names, numbers, up: u8::MAX, asked: false, stale: false };
        links.ask()?;
        Ok(links)
    }

    /// Asks for the state of all links.
    fn ask(&mut self) -> io::Result<()> {
        let mut message = [0_u8; HEAD + LINK];
        let len = message.len() as u32;
        message[..4].copy_from_slice(&len.to_ne_bytes());
        message[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        message[6..8].copy_from_slice(&flags.to_ne_bytes());
        net::send(&self.socket, &message, SendFlags::empty())?;
        (self.asked, self.stale) = (true, false);
        Ok(())
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::Link(report) => self.note(report),
            Message::End(whole) => {
                self.asked = false;
                self.stale |= !whole;
            }
        }
    }

    fn note(&mut self, report: &Report) {
        for (rail, name) in self.names.iter().enumerate() {
            if name.is_some() && *name == report.name {
                self.numbers[rail] = Some(report.number);
            }
            if self.numbers[rail] == Some(report.number) {
                let bit = 1 << rail;
                self.up = if report.running { self.up | bit } else { self.up & !bit };
            }
        }
    }
}

impl Links for LinkState {
    fn poll(&mut self) -> Option<u8> {
        let mut buffer = [0_u8; 16 << 10];
        let mut any = false;
        loop {
            match net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((len, _)) => messages(&buffer[..len]).iter().for_each(|message| self.take(message)),
                // The end of a reply may be among what was lost.
                Err(Errno::NOBUFS) => (self.asked, self.stale) = (false, true),
                Err(Errno::INTR) => continue,
                // The state of all links is asked for, one question after the other: now, or at
                // the next call.
                Err(_) if !self.stale || self.asked || self.ask().is_err() => break,
                Err(_) => continue,
            }
            any = true;
        }
        any.then_some(self.up)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// What a datagram of the kernel says.
fn messages(mut rest: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    let short = |bytes: &[u8], at: usize| u16::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let word = |bytes: &[u8], at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    while rest.len() >= HEAD {
        let len = word(rest, 0) as usize;
        if !(HEAD..=rest.len()).contains(&len) {
            break;
        }
        let (message, after) = rest.split_at(len);
        rest = &after[(len.next_multiple_of(4) - len).min(after.len())..];
        let kind = short(message, 4);
        let interrupted = short(message, 6) & libc::NLM_F_DUMP_INTR as u16 != 0;
        if [libc::NLMSG_DONE, libc::NLMSG_ERROR].contains(&i32::from(kind)) {
            found.push(Message::End(i32::from(kind) == libc::NLMSG_DONE && !interrupted));
            continue;
        }
        // A message of a family speaks of the link as a part of something else: one that leaves a
        // bridge is not gone.
        if ![libc::RTM_NEWLINK, libc::RTM_DELLINK].contains(&kind) || len < HEAD + LINK || message[HEAD] != 0
        {
            continue;
        }
        let running = kind == libc::RTM_NEWLINK && word(message, HEAD + 8) & RUNNING == RUNNING;
        let mut report = Report { number: word(message, HEAD + 4), name: None, running };
        let mut attributes = &message[HEAD + LINK..];
        while attributes.len() >= ATTRIBUTE {
            let len = usize::from(short(attributes, 0));
            if !(ATTRIBUTE..=attributes.len()).contains(&len) {
                break;
            }
            if short(attributes, 2) == libc::IFLA_IFNAME {
                let text = attributes[ATTRIBUTE..len].split(|byte| *byte == 0).next().unwrap_or_default();
                report.name = Some(String::from_utf8_lossy(text).into_owned());
            }
            attributes = &attributes[len.next_multiple_of(4).min(attributes.len())..];
        }
        found.push(Message::Link(report));
    }
    found
}

#[cfg(test)]
#[path = "link_state_tests.rs"]
mod tests;
