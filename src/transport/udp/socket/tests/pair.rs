//! A socket with the second one that is connected to a peer.

use super::*;
use std::net::{Ipv4Addr, UdpSocket};

/// One that has a second socket, bound to all addresses or to one.
fn pair(at: &str) -> Socket {
    let socket = open(at);
    assert!(socket.connected.is_some(), "this system takes no second socket at {at}");
    socket
}

/// Where it is reached from this host.
fn reached(socket: &Socket) -> SocketAddr {
    let local = socket.local();
    match local {
        SocketAddr::V4(at) if at.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, at.port()).into(),
        _ => local,
    }
}

/// The kinds of addresses that this host has.
fn places() -> Vec<&'static str> {
    let has_v6 = Socket::open(V6.parse().expect("an address"), Options::default()).is_ok();
    [V4, "0.0.0.0:0", V6].into_iter().filter(|at| has_v6 || *at != V6).collect()
}

#[test]
fn whatever_is_preferred_everything_arrives_once_with_its_source() {
    for at in places() {
        for seed in 0..20 {
            let mut rng = Rng::stream(0x9a12, seed);
            let mut to = pair(at);
            let place = reached(&to);
            let mut peers: Vec<Socket> =
                (0..3).map(|_| open_with(if at == V6 { V6 } else { V4 }, Options::default())).collect();
            let addresses: Vec<SocketAddr> = peers.iter().map(Socket::local).collect();
            let (mut sent, mut got, mut number) = (Vec::new(), Vec::new(), 0);
            for _ in 0..300 {
                let peer = rng.below(3) as usize;
                match rng.below(6) {
                    0 => to.prefer(rng.chance(0.7).then(|| addresses[peer])),
                    1 | 2 => _ = to.poll(&mut |from, bytes| got.push((from, bytes.to_vec()))),
                    3 => {
                        // The other direction, by whichever socket: its source is the same.
                        let bytes = filled(seed, 8 + rng.below(100) as usize);
                        let datagrams = [Datagram { to: addresses[peer], bytes: &bytes }; 3];
                        assert_eq!(to.send(&datagrams), 3);
                        let arrived = received(&mut peers[peer], 3);
                        assert!(
                            arrived.len() == 3 && arrived.iter().all(|one| *one == (place, bytes.clone()))
                        );
                    }
                    _ => {
                        let train: Vec<Vec<u8>> =
                            (0..1 + rng.below(5)).map(|at| filled(number + at, 64)).collect();
                        number += train.len() as u64;
                        let datagrams: Vec<Datagram<'_>> =
                            train.iter().map(|bytes| Datagram { to: place, bytes }).collect();
                        send_all(&mut peers[peer], &datagrams);
                        sent.extend(train.into_iter().map(|bytes| (addresses[peer], bytes)));
                    }
                }
            }
            let end = Instant::now() + test_deadline();
            while got.len() < sent.len() && Instant::now() < end {
                to.poll(&mut |from, bytes| got.push((from, bytes.to_vec())));
            }
            sent.sort();
            got.sort();
            assert!(sent == got, "{at}, seed {seed}: {} of {}", got.len(), sent.len());
            assert_eq!(to.counts(), Counts::default());
        }
    }
}

#[test]
fn what_is_preferred_goes_by_the_second_socket_and_all_else_by_the_first() {
    for at in places() {
        let mut to = pair(at);
        let place = reached(&to);
        let mut peers: Vec<Socket> = (0..2).map(|_| open(if at == V6 { V6 } else { V4 })).collect();
        for (preferred, by_second) in [(None, 0), (Some(0), 10), (Some(1), 10), (None, 0)] {
            to.prefer(preferred.map(|peer: usize| peers[peer].local()));
            for (number, peer) in peers.iter_mut().enumerate() {
                let bytes = filled(number as u64, 50);
                send_all(peer, &[Datagram { to: place, bytes: &bytes }; 10]);
                let mut by = [0, 0];
                let end = Instant::now() + test_deadline();
                while by[0] + by[1] < 10 && Instant::now() < end {
                    by[0] += to.receive_from(false, &mut |_, _| {});
                    by[1] += to.receive_from(true, &mut |_, _| {});
                }
                let second = if preferred == Some(number) { by_second } else { 0 };
                assert_eq!(by, [10 - second, second], "{at}, {preferred:?}, peer {number}");
            }
        }
    }
}

