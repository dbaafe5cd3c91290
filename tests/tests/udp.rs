//! Jobs over UDP (MP_EUILIB=ip): alone on one machine, and beside shared memory on two hosts.
//!
//! `TEST_PROVIDER=udp ci/test-net.sh` runs the other test files over it; here are a few programs of
//! each family, so that `make test` sees it, and what only this transport has.

#[expect(dead_code, reason = "every job here chooses its transport")]
mod ltest;

use std::fs::remove_file;
use std::thread::sleep;
use std::time::Duration;

use ltest::{job, passed, program};
use openlapi_tests::{Hosts, Job, Network, build_dir, on_network, skipped};

const CSS_LOAD_FAILED: u32 = 404;

/// Programs of each family that take a second or two, with arguments.
const SELECTION: [(&str, &str); 12] = [
    ("data/sizes", "put 262144"),
    ("data/sizes", "get 262144"),
    ("data/sizes", "am 262144"),
    ("data/align", "put 9001"),
    ("data/rmw", "values"),
    ("stress/storm", "11 600 600 1 65536"),
    ("fence/fence", "gfence 300"),
    ("fence/fence", "mixed 60"),
    ("address/address", "exchange"),
    ("env/query", "statistics"),
    ("env/query", "defaults"),
    ("vectors/random", "5 40"),
];

fn by_udp(job: Job) -> Job {
    job.env("MP_EUILIB", "ip").deadline(120)
}

/// The job on the network of this machine.
fn here(job: Job) -> Job {
    by_udp(job).env("LAPI_USE_SHM", "no").env("TEST_TRANSPORT", "fabric")
}

/// The job of this many tasks on two hosts.
fn hybrid(hosts: &Hosts, tasks: usize, job: Job) -> Job {
    hosts.place(tasks, by_udp(job).env("TEST_TRANSPORT", "hybrid"))
}

#[test]
fn a_selection_on_one_machine() {
    if on_network("programs over UDP", "the test chooses the transport itself") {
        return;
    }
    for (name, args) in SELECTION {
        passed(&here(job(name, 2, args)).run(), 2);
    }
}

/// Tasks that call LAPI_Init again after it has failed in all of them, the second one later.
#[test]
fn an_attempt_has_nothing_of_one_that_has_failed() {
    if on_network("LAPI_Init that fails once", "the test chooses the transport itself") {
        return;
    }
    let script = "MP_EUIDEVICE=nosuch \"$0\" 1 one && echo no error; sleep $MP_CHILD; exec \"$0\" 1 two";
    let script = Job::new("sh").arg("-c").arg(script).arg(program("launchers/apart")).procs(2);
    let outcome = here(script.env("MP_NOARGLIST", "yes").env("LAPI_INIT_TIMEOUT", "60")).run();
    for task in 0..2 {
        assert!(outcome.ok().stdout.contains(&format!("task {task} of 2 in job two\n")), "{outcome}");
    }
    assert!(!outcome.stdout.contains("in job one") && !outcome.stdout.contains("no error"), "{outcome}");
}

