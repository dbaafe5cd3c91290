//! The endpoint, tested against the contract of transports, on sockets of the loopback interface.

use super::device::Device;
use super::seal::Security;
use super::socket::{Options, Socket};
use super::{Directory, UdpSettings, UdpTransport};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::error::{Error, Result};
use crate::transport::conformance::{self, Served, served};
use crate::transport::{Endpoint, Outgoing, Peers, Piece, SendOutcome, Task, Want};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process that is none of the job.
const OTHER: Process = Process { pid: 1, started: 1 };

/// The addresses of all tasks.
struct Listed(Arc<Vec<SocketAddr>>);

impl Directory<SocketAddr> for Listed {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        let found = self.0.get(peer as usize).copied();
        found.ok_or_else(|| Error::new(LAPI_ERR_CSS_LOAD_FAILED, "no address"))
    }
}

fn settings(me: Task, tasks: u32, security: Security, datagram: usize) -> UdpSettings {
    UdpSettings {
        me,
        tasks,
        secret: [7; 16],
        security,
        datagram,
        // The tests wait for acknowledgements.
        acknowledge_every: 1,
        longest_interval: Duration::from_millis(400),
        opening: 1,
        patience: None,
    }
}

fn socket() -> Socket {
    Socket::open((Ipv4Addr::LOCALHOST, 0).into(), Options::default()).expect("a socket")
}

/// The ends of a job, each on the device that `device` makes of its socket.
fn ends_on(
    tasks: u32,
    security: Security,
    datagram: usize,
    device: impl Fn(Socket, Task) -> Box<dyn Device>,
) -> Vec<UdpTransport> {
    let sockets: Vec<Socket> = (0..tasks).map(|_| socket()).collect();
    let listed = Arc::new(sockets.iter().map(Socket::local).collect::<Vec<_>>());
    let ends = sockets.into_iter().zip(0..).map(|(socket, me)| {
        let directory = Box::new(Listed(listed.clone()));
        UdpTransport::new(&settings(me, tasks, security, datagram), device(socket, me), directory)
    });
    ends.collect::<Result<_>>().expect("ends")
}

/// Lets all ends have contact with each other: each learns when another one ends.
fn met(mut ends: Vec<UdpTransport>) -> Vec<UdpTransport> {
    let tasks = ends.len() as Task;
    let others = |me: usize| (0..tasks).filter(move |peer| *peer != me as Task);
    for (me, end) in ends.iter_mut().enumerate() {
        others(me).for_each(|peer| end.want(Want::Connection(peer)));
    }
    let deadline = Instant::now() + test_deadline();
    let meets = |(me, end): (usize, &UdpTransport)| {
        end.due().is_some() || others(me).any(|peer| end.standing(peer).absence.is_some())
    };
    while ends.iter().enumerate().any(meets) {
        ends.iter_mut().for_each(|end| end.serve());
        assert!(Instant::now() < deadline, "the greetings never arrive");
    }
    ends
}

/// Two joined tasks of this process.
pub(crate) fn two() -> Vec<UdpTransport> {
    met(ends_on(2, Security::Auth, 1472, |socket, _| Box::new(socket)))
}

fn ends(tasks: u32, security: Security, datagram: usize) -> Vec<Served<UdpTransport>> {
    served(met(ends_on(tasks, security, datagram, |socket, _| Box::new(socket))))
}

#[test]
fn conforms_with_long_datagrams() {
    conformance::suite(|tasks| ends(tasks, Security::Auth, 65_000));
}

#[test]
fn conforms_with_the_datagrams_of_an_ethernet() {
    conformance::suite(|tasks| ends(tasks, Security::Encrypt, 1472));
}

#[test]
fn conforms_with_short_datagrams_that_are_not_sealed() {
    conformance::suite(|tasks| ends(tasks, Security::None, 512));
}

mod closed;
mod contact;
mod deaths;
mod disturbed;
mod strangers;
mod terms;

/// Offers a packet that is its number.
fn send(end: &mut UdpTransport, to: Task, number: u64) -> SendOutcome {
    let head = number.to_ne_bytes();
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the pieces are empty.
    unsafe { end.try_send(to, &packet) }
}

/// The next packet that has arrived: its sender and its number.
fn take(end: &mut UdpTransport) -> Option<(Task, u64)> {
    let packet = end.recv()?;
    assert_eq!(packet.head_len, 8);
    // SAFETY: a head of 8 bytes, aligned, readable until the packet is released.
    let found = (packet.src, unsafe { packet.head.cast::<u64>().read() });
    end.release(packet);
    Some(found)
}

/// Serves the ends until something is so.
fn serve_until(ends: &mut [UdpTransport], what: &str, mut so: impl FnMut(&mut [UdpTransport]) -> bool) {
    let deadline = Instant::now() + test_deadline();
    while !so(ends) {
        ends.iter_mut().for_each(|end| end.serve());
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::yield_now();
    }
}
