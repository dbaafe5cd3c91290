//! Which network a job chooses, and what it says when none works.
//!
//! Each host has two links: the launcher uses the one that the names of the hosts lead to, and the
//! tests change both.

use std::thread::sleep;
use std::time::Duration;

use openlapi_tests::{Hosts, Job, Layout, Network, Outcome, compile, skipped, stage};

/// LAPI_ERR_CSS_LOAD_FAILED
const CSS_LOAD_FAILED: &str = "404";

const BOTH: [Network; 2] = [Network::Fabric, Network::Udp];

/// Rules for nft: what this host gets over these interfaces for LAPI, of either
/// transport, is dropped.
fn dropped(interfaces: &str) -> String {
    format!(
        "echo 'table inet field {{ chain input {{ type filter hook input priority 0; \
         iifname {{ {interfaces} }} meta l4proto udp drop; iifname {{ {interfaces} }} tcp dport 20000-20099 drop; }}; }}' | nft -f -"
    )
}

/// Two hosts with this number of links, after this script has run on both, with `$N` for 1 and 2;
/// or a loud end of the test.
fn hosts(what: &str, rails: usize, script: &str) -> Option<Hosts> {
    // Tests use both transports.
    let hosts = Network::Fabric.hosts(what, rails)?;
    let set_up = || {
        (0..2).try_for_each(|host| hosts.set_up(host, &format!("N={}; {script}", host + 1)))?;
        (0..2).try_for_each(|host| hosts.set_up(host, UNTIL_BRIDGES_RUN))
    };
    set_up().map_err(|why| skipped(what, &why)).ok().map(|()| hosts)
}

/// The late first contact of tasks, one on each host. `args`: what LAPI_Init is to return, if
/// it is to fail.
fn first_put(hosts: &Hosts, network: Network, args: &[&str]) -> Job {
    let program = compile("field-first_put", &["tests/field/first_put.c"], &[]);
    let job = args.iter().fold(Job::new(program).procs(hosts.count()), Job::arg).env("MP_INFOLEVEL", "2");
    // No network is tried for longer than seconds; what hangs ends after LAPI_INIT_TIMEOUT.
    let job = job.deadline(30);
    // libfabric's connections arrive at ports that a filter can name.
    let job = job.env("FI_TCP_PORT_LOW_RANGE", "20000").env("FI_TCP_PORT_HIGH_RANGE", "20099");
    hosts.place(hosts.count(), network.select(job))
}

/// The job of `first_put` succeeds over this network on two hosts.
#[track_caller]
fn uses(network: Network, job: &Job, name: &str) -> Outcome {
    uses_on(2, network, job, name)
}

/// On this number of hosts.
#[track_caller]
fn uses_on(hosts: usize, network: Network, job: &Job, name: &str) -> Outcome {
    let outcome = job.run();
    outcome.ok();
    assert_eq!(outcome.stdout.matches("PASS").count(), hosts, "{network:?}\n{outcome}");
    let chosen = |line: &str| line.contains("network: ") && line.contains(name) && line.ends_with("used");
    assert_eq!(
        outcome.stderr.lines().filter(|line| chosen(line)).count(),
        hosts,
        "{network:?} {name}\n{outcome}"
    );
    outcome
}

/// The job of `first_put` fails in LAPI_Init, in both tasks, and says all of this.
#[track_caller]
fn fails(job: &Job, says: &[&str]) {
    let outcome = job.run();
    outcome.ok();
    assert_eq!(outcome.stdout.matches("PASS").count(), 2, "{outcome}");
    says.iter().for_each(|text| {
        outcome.says(text);
    });
}

/// The first link becomes a bridge as containers have them: up, and with one address on all hosts.
const DOCKER_FIRST: &str = "ip link set rail0 down; ip address flush dev rail0; ip link set rail0 name docker0; \
    ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up";
/// Such a bridge is made last.
const DOCKER_LAST: &str = "ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0; \
    ip link add port0 type veth peer name port1; ip link set port0 master docker0 up; ip link set port1 up; \
    ip link set docker0 up";

/// The kernel takes a moment to mark an interface as running, and libfabric lists no other.
const UNTIL_BRIDGES_RUN: &str = "for i in $(seq 200); do ip -o link show up | grep docker0 | grep -qv 'state UP' || break; sleep 0.05; done";

