use super::*;
use crate::base::rng::Rng;
use crate::wire::card::Candidate;

fn party(candidates: usize) -> Party {
    Party {
        task: 0,
        host_name: String::new(),
        net: 0,
        ports: [0; 2],
        candidates: vec![Candidate::default(); candidates],
    }
}

#[test]
fn outcomes_are_found_where_they_were_noted() {
    let mut rng = Rng::new(3);
    for _ in 0..50 {
        let parties: Vec<Party> = (0..2 + rng.below(5)).map(|_| party(rng.below(4) as usize)).collect();
        let mut all = Outcomes::untried(&parties);
        let value = |p: usize, pair: &Pair| (p * 31 + pair.own * 7 + pair.party * 3 + pair.other) as u8 % 5;
        for of in 0..parties.len() {
            let seen: Vec<u8> = pairs(&parties, of).map(|pair| value(of, &pair)).collect();
            all.note(&parties, of, &Outcomes::encode(&seen));
        }
        for of in 0..parties.len() {
            for pair in pairs(&parties, of) {
                assert_eq!(all.seen(of, pair.own, pair.party, pair.other), value(of, &pair));
            }
        }
    }
}

#[test]
fn a_pair_works_when_both_sides_say_so() {
    let parties = [party(1), party(1)];
    let mut all = Outcomes::untried(&parties);
    assert!(all.work(0, 0, 1, 0), "nothing is tried");
    all.note(&parties, 0, &Outcomes::encode(&[WORKS]));
    assert!(!all.work(0, 0, 1, 0));
    all.note(&parties, 1, &Outcomes::encode(&[SILENT]));
    assert_eq!((all.work(0, 0, 1, 0), all.of(0, 0, 1, 0)), (false, SILENT));
    all.note(&parties, 1, &Outcomes::encode(&[WORKS]));
    assert!(all.work(0, 0, 1, 0) && all.work(1, 0, 0, 0));
}

#[test]
fn a_thousand_hosts_fit_and_bytes_of_others_do_no_harm() {
    let parties: Vec<Party> = (0..1000).map(|_| party(3)).collect();
    let seen: Vec<u8> = pairs(&parties, 5).map(|pair| if pair.own == 1 { SILENT } else { WORKS }).collect();
    assert_eq!((seen.len(), Outcomes::encode(&seen).len()), (9 * 999, 9));
    let mut all = Outcomes::untried(&parties);
    let mut rng = Rng::new(4);
    for len in 0..40 {
        let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        all.note(&parties, 5, &bytes);
        assert!(all.seen[5].len() <= len / 3 && all.seen[5].iter().all(|(end, _)| *end <= seen.len()));
    }
}