#[test]
fn a_flood_of_the_preferred_peer_hides_no_other_one() {
    let (mut to, mut flooding, mut other) = (pair(V4), open(V4), open(V4));
    let place = to.local();
    to.prefer(Some(flooding.local()));
    let bytes = filled(1, 20);
    for round in 0..100 {
        send_all(&mut other, &[Datagram { to: place, bytes: &bytes }]);
        let mut heard = false;
        for _ in 0..8 {
            send_all(&mut flooding, &[Datagram { to: place, bytes: &bytes }; 20]);
            to.poll(&mut |from, _| heard |= from == other.local());
        }
        assert!(heard, "round {round}");
        while to.receive(&mut |_, _| {}) != 0 {}
    }
}

/// Neither while it is connected to itself, nor to a peer.
#[test]
fn no_other_socket_can_be_bound_to_the_port() {
    let refuses = |at: SocketAddr, shares: bool, reuses: bool| {
        let other = unbound(at).expect("a socket");
        sockopt::set_socket_reuseport(&other, shares).expect("an option");
        sockopt::set_socket_reuseaddr(&other, reuses).expect("an option");
        rustix::net::bind(&other, &at) == Err(Errno::ADDRINUSE)
    };
    for at in places() {
        let (mut own, peer) = (pair(at), open(if at == V6 { V6 } else { V4 }));
        for preferred in [None, Some(peer.local()), None] {
            own.prefer(preferred);
            for (shares, reuses) in [(false, false), (true, false), (false, true), (true, true)] {
                for place in [own.local(), reached(&own)] {
                    assert!(refuses(place, shares, reuses), "{place} {preferred:?} {shares} {reuses}");
                }
            }
        }
    }
}

/// A connected socket reports that its peer's port is unreachable: any host can make such a
/// message. Nothing is lost by it.
#[test]
fn errors_of_the_preferred_peer_lose_nothing() {
    for at in places().into_iter().filter(|at| *at != "0.0.0.0:0") {
        let (mut own, mut other, peer) = (pair(at), open(at), open(at));
        let address = peer.local();
        own.prefer(Some(address));
        drop(peer);
        let bytes = filled(4, 40);
        for round in 0..20 {
            // The error waits in the socket afterwards.
            assert_eq!(own.send(&[Datagram { to: address, bytes: &bytes }]), 1);
            if round % 2 == 0 {
                send_all(&mut other, &[Datagram { to: own.local(), bytes: &bytes }]);
                assert_eq!(received(&mut own, 1).len(), 1, "round {round}");
                assert_eq!(own.send(&[Datagram { to: address, bytes: &bytes }]), 1);
            }
            let mut again = Socket::open(address, Options::default()).expect("its port is free");
            assert_eq!(own.send(&[Datagram { to: address, bytes: &bytes }; 3]), 3);
            assert_eq!(received(&mut again, 3).len(), 3, "round {round}: {:?}", own.counts());
            send_all(&mut again, &[Datagram { to: own.local(), bytes: &bytes }; 2]);
            assert_eq!(received(&mut own, 2).len(), 2, "round {round}");
        }
        assert!(own.counts().errors >= 20, "{:?}", own.counts());
        assert_eq!(Counts { errors: 0, ..own.counts() }, Counts::default());
    }
}

#[test]
fn a_peer_by_which_everything_is_refused_is_preferred_no_more() {
    let (mut own, mut peer) = (pair(V4), open(V4));
    own.prefer(Some(peer.local()));
    let second = own.connected.as_mut().expect("a second socket");
    (0..15).for_each(|_| second.note_refused());
    assert_eq!(second.peer(), Some(peer.local()));
    second.note_sent();
    (0..16).for_each(|_| second.note_refused());
    assert_eq!(second.peer(), None);
    let bytes = filled(9, 30);
    send_all(&mut own, &[Datagram { to: peer.local(), bytes: &bytes }]);
    assert_eq!(received(&mut peer, 1), [(own.local(), bytes)]);
}

