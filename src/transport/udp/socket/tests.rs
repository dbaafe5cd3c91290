//! Sockets on the loopback interface, which loses what a full buffer has no room for. No
//! order is assumed.

use super::*;
use crate::base::clock::test_deadline;
use crate::base::poll::await_readable;
use crate::base::rng::Rng;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

/// The bytes of the headers of IPv6 without options, and UDP.
const HEADERS_V6: usize = 40 + 8;

/// The longest datagram that the interface towards `to` takes from this address, in bytes.
fn longest(from: SocketAddr, to: SocketAddr) -> io::Result<usize> {
    let probe = unbound(from)?;
    rustix::net::bind(&probe, &SocketAddr::new(from.ip(), 0))?;
    rustix::net::connect(&probe, &to)?;
    let (mtu, headers) = match to {
        SocketAddr::V4(_) => (sockopt::ip_mtu(&probe)?, HEADERS_V4),
        SocketAddr::V6(_) => (sockopt::ipv6_mtu(&probe)?, HEADERS_V6),
    };
    Ok((mtu as usize).saturating_sub(headers).min(LONGEST))
}

fn open(at: &str) -> Socket {
    open_as(at, true)
}

/// A socket that uses trains, where the kernel has them, or none.
fn open_as(at: &str, trains: bool) -> Socket {
    let mut socket = Socket::open(at.parse().expect("an address"), Options::default()).expect("a socket");
    socket.cuts &= trains;
    socket
}

/// The families that this host has, each with trains and without.
fn kinds() -> Vec<(&'static str, bool)> {
    let has_v6 = Socket::open(V6.parse().expect("an address"), Options::default()).is_ok();
    if !has_v6 {
        eprintln!("this host has no ::1: IPv6 is not tested");
    }
    let families = [V4, V6].into_iter().filter(|at| has_v6 || *at == V4);
    families.flat_map(|at| [true, false].map(|trains| (at, trains))).collect()
}

