//! Limits of the system at every value that hurts: the job works, or says which limit it has met.

use std::path::PathBuf;

use openlapi_tests::{Job, Outcome, compile, has_fabric, is_installed, on_network, skipped, stage};

fn program() -> PathBuf {
    compile("field-first_contact", &["tests/field/first_contact.c"], &[])
}

/// The job of two tasks under limits as a shell sets them.
fn limited(limits: &str, flags: &[&str], arguments: &[&str]) -> Job {
    let script = format!(r#"{limits} && exec "$0" "$@""#);
    let job = Job::direct("bash").arg("-c").arg(script).arg(stage().join("bin/poe")).arg("-procs").arg("2");
    let job = flags.iter().fold(job, Job::arg).arg(program());
    arguments.iter().fold(job, Job::arg).env("LAPI_INIT_TIMEOUT", "15").deadline(60)
}

fn works(outcome: &Outcome) -> bool {
    outcome.status == Some(0) && outcome.stdout == "done\n".repeat(2)
}

/// Limits by the flags of `ulimit`, at values that hurt.
const LIMITS: [(&str, &[&str]); 5] = [
    ("-f", &["0", "1", "64", "1000", "1000000"]),
    ("-n", &["20", "30", "64", "100", "200"]),
    ("-v", &["60000", "80000", "110000", "150000", "200000", "400000", "4000000"]),
    ("-l", &["0", "64"]),
    ("-s", &["64", "200", "8192", "33554432", "unlimited"]),
];

#[test]
fn a_job_works_or_names_the_limit_that_it_has_met() {
    crate::side_by_side(LIMITS, |(flag, values)| works_or_names(flag, values, &[]));
}

/// Limits over libfabric and over UDP. Below these of -f poe has no file for the addresses.
const OVER_NETWORKS: [(&str, &[&str]); 5] = [
    ("-f", &["0", "64", "1000"]),
    ("-n", &["20", "30", "64", "100", "200"]),
    ("-v", &["20000", "60000", "80000", "110000", "150000", "180000", "300000", "4000000"]),
    ("-l", &["0", "64"]),
    ("-s", &["64", "8192", "33554432", "unlimited"]),
];

/// Over libfabric and over UDP, which have files, sockets, threads and memory of their own.
#[test]
fn a_job_over_a_network_works_or_names_the_limit_that_it_has_met() {
    if on_network("limits over each network", "it chooses the transport itself") {
        return;
    }
    for network in ["us", "ip"] {
        if network == "us" && !has_fabric() {
            skipped("limits over libfabric", "libfabric is not installed");
            continue;
        }
        let variables = [("MP_EUILIB", network), ("LAPI_USE_SHM", "no")];
        crate::side_by_side(OVER_NETWORKS, |(flag, values)| works_or_names(flag, values, &variables));
    }
}

/// libfabric says nothing of connections that find no memory: LAPI_Init does.
#[test]
fn little_address_space_for_libfabric_is_named_at_the_start() {
    if on_network("a limit of the address space", "it chooses the transport itself") || !has_fabric() {
        return skipped("a limit of the address space over libfabric", "libfabric is not installed");
    }
    let job = limited("ulimit -v 300000", &[], &[]).env("MP_EUILIB", "us").env("LAPI_USE_SHM", "no");
    let outcome = job.run();
    outcome.says(
        "libfabric needs 268435456 bytes: the limit of the address space is 307200000 bytes (ulimit -v)",
    );
    outcome.says("MP_EUILIB=ip needs fewer");
    assert!(!outcome.timed_out && !works(&outcome), "{outcome}");
    // Tasks of one host that share memory need no network.
    let job = limited("ulimit -v 300000", &[], &[]).env("MP_EUILIB", "us");
    assert!(works(&job.run()));
}

fn works_or_names(flag: &str, values: &[&str], variables: &[(&str, &str)]) {
    let mut worked = 0;
    for value in values {
        // What a shell may not set is no case here: a hard limit may be lower.
        let job =
            limited(&format!("ulimit {flag} {value} 2>/dev/null || {{ echo refused; exit 9; }}"), &[], &[]);
        let outcome = variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run();
        if outcome.stdout == "refused\n" {
            continue;
        }
        let named = outcome.stderr.contains(&format!("(ulimit {flag}"))
            || outcome.stderr.contains(&format!("ulimit -H{}", &flag[1..]));
        let holds = works(&outcome) || named && !outcome.timed_out;
        assert!(holds, "ulimit {flag} {value} {variables:?}\n{outcome}");
        worked += usize::from(works(&outcome));
    }
    assert!(worked > 0, "no value of {flag} is enough, {variables:?}");
}

#[test]
fn a_full_table_of_descriptors_at_the_first_contact_is_named() {
    if on_network("a full table of descriptors", "a network connects at LAPI_Init") {
        return;
    }
    let with_free = |free: &str| {
        let outcome = limited("ulimit -n 200", &[], &[free]).env("LAPI_INIT_TIMEOUT", "10").run();
        assert!(!outcome.timed_out, "{free} descriptors are free\n{outcome}");
        if !works(&outcome) {
            outcome.says("the open-file limit is 200 (ulimit -n)").says("error ");
        }
    };
    crate::side_by_side(["0", "1", "2", "3", "4", "16"], with_free);
}

/// Over libfabric, where LAPI_Init connects the tasks.
#[test]
fn a_full_table_of_descriptors_over_a_network_hangs_nothing() {
    if on_network("a full table of descriptors over libfabric", "it chooses the transport itself") {
        return;
    }
    if !has_fabric() {
        return skipped("a full table of descriptors over libfabric", "libfabric is not installed");
    }
    crate::side_by_side(["0", "1", "4"], |free| {
        let job = limited("ulimit -n 200", &[], &[free]).env("MP_EUILIB", "us").env("LAPI_USE_SHM", "no");
        let outcome = job.env("LAPI_INIT_TIMEOUT", "60").deadline(120).run();
        assert!(!outcome.timed_out, "{free} descriptors are free\n{outcome}");
        if !works(&outcome) {
            outcome.says("the open-file limit is 200 (ulimit -n)").says("error ");
        }
    });
}

#[test]
fn the_number_of_processes_of_a_user_is_named() {
    let what = "a limit of processes";
    if !nix::unistd::geteuid().is_root() || !is_installed("setpriv") {
        return skipped(what, "only root can run a job as a user who has no other process");
    }
    for (_, variables) in ways(what) {
        let mut worked = false;
        // Some tasks find room for all threads at 9 and 10 and others do not, whichever is first.
        for limit in ["4", "9", "9", "10", "10", "12", "16", "24", "64"] {
            // The number of a user who has no other process.
            let user = 60_000 + std::process::id() % 5_000;
            let words = format!("--reuid {user} --regid {user} --clear-groups");
            let script = format!(r#"ulimit -u {limit} && exec "$0" "$@""#);
            let job = words.split(' ').fold(Job::direct("setpriv"), Job::arg);
            let job = job.arg("bash").arg("-c").arg(script).arg(stage().join("bin/poe"));
            let job = job.arg("-procs").arg("2").arg(program()).env("HOME", "/nonexistent");
            let job = variables.iter().fold(job, |job, (name, value)| job.env(name, value));
            let outcome = job.env("LAPI_INIT_TIMEOUT", "60").deadline(120).run();
            let named = outcome.stderr.contains("process limit reached (ulimit -u");
            let holds = works(&outcome) || named && !outcome.timed_out;
            assert!(holds, "ulimit -u {limit} {variables:?}\n{outcome}");
            worked |= works(&outcome);
        }
        assert!(worked, "no limit is enough, {variables:?}");
    }
}

/// A control group of its own, which is removed at the end.
struct Group(PathBuf);

impl Group {
    /// With this limit, in the first of these files that there is; `None`: this machine lets
    /// no process make one.
    /// `name`: of the test, others of which run at the same time.
    fn new(name: &str, controller: &str, limit: &str, files: &[&str]) -> Option<Self> {
        let name = format!("openlapi-test-{}-{name}-{controller}", std::process::id());
        let tops = ["/sys/fs/cgroup".to_owned(), format!("/sys/fs/cgroup/{controller}")];
        tops.iter().find_map(|top| {
            let group = Self(PathBuf::from(top).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            // A folder that is no group has none of the files, and they cannot be made there by
            // a write alone.
            let file = files.iter().map(|file| group.0.join(file)).find(|file| file.exists())?;
            std::fs::write(file, limit).ok()?;
            Some(group)
        })
    }

    /// An installed program, which runs in this group.
    fn inside(&self, program: &str) -> Job {
        let script = r#"echo $$ >"$1" && shift && exec "$0" "$@""#;
        let job = Job::direct("bash").arg("-c").arg(script).arg(stage().join(program));
        job.arg(self.0.join("cgroup.procs"))
    }

    fn job(&self) -> Job {
        self.inside("bin/poe").arg("-procs").arg("2").deadline(120)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have just ended.
        let mut tries = 100;
        while std::fs::remove_dir(&self.0).is_err() && tries > 0 {
            tries -= 1;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn lapi_info_shows_the_limits_of_a_control_group() {
    for (controller, limit, files, shown) in [
        ("pids", "64", &["pids.max"][..], "processes of the control group (pids.max)"),
        (
            "memory",
            "536870912",
            &["memory.max", "memory.limit_in_bytes"],
            "memory of the control group (memory.max)",
        ),
    ] {
        let Some(group) = Group::new("shown", controller, limit, files) else {
            return skipped("the control group in lapi_info", "none can be made");
        };
        let outcome = group.inside("bin/lapi_info").arg("--json").run();
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let limits = report["limits"].as_array().expect("a list");
        let found = limits.iter().find(|limit| limit["name"] == shown).expect("the limit");
        assert_eq!(found["value"].to_string(), limit, "{outcome}");
    }
}

/// The ways to carry messages, by name, with the variables that choose them.
fn ways(what: &str) -> Vec<(&'static str, &'static [(&'static str, &'static str)])> {
    if on_network(&format!("{what} over each network"), "it chooses the transport itself") {
        return vec![("any", &[])];
    }
    let mut ways: Vec<(_, &[_])> = vec![("shm", &[]), ("ip", &[("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")])];
    if has_fabric() {
        ways.push(("us", &[("MP_EUILIB", "us"), ("LAPI_USE_SHM", "no")]));
    } else {
        skipped(&format!("{what} over libfabric"), "libfabric is not installed");
    }
    ways
}

/// The job works in a group with each of these limits, or says `named`; the least is too little,
/// and the last is enough.
fn in_groups(controller: &str, files: &[&str], limits: &[&str], named: &str) {
    crate::side_by_side(ways("a control group"), |(way, variables)| {
        for limit in limits {
            let Some(group) = Group::new(&format!("{way}-{limit}"), controller, limit, files) else {
                return skipped(&format!("limits of {controller} in a control group"), "none can be made");
            };
            let job = group.job().arg(program()).env("LAPI_INIT_TIMEOUT", "60");
            let outcome = variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run();
            // Where memory is missing the kernel may end poe itself.
            let is_named = outcome.stderr.contains(named) || outcome.signal == Some(9);
            let names = !works(&outcome) && !outcome.timed_out && is_named;
            let (least, last) = (limits.first() == Some(limit), limits.last() == Some(limit));
            let holds = if names { !last } else { works(&outcome) && !least };
            assert!(holds, "{controller} {limit}, {way}\n{outcome}");
        }
    });
}

#[test]
fn the_number_of_processes_of_a_control_group_is_named() {
    // poe's own, its tasks, their threads.
    let limits = ["1", "2", "3", "4", "5", "6", "8", "9", "10", "11", "12", "13", "14", "16", "64"];
    in_groups("pids", &["pids.max"], &limits, "process limit reached (ulimit -u");
}

/// The library's own memory, and what libfabric takes.
#[test]
fn the_memory_of_a_control_group_that_is_little_for_a_job_is_named() {
    let limits = ["4000000", "16000000", "24000000", "40000000", "64000000", "1000000000"];
    let named = "was ended by signal 9 (SIGKILL); the memory limit of its control group was met: ";
    in_groups("memory", &["memory.max", "memory.limit_in_bytes"], &limits, named);
}

#[test]
fn the_limits_of_a_control_group_are_named() {
    let Some(group) = Group::new("met", "pids", "8", &["pids.max"]) else {
        return skipped("the limits of a control group", "none can be made");
    };
    let outcome = group.job().arg(program()).env("LAPI_INIT_TIMEOUT", "15").run();
    assert!(outcome.stderr.contains("pids.max 8)"), "{outcome}");
    drop(group);
    let Some(group) = Group::new("met", "memory", "20000000", &["memory.max", "memory.limit_in_bytes"])
    else {
        return skipped("the memory of a control group", "none can be made");
    };
    // Of task 1 alone, and of no other process of the job.
    let script = r#"test $MP_CHILD = 0 && exec sleep 100; exec python3 -c 'a = b"x" * 200000000'"#;
    let outcome = group.job().arg("sh").arg("-c").arg(script).run();
    let limit = "was ended by signal 9 (SIGKILL); the memory limit of its control group was met: ";
    outcome.exited(137).says(limit).says(" bytes (memory.max)");
}

#[test]
fn a_job_needs_no_room_in_dev_shm() {
    let what = "a job without room in /dev/shm";
    let script = r#"mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero >/dev/shm/full && exec "$0" "$@""#;
    let inside = |script: &str| {
        Job::direct("unshare").arg("-m").arg("bash").arg("-c").arg(script).arg(stage().join("bin/poe"))
    };
    if inside("mount -t tmpfs none /dev/shm").run().status != Some(0) {
        return skipped(what, "nothing can be mounted here");
    }
    crate::side_by_side(["yes", "no"], |shares| {
        let job = inside(script).arg("-procs").arg("2").arg(program()).env("LAPI_USE_SHM", shares);
        let outcome = job.deadline(120).run();
        assert!(works(&outcome), "LAPI_USE_SHM={shares}\n{outcome}");
    });
}

#[test]
fn output_that_is_held_back_needs_no_folder() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo";
    let poe = Job::direct(stage().join("bin/poe")).arg("-procs").arg("3").arg("-stdoutmode").arg("ordered");
    let outcome = poe.arg("sh").arg("-c").arg(script).env("TMPDIR", "/nonexistent").run();
    assert_eq!(outcome.ok().stdout.len(), 3 * 3_000_001);
    outcome.says("poe: warning: no file can be made in /nonexistent (TMPDIR): No such file or directory");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
}

#[test]
fn the_cause_of_lost_output_comes_first() {
    for (redirected, cause) in [
        (
            r#""$0" "$@" >/dev/full"#,
            "poe: output of the tasks was lost: standard output: No space left on device",
        ),
        (
            r#"ulimit -f 8; trap '' XFSZ; "$0" "$@" >"$FILE""#,
            "poe: output of the tasks was lost: standard output: the file-size limit is 8192 bytes (ulimit -f)",
        ),
    ] {
        let file = openlapi_tests::build_dir().join("tests/field_lost_output");
        let job = Job::direct("bash").arg("-c").arg(redirected).arg(stage().join("bin/poe"));
        let job = job.arg("-procs").arg("2").arg("sh").arg("-c").arg("yes | head -c 100000; sleep 100");
        let outcome = job.env("FILE", &file).deadline(60).run();
        // The tasks are ended by SIGPIPE for it.
        outcome.exited(1);
        assert_eq!(outcome.stderr.lines().next(), Some(cause), "{outcome}");
        assert_eq!(outcome.stderr.matches("was lost").count(), 1, "{outcome}");
        let _ = std::fs::remove_file(file);
    }
}

/// A disk is full below -output_dir: the job goes on, with all of its output.
#[test]
fn a_copy_of_the_output_that_is_lost_ends_no_job() {
    let folder = crate::scratch("full-output-dir");
    for file in ["task0.out", "task1.err"] {
        std::os::unix::fs::symlink("/dev/full", folder.join(file)).expect("a link");
    }
    let job = Job::direct(stage().join("bin/poe")).arg("-procs").arg("2").arg("-output_dir").arg(&folder);
    let job = job.arg("sh").arg("-c").arg("echo early; echo early >&2; sleep 1; echo late; echo late >&2");
    let outcome = job.deadline(60).run();
    outcome.exited(1);
    assert_eq!(outcome.stdout.matches("late").count(), 2, "{outcome}");
    assert_eq!(outcome.stderr.matches("late").count(), 2, "{outcome}");
    for file in ["task0.out", "task1.err"] {
        let path = folder.join(file).display().to_string();
        outcome.says(&format!("poe: output of the tasks was lost: {path}: No space left on device\n"));
    }
    let whole = std::fs::read_to_string(folder.join("task1.out")).expect("the file of another task");
    assert_eq!(whole, "early\nlate\n");
}

/// What waits for its turn lies in TMPDIR, which is named, and not standard output.
#[test]
fn the_place_of_output_that_is_held_back_is_named() {
    let folder = crate::scratch("small-tmpdir");
    let tasks = "test $MP_CHILD = 1 && exec head -c 3000000 /dev/zero; while :; do echo x; sleep 0.1; done";
    let job = Job::direct("bash").arg("-c").arg(r#"ulimit -f 8; trap '' XFSZ; exec "$0" "$@""#);
    let job = job.arg(stage().join("bin/poe")).arg("-procs").arg("2").arg("-stdoutmode").arg("ordered");
    let outcome = job.arg("sh").arg("-c").arg(tasks).env("TMPDIR", &folder).deadline(60).run();
    outcome.exited(1);
    let place = format!("held back (-stdoutmode ordered) in {} (TMPDIR)", folder.display());
    let cause =
        format!("poe: output of the tasks was lost: {place}: the file-size limit is 8192 bytes (ulimit -f)");
    assert_eq!(outcome.stderr.lines().next(), Some(cause.as_str()), "{outcome}");
}
