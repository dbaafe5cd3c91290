//! Tasks on several hosts that no launcher has started, and whose addresses the program gives (the
//! manual's chapter 16).
//!
//! Each host is a network namespace; the tasks are processes that the test starts one by one.

#[expect(dead_code, reason = "the tasks here are started one by one")]
mod ltest;

use ltest::program;
use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Layout, Outcome, Running, alive, eventually, on_network, skipped, stage};
use std::fs::{self, DirBuilder, Permissions};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

const NO_NETSTR_SET: u32 = 407;
const NO_UDP_HNDLR: u32 = 408;
const USER_UDP_HNDLR_FAIL: u32 = 416;
const SHM_SETUP: u32 = 439;
const UDP_PORT_INFO: u32 = 475;
const UDP_SOCKET: u32 = 481;
const NO_ENV_VAR: u32 = 510;

const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
const OTHER_SECRET: &str = "ff0102030405060708090a0b0c0d0e0f";

/// Some hosts without a launcher, and a home directory that all see.
struct Site {
    hosts: Hosts,
    home: PathBuf,
}

impl Site {
    fn new(what: &str) -> Option<Self> {
        Self::on(2, what)
    }

    fn on(hosts: usize, what: &str) -> Option<Self> {
        if on_network(what, "the test chooses the transport itself") {
            return None;
        }
        let hosts = Hosts::with(Layout { hosts, rails: 1, own_tmp: false });
        let hosts = hosts.map_err(|why| skipped(what, &why)).ok()?;
        let home = hosts.folder().join("home");
        fs::create_dir(&home).expect("a folder");
        Some(Self { hosts, home })
    }

    fn address(&self, host: usize, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.hosts.address(host, 0), port)
    }

    /// The addresses of tasks on these hosts, with the ports 7000 and so on.
    fn list(&self, hosts: &[usize]) -> Vec<SocketAddrV4> {
        (7000..).zip(hosts).map(|(port, host)| self.address(*host, port)).collect()
    }

    /// Gives each host an address of IPv6, too. `None`: this system has none.
    fn with_six(self, what: &str) -> Option<Self> {
        for host in 0..self.hosts.count() {
            let script = format!("ip -6 address add {}/64 dev rail0 nodad", self.six(host, 0).ip());
            let outcome = self.hosts.inside(host, Job::direct("/bin/sh").arg("-c").arg(script)).run();
            if outcome.status != Some(0) {
                skipped(what, &format!("no IPv6: {outcome}"));
                return None;
            }
        }
        Some(self)
    }

    fn six(&self, host: usize, port: u16) -> SocketAddrV6 {
        let ip = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, host as u16 + 1);
        SocketAddrV6::new(ip, port, 0, 0)
    }

    fn list_of_six(&self, hosts: &[usize]) -> Vec<SocketAddrV6> {
        (7000..).zip(hosts).map(|(port, host)| self.six(*host, port)).collect()
    }

    /// One of the tasks, on a host. Its variables are those that every user sets, and no secret.
    fn task(&self, host: usize, task: usize, tasks: usize, args: &[&str]) -> Job {
        let job = Job::direct(program("standalone/tasks"));
        let job = args.iter().fold(job, Job::arg);
        self.hosts
            .inside(host, job)
            .env("MP_CHILD", task.to_string())
            .env("MP_PROCS", tasks.to_string())
            .env("HOME", &self.home)
            .env("MP_INFOLEVEL", "1")
    }

    /// All tasks of a job on these hosts, changed by `change`, with their outcomes.
    fn run(
        &self,
        hosts: &[usize],
        way: &str,
        case: &str,
        change: impl Fn(usize, Job) -> Job,
    ) -> Vec<Outcome> {
        self.run_with(hosts, &text(&self.list(hosts)), way, case, change)
    }

    /// Runs the tasks with this list of addresses.
    fn run_with(
        &self,
        hosts: &[usize],
        list: &str,
        way: &str,
        case: &str,
        change: impl Fn(usize, Job) -> Job,
    ) -> Vec<Outcome> {
        let start = |(task, host): (usize, &usize)| {
            change(task, self.task(*host, task, hosts.len(), &[way, case, list])).start()
        };
        let running: Vec<Running> = hosts.iter().enumerate().map(start).collect();
        running.into_iter().map(Running::wait).collect()
    }

    /// A task alone, whose LAPI_Init returns this code, with what it writes.
    fn refused(&self, way: &str, list: &str, code: u32, change: impl Fn(Job) -> Job) -> Outcome {
        let task = self.task(0, 0, 2, &[way, "code", list, &code.to_string()]);
        let outcome = change(task).run();
        all_passed(std::slice::from_ref(&outcome));
        outcome
    }

    fn write_key(&self, digits: &str, mode: u32) {
        let folder = self.home.join(".openlapi");
        let _ = DirBuilder::new().mode(0o700).create(&folder);
        fs::write(folder.join("key"), digits).expect("a file");
        fs::set_permissions(folder.join("key"), Permissions::from_mode(mode)).expect("a mode");
    }
}