/// A datagram of this length that names itself: its number in up to eight bytes, then bytes that
/// follow from it.
fn filled(number: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(number);
    let mut bytes: Vec<u8> = number.to_le_bytes().to_vec();
    while bytes.len() < len {
        bytes.extend(rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Everything that arrives until `enough` have, or nothing more comes.
fn received(socket: &mut Socket, enough: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut got, end) = (Vec::new(), Instant::now() + test_deadline());
    while got.len() < enough && Instant::now() < end {
        let count = socket.receive(&mut |from, bytes| got.push((from, bytes.to_vec())));
        if count == 0 {
            await_readable(&[socket.event_fd()], Some(Duration::from_millis(10)));
        }
    }
    got
}

fn send_all(socket: &mut Socket, datagrams: &[Datagram<'_>]) {
    let (mut sent, end) = (0, Instant::now() + test_deadline());
    while sent < datagrams.len() {
        assert!(Instant::now() < end, "{sent} of {} were taken", datagrams.len());
        sent += socket.send(&datagrams[sent..]);
    }
}

#[test]
fn every_length_arrives_whole() {
    for (at, trains) in kinds() {
        let (mut from, mut to) = (open_as(at, trains), open_as(at, trains));
        let longest = longest(from.local(), to.local()).expect("a route");
        let lengths = (0..80).chain([1023, 1024, 1472, 1473, 8192, 9000, 32_768, 65_000]);
        for len in lengths.filter(|len| *len < longest).chain([longest - 1, longest]) {
            let bytes = filled(len as u64, len);
            send_all(&mut from, &[Datagram { to: to.local(), bytes: &bytes }]);
            let got = received(&mut to, 1);
            assert_eq!(got.len(), 1, "{at}, trains: {trains} {len}");
            assert!(got[0] == (from.local(), bytes), "{at}, trains: {trains} {len}: changed on the way");
        }
    }
}

#[test]
fn many_at_once_of_all_lengths_to_several_sockets_arrive_once() {
    for seed in 0..40 {
        for (at, trains) in kinds() {
            let mut rng = Rng::stream(0xda7a, seed);
            let mut from = open_as(at, trains);
            let mut to: Vec<Socket> = (0..3).map(|_| open_as(at, trains)).collect();
            // Runs of one length, as trains have, and mixed ones, within what the buffers hold.
            let mut wanted: Vec<(usize, Vec<u8>)> = Vec::new();
            let mut total = 0;
            while wanted.len() < 300 && total < 60_000 {
                let (peer, len) = (rng.below(3) as usize, 8 + rng.below(1500) as usize);
                for _ in 0..1 + rng.below(90) {
                    let len = if rng.chance(0.02) { 8 + rng.below(3000) as usize } else { len };
                    wanted.push((peer, filled(wanted.len() as u64, len)));
                    total += len;
                }
            }
            let address: Vec<SocketAddr> = to.iter().map(Socket::local).collect();
            let together: Vec<u8> = wanted.iter().flat_map(|(_, bytes)| bytes).copied().collect();
            let (mut rest, mut datagrams) = (&together[..], Vec::new());
            for (peer, bytes) in &wanted {
                // Some stand one behind the other in memory, some apart.
                let (next, others) = rest.split_at(bytes.len());
                let bytes = if rng.chance(0.9) { next } else { &bytes[..] };
                datagrams.push(Datagram { to: address[*peer], bytes });
                rest = others;
            }
            send_all(&mut from, &datagrams);
            for (peer, socket) in to.iter_mut().enumerate() {
                let mut left: BTreeMap<&[u8], u32> = BTreeMap::new();
                for (_, bytes) in wanted.iter().filter(|(of, _)| *of == peer) {
                    *left.entry(bytes).or_default() += 1;
                }
                let count = left.values().sum::<u32>() as usize;
                for (source, bytes) in received(socket, count) {
                    assert_eq!(source, from.local());
                    let times = left.get_mut(&bytes[..]);
                    let times = times.unwrap_or_else(|| panic!("seed {seed}, {at}: one that was not sent"));
                    *times = times
                        .checked_sub(1)
                        .unwrap_or_else(|| panic!("seed {seed}, {at}: one arrived twice"));
                }
                assert_eq!(left.values().sum::<u32>(), 0, "seed {seed}, {at}, trains: {trains}");
                assert_eq!(socket.receive(&mut |_, _| panic!("seed {seed}: too many")), 0);
            }
        }
    }
}

#[test]
fn a_train_is_what_the_kernel_can_cut() {
    let bytes = [0; 40_000];
    for (list, most, datagrams, segment) in [
        (&[(1, 10)][..], 64, 1, 0),
        (&[(1, 10), (1, 10), (1, 10)], 64, 3, 10),
        (&[(1, 10), (1, 10), (1, 10)], 2, 2, 10),
        (&[(1, 10), (1, 10), (1, 10)], 1, 1, 0),
        (&[(1, 10), (2, 10)], 64, 1, 0),
        (&[(1, 10), (1, 9), (1, 9)], 64, 2, 10),
        (&[(1, 10), (1, 11)], 64, 1, 0),
        (&[(1, 10), (1, 0)], 64, 1, 0),
        (&[(1, 0), (1, 0)], 64, 1, 0),
        (&[(1, 30_000), (1, 30_000), (1, 30_000)], 64, 2, 30_000),
        (&[(1, 40_000), (1, 10)], 64, 1, 0),
        (&[(1, LONGEST / 2), (1, LONGEST / 2)], 64, 2, LONGEST / 2),
        (&[(1, LONGEST / 2 + 1), (1, LONGEST / 2)], 64, 1, 0),
    ] {
        let offered: Vec<Datagram<'_>> = list
            .iter()
            .map(|(port, len)| Datagram { to: ([127, 0, 0, 1], *port).into(), bytes: &bytes[..*len] })
            .collect();
        assert_eq!(train(&offered, most), Train { datagrams, segment: segment as u16 }, "{list:?}");
    }
}

#[test]
fn a_kernel_that_cuts_trains_also_joins_them() {
    let (mut from, mut to) = (open(V4), open(V4));
    if !from.cuts || !join_trains(to.fd.as_fd()) {
        eprintln!("this kernel has no trains");
        return;
    }
    let bytes = filled(1, 1000);
    let datagrams = [Datagram { to: to.local(), bytes: &bytes }; 50];
    assert_eq!(from.send(&datagrams), 50);
    await_readable(&[to.event_fd()], Some(test_deadline()));
    let messages = to.incoming.receive(to.fd.as_fd()).expect("a message");
    assert_eq!(messages, 1);
    let message = to.incoming.message(0).expect("it is whole");
    assert_eq!((message.bytes.len(), message.segment), (50_000, 1000));
    assert!(from.cuts);
}

#[test]
fn a_full_buffer_of_the_receiver_loses_datagrams_and_nothing_else() {
    let small = Options { receive_buffer: 20_000, ..Options::default() };
    for trains in [true, false] {
        let mut from = open_as(V4, trains);
        let mut to = Socket::open(V4.parse().expect("an address"), small).expect("a socket");
        assert!(sockopt::socket_recv_buffer_size(to.fd.as_fd()).expect("a size") < 400_000);
        let sent: Vec<Vec<u8>> = (0..2000).map(|number| filled(number, 1000)).collect();
        let datagrams: Vec<Datagram<'_>> =
            sent.iter().map(|bytes| Datagram { to: to.local(), bytes }).collect();
        send_all(&mut from, &datagrams);
        let mut got = Vec::new();
        while to.receive(&mut |_, bytes| got.push(bytes.to_vec())) > 0 {}
        assert!(!got.is_empty() && got.len() < sent.len(), "{} have arrived", got.len());
        assert!(got.iter().all(|bytes| sent.contains(bytes)));
        let last = filled(7777, 1000);
        send_all(&mut from, &[Datagram { to: to.local(), bytes: &last }]);
        assert_eq!(received(&mut to, 1), [(from.local(), last)]);
    }
}

#[test]
fn what_goes_nowhere_does_not_harm_what_arrives() {
    for (at, trains) in kinds() {
        let (mut from, mut to) = (open_as(at, trains), open_as(at, trains));
        // A port that no socket has, and a peer that has closed.
        let closed = open_as(at, trains).local();
        let bytes = filled(3, 100);
        for round in 0..50 {
            let mixed =
                [closed, closed, to.local(), closed, to.local()].map(|to| Datagram { to, bytes: &bytes });
            send_all(&mut from, &mixed);
            assert_eq!(received(&mut to, 2).len(), 2, "{at}, trains: {trains} {round}");
        }
        assert_eq!(from.receive(&mut |_, _| panic!("nothing was sent to it")), 0);
    }
}

#[test]
fn errors_that_wait_in_the_socket_lose_nothing_else() {
    let (mut from, mut to) = (open(V4), open(V4));
    // A socket that is not connected learns of unreachable ports only so.
    sockopt_recverr(&from);
    let closed = open(V4).local();
    let bytes = filled(3, 100);
    for round in 0..50 {
        let [lost, kept] = [closed, to.local()].map(|to| Datagram { to, bytes: &bytes });
        assert_eq!(from.send(&[lost]), 1);
        if round == 0 {
            assert!(has_error(&from));
            assert_eq!(from.send(&[lost]), 1);
        }
        if round % 2 == 0 {
            assert_eq!(from.receive(&mut |_, _| panic!("nothing was sent to it")), 0);
        }
        assert_eq!(from.send(&[kept; 3]), 3);
        assert_eq!(received(&mut to, 3).len(), 3, "round {round}");
    }
}

/// An error of what was sent before waits in the socket; it is gone with this.
fn has_error(socket: &Socket) -> bool {
    sockopt::socket_error(socket.fd.as_fd()).expect("an answer").is_err()
}

fn sockopt_recverr(socket: &Socket) {
    switch_on(socket, libc::IPPROTO_IP, libc::IP_RECVERR);
}

fn switch_on(socket: &Socket, level: i32, option: i32) {
    use std::os::fd::AsRawFd;
    let on = 1i32;
    // SAFETY: the value is read during the call, and has the length given.
    let code = unsafe {
        let (fd, len) = (socket.fd.as_fd().as_raw_fd(), size_of::<i32>() as libc::socklen_t);
        libc::setsockopt(fd, level, option, (&raw const on).cast(), len)
    };
    assert_eq!(code, 0);
}

/// What is longer than a link takes arrives whole when it may be sent in parts, and what
/// follows is not cut.
#[test]
fn long_datagrams_arrive_in_parts() {
    for (at, trains) in kinds() {
        let (mut from, mut to) = (open_as(at, trains), open_as(at, trains));
        for (len, in_parts) in [(5_000, true), (1_000, false), (60_000, true), (9_000, false)] {
            let bytes = filled(len as u64, len);
            let datagram = Datagram { to: to.local(), bytes: &bytes };
            assert!(if in_parts { from.send_in_parts(&datagram) } else { from.send(&[datagram]) == 1 });
            let arrived = received(&mut to, 1);
            assert!(arrived.len() == 1 && arrived[0].1 == bytes, "{at}, trains: {trains}: {len} bytes");
        }
        let discovers = match at == V6 {
            true => sockopt::ipv6_mtu_discover(&from.fd) == Ok(sockopt::Ipv6PathMtuDiscovery::PROBE),
            false => sockopt::ip_mtu_discover(&from.fd) == Ok(sockopt::Ipv4PathMtuDiscovery::PROBE),
        };
        assert!(discovers, "{at}: parts are still allowed");
    }
}

#[test]
fn what_the_system_refuses_is_lost_alone() {
    let (mut from, mut to) = (open(V4), open(V4));
    let long = vec![0; 70_000];
    let other_family = "[::1]:9".parse().expect("an address");
    let good = filled(5, 500);
    let datagrams = [
        Datagram { to: to.local(), bytes: &good },
        Datagram { to: to.local(), bytes: &long },
        Datagram { to: other_family, bytes: &good },
        Datagram { to: other_family, bytes: &good },
        Datagram { to: to.local(), bytes: &good },
    ];
    assert_eq!(from.send(&datagrams), 5);
    assert_eq!(received(&mut to, 2).len(), 2);
    assert_eq!(from.send(&[]), 0);
}

#[test]
fn an_interface_that_refuses_trains_gets_single_datagrams() {
    let mut from = open(V4);
    for error in [Errno::IO, Errno::OPNOTSUPP] {
        from.cuts = true;
        assert!(matches!(from.judge(error, 5, 0), Refusal::Singly));
        assert!(!from.cuts, "{error}");
    }
    from.cuts = true;
    assert!(matches!(from.judge(Errno::MSGSIZE, 5, 0), Refusal::Singly));
    assert!(matches!(from.judge(Errno::INVAL, 5, 0), Refusal::Doubtful));
    assert!(from.cuts, "perhaps only this one did not fit");
    let to = open(V4).local();
    let offered = [Datagram { to, bytes: &[1; 100] }; 10];
    from.couple(&offered, 3);
    assert_eq!(from.trains.iter().map(|train| train.datagrams).collect::<Vec<_>>(), [1, 1, 1, 7]);
    for error in [Errno::AGAIN, Errno::NOBUFS] {
        assert!(matches!(from.judge(error, 1, 0), Refusal::NoRoom));
    }
    assert!(matches!(from.judge(Errno::CONNREFUSED, 1, 0), Refusal::Again));
    assert!(matches!(from.judge(Errno::CONNREFUSED, 1, 1), Refusal::Lost));
    assert!(matches!(from.judge(Errno::PERM, 2, 0), Refusal::Lost));
    assert!(matches!(from.judge(Errno::MSGSIZE, 1, 0), Refusal::Lost));
}

/// The kernel refuses all three trains by the same error: the one to port 0 as it would refuse its
/// datagrams, and those of a socket without checksums since it cannot cut them.
#[test]
fn trains_are_given_up_only_where_single_datagrams_are_taken() {
    let (mut from, mut to) = (open(V4), open(V4));
    if !from.cuts {
        eprintln!("this kernel has no trains");
        return;
    }
    let bytes = filled(1, 1000);
    let nowhere = SocketAddr::new(from.local().ip(), 0);
    assert_eq!(from.send_train(nowhere, &bytes, 100), 10);
    let list: Vec<_> = bytes.chunks(100).map(|bytes| Datagram { to: nowhere, bytes }).collect();
    assert_eq!(from.send(&list), 10);
    assert!(from.cuts, "its datagrams are refused, too");
    switch_on(&from, libc::SOL_SOCKET, libc::SO_NO_CHECK);
    assert_eq!(from.send_train(to.local(), &bytes, 100), 10);
    assert_eq!(received(&mut to, 10).len(), 10);
    assert!(!from.cuts, "its datagrams are taken");
}

#[test]
fn the_longest_datagram_fits_and_the_next_does_not() {
    for (at, trains) in kinds() {
        let (mut from, mut to) = (open_as(at, trains), open_as(at, trains));
        let longest = longest(from.local(), to.local()).expect("a route");
        assert!((1200..=LONGEST).contains(&longest), "{longest}");
        let bytes = vec![7; longest];
        assert_eq!(from.send(&[Datagram { to: to.local(), bytes: &bytes }]), 1);
        assert!(received(&mut to, 1)[0].1 == bytes);
    }
}

#[test]
fn a_port_in_use_is_refused_and_free_again_later() {
    let first = open(V4);
    let second = Socket::open(first.local(), Options::default());
    assert_eq!(second.err().map(|error| error.kind()), Some(io::ErrorKind::AddrInUse));
    let address = first.local();
    drop(first);
    assert_eq!(Socket::open(address, Options::default()).expect("it is free").local(), address);
    let nowhere = Socket::open("192.0.2.1:0".parse().expect("an address"), Options::default());
    assert_eq!(nowhere.err().map(|error| error.kind()), Some(io::ErrorKind::AddrNotAvailable));
}

#[test]
fn the_descriptor_is_readable_while_a_datagram_is_there() {
    let (mut from, mut to) = (open(V4), open(V4));
    let readable = |socket: &Socket, at_most| await_readable(&[socket.event_fd()], Some(at_most))[0];
    assert!(!readable(&to, Duration::ZERO));
    let bytes = [1; 10];
    send_all(&mut from, &[Datagram { to: to.local(), bytes: &bytes }]);
    assert!(readable(&to, test_deadline()));
    assert_eq!(received(&mut to, 1).len(), 1);
    assert!(!readable(&to, Duration::ZERO));
}

/// With trains and without.
#[test]
fn the_datagrams_of_a_train_arrive_as_they_were_cut() {
    for (at, trains) in kinds() {
        let (mut from, mut to) = (open_as(at, trains), open_as(at, trains));
        let mut rng = Rng::stream(0x7a1b, 0);
        for round in 0..60 {
            let (count, segment) = (2 + rng.below(40) as usize, 8 + rng.below(1400) as usize);
            let last = 1 + rng.below(segment as u64) as usize;
            let bytes = filled(round, (count - 1) * segment + last);
            let taken = from.send_train(to.local(), &bytes, segment);
            assert_eq!(taken, count, "{at}, trains: {trains}, round {round}");
            let mut got: Vec<Vec<u8>> =
                received(&mut to, count).into_iter().map(|(_, bytes)| bytes).collect();
            let mut sent: Vec<Vec<u8>> = bytes.chunks(segment).map(<[u8]>::to_vec).collect();
            got.sort();
            sent.sort();
            assert!(got == sent, "{at}, trains: {trains}, round {round}: {} of {count}", got.len());
        }
    }
}

/// Nothing receives at an address: the report of that waits in the socket.
#[test]
fn a_train_is_sent_in_spite_of_an_error_that_has_waited() {
    let (mut from, mut to) = (open(V4), open(V4));
    sockopt_recverr(&from);
    let closed = open(V4).local();
    let bytes = filled(1, 1000);
    for round in 0..20 {
        assert_eq!(from.send(&[Datagram { to: closed, bytes: &bytes }]), 1);
        assert!(round != 0 || has_error(&from));
        assert_eq!(from.send(&[Datagram { to: closed, bytes: &bytes }]), 1);
        assert_eq!(from.send_train(to.local(), &bytes, 100), 10);
        assert_eq!(received(&mut to, 10).len(), 10, "round {round}");
    }
}
