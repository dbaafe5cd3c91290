use super::*;
use crate::base::rng::Rng;

fn candidate(at: u64) -> Candidate {
    let address = match at % 3 {
        0 => None,
        1 => Some(IpAddr::from([10, 77, at as u8, 1])),
        _ => Some(IpAddr::from([at as u16, 2, 3, 4, 5, 6, 7, 8])),
    };
    Candidate { interface: format!("eth{at}"), address, network: format!("10.77.{at}.0/24") }
}

fn some_card(rng: &mut Rng) -> Card {
    let mut text =
        |longest: u64| (0..rng.below(longest)).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let (host_name, failure, provider) = (text(60), text(200), text(20));
    let host = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    Card {
        host,
        host_name,
        pid: rng.next_u64() as u32,
        started: rng.next_u64(),
        pid_namespace: rng.next_u64(),
        failure,
        provider,
        addresses: (0..rng.below(9)).map(|_| vec![7; rng.below(120) as usize]).collect(),
        networks: (0..rng.below(9)).map(|at| format!("10.77.{at}.0/24")).collect(),
        net: u128::from(rng.next_u64()),
        ports: [rng.next_u64() as u16, rng.next_u64() as u16],
        candidates: (0..rng.below(CANDIDATES as u64)).map(candidate).collect(),
    }
}

#[test]
fn a_card_comes_back_as_it_was() {
    let mut rng = Rng::new(5);
    for _ in 0..200 {
        let card = some_card(&mut rng);
        let bytes = card.encode().expect("not too long");
        assert_eq!(Card::decode(&bytes), Some(card));
    }
}

#[test]
fn what_is_no_card_is_refused() {
    let card = some_card(&mut Rng::new(6));
    let bytes = card.encode().expect("not too long");
    for len in 0..bytes.len() {
        assert_eq!(Card::decode(&bytes[..len]), None, "{len} bytes");
    }
    assert_eq!(Card::decode(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(Card { addresses: vec![vec![0; LONGEST]], ..card }.encode(), None);
    // What no task encodes: a text that is too long (the first one is empty, behind 40 bytes),
    // and too long a card.
    let empty = Card::default().encode().expect("not too long");
    let long_text =
        |len: u16| [&empty[..40], &len.to_le_bytes(), &vec![b'x'; len.into()], &empty[42..]].concat();
    assert!(Card::decode(&long_text(LONGEST_TEXT as u16)).is_some());
    assert_eq!(Card::decode(&long_text(LONGEST_TEXT as u16 + 1)), None);
    let mut long = empty[..46].to_vec();
    long.extend([1, 0]);
    put(&mut long, &[0; LONGEST]);
    let rest = [0; 2 + 16 + 4 + 2];
    assert_eq!(Card::decode(&[&long[..], &rest].concat()), None);
}

#[test]
fn a_long_reason_is_cut() {
    let card = Card { failure: "ü".repeat(300), ..Card::default() };
    let read = Card::decode(&card.encode().expect("not too long")).expect("a card");
    assert!(read.failure.len() <= LONGEST_TEXT && read.failure.starts_with("üü"));
}
