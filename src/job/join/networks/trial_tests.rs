use super::*;
use crate::wire::card::Candidate;

fn trial(own: usize, round: u32, secret: Secret) -> Trial {
    let candidate = |at: &str| Candidate { address: at.parse().ok(), ..Candidate::default() };
    let party = |at: u32| Party {
        task: at,
        host_name: String::new(),
        net: at.into(),
        ports: [4000 + at as u16, 6000 + at as u16],
        candidates: [format!("10.0.0.{at}"), format!("fd00::{at}")].map(|at| candidate(&at)).into(),
    };
    let parties: Arc<[Party]> = (0..3).map(party).collect();
    let usable = vec![vec![0, 1], vec![0, 1], vec![1]];
    let preferred = Some(vec![1, 1, 1]);
    Trial { parties, own, round, secret, thorough: false, usable, preferred, longest: PATIENCE }
}

/// A party of several hosts, each with an address on the same networks, whose
/// numbers these are.
fn on_networks(hosts: u32, networks: &[u8]) -> Trial {
    let party = |at: u32| Party {
        task: at,
        host_name: String::new(),
        net: at.into(),
        ports: [4000; 2],
        candidates: networks
            .iter()
            .map(|network| Candidate {
                interface: format!("eth{network}"),
                address: format!("10.{network}.{}.{}", at / 256, at % 256).parse().ok(),
                network: format!("10.{network}.0.0/16"),
            })
            .collect(),
    };
    let all: Vec<usize> = (0..networks.len()).collect();
    Trial {
        parties: (0..hosts).map(party).collect(),
        own: 0,
        round: 1,
        secret: [1; 16],
        thorough: false,
        usable: vec![all; hosts as usize],
        preferred: Some(vec![0; hosts as usize]),
        longest: Duration::from_secs(30),
    }
}

#[test]
fn pairs_of_one_subnet_are_first_and_take_turns() {
    let trial = on_networks(500, &[1, 2, 3]);
    let queue = trial.queue();
    assert_eq!(queue.len(), trial.pairs().len());
    let (near, routed) = queue.split_at(3 * 499);
    assert!(near.iter().all(|pair| pair.own == pair.other));
    assert!(routed.iter().all(|pair| pair.own != pair.other));
    for part in [near, routed] {
        assert!(part.chunks(3).all(|turn| (0..3).all(|own| turn.iter().any(|pair| pair.own == own))));
    }
}

#[test]
fn another_network_than_the_preferred_one_waits_for_a_repetition() {
    let trial = on_networks(3, &[1, 2]);
    let mut progress = Progress::new(&trial, PATIENCE);
    let pair = |party, number| Pair { own: number, party, other: number };
    let soon = GRACE + GRACE;
    [pair(1, 0), pair(1, 1), pair(2, 1)].into_iter().for_each(|pair| progress.works(&trial, pair));
    assert!(!progress.is_settled_after(soon), "party 2 may answer on the preferred network");
    assert!(progress.is_settled_after(REPEATED));
    progress.works(&trial, pair(2, 0));
    assert!(progress.is_settled_after(soon) && !progress.is_settled_after(GRACE / 2));
}

#[test]
fn pairs_are_of_one_family_and_usable() {
    let pair = |own, party, other| Pair { own, party, other };
    assert_eq!(trial(0, 1, [1; 16]).pairs(), [pair(0, 1, 0), pair(1, 1, 1), pair(1, 2, 1)]);
}

#[test]
fn a_question_is_answered_by_the_party_that_is_asked_and_no_other() {
    let (asks, asked) = (trial(0, 1, [1; 16]), trial(1, 1, [1; 16]));
    let pair = Pair { own: 1, party: 1, other: 1 };
    let question = asks.question(&pair);
    let (answer, to) = asked.answer(&question).expect("a question");
    assert_eq!(to, "[fd00::0]:6000".parse().expect("an address"));
    assert_eq!(asks.answered(&answer), Some(pair));
    assert_eq!(asks.answered(&question), None, "a question is no answer");
    assert_eq!(asked.answer(&answer), None, "nor the other way");
    assert_eq!(trial(2, 1, [1; 16]).answer(&question), None, "another party");
    assert_eq!(trial(1, 2, [1; 16]).answer(&question), None, "another round");
    assert_eq!(trial(1, 1, [2; 16]).answer(&question), None, "another secret");
    for at in 0..LENGTH {
        let mut changed = question;
        changed[at] ^= 1;
        assert_eq!(asked.answer(&changed), None, "byte {at}");
        assert_eq!(asked.answer(&question[..at]), None, "{at} bytes");
    }
    let subject = asks.subject(&pair);
    assert!(asked.is_asked(&subject) && !asks.is_asked(&subject), "the party that is asked");
    assert!(!trial(1, 2, [1; 16]).is_asked(&subject), "another round");
}
