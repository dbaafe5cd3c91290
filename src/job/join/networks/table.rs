//! The candidates of a job and what has become of them, as lines for people.

use super::Party;
use super::choose::{Network, Obstacle, Wish, obstacles};
use super::outcomes::{Outcomes, SILENT, UNTRIED};
use crate::job::start_up::reach::without_number;
use crate::wire::card::Candidate;
use std::io;

/// Lines for candidates, at most: those of the first hosts.
const LINES: usize = 48;

/// One line for each candidate: its host, interface, address and subnet, and whether it is used,
/// works, or why not. `only`: those of this party.
pub(super) fn lines(
    parties: &[Party],
    wish: &Wish,
    outcomes: &Outcomes,
    chosen: &[Network],
    only: Option<usize>,
) -> Vec<String> {
    let obstacles = obstacles(parties, wish);
    let mut rows: Vec<[String; 5]> = Vec::new();
    let mut more = 0;
    let is_loopback = |candidate: &Candidate| candidate.address.is_some_and(|address| address.is_loopback());
    let wanted = |(p, _): &(usize, &Party)| only.is_none_or(|only| only == *p);
    for (p, party) in parties.iter().enumerate().filter(wanted) {
        // That of every host says nothing beside others.
        let elsewhere = party.candidates.iter().any(|candidate| !is_loopback(candidate));
        let host = format!("{} (task {})", party.host_name, party.task);
        if party.candidates.is_empty() {
            rows.push([
                host.clone(),
                "no interface that is up has an address".into(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        for (i, candidate) in party.candidates.iter().enumerate() {
            let used = chosen.iter().any(|network| network.members[p] == i);
            if is_loopback(candidate) && elsewhere && !used {
                continue;
            }
            if rows.len() >= LINES {
                more += 1;
                continue;
            }
            let state = match obstacles[p][i] {
                _ if used => "used".to_owned(),
                Some(Obstacle::AlsoOf(other)) => {
                    format!("never used: {} has this address, too", parties[other].host_name)
                }
                Some(Obstacle::OwnHost) => "reaches this host only".to_owned(),
                None => state(parties, outcomes, p, i),
            };
            let Candidate { interface, address, network } = candidate;
            let address = address.map_or_else(|| "-".to_owned(), |address| address.to_string());
            rows.push([host.clone(), interface.clone(), address, network.clone(), state]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row[..4].iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
        (cells.collect::<String>() + &row[4]).trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// What has become of a candidate that nothing keeps from use.
fn state(parties: &[Party], outcomes: &Outcomes, p: usize, i: usize) -> String {
    let own = &parties[p].candidates[i];
    let family = |candidate: &Candidate| candidate.address.map(|address| address.is_ipv4());
    let mut fails = None;
    let mut others = 0;
    let (mut tried, mut alike) = (false, false);
    for (q, party) in parties.iter().enumerate().filter(|(q, _)| *q != p) {
        let candidates =
            || (0..party.candidates.len()).filter(|j| family(&party.candidates[*j]) == family(own));
        alike |= candidates().next().is_some();
        if candidates().any(|j| outcomes.work(p, i, q, j)) {
            tried = true;
            continue;
        }
        // That of the same subnet, where there is one, says most.
        let tried_with = candidates().filter(|j| outcomes.of(p, i, q, *j) != UNTRIED);
        let near = tried_with.min_by_key(|j| party.candidates[*j].network != own.network);
        let Some(j) = near else { continue };
        tried = true;
        if fails.is_none() {
            fails = Some((q, j));
        } else {
            others += 1;
        }
    }
    match fails {
        None if tried => "works".to_owned(),
        None if !alike => "no other host has an address of this kind".to_owned(),
        None => "not tried".to_owned(),
        Some((q, j)) => {
            let address = parties[q].candidates[j].address;
            let address = address.map_or_else(String::new, |address| format!(" ({address})"));
            let more = match others {
                0 => String::new(),
                1 => ", and 1 more host".to_owned(),
                _ => format!(", and {others} more hosts"),
            };
            let peer = format!("{}{address}{more}", parties[q].host_name);
            match outcomes.of(p, i, q, j) {
                SILENT => format!("no answer from {peer}"),
                error => format!("{}: {peer}", without_number(&io::Error::from_raw_os_error(error.into()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcomes::WORKS;
    use super::*;

    #[test]
    fn each_candidate_has_a_line_that_says_what_has_become_of_it() {
        let candidate = |text: &str| {
            let [interface, address, network] = text.split(' ').collect::<Vec<_>>()[..] else {
                unreachable!("three words")
            };
            Candidate { interface: interface.into(), address: address.parse().ok(), network: network.into() }
        };
        let party = |at: u32, list: &[&str]| Party {
            task: at,
            host_name: format!("node{at}"),
            net: at.into(),
            ports: [0; 2],
            candidates: list.iter().map(|text| candidate(text)).collect(),
        };
        let parties = [
            party(0, &["docker0 172.17.0.1 172.17.0.0/16", "eth0 10.1.0.1 10.1.0.0/24", "eth1 10.9.0.1 a"]),
            party(1, &["docker0 172.17.0.1 172.17.0.0/16", "eth0 10.1.0.2 10.1.0.0/24"]),
            party(2, &[]),
        ];
        let wish = Wish { all: false, each: 1, named: None };
        let mut outcomes = Outcomes::untried(&parties[..2]);
        // By own candidate, then by the other one's.
        outcomes.note(&parties[..2], 0, &Outcomes::encode(&[UNTRIED, UNTRIED, UNTRIED, WORKS, UNTRIED, 101]));
        outcomes.note(
            &parties[..2],
            1,
            &Outcomes::encode(&[UNTRIED, UNTRIED, UNTRIED, UNTRIED, WORKS, SILENT]),
        );
        let used = [Network { name: "10.1.0.0/24".into(), members: vec![1, 1] }];
        let found = lines(&parties[..2], &wish, &outcomes, &used, None).join("\n");
        assert_eq!(
            found,
            "node0 (task 0)  docker0  172.17.0.1  172.17.0.0/16  never used: node1 has this address, too\n\
             node0 (task 0)  eth0     10.1.0.1    10.1.0.0/24    used\n\
             node0 (task 0)  eth1     10.9.0.1    a              Network is unreachable: node1 (10.1.0.2)\n\
             node1 (task 1)  docker0  172.17.0.1  172.17.0.0/16  never used: node0 has this address, too\n\
             node1 (task 1)  eth0     10.1.0.2    10.1.0.0/24    used"
        );
        assert_eq!(lines(&parties[..2], &wish, &outcomes, &used, Some(1)).len(), 2);
        let outcomes = Outcomes::untried(&parties);
        let found = lines(&parties, &wish, &outcomes, &[], None);
        assert_eq!(
            found.last().map(String::as_str),
            Some("node2 (task 2)  no interface that is up has an address")
        );
    }
}
