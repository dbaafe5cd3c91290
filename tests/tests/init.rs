//! LAPI_Init and LAPI_Term, and how a task finds its job.

mod ltest;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ltest::{job, passed, program, run};
use openlapi_tests::{Job, build_dir, copy_program, eventually, has_fabric, on_hosts, on_network, skipped};

const CSS_LOAD_FAILED: &str = "code 404";
const MSG_API: &str = "code 406";
const UDP_PKT_SZ: &str = "code 415";
const SHM_SETUP: &str = "code 439";
const UNKNOWN: &str = "code 400";
const NO_ENV_VAR: &str = "code 510";

/// Why some orders of LAPI_Init are for shared memory only.
const COLLECTIVE: &str = "LAPI_Init is collective there";

/// A job's key that no other job has.
fn key() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn by_hand(args: &str) -> Job {
    args.split_whitespace().fold(Job::direct(program("init/init")), Job::arg)
}

#[test]
fn every_field_of_lapi_info() {
    run("init/init", 1, "info");
    run("init/init", 2, "info");
}

#[test]
fn sixteen_instances_at_once() {
    run("init/init", 1, "instances");
    run("init/init", 3, "instances");
}

#[test]
fn several_handles_in_several_threads() {
    run("init/init", 1, "parallel");
    run("init/init", 2, "parallel");
    run("init/init", 5, "parallel");
}

#[test]
fn init_and_term_hundreds_of_times() {
    run("init/init", 1, "again 300");
    run("init/init", 2, "again 300");
    run("init/init", 8, "again 40");
}

#[test]
fn tasks_that_leave_without_term_harm_no_other_task() {
    run("init/init", 2, "leave");
    run("init/init", 6, "leave");
}

#[test]
fn the_environment_is_read_by_lapi_init() {
    run("init/init", 1, "setenv");
    run("init/init", 2, "setenv");
}

#[test]
fn threads_of_lapi() {
    for wanted in [0, 1, 4] {
        run("init/threads", 2, &format!("threads {wanted}"));
    }
    run("init/threads", 1, "threads 2");
}

#[test]
fn term_in_another_thread() {
    run("init/threads", 2, "elsewhere");
}

#[test]
fn term_while_others_are_inside() {
    run("init/threads", 1, "inside");
    run("init/threads", 3, "inside");
}

#[test]
fn a_handler_that_term_does_not_wait_for_has_no_handle() {
    for procs in [1, 2] {
        passed(&job("init/threads", procs, "late").env("MP_INFOLEVEL", "0").run(), procs);
    }
}

#[test]
fn a_helper_thread_ends_the_program() {
    for procs in [1, 2, 4] {
        run("init/threads", procs, "helper");
    }
}

#[test]
fn a_forked_child_has_no_handle() {
    run("init/threads", 1, "fork");
    run("init/threads", 2, "fork");
}

#[test]
fn no_launcher_is_a_job_of_one_task() {
    passed(&by_hand("alone").run(), 1);
    passed(&by_hand("alone").env("LAPI_USE_SHM", "no").run(), 1);
    passed(&by_hand("alone").env("LAPI_USE_SHM", "only").run(), 1);
    run("init/init", 1, "alone");
}

#[test]
fn half_an_identity_is_refused() {
    passed(&by_hand(NO_ENV_VAR).env("MP_CHILD", "0").run(), 1);
    passed(&by_hand(NO_ENV_VAR).env("MP_PROCS", "2").run(), 1);
    for (child, procs) in [("2", "2"), ("-1", "2"), ("0", "0"), ("x", "2"), ("0", "99999999")] {
        let outcome = by_hand(NO_ENV_VAR).env("MP_CHILD", child).env("MP_PROCS", procs).run();
        passed(&outcome, 1);
    }
}

#[test]
fn wrong_settings_are_refused() {
    for (name, value, code) in [
        ("MP_MSG_API", "mpi", MSG_API),
        ("MP_MSG_API", "lapi;mpi", MSG_API),
        ("MP_UDP_PACKET_SIZE", "1023", UDP_PKT_SZ),
        ("MP_UDP_PACKET_SIZE", "65537", UDP_PKT_SZ),
        ("LAPI_USE_SHM", "maybe", SHM_SETUP),
        ("LAPI_SHM_BULK", "fast", SHM_SETUP),
        ("MP_ACK_THRESH", "32", UNKNOWN),
        ("MP_ACK_THRESH", "0", UNKNOWN),
        ("MP_POLLING_INTERVAL", "10000", UNKNOWN),
        ("MP_RETRANSMIT_INTERVAL", "999", UNKNOWN),
        ("MP_REXMIT_BUF_CNT", "0", UNKNOWN),
        ("MP_INFOLEVEL", "seven", UNKNOWN),
    ] {
        let outcome = by_hand(code).env(name, value).run();
        passed(&outcome, 1);
    }
}

