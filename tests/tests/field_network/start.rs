//! How poe and launchers reach the other hosts, and what happens when one vanishes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Launcher, Outcome, compile, compile_plain, skipped, stage};

/// Two hosts on which poe can start tasks; `None` where this machine cannot have them.
pub fn two_hosts(what: &str) -> Option<Hosts> {
    Launcher::installed(what).find(|launcher| *launcher == Launcher::Hydra)?;
    Hosts::new(2).map_err(|why| skipped(what, &why)).ok()
}

pub fn on(hosts: &Hosts, job: Job) -> Job {
    hosts.place(2, job.poe_arg("-launcher").poe_arg("hydra"))
}

/// poe's machine has many addresses, as one with many bridges and tunnels, and all but the last are
/// behind a filter that drops. With 3 s for each of them a task would not come in time.
#[test]
fn addresses_that_do_not_answer_cost_little() {
    let Some(hosts) = two_hosts("addresses that do not answer") else { return };
    // Those of the loopback's interface come first. The way to them leads to a router
    // that is not there.
    let script = "for i in $(seq 10); do ip address add 10.200.$i.1/32 dev lo || exit 1; done";
    hosts.run(0, &["sh", "-c", script]).expect("addresses can be added");
    let way = ["ip", "route", "add", "10.200.0.0/16", "via", "10.77.0.250"];
    hosts.run(1, &way).expect("a way can be added");
    let job = Job::new("hostname").procs(2).env("LAPI_INIT_TIMEOUT", "20");
    let outcome = on(&hosts, job).run();
    let mut names: Vec<&str> = outcome.ok().stdout.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["node0", "node1"], "{outcome}");
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Nobody types, and the task that gets what is typed ends without reading it.
#[test]
fn a_task_that_does_not_read_its_open_input_ends() {
    let Some(hosts) = two_hosts("an input that stays open") else { return };
    let outcome = on(&hosts, Job::new("hostname").procs(2).stdin_stays_open()).run();
    assert!(outcome.ok().stdout.contains("node0"), "{outcome}");
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// The tasks write for ever, and it is not read any more.
#[test]
fn tasks_whose_output_has_no_reader_end() {
    let Some(hosts) = two_hosts("an output without a reader") else { return };
    let script = r#""$0" -procs 2 -launcher hydra yes 2>/dev/null | head -n 1"#;
    let job = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe"));
    let outcome = hosts.place(2, job).run();
    assert_eq!(outcome.ok().stdout, "y\n", "{outcome}");
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// A number of seconds that no clock reaches is no time at all.
#[test]
fn a_time_to_start_that_never_ends() {
    let Some(hosts) = two_hosts("a time to start that never ends") else { return };
    let job = Job::new("hostname").procs(2).env("LAPI_INIT_TIMEOUT", u64::MAX.to_string());
    let outcome = on(&hosts, job).run();
    assert!(outcome.ok().stdout.contains("node1"), "{outcome}");
}

/// Bytes of the first message on a connection of the start.
const GREETING: usize = 56;

/// What listens at one of poe's addresses may be a stranger: it learns nothing, and gets no task.
#[test]
fn a_stranger_at_poes_address_learns_nothing() {
    let token = "00112233445566778899aabbccddeeff";
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let mut task = Command::new(stage().join("bin/poe"))
        .arg("--task")
        .env("POE_LINK", format!("127.0.0.1;{port};{token};PMI_RANK"))
        .env("PMI_RANK", "0")
        .stdout(Stdio::piped())
        .spawn()
        .expect("poe is installed");
    let (mut stream, _) = listener.accept().expect("the task looks for poe here");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    let mut said = vec![0; GREETING];
    stream.read_exact(&mut said).expect("it greets");
    // A proof that is none, and an order: 3 words, "/", "1", and a program.
    let order = [&3_u32.to_le_bytes()[..], &[1, 0, 0, 0], b"/", &[1, 0, 0, 0], b"1", &[2, 0, 0, 0], b"id"];
    stream.write_all(&[&[7; 32][..], &order.concat()].concat()).expect("it reads");
    // It closes the connection, and tells no more.
    let _ = stream.read_to_end(&mut said);
    let (mut again, _) = listener.accept().expect("it goes on to look for poe");
    again.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    let mut hello = [0; GREETING];
    again.read_exact(&mut hello).expect("it greets");
    task.kill().expect("it runs");
    let output = task.wait_with_output().expect("it has ended");
    assert!(output.stdout.is_empty(), "no program was run");
    let bytes: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).expect("digits")).collect();
    let shows = |part: &[u8]| said.windows(part.len()).any(|window| window == part);
    assert!(!shows(&token.as_bytes()[..8]) && !shows(&bytes[..4]), "the token is shown: {said:?}");
    assert_eq!(said.len(), hello.len(), "nothing but the greeting");
    assert_ne!(said, hello, "each greeting is another one");
}

