use super::*;

const ONE: Wish = Wish { all: false, each: 1, named: None };
const ALL: Wish = Wish { all: true, ..ONE };

/// Hosts, each with `INTERFACE ADDRESS/LENGTH` of its candidates; the network is the first
/// three numbers.
fn hosts(lists: &[&[&str]]) -> Vec<Party> {
    let candidate = |text: &&str| {
        let (interface, address) = text.split_once(' ').expect("two words");
        let address: IpAddr = address.parse().expect("an address");
        let text = address.to_string();
        let end = text.rfind(['.', ':']).expect("numbers");
        Candidate { interface: interface.into(), address: Some(address), network: text[..end].into() }
    };
    let party = |(at, list): (usize, &&[&str])| Party {
        task: at as u32,
        host_name: format!("node{at}"),
        net: at as u128,
        ports: [1, 2],
        candidates: list.iter().map(candidate).collect(),
    };
    lists.iter().enumerate().map(party).collect()
}

/// What is chosen when pairs of addresses work unless one of them begins with a word of `cut`.
fn chosen(parties: &[Party], wish: &Wish, cut: &[&str]) -> Vec<(String, Vec<String>)> {
    let address = |p: usize, i: usize| parties[p].candidates[i].address.expect("IP");
    let is_cut = |p, i| cut.iter().any(|cut| address(p, i).to_string().starts_with(cut));
    let works =
        |p, i, q, j| address(p, i).is_ipv4() == address(q, j).is_ipv4() && !is_cut(p, i) && !is_cut(q, j);
    let text = |network: Network| {
        let members = network.members.iter().enumerate();
        (network.name, members.map(|(p, i)| address(p, *i).to_string()).collect())
    };
    choose(parties, wish, &works).into_iter().map(text).collect()
}