#[test]
fn messages_name_variable_and_value() {
    let outcome = by_hand(UNKNOWN).env("MP_ACK_THRESH", "4711").env("MP_INFOLEVEL", "1").run();
    outcome.ok().says("MP_ACK_THRESH").says("4711");
}

#[test]
fn little_address_space_is_named() {
    let over_udp = [("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")];
    for variables in [&[][..], &over_udp] {
        let job = variables.iter().fold(job("init/scarce", 2, ""), |job, (name, value)| job.env(name, value));
        let outcome = job.run();
        passed(&outcome, 2);
        outcome.says("the limit of the address space is ").says(" bytes (ulimit -v), ");
    }
}

#[test]
fn shared_memory_may_be_refused_and_required() {
    if on_network("shared memory required", "the test chooses the transport itself") {
        return;
    }
    if has_fabric() {
        passed(&job("init/init", 2, "plain 1").env("LAPI_USE_SHM", "no").run(), 2);
    } else {
        passed(&job("init/init", 2, CSS_LOAD_FAILED).env("LAPI_USE_SHM", "no").run(), 2);
    }
    passed(&job("init/init", 1, "plain 1").env("LAPI_USE_SHM", "NO").run(), 1);
    passed(&job("init/init", 2, "plain 1").env("LAPI_USE_SHM", "only").run(), 2);
    passed(&job("init/init", 2, "plain 1").env("LAPI_USE_SHM", "YES").run(), 2);
}

/// As the manual's chapter 16 has it: two shells, MP_CHILD, MP_PROCS and MP_PARTITION.
#[test]
fn two_tasks_started_by_hand() {
    for common in [false, true] {
        let key = key();
        let tasks: Vec<_> = (0..2)
            .map(|task: u32| {
                let mut job = by_hand("plain 5")
                    .env("MP_CHILD", task.to_string())
                    .env("MP_PROCS", "2")
                    .env("MP_PARTITION", &key);
                if common {
                    job = job.env("MP_COMMON_TASKS", format!("1:{}", 1 - task)).env("LAPI_USE_SHM", "yes");
                }
                job.start()
            })
            .collect();
        for task in tasks {
            passed(&task.wait(), 1);
        }
    }
}