/// Reads and writes that move a few bytes, or are interrupted, at both ends of poe's links.
#[test]
fn short_and_interrupted_reads_and_writes_on_links_lose_nothing() {
    let Some(hosts) = two_hosts("short reads and writes on poe's links") else { return };
    let flags = ["-shared", "-fPIC", "-ldl"];
    let short = compile_plain("field_network_short.so", &["tests/field/short.c"], &flags);
    // Hydra itself has whole ones.
    let hydra = hosts.folder().join("mpiexec.hydra");
    let words = "PATH=$OTHERS exec env -u LD_PRELOAD mpiexec.hydra -genv LD_PRELOAD \"$SHORT\" \"$@\"";
    fs::write(&hydra, format!("#!/bin/sh\n{words}\n")).expect("a script can be written");
    fs::set_permissions(&hydra, fs::Permissions::from_mode(0o755)).expect("a script may be executable");
    let script = "seq 50000 > $OUT/lines
        LD_PRELOAD=$SHORT $0 -procs 2 -launcher hydra -stdinmode all -labelio yes \\
            sh -c 'env -u LD_PRELOAD grep -q \"$SHORT\" /proc/$PPID/maps && exec cat' < $OUT/lines > $OUT/all || exit 1
        for task in 0 1; do sed -n \"s/^ *$task://p\" $OUT/all | cmp - $OUT/lines || exit 2; done";
    let others = std::env::var("PATH").expect("there is one");
    let job = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).env("OTHERS", &others);
    let job = job.env("PATH", format!("{}:{others}", hosts.folder().display())).env("SHORT", &short);
    hosts.place(2, job.env("OUT", hosts.folder()).deadline(120)).run().ok();
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// A machine vanishes, and the signal of the user is in flight to it: the kernel would repeat it
/// for a quarter of an hour. A second one ends the wait.
#[test]
fn a_second_interrupt_ends_the_wait_for_a_host_that_has_vanished() {
    let Some(hosts) = two_hosts("a host that has vanished") else { return };
    let script = "trap '' INT; echo on $(hostname); sleep 1000";
    let mut job = on(&hosts, Job::new("sh").procs(2).arg("-c").arg(script)).start();
    job.lines(2);
    hosts.set_link(1, 0, false);
    job.signal(Signal::SIGINT);
    // One that comes at once would be the same one.
    std::thread::sleep(Duration::from_secs(1));
    job.signal(Signal::SIGINT);
    let outcome = job.wait();
    outcome.exited(130);
}

/// A machine vanishes with one signal in flight to it: poe ends by itself, within TCP_USER_TIMEOUT
/// and not TCP's quarter of an hour.
#[test]
fn the_wait_for_a_host_that_has_vanished_ends_by_itself() {
    let Some(hosts) = two_hosts("a host that has vanished for good") else { return };
    let script = "trap '' INT; echo on $(hostname); sleep 1000";
    let job = Job::new("sh").procs(2).arg("-c").arg(script).deadline(150);
    let mut job = on(&hosts, job).start();
    job.lines(2);
    hosts.set_link(1, 0, false);
    job.signal(Signal::SIGINT);
    let outcome = job.wait();
    outcome.exited(130);
}

/// Where any address can be bound, the other host is another one still.
#[test]
fn a_host_is_not_this_one_because_its_address_can_be_bound() {
    let Some(hosts) = two_hosts("addresses that can be bound everywhere") else { return };
    let setting = "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind";
    hosts.run(0, &["sh", "-c", setting]).expect("it can be set");
    let list = hosts.host_file(&format!("{}\n{}\n", hosts.address(0, 0), hosts.address(1, 0)));
    let job = Job::new("hostname").procs(2).poe_arg("-launcher").poe_arg("hydra");
    let outcome = hosts.poe_on(&list, job).run();
    assert!(outcome.ok().stdout.contains("node1"), "{outcome}");
}

