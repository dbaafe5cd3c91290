//! Who is alive, and whose fault an error is: hidden processes, threads that outlive the main
//! thread, bad addresses.

use super::{job, side_by_side};
use nix::unistd::geteuid;
use openlapi_tests::{
    Job, Outcome, compile, copy_program, has_fabric, is_installed, on_network, skipped, stage,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Does this with the variables that choose each transport.
fn over_each(what: &str, test: impl Fn(&str, &[(&str, &str)])) {
    if on_network(what, "the test chooses the transport itself") {
        return;
    }
    test("shm", &[]);
    test("ip", &[("LAPI_USE_SHM", "no"), ("MP_EUILIB", "ip")]);
    if has_fabric() {
        test("us", &[("LAPI_USE_SHM", "no")]);
    } else {
        skipped(&format!("{what} over libfabric"), "it is not installed");
    }
}

fn with(job: Job, variables: &[(&str, &str)]) -> Job {
    variables.iter().fold(job, |job, (name, value)| job.env(name, value))
}

/// Tasks put to each other although no one sees another's process in `/proc`, or sees it as a
/// zombie: no task is reported as dead.
fn all_live(how: &str) {
    over_each(&format!("tasks that are {how}"), |_, variables| {
        let outcome = with(job("alive", 3, &format!("{how} put")), variables).run();
        if outcome.ok().stdout.contains("SKIP") {
            return skipped(&format!("tasks that are {how}"), "/proc cannot be mounted here");
        }
        assert_eq!((outcome.stdout.matches("PASS").count(), &*outcome.stderr), (3, ""), "{outcome}");
    });
}

/// One of them is killed: that one is reported to the others, and no other one.
fn one_dies(how: &str) {
    over_each(&format!("the death of a task among those that are {how}"), |_, variables| {
        let job = job("alive", 4, &format!("{how} die")).poe_arg("-on_death").poe_arg("continue");
        let outcome = with(job, variables).run();
        if outcome.stdout.contains("SKIP") {
            return skipped(&format!("a death among tasks that are {how}"), "/proc cannot be mounted here");
        }
        outcome.exited(137).says("task 1 (");
        assert_eq!(outcome.stdout.matches("PASS").count(), 3, "{outcome}");
    });
}

#[test]
fn tasks_that_proc_hides_live() {
    all_live("hidden");
}

/// Needs no privilege, unlike the hidden ones.
#[test]
fn tasks_that_may_not_be_looked_into_live() {
    all_live("undumpable");
}

/// The kernel's own rule: a program that its user may run and not read is not to be looked into.
#[test]
fn tasks_of_a_program_that_may_not_be_read_live() {
    let what = "a program that may not be read";
    if !geteuid().is_root() || !is_installed("setpriv") {
        return skipped(what, "only root can run a job as a user who may not read its program");
    }
    let folder = std::env::temp_dir().join(format!("openlapi-unreadable-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder can be made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it can be opened to all");
    let program = folder.join("alive");
    copy_program(compile("field-alive", &["tests/field/alive.c"], &[]), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).expect("it can be closed");
    over_each(what, |_, variables| {
        let job = ["--reuid=65534", "--regid=65534", "--clear-groups"].iter();
        let job = job.fold(Job::direct("setpriv"), Job::arg).arg(stage().join("bin/poe"));
        let job = job.arg("-procs").arg("3").arg(&program).arg("plain").arg("put").dir("/");
        let outcome = with(job.env("HOME", "/nonexistent"), variables).run();
        assert_eq!((outcome.ok().stdout.matches("PASS").count(), &*outcome.stderr), (3, ""), "{outcome}");
    });
    fs::remove_dir_all(&folder).expect("it can be removed");
}

#[test]
fn tasks_whose_main_thread_has_ended_live() {
    all_live("parted");
}

/// A job over each transport under Hydra, which reports no deaths: the processes of the others are
/// looked at while no connection with them exists. A shell around each task hides that it was
/// killed, and its task has no SIGUSR1: Hydra kills the tasks of a machine when one of them is
/// killed, and sends them that when one ends before it should.
fn under_hydra(tasks: usize, what: &str, judge: impl Fn(&str, &Outcome) + Sync) {
    let about = format!("hidden tasks under Hydra that {what}");
    if !is_installed("mpiexec.hydra") {
        return skipped(&about, "mpiexec.hydra is not installed");
    }
    let program = compile("field-alive-hydra", &["tests/field/alive.c"], &[]);
    over_each(&about, |over, variables| {
        let run = |how: &str| {
            // Its mpiexec may end by SIGPIPE when its input ends (docs/launchers.md).
            let job = Job::direct("mpiexec.hydra").without_launchers().stdin_stays_open();
            let job = job.arg("-disable-auto-cleanup").arg("-n").arg(tasks.to_string());
            let script =
                "trap '' USR1; \"$@\"; status=$?; echo ENDED $status; test $status = 137 || exit $status";
            let job = job.arg("sh").arg("-c").arg(script).arg("sh").arg(&program);
            let outcome = with(job.arg(how).arg(what), variables).run();
            if outcome.stdout.contains("SKIP") {
                return skipped(&format!("{about}, {how}"), "/proc cannot be mounted here");
            }
            judge(&format!("{how}, {over}"), &outcome);
        };
        side_by_side(["hidden", "undumpable", "parted"], run);
    });
}

#[test]
fn tasks_that_proc_hides_live_under_hydra() {
    under_hydra(2, "put", |how, outcome| {
        assert_eq!(outcome.ok().stdout.matches("PASS").count(), 2, "{how}\n{outcome}");
    });
}

/// Nobody says that task 1 has died: the others find it.
#[test]
fn a_death_among_tasks_that_proc_hides_is_found_under_hydra() {
    under_hydra(4, "die", |how, outcome| {
        let count = |what: &str| outcome.stdout.matches(what).count();
        // Its own status says little after a death (docs/launchers.md).
        assert_eq!((count("PASS"), count("ENDED 0"), count("ENDED 137")), (3, 3, 1), "{how}\n{outcome}");
        assert!(!outcome.timed_out, "{how}\n{outcome}");
    });
}

#[test]
fn a_death_among_tasks_that_proc_hides_is_reported() {
    one_dies("hidden");
}

#[test]
fn a_death_among_tasks_whose_main_threads_have_ended_is_reported() {
    one_dies("parted");
}

/// A page that the program's own handler of SIGSEGV opens: every operation has its data, and the
/// connection stays.
#[test]
fn closed_pages_are_opened_by_the_programs_handler() {
    over_each("closed pages", |_, variables| {
        let opened = |place: &str| {
            for bytes in [20_000, 300_000, 3_000_000] {
                let outcome = with(job("badaddr", 2, &format!("{place} opened {bytes}")), variables).run();
                let passed = outcome.ok().stdout.matches("PASS").count();
                assert_eq!(passed, 2, "{place}, {bytes} bytes\n{outcome}");
            }
        };
        side_by_side(["source", "target", "there", "here"], opened);
    });
}

/// Memory that cannot be accessed is a fault of the task whose memory it should be, and no other
/// task is said to be lost before that.
fn blames_nobody_else(what: &str, how: &str, signal: &str) {
    over_each(what, |_, variables| {
        let ends = |(place, at_fault): (&str, usize)| {
            let job = job("badaddr", 2, &format!("{place} {how} 300000"));
            let outcome = with(job, variables).run();
            outcome.says(&format!("poe: task {at_fault} ("));
            outcome.says(&format!("LAPI: task {at_fault}: signal {signal} at address 0x"));
            let blamed = outcome.stdout.contains(&format!("blames task {}", 1 - at_fault));
            assert!(outcome.status != Some(0) && !blamed, "{place}\n{outcome}");
        };
        side_by_side([("source", 0), ("target", 1), ("there", 1), ("here", 0)], ends);
    });
}

#[test]
fn closed_pages_blame_nobody_else() {
    blames_nobody_else("closed pages without a handler", "closed", "11 (SIGSEGV)");
}

/// The kernel has another signal for pages of a file that the file no longer has.
#[test]
fn files_that_became_shorter_blame_nobody_else() {
    blames_nobody_else("memory of a file that became shorter", "truncated", "7 (SIGBUS)");
}