/// A task that has closed several handles before another one opens its first: those have no peer,
/// and nothing waits for one.
#[test]
fn a_task_that_is_far_ahead() {
    if on_network("a task that is far ahead", COLLECTIVE) {
        return;
    }
    let path = build_dir().join("tests").join(format!("ahead-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    // Without a launcher's counts, the late task would wait all this time for each handle.
    let job = Job::new(program("init/ahead")).procs(2).arg(&path);
    let outcome = job.env("LAPI_INIT_TIMEOUT", "1000").run();
    let _ = fs::remove_file(&path);
    passed(&outcome, 2);
    outcome.says("task 1 has left the job");
}

/// A shell script as poe's program, which starts two LAPI programs one after the other.
#[test]
fn programs_one_after_another_in_one_job() {
    if on_hosts("programs one after another", "PMI-1 serves one program of each task") {
        return;
    }
    let dir = build_dir().join("tests");
    fs::create_dir_all(&dir).expect("the build folder can be made");
    let script = dir.join(format!("twice-{}.sh", std::process::id()));
    let text = format!(
        "#!/bin/sh\nset -e\n{p} plain 1\n{p} plain 2\n{p} again 3\n",
        p = program("init/init").display()
    );
    fs::write(&script, text).expect("a script can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script can be made executable");
    let outcome = Job::new(&script).procs(3).run();
    let _ = fs::remove_file(&script);
    passed(&outcome, 9);
}

fn one_of_two(args: &str) -> Job {
    by_hand(args).env("MP_CHILD", "0").env("MP_PROCS", "2").env("MP_PARTITION", key())
}

#[test]
fn lapi_init_waits_for_no_task() {
    passed(&one_of_two("local").run(), 1);
}

#[test]
fn instances_may_be_opened_in_any_order() {
    if on_network("instances in any order", COLLECTIVE) {
        return;
    }
    for procs in [2, 3, 5] {
        run("init/init", procs, "order");
    }
}

/// A task that never comes: what needs it fails after LAPI_INIT_TIMEOUT, and its name is said.
#[test]
fn a_missing_task_is_reported() {
    let outcome = one_of_two("missing").env("LAPI_INIT_TIMEOUT", "2").env("MP_INFOLEVEL", "0").run();
    passed(&outcome, 1);
    // Without an error handler.
    let outcome = one_of_two("plain 1").env("LAPI_INIT_TIMEOUT", "2").run();
    outcome.exited(134).says("task 1 has not called LAPI_Init within 2 s (LAPI_INIT_TIMEOUT)");
}

#[test]
fn a_task_started_by_hand_is_told_what_may_be_missing() {
    let alone = by_hand("missing").env("MP_CHILD", "0").env("MP_PROCS", "2").env("MP_INFOLEVEL", "0");
    passed(&alone.env("LAPI_INIT_TIMEOUT", "6").run().says("MP_PARTITION is not set").clone(), 1);
}

/// A task that comes later than that delays only those that need it.
#[test]
fn a_task_may_come_late() {
    let key = key();
    let start = |task: &str| {
        let job = by_hand("plain 2").env("MP_CHILD", task).env("MP_PROCS", "3");
        job.env("MP_PARTITION", &key).env("MP_INFOLEVEL", "1").start()
    };
    let running = RefCell::new(vec![start("2"), start("0")]);
    let said = "waiting for task 1, which has not called LAPI_Init";
    let is_said = || running.borrow_mut().iter_mut().any(|task| task.stderr_so_far().contains(said));
    // After ten seconds.
    assert!(eventually(is_said) || eventually(is_said), "neither says what it waits for");
    let mut running = running.into_inner();
    running.push(start("1"));
    let outcomes: Vec<_> = running.into_iter().map(openlapi_tests::Running::wait).collect();
    outcomes.iter().for_each(|outcome| passed(outcome, 1));
}

/// Two tasks of different users with one key must not become one job.
#[test]
fn another_user_cannot_join() {
    let Some(copies) = readable_by_all(&program("init/init")) else {
        skipped("two users with one key", "only root can be two users");
        return;
    };
    let key = key();
    let as_task = |job: Job, task: &str| {
        job.arg("plain")
            .arg("1")
            .env("MP_CHILD", task)
            .env("MP_PROCS", "2")
            .env("MP_PARTITION", &key)
            .env("LAPI_INIT_TIMEOUT", "4")
            .dir("/")
            .start()
    };
    let mine = as_task(Job::direct(copies.join("program")), "0");
    let theirs = Job::direct("setpriv").arg("--reuid=65534").arg("--regid=65534").arg("--clear-groups");
    let theirs = as_task(theirs.env("LD_LIBRARY_PATH", &copies).arg(copies.join("program")), "1");
    let (mine, theirs) = (mine.wait(), theirs.wait());
    fs::remove_dir_all(&copies).expect("the copies can be removed");
    for outcome in [&mine, &theirs] {
        assert!(!outcome.timed_out, "the call ends\n{outcome}");
        assert_eq!(outcome.status, Some(134), "neither finds the other\n{mine}\n{theirs}");
        outcome.says("LAPI_INIT_TIMEOUT");
    }
}

/// Copies of the program and the library where every user can reach them; none when
/// this is not root.
fn readable_by_all(program: &PathBuf) -> Option<PathBuf> {
    let root = std::process::Command::new("id").arg("-u").output().ok()?.stdout == b"0\n";
    if !root {
        return None;
    }
    let dir = std::env::temp_dir().join(format!("lapi-init-{}", key()));
    fs::create_dir(&dir).expect("a folder for the copies can be made");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("the folder can be opened to all");
    copy_program(program, dir.join("program"));
    copy_program(openlapi_tests::stage().join("lib/liblapi_r.so.1"), dir.join("liblapi_r.so.1"));
    Some(dir)
}

/// What the manual's table 41 has for MP_INFOLEVEL 2: the version and when it was built.
#[test]
fn the_build_is_named() {
    let outcome = job("init/init", 2, "plain 1").env("MP_INFOLEVEL", "2").run();
    passed(&outcome, 2);
    let banners: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("OpenLAPI ")).collect();
    assert_eq!(banners.len(), 1, "task 0 alone writes it\n{outcome}");
    let (_, built) = banners[0].split_once("built ").expect("when it was built");
    let date = built.as_bytes();
    let form = "dddd-dd-ddTdd:dd:ddZ";
    let fits = |(byte, form): (&u8, u8)| if form == b'd' { byte.is_ascii_digit() } else { *byte == form };
    assert!(date.iter().zip(form.bytes()).filter(|&it| fits(it)).count() == form.len(), "{}", banners[0]);
}