#[test]
fn an_address_that_all_hosts_have_is_not_used() {
    let what = "a bridge with one address on all hosts";
    for (script, rails, network) in [(DOCKER_FIRST, 2, "10.77.1.0/24"), (DOCKER_LAST, 1, "10.77.0.0/24")] {
        let Some(hosts) = hosts(what, rails, script) else { return };
        if rails == 2 {
            hosts.rename(&["10.77.1.1", "10.77.1.2"]);
        }
        for transport in BOTH {
            let outcome = uses(transport, &first_put(&hosts, transport, &[]), network);
            outcome.says("172.17.0.1");
            outcome.says("never used: node1 has this address, too");
        }
        let job = first_put(&hosts, Network::Udp, &[]).env("MP_EUIDEVICE", "sn_all");
        uses(Network::Udp, &job, network);
    }
    // Named, it is refused with the reason.
    let Some(hosts) = hosts(what, 1, DOCKER_LAST) else { return };
    let job = first_put(&hosts, Network::Fabric, &[CSS_LOAD_FAILED]).env("MP_EUIDEVICE", "docker0");
    fails(&job, &["(MP_EUIDEVICE=docker0)", "never used: node0 has this address, too"]);
}

/// The hosts have no subnet in common, but routes; the bridge is the only one of one name.
#[test]
fn routed_subnets_are_used() {
    let script = format!(
        "{DOCKER_LAST}; ip address flush dev rail0; ip address add 10.$N.0.1/24 dev rail0; \
         ip route add 10.$((3 - N)).0.0/24 dev rail0"
    );
    let Some(hosts) = hosts("routed subnets beside a bridge", 1, &script) else { return };
    hosts.rename(&["10.1.0.1", "10.2.0.1"]);
    for transport in BOTH {
        let outcome = uses(transport, &first_put(&hosts, transport, &[]), "rail0");
        outcome.says("routed: 10.1.0.0/24, 10.2.0.0/24");
        let job = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "sn_all");
        uses(transport, &job, "rail0");
    }
}

#[test]
fn a_second_address_of_an_interface_is_a_candidate_like_others() {
    // The aliases come first in the system's list: they are made again after them.
    let script = "ip address flush dev rail0; ip address add 10.$((10 - N)).0.5/24 dev rail0; \
        ip address add 10.77.0.$N/24 dev rail0";
    let Some(hosts) = hosts("a second address of an interface", 1, script) else { return };
    for transport in BOTH {
        uses(transport, &first_put(&hosts, transport, &[]), "10.77.0.0/24");
        let named = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "rail0");
        uses(transport, &named, "10.77.0.0/24");
    }
    // The variables restrict the candidates of libfabric, too.
    let stated = "@4:10.9.0.5,rail0:10.8.0.5,rail0:172.31.0.1,x:172.31.0.2,x";
    let job = first_put(&hosts, Network::Fabric, &[CSS_LOAD_FAILED]).env("MP_LAPI_INET_ADDR", stated);
    fails(&job, &["10.9.0.5", "10.8.0.5", "Network is unreachable", "MP_LAPI_INET_ADDR="]);
}

#[test]
fn interfaces_behind_a_filter_are_passed_over() {
    let script = dropped("rail0, rail1, rail2");
    let Some(hosts) = hosts("interfaces behind a filter", 4, &script) else { return };
    for transport in BOTH {
        let outcome = uses(transport, &first_put(&hosts, transport, &[]), "10.77.3.0/24");
        outcome.says("no answer from node1 (10.77.0.2)");
        let job = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "sn_all");
        uses(transport, &job, "10.77.3.0/24");
    }
    let job = first_put(&hosts, Network::Udp, &[CSS_LOAD_FAILED]).env("MP_EUIDEVICE", "rail1");
    let says = ["MP_EUIDEVICE=rail1", "no answer from node1 (10.77.1.2)", "no answer from node0 (10.77.1.1)"];
    fails(&job, &says);
}

/// The first network carries packets between two of the hosts, and to the third one none.
#[test]
fn a_network_that_does_not_reach_one_of_three_hosts_is_passed_over() {
    let what = "three hosts, one of which is behind a filter";
    let layout = Layout { hosts: 3, rails: 2, own_tmp: false };
    let Some(hosts) = Network::Fabric.hosts_of(what, layout) else { return };
    for transport in BOTH {
        uses_on(3, transport, &first_put(&hosts, transport, &[]), "10.77.0.0/24");
    }
    if let Err(why) = hosts.set_up(2, &dropped("rail0")) {
        return skipped(what, &why);
    }
    for transport in BOTH {
        let job = first_put(&hosts, transport, &[]);
        let outcome = uses_on(3, transport, &job, "10.77.1.0/24");
        outcome.says("no answer from node0 (10.77.0.1), and 1 more host");
        assert!(!outcome.stderr.contains("1 more hosts"), "{outcome}");
    }
}