fn name(found: &[(String, Vec<String>)]) -> Vec<&str> {
    found.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn an_address_that_another_host_has_too_never_counts() {
    for lists in [
        [["docker0 172.17.0.1", "eth0 192.168.77.1"], ["docker0 172.17.0.1", "eth0 192.168.77.2"]],
        [["eth0 192.168.77.1", "docker0 172.17.0.1"], ["docker0 172.17.0.1", "eth0 192.168.77.2"]],
    ] {
        let parties = hosts(&[&lists[0], &lists[1]]);
        assert_eq!(name(&chosen(&parties, &ONE, &[])), ["192.168.77"]);
        assert_eq!(name(&chosen(&parties, &ALL, &[])), ["192.168.77"]);
    }
    // Also where two hosts of three have it.
    let parties = hosts(&[
        &["br0 172.17.0.1", "eth0 10.0.0.1"],
        &["br0 172.17.0.2", "eth0 10.0.0.2"],
        &["br0 172.17.0.2", "eth0 10.0.0.3"],
    ]);
    assert_eq!(name(&chosen(&parties, &ONE, &[])), ["10.0.0"]);
    let alone = hosts(&[&["lo 127.0.0.1", "br0 172.17.0.1"], &["lo 127.0.0.1", "br0 172.17.0.1"]]);
    assert_eq!(chosen(&alone, &ONE, &[]), []);
    assert_eq!(obstacles(&alone, &ONE)[0], [Some(Obstacle::AlsoOf(1)), Some(Obstacle::AlsoOf(1))]);
}

#[test]
fn routed_subnets_are_networks_too() {
    let parties = hosts(&[
        &["docker0 172.17.0.1", "eth0 10.1.0.1"],
        &["eth0 10.2.0.1", "docker0 172.17.0.1"],
        &["eth0 10.3.0.1", "eth1 10.4.0.1"],
    ]);
    let found = chosen(&parties, &ONE, &["10.3"]);
    let addresses = ["10.1.0.1", "10.2.0.1", "10.4.0.1"].map(str::to_owned).to_vec();
    assert_eq!(found, [("routed: 10.1.0, 10.2.0, 10.4.0".to_owned(), addresses)]);
    assert_eq!(chosen(&parties, &ONE, &["10.2"]), []);
}

/// Candidate 0 of the first host works with the second host alone.
#[test]
fn a_combination_is_found_that_is_not_the_first_one() {
    let parties = hosts(&[&["a 10.1.0.1", "b 10.2.0.1"], &["a 10.3.0.1"], &["a 10.4.0.1"]]);
    let works = |p, i, q, _| !(p == 0 && i == 0 && q == 2);
    let found = choose(&parties, &ONE, &works);
    assert_eq!(found[0].members, [1, 0, 0]);
}

#[test]
fn the_first_common_subnet_that_works_is_used() {
    let parties = hosts(&[
        &["eth0 10.9.0.5", "eth0 192.168.77.1", "eth1 10.0.1.1"],
        &["eth1 10.0.1.2", "eth0 10.8.0.5", "eth0 192.168.77.2"],
    ]);
    assert_eq!(name(&chosen(&parties, &ONE, &[])), ["192.168.77"]);
    assert_eq!(name(&chosen(&parties, &ONE, &["192.168.77.2"])), ["10.0.1"]);
    assert_eq!(name(&chosen(&parties, &ALL, &[])), ["192.168.77", "10.0.1"]);
    assert_eq!(name(&chosen(&parties, &ALL, &["10.0.1.1"])), ["192.168.77"]);
}

#[test]
fn several_interfaces_on_one_subnet_count_where_they_are_wanted() {
    let list = |host| {
        [format!("eth0 10.0.0.{host}"), format!("eth0 10.0.0.2{host}"), format!("eth1 10.0.0.1{host}")]
    };
    let (one, two) = (list(1), list(2));
    let texts = [&one, &two].map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    let parties = hosts(&[&texts[0], &texts[1]]);
    assert_eq!(name(&chosen(&parties, &ONE, &[])), ["10.0.0"]);
    let two = Wish { each: 2, ..ONE };
    let found = chosen(&parties, &two, &[]);
    assert_eq!(name(&found), ["10.0.0", "10.0.0 #2"]);
    assert_eq!(found[1].1, ["10.0.0.11", "10.0.0.12"]);
}

#[test]
fn both_families_count() {
    let list = |host| {
        [format!("eth0 2001:db8::{host}"), format!("eth0 10.0.0.{host}"), format!("eth1 2001:db9::{host}")]
    };
    let (one, two) = (list(1), list(2));
    let texts = [&one, &two].map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    let parties = hosts(&[&texts[0], &texts[1]]);
    assert_eq!(name(&chosen(&parties, &ALL, &[])), ["10.0.0", "2001:db9:"]);
    assert_eq!(preferred(&parties, &usable(&parties, &ONE), &ONE), Some(vec![1, 1]));
}

#[test]
fn families_do_not_mix() {
    let parties = hosts(&[&["eth0 2001:db8::1", "eth1 10.1.0.1"], &["eth0 2001:db8::2"]]);
    assert_eq!(chosen(&parties, &ONE, &[])[0].1, ["2001:db8::1", "2001:db8::2"]);
}

#[test]
fn tasks_of_one_host_use_the_loopback() {
    let mut parties = hosts(&[&["eth0 10.0.0.1", "lo 127.0.0.1"], &["eth0 10.0.0.1", "lo 127.0.0.1"]]);
    parties[1].net = 0;
    assert_eq!(chosen(&parties, &ONE, &[])[0].1, ["127.0.0.1", "127.0.0.1"]);
    assert_eq!(chosen(&parties, &ALL, &[])[0].1, ["10.0.0.1", "10.0.0.1"]);
    assert_eq!(chosen(&parties[..1], &ONE, &[])[0].1, ["127.0.0.1"]);
    let lo = hosts(&[&["lo 127.0.0.1"]]);
    assert_eq!(chosen(&lo, &ALL, &[])[0].1, ["127.0.0.1"]);
}

#[test]
fn eight_networks_are_the_most() {
    let list = |host: usize| (0..12).map(|at| format!("eth{at} 10.0.{at}.{host}")).collect::<Vec<_>>();
    let (one, two) = (list(1), list(2));
    let texts = [&one, &two].map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(chosen(&hosts(&[&texts[0], &texts[1]]), &ALL, &[]).len(), RAILS);
}
