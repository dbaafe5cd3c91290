//! Jobs with several rails between two hosts: bulk data is striped over them, and links that go
//! down and come up lose nothing. UDP uses one of them.

#[expect(dead_code, reason = "every job here has rails")]
mod ltest;

use std::thread::sleep;
use std::time::Duration;

use ltest::{job, passed};
use openlapi_tests::{Hosts, Job, Network, long_form, skipped};

use Network::{Fabric, Udp};

/// The job of this many tasks, half of them on each host, with the variables of chapter 14.
fn with_rails(hosts: &Hosts, tasks: usize, job: Job) -> Job {
    wanting_rails(Fabric, hosts, tasks, job)
}

/// A job that wants rails, over libfabric or UDP.
fn wanting_rails(network: Network, hosts: &Hosts, tasks: usize, job: Job) -> Job {
    let job = network.select(job).env("MP_INFOLEVEL", "2");
    let job = job.env("MP_USE_BULK_XFER", "yes").env("MP_BULK_MIN_MSG_SIZE", "65536");
    hosts.place(tasks, job.env("MP_EUIDEVICE", "sn_all").env("MP_INSTANCES", "2").deadline(180))
}

/// The bytes that a host has sent over a rail.
fn sent(hosts: &Hosts, host: usize, rail: usize) -> u64 {
    let file = format!("/sys/class/net/rail{rail}/statistics/tx_bytes");
    let outcome = hosts.inside(host, Job::direct("cat").arg(file)).run();
    outcome.ok().stdout.trim().parse().expect("a number of bytes")
}