/// A task fails before the other one calls LAPI_Init, and calls it again a little later than that.
#[test]
fn an_attempt_has_nothing_of_one_that_was_too_early() {
    if on_network("LAPI_Init that fails in one task", "the test chooses the transport itself") {
        return;
    }
    let script =
        "if [ $MP_CHILD = 0 ]; then LAPI_INIT_TIMEOUT=1 \"$0\" 1 one && echo no error; : >\"$1\"; sleep 1; fi
                  until [ -e \"$1\" ]; do sleep 0.1; done; exec \"$0\" 1 two";
    let failed = build_dir().join("tests/udp-failed");
    let _ = remove_file(&failed);
    let script = Job::new("sh").arg("-c").arg(script).arg(program("launchers/apart")).arg(&failed).procs(2);
    let outcome = here(script.env("MP_NOARGLIST", "yes").env("LAPI_INIT_TIMEOUT", "30")).run();
    let _ = remove_file(&failed);
    for task in 0..2 {
        assert!(outcome.ok().stdout.contains(&format!("task {task} of 2 in job two\n")), "{outcome}");
    }
    assert!(!outcome.stdout.contains("no error"), "{outcome}");
}

#[test]
fn a_selection_on_two_hosts() {
    let Some(hosts) = Network::Udp.hosts("programs over UDP on two hosts", 1) else { return };
    for (name, args) in SELECTION {
        passed(&hybrid(&hosts, 4, job(name, 4, args)).run(), 4);
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Small messages that follow each other leave together: also when their sender makes no other
/// call, over UDP and over libfabric, with interrupts and without, and when each is sent alone.
#[test]
fn bursts_whose_sender_computes() {
    if on_network("bursts of small messages", "the test chooses the transport itself") {
        return;
    }
    for (at, (network, interrupts, coalesce)) in [
        ("ip", 0, "yes"),
        ("ip", 1, "yes"),
        ("us", 0, "yes"),
        ("us", 1, "yes"),
        ("ip", 0, "no"),
        ("us", 1, "no"),
    ]
    .iter()
    .enumerate()
    {
        let folder = std::env::temp_dir().join(format!("lapi-bursts-{}-{at}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let args = format!("{interrupts} 40 {}", folder.display());
        let job =
            here(job("progress/burst", 2, &args)).env("MP_EUILIB", network).env("LAPI_COALESCE", coalesce);
        passed(&job.run(), 2);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}

/// Sixteen gets, puts or fetch-and-adds that follow each other, their replies included, leave in a
/// few datagrams; without coalescing each has one of its own, and most have one of their reply.
#[test]
fn a_burst_of_small_operations_takes_a_few_datagrams() {
    if on_network("datagrams of a burst", "the test chooses the transport itself") {
        return;
    }
    let Some(hosts) = Network::Udp.hosts("datagrams of a burst", 1) else { return };
    for (coalesce, least, most) in [("yes", 2, 10), ("no", 24, 40)] {
        let job = here(job("progress/datagrams", 2, &format!("{least} {most}")));
        passed(&hosts.inside(0, job.env("LAPI_COALESCE", coalesce)).run(), 2);
    }
}

#[test]
fn a_program_may_close_the_socket_and_have_others_under_its_number() {
    if on_network("sockets that the program closes", "the test chooses the transport itself") {
        return;
    }
    for procs in [2, 4] {
        passed(&here(job("interrupt/closed_socket", procs, "")).run(), procs);
    }
}

/// What an error handler sends leaves while it runs, and so does what the program sends meanwhile.
#[test]
fn an_error_handler_sends_and_computes() {
    if on_network("an error handler that sends", "the test chooses the transport itself") {
        return;
    }
    for (at, (network, sender)) in [
        ("ip", "0 handler"),
        ("ip", "1 handler"),
        ("ip", "1 program"),
        ("us", "0 handler"),
        ("us", "1 handler"),
        ("us", "1 program"),
    ]
    .iter()
    .enumerate()
    {
        let file = std::env::temp_dir().join(format!("lapi-last-words-{}-{at}", std::process::id()));
        let args = format!("{sender} {}", file.display());
        let job = here(job("progress/last_words", 3, &args)).env("MP_EUILIB", network);
        let outcome = job.poe_arg("-on_death").poe_arg("continue").run();
        let passes = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
        assert_eq!(passes, 2, "both others pass\n{outcome}");
        std::fs::remove_file(&file).expect("task 1 has made it");
    }
}

/// A task that exits without LAPI_Term leaves no small messages behind that it has sent.
#[test]
fn small_messages_before_the_exit_of_a_task_arrive() {
    if on_network("tasks that exit", "the test chooses the transport itself") {
        return;
    }
    for network in ["ip", "us"] {
        let ways = [
            "0 returns",
            "1 returns",
            "0 locked",
            "1 locked",
            "0 header",
            "1 completion",
            "0 later",
            "1 later",
            "1 busy",
        ];
        for args in ways {
            let job = here(job("progress/exits", 4, args)).env("MP_EUILIB", network);
            let outcome = job.run();
            assert!(outcome.exited(0).stdout.contains("PASS 0"), "task 0 has all of them\n{outcome}");
        }
    }
}

/// What a header handler sends does not wait until it returns.
#[test]
fn header_handlers_that_send_and_compute() {
    if on_network("header handlers that compute", "the test chooses the transport itself") {
        return;
    }
    for (at, (network, interrupts)) in [("ip", 0), ("ip", 1), ("us", 0), ("us", 1)].iter().enumerate() {
        let folder = std::env::temp_dir().join(format!("lapi-long-handlers-{}-{at}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let args = format!("{interrupts} 6 {}", folder.display());
        passed(&here(job("progress/long_handler", 2, &args)).env("MP_EUILIB", network).run(), 2);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}

/// A program in polling mode that makes no calls but such that are refused learns of the death.
#[test]
fn a_refused_call_reports_the_death_that_it_has_found() {
    if on_network("calls to a task that has died", "the test chooses the transport itself") {
        return;
    }
    for (network, fences) in [("ip", "0"), ("ip", "1"), ("us", "0"), ("us", "1")] {
        let job = here(job("failure/refused", 2, fences)).env("MP_EUILIB", network);
        let outcome = job.poe_arg("-on_death").poe_arg("continue").run();
        assert!(outcome.exited(137).stdout.contains("PASS 0"), "the survivor passes\n{outcome}");
    }
}

/// Packets that are as short as they may be, so that user headers of 1,024 bytes have several; and
/// those as long as a datagram.
#[test]
fn packets_of_every_size() {
    let Some(hosts) = Network::Udp.hosts("packets of UDP", 1) else { return };
    for size in ["1024", "65536"] {
        for (name, args) in
            [("data/sizes", "am 30000"), ("data/sizes", "put 30000"), ("handlers/headers", "bytes")]
        {
            let job = |tasks| job(name, tasks, args).env("MP_UDP_PACKET_SIZE", size);
            passed(&hybrid(&hosts, 2, job(2)).run(), 2);
            passed(&here(job(2)).run(), 2);
        }
    }
}

#[test]
fn every_protection() {
    let Some(hosts) = Network::Udp.hosts("LAPI_NET_SECURITY", 1) else { return };
    for security in ["auth", "encrypt", "none"] {
        let job = job("stress/storm", 4, "3 400 400 1 65536").env("LAPI_NET_SECURITY", security);
        passed(&hybrid(&hosts, 4, job).run(), 4);
    }
}

/// Datagrams are lost in both directions, and some arrive twice.
#[test]
fn what_is_lost_is_sent_again() {
    let Some(hosts) = Network::Udp.hosts("lost datagrams", 1) else { return };
    hosts.lose(5).expect("nft refuses the rule, or is not installed (nftables)");
    for (name, args) in [
        ("data/sizes", "put 262144"),
        ("data/rmw", "storm"),
        ("stress/storm", "7 300 300 1 65536"),
        ("fence/fence", "mixed 60"),
    ] {
        passed(&hybrid(&hosts, 4, job(name, 4, args)).run(), 4);
    }
}

/// The program polls, and serves the network itself.
#[test]
fn no_thread_wakes_for_a_program_that_polls() {
    if on_network("wake-ups of threads", "the test chooses the transport itself") {
        return;
    }
    passed(&here(job("progress/polling", 2, "undisturbed")).run(), 2);
}

/// Each task serves the peer that has most of the traffic by a socket of its own, and all
/// others besides.
#[test]
fn every_peer_is_served_whichever_has_most_of_the_traffic() {
    let cases = ["moves 400", "floods 400", "echoes 400"];
    if on_network("traffic of several peers", "the test chooses the transport itself") {
        return;
    }
    for case in cases {
        passed(&here(job("progress/traffic", 4, case)).run(), 4);
    }
    let Some(hosts) = Network::Udp.hosts("traffic of several peers", 1) else { return };
    for case in cases {
        passed(&hybrid(&hosts, 4, job("progress/traffic", 4, case)).run(), 4);
        passed(&hybrid(&hosts, 4, job("progress/traffic", 4, case).env("LAPI_USE_SHM", "no")).run(), 4);
    }
}

/// A link on the way takes less than those at its ends, and says nothing.
#[test]
fn datagrams_fit_the_path() {
    let Some(hosts) = Network::Udp.hosts("a narrow path", 1) else { return };
    if let Err(why) = hosts.narrow(1300) {
        return skipped("a narrow path", &why);
    }
    for (name, args) in
        [("data/sizes", "put 262144"), ("data/sizes", "am 262144"), ("stress/storm", "7 300 300 1 65536")]
    {
        passed(&hybrid(&hosts, 4, job(name, 4, args)).run(), 4);
    }
}

/// Links take less in the middle of a job, and later more again: what was cut before arrives, too.
#[test]
fn datagrams_follow_a_path_that_changes() {
    let Some(hosts) = Network::Udp.hosts("a path that changes", 1) else { return };
    hosts.set_mtu(0, 9000);
    let mut running = hybrid(&hosts, 2, job("rails/load", 2, "5 3000000")).start();
    running.lines(1);
    for bytes in [1500, 1300, 9000, 1400] {
        sleep(Duration::from_millis(700));
        hosts.set_mtu(0, bytes);
    }
    passed(&running.wait(), 2);
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

#[test]
fn statistics_of_both_sides_fit() {
    let Some(hosts) = Network::Udp.hosts("statistics of UDP", 1) else { return };
    passed(&hybrid(&hosts, 2, job("env/query", 2, "udp")).run(), 2);
    if let Err(why) = hosts.lose(15) {
        return skipped("statistics of UDP that loses datagrams", &why);
    }
    passed(&hybrid(&hosts, 2, job("env/query", 2, "udp-lossy")).run(), 2);
}

#[test]
fn tasks_part_and_rejoin() {
    let Some(hosts) = Network::Udp.hosts("recovery over UDP", 1) else { return };
    passed(&hybrid(&hosts, 3, job("recovery/again", 3, "40 1")).run(), 3);
    for case in ["waits", "sends", "quiet"] {
        passed(&hybrid(&hosts, 3, job("recovery/parted", 3, &format!("2 0 {case}"))).run(), 3);
    }
}

/// poe knows of the end, and the tasks of the other host learn of it.
#[test]
fn the_death_of_a_task_is_reported() {
    let Some(hosts) = Network::Udp.hosts("a death over UDP", 1) else { return };
    let job = job("failure/silence", 4, "killed").poe_arg("-on_death").poe_arg("continue");
    let outcome = hybrid(&hosts, 4, job).run();
    let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 3, "{outcome}");
}

/// Without poe's file: the process of a neighbour is seen.
#[test]
fn the_death_of_a_neighbour_without_shared_memory_is_reported() {
    if on_network("a death over UDP", "the test chooses the transport itself") {
        return;
    }
    let job = job("failure/silence", 4, "killed").poe_arg("-on_death").poe_arg("continue");
    let outcome = here(job).run();
    let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 3, "{outcome}");
}

#[test]
fn tasks_with_different_protection_are_refused() {
    let Some(hosts) = Network::Udp.hosts("different LAPI_NET_SECURITY", 1) else { return };
    let script = "test $MP_CHILD = 0 && export LAPI_NET_SECURITY=encrypt; exec \"$@\"";
    let shell = Job::new("/bin/sh").procs(2).arg("-c").arg(script).arg("sh").arg(program("init/init"));
    let refused = shell.arg("code").arg(CSS_LOAD_FAILED.to_string()).env("MP_INFOLEVEL", "1");
    let outcome = hybrid(&hosts, 2, refused).run();
    passed(&outcome, 2);
    outcome.says("provider udp with LAPI_NET_SECURITY=auth, task 0 has udp with LAPI_NET_SECURITY=encrypt");
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    let Some(hosts) = Network::Udp.hosts("MP_EUIDEVICE with MP_EUILIB=ip", 1) else { return };
    let refused = |name: &str| {
        let code = format!("code {CSS_LOAD_FAILED}");
        let job = job("init/init", 2, &code).env("MP_INFOLEVEL", "1").env("MP_EUIDEVICE", name);
        hybrid(&hosts, 2, job).run()
    };
    let outcome = refused("eth7");
    passed(&outcome, 2);
    outcome.says("MP_EUIDEVICE=eth7: no such interface with an address is up; there are: lo, rail0");
    let plain = job("init/init", 2, "plain 1").env("MP_EUIDEVICE", "rail0");
    passed(&hybrid(&hosts, 2, plain).run(), 2);
}