/// Two hosts none of which has an address of IPv4.
fn two_hosts_of_ipv6(what: &str) -> Option<Hosts> {
    let hosts = two_hosts(what)?;
    let addresses = ["fd00:77::1", "fd00:77::2"];
    for (host, address) in addresses.iter().enumerate() {
        let script = format!("ip address flush dev rail0; ip address add {address}/64 dev rail0 nodad");
        if let Err(why) = hosts.set_up(host, &script) {
            skipped(what, &why);
            return None;
        }
    }
    hosts.rename(&addresses);
    Some(hosts)
}

/// Slurm gives the tasks no addresses: those of IPv6 alone are enough.
#[test]
fn hosts_may_have_addresses_of_ipv6_alone() {
    let Some(hosts) = two_hosts_of_ipv6("hosts with IPv6 alone") else { return };
    let program = compile("field-first_put", &["tests/field/first_put.c"], &[]);
    for network in ["us", "ip"] {
        let tasks = ["0", "1"].map(|task| {
            let variables = "SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 \
                SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_STEP_NODELIST=node[0-1] \
                LAPI_JOB_SECRET=000102030405060708090a0b0c0d0e0f";
            let job = Job::direct(&program).without_launchers().env("MP_EUILIB", network);
            let job = job.env("SLURM_PROCID", task).env("SLURM_NODEID", task).deadline(120);
            let each = variables.split_whitespace().filter_map(|variable| variable.split_once('='));
            let job = each.fold(job, |job, (name, value)| job.env(name, value));
            hosts.inside(usize::from(task == "1"), job).start()
        });
        for task in tasks {
            assert_eq!(task.wait().ok().stdout, "PASS\n", "{network}");
        }
    }
}

/// Hydra reaches hosts by IPv4 alone, and waits for ever for the others: poe does not.
#[test]
fn a_host_that_a_launcher_cannot_reach_is_named() {
    let Some(hosts) = two_hosts_of_ipv6("hosts that Hydra cannot reach") else { return };
    let job = on(&hosts, Job::new("hostname").procs(2)).env("LAPI_INIT_TIMEOUT", "5").deadline(120);
    let outcome = job.run();
    outcome.exited(1).says("poe: mpiexec.hydra has not started task ").says(" for 5 s (LAPI_INIT_TIMEOUT)");
}

/// Runs a job with each transport, on one host and on two.
fn everywhere(what: &str, mode: &str, test: impl Fn(&Outcome)) {
    let program = compile("field-first_cause", &["tests/field/first_cause.c"], &[]);
    let job = || Job::new(&program).procs(4).arg(mode);
    test(&job().run());
    let Some(hosts) = two_hosts(what) else { return };
    for network in ["us", "ip"] {
        let job = job().poe_arg("-launcher").poe_arg("hydra").env("MP_EUILIB", network);
        test(&hosts.place(4, job).run());
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// One task exits with status 3, and the others abort because of that.
#[test]
fn the_status_of_a_job_is_that_of_the_first_cause() {
    everywhere("the first cause", "exit", |outcome| {
        let last = outcome.exited(3).stderr.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with("poe: first cause: task 3 ("), "{outcome}");
        assert!(last.ends_with("exited with status 3 without calling LAPI_Term"), "{outcome}");
    });
}

/// A task that leaves with status 0 is the cause, too; a job that fails has no status 0.
#[test]
fn who_leaves_early_is_named() {
    everywhere("one that leaves early", "leave", |outcome| {
        let last = outcome.exited(134).stderr.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with("poe: first cause: task 3 ("), "{outcome}");
        assert!(last.ends_with("exited with status 0 without calling LAPI_Term"), "{outcome}");
    });
}

/// Tasks that are in different collective calls abort: why is the last line.
#[test]
fn the_last_line_says_what_did_not_match() {
    everywhere("a mismatch", "mismatch", |outcome| {
        let last = outcome.exited(134).stderr.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with("poe: first cause: task "), "{outcome}");
        assert!(last.contains("LAPI_Gfence of task") || last.contains("met LAPI_Gfence"), "{outcome}");
        assert!(last.contains("LAPI_Address_init"), "{outcome}");
    });
}