#[test]
fn bulk_data_is_striped_over_all_rails() {
    let Some(hosts) = Fabric.hosts("striping", 2) else { return };
    let outcome = with_rails(&hosts, 2, job("rails/load", 2, "2 3000000")).run();
    passed(&outcome, 2);
    for text in ["2 rails: ", "rail0 (10.77.0.0/24)", "rail1 (10.77.1.0/24)"] {
        outcome.says(text);
    }
    for (host, rail) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let bytes = sent(&hosts, host, rail);
        assert!(bytes > 1_000_000, "host {host} has sent {bytes} bytes over rail {rail}\n{outcome}");
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

#[test]
fn udp_uses_one_interface_and_says_so() {
    let Some(hosts) = Udp.hosts("several interfaces with UDP", 2) else { return };
    let outcome = wanting_rails(Udp, &hosts, 2, job("rails/load", 2, "1 3000000")).run();
    passed(&outcome, 2);
    outcome.says("attention: LAPI (485)");
    outcome.says("UDP uses one interface, 10.77.0.0/24");
    for host in [0, 1] {
        let bytes = [0, 1].map(|rail| sent(&hosts, host, rail));
        assert!(bytes[0] > 1_000_000 && bytes[1] < 100_000, "host {host} has sent {bytes:?}\n{outcome}");
    }
}

/// Long pieces of vectors, each striped over both rails, while links go down and come up; with
/// `TEST_LONG=yes` in the environment also those of active messages, which go as those of puts do.
#[test]
fn long_pieces_survive_links_that_go_down() {
    let Some(hosts) = Fabric.hosts("vectors on links that fail", 2) else { return };
    let long = long_form();
    for kind in if long { &["putv", "getv", "amv"][..] } else { &["putv", "getv"] } {
        let mut running =
            with_rails(&hosts, 2, job("vectors/bulk", 2, &format!("{kind} none any 6"))).start();
        running.lines(1);
        for (host, rail) in [(1, 1), (0, 0), (0, 1)] {
            hosts.set_link(host, rail, false);
            sleep(Duration::from_millis(400));
            hosts.set_link(host, rail, true);
            sleep(Duration::from_millis(400));
        }
        passed(&running.wait(), 2);
    }
    for (host, rail) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let bytes = sent(&hosts, host, rail);
        assert!(bytes > 1_000_000, "host {host} has sent {bytes} bytes over rail {rail}");
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

fn links_go_down_and_come_up(tasks: usize) {
    let Some(hosts) = Fabric.hosts("links that fail under load", 2) else { return };
    let mut running = with_rails(&hosts, tasks, job("rails/load", tasks, "8 3000000")).start();
    running.lines(1);
    for (host, rail) in [(1, 1), (0, 0), (1, 0), (0, 1), (0, 1), (1, 0)] {
        sleep(Duration::from_millis(300));
        hosts.set_link(host, rail, false);
        sleep(Duration::from_millis(600));
        hosts.set_link(host, rail, true);
    }
    let outcome = running.wait();
    passed(&outcome, tasks);
    for text in ["the link of rail rail0", "the link of rail rail1", "is down", "is up again"] {
        outcome.says(text);
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// With `TEST_LONG=yes` in the environment also those of a task for each host.
#[test]
fn links_go_down_and_come_up_under_load() {
    let long = long_form();
    let numbers = if long { &[2, 4][..] } else { &[4] };
    numbers.iter().copied().for_each(links_go_down_and_come_up);
}

/// What is lost while the only link is down is sent again.
#[test]
fn the_link_of_udp_goes_down_and_comes_up_under_load() {
    let Some(hosts) = Udp.hosts("the link of UDP that fails under load", 2) else { return };
    // The launcher uses the first link.
    let job = Udp.select(job("rails/load", 2, "6 3000000")).env("MP_EUIDEVICE", "rail1");
    let mut running = hosts.place(2, job.deadline(180)).start();
    running.lines(1);
    for host in [1, 0, 1] {
        sleep(Duration::from_millis(500));
        hosts.set_link(host, 1, false);
        sleep(Duration::from_millis(600));
        hosts.set_link(host, 1, true);
    }
    passed(&running.wait(), 2);
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// The network carries nothing although the link is up, as behind a switch that has failed.
#[test]
fn the_network_of_udp_is_silent_for_a_while() {
    let Some(hosts) = Udp.hosts("a silent network", 2) else { return };
    let job = Udp.select(job("rails/load", 2, "5 3000000")).env("MP_EUIDEVICE", "rail1");
    let mut running = hosts.place(2, job.deadline(180)).start();
    running.lines(1);
    for host in [1, 0] {
        sleep(Duration::from_millis(500));
        if let Err(why) = hosts.silence(host, 1, true) {
            skipped("a silent network", &why);
            break;
        }
        sleep(Duration::from_millis(1500));
        hosts.silence(host, 1, false).expect("the first one has worked");
    }
    passed(&running.wait(), 2);
}

/// A link that stays down from the middle of the job on: the rest goes over the other one.
#[test]
fn a_link_stays_down() {
    let Some(hosts) = Fabric.hosts("a link that stays down", 2) else { return };
    let mut running = with_rails(&hosts, 2, job("rails/load", 2, "3 3000000")).start();
    running.lines(1);
    hosts.set_link(1, 1, false);
    passed(&running.wait(), 2);
}

#[test]
fn attention_messages_say_when_there_is_no_failover() {
    for network in [Fabric, Udp] {
        let Some(hosts) = network.hosts("attention messages about failover", 1) else { return };
        let plain = || network.select(job("rails/load", 2, "0 1000"));
        let verbose = || plain().env("MP_INFOLEVEL", "1").env("MP_INSTANCES", "2");
        let outcome = hosts.place(2, verbose().env("MP_EUIDEVICE", "sn_all")).run();
        passed(&outcome, 2);
        outcome.says("attention: LAPI (485)");
        let outcome = hosts.place(2, verbose().env("MP_EUIDEVICE", "rail0")).run();
        passed(&outcome, 2);
        outcome.says("attention: LAPI (490)");
        let outcome = hosts.place(2, plain().env("MP_INFOLEVEL", "1")).run();
        passed(&outcome, 2);
        assert!(!outcome.stderr.contains("attention"), "{outcome}");
    }
}

/// With one rail there is nothing to fall back on: what waits ends as for any task that is silent.
#[test]
fn the_only_link_stays_down() {
    for network in [Fabric, Udp] {
        let Some(hosts) = network.hosts("the loss of the only link", 2) else { return };
        // The launcher uses the first link.
        let job = network.select(job("rails/cut", 2, "")).env("MP_EUIDEVICE", "rail1");
        let mut running = hosts.place(2, job.deadline(120)).start();
        running.lines(2);
        hosts.set_link(1, 1, false);
        passed(&running.wait(), 2);
    }
}

/// Purge and resume: the connections of all rails are made again.
#[test]
fn tasks_part_and_rejoin() {
    let Some(hosts) = Fabric.hosts("recovery with several rails", 2) else { return };
    passed(&with_rails(&hosts, 3, job("recovery/again", 3, "40 1")).run(), 3);
}

/// Threads that wait and send; with `TEST_LONG=yes` in the environment also those that take turns,
/// and several handles, each with all rails.
#[test]
fn threads_use_all_rails() {
    let Some(hosts) = Fabric.hosts("threads with several rails", 2) else { return };
    let long = long_form();
    for case in if long { &["waiters 1", "turns", "handles 2"][..] } else { &["waiters 1"] } {
        passed(&with_rails(&hosts, 4, job("threads/threads", 4, case)).run(), 4);
    }
}

/// The death of a process is not the failure of a rail.
#[test]
fn the_death_of_a_task_is_reported() {
    let Some(hosts) = Fabric.hosts("a death with several rails", 2) else { return };
    let job = job("failure/silence", 4, "killed").poe_arg("-on_death").poe_arg("continue");
    let outcome = with_rails(&hosts, 4, job).run();
    let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 3, "{outcome}");
}