#[test]
fn long_datagrams_go_in_parts_to_the_preferred_peer_too() {
    for at in places() {
        let (mut own, mut peer) = (pair(at), open(if at == V6 { V6 } else { V4 }));
        own.prefer(Some(peer.local()));
        for (len, in_parts) in [(60_000, true), (1_000, false), (9_000, true)] {
            let bytes = filled(len as u64, len);
            let datagram = Datagram { to: peer.local(), bytes: &bytes };
            assert!(if in_parts { own.send_in_parts(&datagram) } else { own.send(&[datagram]) == 1 });
            assert_eq!(received(&mut peer, 1), [(reached(&own), bytes)], "{at}: {len}");
        }
    }
}

#[test]
fn both_descriptors_show_what_is_there() {
    let (mut own, mut peer, mut other) = (pair(V4), open(V4), open(V4));
    own.prefer(Some(peer.local()));
    let readable = |own: &Socket, at_most| {
        let both = [own.event_fd(), own.other_event_fd().expect("a second socket")];
        await_readable(&both, Some(at_most))[..2].to_vec()
    };
    let bytes = [1; 10];
    send_all(&mut peer, &[Datagram { to: own.local(), bytes: &bytes }]);
    assert_eq!(readable(&own, test_deadline()), [false, true]);
    assert_eq!(received(&mut own, 1).len(), 1);
    send_all(&mut other, &[Datagram { to: own.local(), bytes: &bytes }]);
    assert_eq!(readable(&own, test_deadline()), [true, false]);
    assert_eq!(received(&mut own, 1).len(), 1);
    assert_eq!(readable(&own, Duration::ZERO), [false, false]);
}

/// A socket without a second one, as where the system takes none.
#[test]
fn without_a_second_socket_all_is_as_with_it() {
    let mut own = open_with(V4, Options { connects: false, ..Options::default() });
    assert!(own.connected.is_none() && own.other_event_fd().is_none());
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = peer.local_addr().expect("bound");
    own.prefer(Some(address));
    assert_eq!(own.send(&[Datagram { to: address, bytes: &[5; 9] }]), 1);
    let mut bytes = [0; 20];
    assert_eq!(peer.recv_from(&mut bytes).expect("it arrives"), (9, own.local()));
    peer.send_to(&bytes[..9], own.local()).expect("it leaves");
    assert_eq!(received(&mut own, 1), [(address, vec![5; 9])]);
}

/// With trains and without, by the connected socket and by the first one, after an error that
/// has waited, too.
#[test]
fn the_datagrams_of_a_train_arrive_as_they_were_cut() {
    for (at, options) in kinds() {
        let (mut from, mut to, other) = (open_with(at, options), open_with(at, options), open(at));
        assert!(from.connected.is_some(), "{at}: no second socket");
        let mut rng = Rng::stream(0x7a1b, 0);
        for round in 0..60 {
            let preferred = [None, Some(to.local()), Some(other.local())][round % 3];
            from.prefer(preferred);
            let (count, segment) = (2 + rng.below(40) as usize, 8 + rng.below(1400) as usize);
            let last = 1 + rng.below(segment as u64) as usize;
            let bytes = filled(round as u64, (count - 1) * segment + last);
            let taken = from.send_train(to.local(), &bytes, segment);
            assert_eq!(taken, count, "{at} {options:?}, round {round}");
            let mut got: Vec<Vec<u8>> =
                received(&mut to, count).into_iter().map(|(_, bytes)| bytes).collect();
            let mut sent: Vec<Vec<u8>> = bytes.chunks(segment).map(<[u8]>::to_vec).collect();
            got.sort();
            sent.sort();
            assert!(got == sent, "{at} {options:?}, round {round}: {} of {count}", got.len());
        }
        assert_eq!((from.counts(), to.counts()), (Counts::default(), Counts::default()));
    }
}

/// Nothing receives at the address any more: the report of that waits in the connected socket.
#[test]
fn a_train_is_sent_in_spite_of_an_error_that_has_waited() {
    let (mut from, to) = (pair(V4), open(V4));
    let place = to.local();
    from.prefer(Some(place));
    drop(to);
    let bytes = filled(1, 1000);
    assert_eq!(from.send_train(place, &bytes, 100), 10);
    let mut again = open_with(&place.to_string(), Options::default());
    assert_eq!(from.send_train(place, &bytes, 100), 10);
    let got = received(&mut again, 10);
    assert!(got.len() == 10 && got.iter().all(|(source, _)| *source == from.local()));
    assert!(from.counts().errors != 0 && from.counts().refused == 0, "{:?}", from.counts());
}