fn text(list: &[impl ToString]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn with_secret(job: Job) -> Job {
    job.env("LAPI_JOB_SECRET", SECRET)
}

#[track_caller]
fn all_passed(outcomes: &[Outcome]) {
    for outcome in outcomes {
        outcome.ok();
        assert_eq!(outcome.stdout.matches("PASS").count(), 1, "every task prints one PASS\n{outcome}");
    }
}

#[test]
fn the_list_is_the_directory() {
    let Some(site) = Site::new("a list of addresses") else { return };
    for way in ["list", "unsized", "short"] {
        all_passed(&site.run(&[0, 1], way, "all", |_, job| with_secret(job)));
    }
    // Several tasks on each host share memory there, or use the network there, too.
    for shares in ["yes", "no"] {
        let outcomes = site.run(&[0, 1, 1, 0, 1], "list", "all", |task, job| {
            let job = with_secret(job).env("LAPI_USE_SHM", shares).env("MP_EUILIB", "ip");
            if task == 0 { job.env("MP_INFOLEVEL", "2") } else { job }
        });
        all_passed(&outcomes);
        outcomes[0].says(&format!("network: udp at {}", site.address(0, 7000)));
    }
    assert!(site.hosts.are_empty(), "left behind: {:?}", site.hosts.processes());
}

#[test]
fn the_handler_of_the_program_gives_the_addresses() {
    let Some(site) = Site::new("a handler for addresses") else { return };
    all_passed(&site.run(&[0, 1, 1], "handler", "all", |_, job| with_secret(job)));
    // One that distributes what LAPI has given it.
    let folder = site.hosts.folder().join("exchange");
    fs::create_dir(&folder).expect("a folder");
    let start = |task: usize| {
        let args = ["exchange", "all", folder.to_str().expect("text")];
        with_secret(site.task(task % 2, task, 3, &args)).env("MP_EUIDEVICE", "en0").start()
    };
    let running: Vec<Running> = (0..3).map(start).collect();
    all_passed(&running.into_iter().map(Running::wait).collect::<Vec<_>>());
    let list = text(&site.list(&[0, 1]));
    site.refused("fails", &list, USER_UDP_HNDLR_FAIL, with_secret).says("it has returned 17");
}

/// Waits until a process on the task's host has bound the port.
fn binds(task: &Running, port: u16) {
    let socket = format!(":{port:04X} ");
    let table = format!("/proc/{}/net/udp", task.pid());
    assert!(
        eventually(|| fs::read_to_string(&table).is_ok_and(|text| text.contains(&socket))),
        "port {port} is never bound: {:?}",
        fs::read_to_string(&table)
    );
}

#[test]
fn tasks_start_at_different_times_and_begin_again() {
    let Some(site) = Site::new("tasks that start later") else { return };
    let list = text(&site.list(&[0, 1]));
    let start = |task: usize| with_secret(site.task(task, task, 2, &["list", "all", &list])).start();
    let first = start(1);
    // It has opened LAPI, and sends to a task that does not exist yet.
    binds(&first, 7001);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(alive(first.pid()), "it waits");
    all_passed(&[start(0).wait(), first.wait()]);
    for (shares, hosts) in [("yes", [0, 1, 1, 0, 0, 1, 0, 1]), ("no", [0, 1, 0, 1, 0, 1, 0, 1])] {
        all_passed(&site.run(&hosts, "list", "again", |_, job| with_secret(job).env("LAPI_USE_SHM", shares)));
    }
}

/// By the fields for addresses of any family, also between an IPv6 network's hosts.
#[test]
fn addresses_may_be_of_ipv6() {
    let what = "addresses of IPv6";
    let Some(site) = Site::new(what).and_then(|site| site.with_six(what)) else { return };
    let hosts = [0, 1, 1];
    let (six, four) = (text(&site.list_of_six(&hosts)), text(&site.list(&hosts)));
    for (way, list) in [("ext", &six), ("ext", &four), ("exthandler", &six), ("exthandler", &four)] {
        let outcomes = site.run_with(&hosts, list, way, "all", |task, job| {
            with_secret(job).env("MP_INFOLEVEL", if task == 0 { "2" } else { "1" })
        });
        all_passed(&outcomes);
        let first = list.split(',').next().expect("an address");
        outcomes[0].says(&format!("network: udp at {first}"));
    }
    all_passed(
        &site.run_with(&[0, 1, 1], &six, "ext", "again", |_, job| with_secret(job).env("LAPI_USE_SHM", "no")),
    );
    let folder = site.hosts.folder().join("exchange");
    fs::create_dir(&folder).expect("a folder");
    let start = |task: usize| {
        let args = ["extexchange", "all", folder.to_str().expect("text")];
        with_secret(site.task(task % 2, task, 3, &args)).start()
    };
    let running: Vec<Running> = (0..3).map(start).collect();
    all_passed(&running.into_iter().map(Running::wait).collect::<Vec<_>>());
    // All on one host, as the manual's program has them: no secret is needed.
    let one = text(&site.list_of_six(&[1, 1]));
    for shares in ["yes", "no"] {
        let start = |task| site.task(1, task, 2, &["ext", "all", &one]).env("LAPI_USE_SHM", shares).start();
        all_passed(&[start(0), start(1)].map(Running::wait));
    }
}

#[test]
fn wrong_lists_of_any_family_are_refused() {
    let what = "wrong lists of any family";
    let Some(site) = Site::new(what).and_then(|site| site.with_six(what)) else { return };
    let (one, other) = (site.six(0, 7000), site.six(1, 7001));
    for (list, code, why) in [
        (format!("{one},{one}"), UDP_PORT_INFO, format!("tasks 0 and 1 have the same address {one}")),
        (format!("{one},{}", site.address(1, 7001)), UDP_PORT_INFO, "of one family only".to_owned()),
        (format!("{one},[fe80::1]:7001"), UDP_PORT_INFO, "task 1 has [fe80::1]:7001".to_owned()),
        (format!("{one},[::]:7001"), UDP_PORT_INFO, "task 1 has [::]:7001".to_owned()),
        (format!("[2001:db8::5]:7000,{other}"), UDP_SOCKET, "no address of this host".to_owned()),
    ] {
        site.refused("ext", &list, code, with_secret).says(&why);
    }
    // One address for two tasks, or a structure whose fields behind the count may be anything.
    for (way, list) in [("ext", one.to_string()), ("extshort", format!("{one},{other}"))] {
        site.refused(way, &list, NO_UDP_HNDLR, with_secret).says("num_udp_addr to the number of tasks");
    }
}

/// A child of a task does not keep its port.
#[test]
fn a_port_is_not_inherited() {
    let Some(site) = Site::new("forked children") else { return };
    all_passed(&site.run(&[0, 1], "list", "forked", |_, job| with_secret(job)));
}

/// Datagrams of different lengths: those of the shorter side are used. Longer ones do
/// not arrive there.
#[test]
fn packet_sizes_may_differ() {
    let Some(site) = Site::new("packet sizes that differ") else { return };
    let set_link = |host: usize, setting: &str| {
        let script = format!("ip link set rail0 {setting}");
        site.hosts.inside(host, Job::direct("/bin/sh").arg("-c").arg(script)).run().ok();
    };
    // A train of datagrams would pass the shorter link whole.
    set_link(0, "gso_max_segs 1");
    set_link(1, "mtu 1280");
    all_passed(&site.run(&[0, 1], "list", "all", |_, job| with_secret(job)));
    let outcomes = site.run(&[0, 1], "list", "all", |task, job| {
        with_secret(job).env("MP_UDP_PACKET_SIZE", if task == 0 { "1024" } else { "8192" })
    });
    all_passed(&outcomes);
}

#[test]
fn tasks_of_one_host_need_no_secret() {
    let Some(site) = Site::new("tasks of one host") else { return };
    // As the manual's program is: no secret, no key file, and nothing about shared memory.
    all_passed(&site.run(&[0, 0, 0], "unsized", "all", |_, job| job));
    assert!(!site.home.join(".openlapi").exists(), "shared memory needs no key file");
    all_passed(&site.run(&[0, 0], "handler", "all", |_, job| job.env("LAPI_USE_SHM", "only")));
    // By way of the network the library makes a key that no other user knows.
    all_passed(&site.run(&[0, 0, 0], "list", "all", |_, job| job.env("LAPI_USE_SHM", "no")));
    let made = fs::metadata(site.home.join(".openlapi/key")).expect("a key file");
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    // The addresses of one host may differ.
    let loopback = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let list = text(&[site.address(1, 7000), loopback(7001)]);
    for shares in ["yes", "no"] {
        let start = |task| site.task(1, task, 2, &["list", "all", &list]).env("LAPI_USE_SHM", shares).start();
        let running = [start(0), start(1)];
        all_passed(&running.map(Running::wait));
    }
}

#[test]
fn tasks_of_several_hosts_need_a_secret() {
    let Some(site) = Site::new("a job's secret without a launcher") else { return };
    let list = text(&site.list(&[0, 1]));
    let outcome = site.refused("list", &list, NO_ENV_VAR, |job| job);
    outcome.says("set LAPI_JOB_SECRET").says(".openlapi/key").says("LAPI_NET_SECURITY=none");
    assert!(!site.home.join(".openlapi").exists(), "no key is made that the other host may not find");
    all_passed(&site.run(&[0, 1], "list", "all", |_, job| job.env("LAPI_NET_SECURITY", "none")));
    site.write_key(SECRET, 0o600);
    all_passed(&site.run(&[0, 1], "list", "all", |_, job| job));
    // The variable is the same secret, and goes first.
    all_passed(&site.run(&[0, 1], "list", "all", |task, job| if task == 0 { with_secret(job) } else { job }));
    for (digits, mode, why) in [
        (SECRET, 0o644, "others may use it (mode 0644)"),
        (SECRET, 0o620, "others may use it (mode 0620)"),
        ("0001", 0o600, "does not have 32 hexadecimal digits"),
        ("", 0o600, "does not have 32 hexadecimal digits"),
    ] {
        site.write_key(digits, mode);
        let outcome = site.refused("list", &list, NO_ENV_VAR, |job| job);
        outcome.says(why).says("lapi_info --make-key").says("LAPI_JOB_SECRET");
        assert!(!outcome.stderr.contains(SECRET), "the secret is not shown\n{outcome}");
        // Who has the variable needs no file.
        all_passed(&site.run(&[0, 1], "list", "all", |_, job| with_secret(job)));
    }
}

/// A task with another secret fails, and changes nothing: the right one may still come.
#[test]
fn a_task_with_another_secret_fails_and_harms_nothing() {
    let Some(site) = Site::new("another secret") else { return };
    let list = text(&site.list(&[0, 1]));
    let right = with_secret(site.task(0, 0, 2, &["list", "all", &list])).start();
    binds(&right, 7000);
    for (name, value) in
        [("LAPI_JOB_SECRET", OTHER_SECRET), ("LAPI_NET_SECURITY", "encrypt"), ("MP_PARTITION", "other")]
    {
        let wrong = with_secret(site.task(1, 1, 2, &["list", "alone", &list])).env("LAPI_INIT_TIMEOUT", "4");
        let outcome = wrong.env(name, value).run();
        all_passed(std::slice::from_ref(&outcome));
        outcome.says(&format!("has not replied at {}", site.address(0, 7000))).says("another secret");
        outcome.says("LAPI_INIT_TIMEOUT");
    }
    assert!(alive(right.pid()), "the other task waits for the right one");
    let last = with_secret(site.task(1, 1, 2, &["list", "all", &list])).start();
    all_passed(&[right.wait(), last.wait()]);
}

#[test]
fn a_secret_of_another_length_is_refused() {
    let Some(site) = Site::new("LAPI_JOB_SECRET of another length") else { return };
    let list = text(&site.list(&[0, 1]));
    for secret in ["00", &SECRET[1..], &SECRET.repeat(2), "secret of mine"] {
        let outcome = site.refused("list", &list, NO_ENV_VAR, |job| job.env("LAPI_JOB_SECRET", secret));
        outcome.says("LAPI_JOB_SECRET").says("32 hexadecimal digits");
        assert!(!outcome.stderr.contains(&format!("\"{secret}")), "it is shown\n{outcome}");
    }
    site.refused("list", &list, NO_ENV_VAR, |job| job.env("LAPI_JOB_SECRET", ""))
        .says("have no shared secret");
    fs::create_dir_all(site.home.join(".openlapi/key")).expect("a folder in its place");
    site.refused("list", &list, NO_ENV_VAR, |job| job).says("it is no regular file");
}

/// Of two tasks one has called LAPI_Term, and LAPI_Init again, and the other one has not: both
/// learn why they do not connect.
#[test]
fn openings_that_differ_are_named() {
    let Some(site) = Site::new("a task that has begun again alone") else { return };
    let list = text(&site.list(&[0, 1]));
    let start = |task: usize, case: &str| {
        with_secret(site.task(task, task, 2, &["list", case, &list])).env("LAPI_INIT_TIMEOUT", "15").start()
    };
    let mut first = start(0, "ahead");
    // Task 1 must not meet the first context of task 0.
    assert_eq!(first.lines(1)[0].trim(), "AHEAD");
    let outcomes = [first, start(1, "alone")].map(Running::wait);
    all_passed(&outcomes);
    outcomes[0]
        .says("task 1 is in its LAPI_Init number 1, and this task in number 2")
        .says("LAPI_INIT_TIMEOUT");
    outcomes[1].says("task 0 is in its LAPI_Init number 2, and this task in number 1");
}

#[test]
fn a_task_that_never_comes_is_named() {
    let Some(site) = Site::new("a task that never comes") else { return };
    let list = text(&site.list(&[0, 1]));
    let task = with_secret(site.task(0, 0, 2, &["list", "alone", &list])).env("LAPI_INIT_TIMEOUT", "1").run();
    all_passed(std::slice::from_ref(&task));
    task.says(&format!("task 1 has not replied at {}", site.address(1, 7001))).says("is it started");
}

/// The addresses are of UDP: with libfabric the task looks on this machine for the others.
#[test]
fn addresses_that_are_not_used_are_told() {
    let Some(site) = Site::new("addresses that are not used") else { return };
    let list = text(&site.list(&[0, 1]));
    let job =
        site.task(0, 0, 2, &["list", "alone", &list]).env("MP_EUILIB", "us").env("LAPI_INIT_TIMEOUT", "5");
    let task = with_secret(job.env("MP_PARTITION", format!("unused-{}", std::process::id()))).run();
    task.says("task 1 is not found: with MP_EUILIB=us the addresses in add_info");
}

/// Another process takes the place of a task that was killed, on another port of its host, or
/// on another host.
#[test]
fn a_task_is_replaced() {
    let Some(site) = Site::on(3, "replacement without a launcher") else { return };
    for (case, hosts, place, shares) in [
        ("restart", &[0, 1][..], 1, "yes"),
        ("restart", &[0, 1, 0], 1, "yes"),
        ("restart", &[0, 1, 0], 2, "yes"),
        ("restart", &[0, 1, 1], 1, "yes"),
        ("restart", &[0, 1, 1], 1, "no"),
        ("restart", &[0, 0, 0], 0, "yes"),
        ("restart", &[0, 0, 0], 0, "no"),
        // Nothing but LAPI_ADD_UDP_DEST_PORT says where the new process is.
        ("moved", &[0, 1, 0], 1, "yes"),
        ("moved", &[0, 1, 0], 2, "yes"),
        ("moved", &[0, 1, 1], 1, "yes"),
        ("moved", &[0, 1, 1], 1, "no"),
        ("moved", &[0, 0], 0, "no"),
    ] {
        let before = site.list(hosts);
        let mut after = before.clone();
        after[1] = site.address(place, 7777);
        let (address, before, after) = (after[1].to_string(), text(&before), text(&after));
        let dead = site.hosts.folder().join("dead");
        let start = |host: usize, task: usize, list: &str, last: &str| {
            let job = site.task(host, task, hosts.len(), &["list", case, list, &address, last]);
            with_secret(job).env("LAPI_USE_SHM", shares).env("MP_PARTITION", "9").start()
        };
        let first = |task: usize| start(hosts[task], task, &before, dead.to_str().expect("text"));
        let mut running: Vec<Running> = (0..hosts.len()).map(first).collect();
        let killed = running.remove(1).wait();
        assert_eq!(killed.signal, Some(Signal::SIGKILL as i32), "it is killed in the end\n{killed}");
        fs::write(&dead, "").expect("a file");
        running.push(start(place, 1, &after, "again"));
        all_passed(&running.into_iter().map(Running::wait).collect::<Vec<_>>());
        fs::remove_file(&dead).expect("it was written");
    }
}

/// A replacement over IPv6: LAPI_ADD_UDP_DEST_EXT says where the new process is.
#[test]
fn a_task_is_replaced_over_ipv6() {
    let what = "replacement over IPv6";
    let Some(site) = Site::on(3, what).and_then(|site| site.with_six(what)) else { return };
    for (hosts, place) in [(&[0, 1, 0][..], 2), (&[0, 1, 1], 1)] {
        let before = site.list_of_six(hosts);
        let mut after = before.clone();
        after[1] = site.six(place, 7777);
        let (address, before, after) = (after[1].to_string(), text(&before), text(&after));
        let dead = site.hosts.folder().join("dead");
        let start = |host: usize, task: usize, list: &str, last: &str| {
            let job = site.task(host, task, hosts.len(), &["ext", "moved", list, &address, last]);
            with_secret(job).start()
        };
        let first = |task: usize| start(hosts[task], task, &before, dead.to_str().expect("text"));
        let mut running: Vec<Running> = (0..hosts.len()).map(first).collect();
        let killed = running.remove(1).wait();
        assert_eq!(killed.signal, Some(Signal::SIGKILL as i32), "it is killed in the end\n{killed}");
        fs::write(&dead, "").expect("a file");
        running.push(start(place, 1, &after, "again"));
        all_passed(&running.into_iter().map(Running::wait).collect::<Vec<_>>());
        fs::remove_file(&dead).expect("it was written");
    }
}

#[test]
fn a_destination_is_checked() {
    let Some(site) = Site::new("LAPI_ADD_UDP_DEST_PORT") else { return };
    let list = text(&site.list(&[0, 1]));
    let start = |task: usize| {
        let other = site.address(1 - task, 7009).to_string();
        with_secret(site.task(task, task, 2, &["list", "util", &list, &other])).start()
    };
    let running = [start(0), start(1)];
    all_passed(&running.map(Running::wait));
}

#[test]
fn wrong_lists_are_refused() {
    let Some(site) = Site::new("wrong lists") else { return };
    let (one, other) = (site.address(0, 7000), site.address(1, 7001));
    let stranger = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 5), 7000);
    let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7001);
    let zero = SocketAddrV4::new(*other.ip(), 0);
    for (list, code, why) in [
        (text(&[one]), UDP_PORT_INFO, "num_udp_addr is 1, and the job has 2 tasks".to_owned()),
        (text(&[one, one]), UDP_PORT_INFO, format!("tasks 0 and 1 have the same address {one}")),
        (text(&[one, zero]), UDP_PORT_INFO, format!("task 1 has {zero}")),
        (text(&[other, loopback]), UDP_PORT_INFO, "which its own host alone reaches".to_owned()),
        (
            text(&[stranger, other]),
            UDP_SOCKET,
            format!(
                "task 0 (MP_CHILD) is to receive at {stranger} (the program's list), which is no address of this host; it has"
            ),
        ),
    ] {
        site.refused("list", &list, code, with_secret).says(&why);
    }
    let list = text(&[one, other]);
    let outcome = site.refused("neither", &list, NO_UDP_HNDLR, with_secret);
    outcome.says("udp_hndlr or add_udp_addrs");
    site.refused("none", &list, NO_UDP_HNDLR, |job| {
        with_secret(job).env("MP_EUILIB", "ip").env("LAPI_USE_SHM", "no")
    });
    site.refused("list", &list, SHM_SETUP, |job| with_secret(job).env("LAPI_USE_SHM", "only"));
    let statement = format!("@1:{},rail0", other.ip());
    let outcome = site
        .refused("list", &list, NO_NETSTR_SET, |job| with_secret(job).env("MP_LAPI_INET_ADDR", &statement));
    outcome.says(&format!("does not have {}", one.ip()));
    let both = format!("@2:{},rail0:{},rail0", one.ip(), other.ip());
    all_passed(&site.run(&[0, 1], "list", "all", |_, job| with_secret(job).env("MP_LAPI_INET_ADDR", &both)));
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let Some(site) = Site::new("a port that is taken") else { return };
    let list = text(&site.list(&[0, 1]));
    // A task that waits for the other one keeps its port.
    let holder = with_secret(site.task(0, 0, 2, &["list", "all", &list])).start();
    binds(&holder, 7000);
    let outcome = site.refused("list", &list, UDP_SOCKET, with_secret);
    outcome.says(&format!("cannot receive at {}", site.address(0, 7000))).says("in use");
    let last = with_secret(site.task(1, 1, 2, &["list", "all", &list])).start();
    all_passed(&[holder.wait(), last.wait()]);
}

#[test]
fn the_key_file_is_made_once() {
    let Some(site) = Site::new("lapi_info --make-key") else { return };
    let make = || Job::direct(stage().join("bin/lapi_info")).arg("--make-key").env("HOME", &site.home).run();
    let path = site.home.join(".openlapi/key");
    assert_eq!(make().ok().stdout.trim_end(), path.to_str().expect("text"));
    let key = fs::read_to_string(&path).expect("a key");
    assert!(key.trim_end().len() == 32 && key.trim_end().bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    make().ok();
    assert_eq!(fs::read_to_string(&path).expect("a key"), key, "it stays");
    all_passed(&site.run(&[0, 1], "list", "all", |_, job| job));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
    make().exited(1).says("others may use it (mode 0644)");
}
