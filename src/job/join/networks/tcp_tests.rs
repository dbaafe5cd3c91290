use super::super::Party;
use super::super::outcomes::WORKS;
use super::*;
use crate::base::clock::test_deadline;
use crate::wire::card::Candidate;
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};

/// Two parties, each with an address that answers and one that does not. The second one has
/// this secret.
fn settled(secret: [u8; 16]) -> [Vec<u8>; 2] {
    let listeners =
        [1, 2].map(|host| listen(Ipv4Addr::new(127, 0, 0, host).into(), &|_| None).expect("a port is free"));
    let party = |at: usize| {
        let port = listeners[at].local_addr().expect("bound").port();
        let candidate =
            |address: [u8; 4]| Candidate { address: Some(address.into()), ..Candidate::default() };
        let candidates = vec![candidate([127, 0, 0, 1 + at as u8]), candidate([127, 0, 1, 1 + at as u8])];
        Party { task: at as u32, host_name: String::new(), net: at as u128, ports: [port, 0], candidates }
    };
    let parties: std::sync::Arc<[Party]> = [party(0), party(1)].into();
    let trials = [(0, [7; 16]), (1, secret)].map(|(own, secret)| Trial {
        parties: parties.clone(),
        own,
        round: 1,
        secret,
        thorough: true,
        usable: vec![vec![0, 1]; 2],
        preferred: None,
        longest: PATIENCE,
    });
    let mut progress = trials.each_ref().map(|trial| Progress::new(trial, PATIENCE));
    let mut listeners = listeners.into_iter();
    let mut all = trials.each_ref().map(|trial| Connections::new(trial, [listeners.next(), None]));
    let deadline = Instant::now() + test_deadline();
    while !progress.iter().all(Progress::is_settled) {
        for at in 0..2 {
            all[at].step(&trials[at], &mut progress[at]);
        }
        assert!(Instant::now() < deadline, "it goes on for ever");
    }
    [0, 1].map(|at| progress[at].listed(&trials[at]))
}

#[test]
fn what_both_sides_prove_works_and_nothing_else() {
    let refused = libc::ECONNREFUSED as u8;
    assert_eq!(settled([7; 16]), [[WORKS, refused, WORKS, refused]; 2]);
    let wrong = libc::EPROTO as u8;
    assert_eq!(settled([8; 16]), [[wrong, refused, wrong, refused]; 2]);
}

#[test]
fn both_families_have_one_port() {
    let Ok(six) = bound((Ipv6Addr::UNSPECIFIED, 0).into(), true) else { return };
    let port = six.local_addr().expect("bound").port();
    match bound((Ipv4Addr::UNSPECIFIED, port).into(), true) {
        Ok(four) => {
            let reaches_four = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            assert!(reaches_four && four.accept().is_ok() && six.accept().is_err());
        }
        // Another process may have taken it.
        Err(why) => assert_eq!(why.kind(), ErrorKind::AddrInUse),
    }
}