/// The first host's filter lets its own connections out and their replies in, and nothing that
/// another host begins. Over UDP the two hosts have one socket each: what the first one has sent
/// lets the other one reply.
#[test]
fn a_network_that_one_host_alone_can_begin_to_use_is_passed_over() {
    let rules = "echo 'table inet field { chain input { type filter hook input priority 0; \
        iifname \"rail0\" tcp dport 20000-20099 ct state new drop; }; }' | nft -f -";
    let script = format!("if [ $N = 1 ]; then {rules}; fi");
    let Some(hosts) = hosts("a filter of one direction", 2, &script) else { return };
    uses(Network::Fabric, &first_put(&hosts, Network::Fabric, &[]), "10.77.1.0/24");
}

#[test]
fn tunnels_are_used() {
    for (what, script) in [
        (
            "a tunnel",
            "ip link add tun0 type vxlan id 5 remote 10.77.0.$((3 - N)) dev rail0 dstport 4789; \
             ip address add 10.5.0.$N/24 dev tun0; ip link set tun0 up",
        ),
        (
            "an interface between two addresses",
            "ip address flush dev rail1; ip link set rail1 down; ip link set rail1 name tun0; \
             ip address add 10.$((4 + N)).0.1 peer 10.$((7 - N)).0.1/32 dev tun0; ip link set tun0 up",
        ),
    ] {
        let Some(hosts) = hosts(what, 2, script) else { continue };
        for transport in BOTH {
            let job = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "tun0");
            uses(transport, &job, "tun0");
        }
    }
}

#[test]
fn ipv6_is_used_where_there_is_nothing_else() {
    // The launchers use the other link.
    let script = "ip address flush dev rail1; ip address add fd00:77::$N/64 dev rail1 nodad";
    let Some(hosts) = hosts("IPv6 alone", 2, script) else { return };
    for transport in BOTH {
        let job = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "rail1");
        uses(transport, &job, "fd00:77::/64");
    }
}

#[test]
fn an_interface_that_comes_later_is_waited_for() {
    let script = "ip address flush dev rail1; ip link set rail1 down";
    let Some(hosts) = hosts("an interface that comes later", 2, script) else { return };
    for transport in BOTH {
        let job = first_put(&hosts, transport, &[]).env("MP_EUIDEVICE", "rail1");
        let mut running = job.start();
        running.until_it_says("task 1 (");
        sleep(Duration::from_millis(1500));
        for host in 0..2 {
            let script = format!("ip address add 10.6.0.{}/24 dev rail1; ip link set rail1 up", host + 1);
            hosts.set_up(host, &script).expect("the address is free");
        }
        let outcome = running.wait();
        outcome.ok();
        assert_eq!(outcome.stdout.matches("PASS").count(), 2, "{outcome}");
        for host in 0..2 {
            hosts.set_up(host, script).expect("it was up");
        }
    }
    let job = first_put(&hosts, Network::Udp, &[CSS_LOAD_FAILED]).env("MP_EUIDEVICE", "rail1");
    fails(&job, &["MP_EUIDEVICE=rail1", "no interface that is up has an address"]);
}

#[test]
fn the_check_of_the_network_shows_what_it_was_chosen_from() {
    let Some(hosts) = hosts("lapi_info --network beside a bridge", 1, DOCKER_LAST) else { return };
    let info = || Job::new(stage().join("bin/lapi_info")).procs(2).arg("--network");
    for transport in BOTH {
        let outcome = hosts.place(2, transport.select(info())).run();
        let text = &outcome.ok().stdout;
        assert!(text.contains("rail0    10.77.0.2   10.77.0.0/24   used"), "{outcome}");
        assert!(text.contains("never used: node0 has this address, too"), "{outcome}");
    }
    hosts.set_up(1, &dropped("rail0")).unwrap_or_else(|why| skipped("a network that carries nothing", &why));
    let outcome = hosts.place(2, Network::Udp.select(info())).run();
    assert!(outcome.status != Some(0), "{outcome}");
    outcome.says("no answer from node1 (10.77.0.2)");
}
