//! A task that leaves its job for a checkpoint and comes back, as the same process or as another
//! one (`lapi_checkpoint.h`).

mod ltest;

use ltest::{job, passed, program, run};
use openlapi_tests::{Job, Running, build_dir, compile_plain, has_fabric, on_hosts, on_network, skipped};
use std::fs;
use std::path::PathBuf;

/// Starts a program again as often as it ends for a checkpoint: what a user's script does.
const AGAIN: &str = r#""$0" "$@"; code=$?; while [ $code -eq 75 ]; do "$0" "$@"; code=$?; done; exit $code"#;

/// The networks alone: what a job needs to use them, and their names.
fn networks() -> Vec<(&'static str, [(&'static str, &'static str); 2])> {
    let mut networks = vec![("udp", [("LAPI_USE_SHM", "no"), ("MP_EUILIB", "ip")])];
    if has_fabric() {
        networks.push(("fabric", [("LAPI_USE_SHM", "no"), ("LAPI_FABRIC_PROVIDER", "tcp;ofi_rxm")]));
    } else {
        skipped("checkpoints over libfabric", "libfabric.so.1 is not installed");
    }
    networks
}

/// The job over each network.
fn over_each_network(make: impl Fn(&str) -> Job) -> Vec<Job> {
    if on_network("checkpoints by UDP and libfabric", "the test chooses the transport itself") {
        return Vec::new();
    }
    let over = |(name, variables): (&str, [(&str, &str); 2])| {
        let job = variables.into_iter().fold(make(name), |job, (name, value)| job.env(name, value));
        job.env("TEST_TRANSPORT", "fabric").deadline(180)
    };
    networks().into_iter().map(over).collect()
}

/// Runs the job over each network.
fn by_each_network(make: impl Fn(&str) -> Job, procs: usize) {
    over_each_network(make).into_iter().for_each(|job| passed(&job.run(), procs));
}

/// Where the tasks of one job save their data: files that begin with this name.
fn states(name: &str) -> PathBuf {
    let folder = build_dir().join("tests/checkpoint");
    let _ = fs::create_dir_all(&folder);
    let file = folder.join(name);
    for task in ["", "0", "1", "2", "3"] {
        let _ = fs::remove_file(format!("{}{task}", file.display()));
    }
    file
}

/// A job whose tasks are started again when they end for a checkpoint.
fn again(job: Job, case: &str, end: &str, name: &str) -> Job {
    let state = states(name);
    let job = job.arg("-c").arg(AGAIN).arg(program("recovery/checkpoint"));
    job.arg(case).arg(state).arg(end).deadline(120)
}

fn poe_again(procs: usize, case: &str, end: &str, name: &str) -> Job {
    again(Job::new("/bin/sh").procs(procs), case, end, name)
}

#[test]
fn calls_at_the_wrong_time_are_refused() {
    for procs in [1, 2, 3] {
        run("recovery/checkpoint", procs, "errors");
    }
}

#[test]
fn a_process_that_stays_loses_nothing() {
    for (procs, way) in [(2, "auto"), (3, "pipeline"), (4, "attach")] {
        passed(
            &job("recovery/checkpoint", procs, "stays").env("LAPI_SHM_BULK", way).deadline(120).run(),
            procs,
        );
    }
}

/// As in a container that refuses them. A task that has parted is not taken for dead.
#[test]
fn a_process_that_stays_loses_nothing_where_the_kernel_refuses_copies() {
    if on_network("a checkpoint without copies", "a provider may need them") {
        return;
    }
    let refuse = compile_plain("info-refuse", &["tests/c/info/refuse.c"], &[]);
    let copies = [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev].map(|call| call.to_string());
    // Half of the runs were enough to show a task that was taken for dead.
    for (procs, case) in [(2, "errors"), (2, "stays"), (2, "errors"), (2, "stays"), (4, "stays")] {
        let job = Job::new(&refuse).procs(procs).arg(libc::EPERM.to_string());
        let job = copies.iter().fold(job, Job::arg).arg("--");
        passed(&job.arg(program("recovery/checkpoint")).arg(case).deadline(120).run(), procs);
    }
}

#[test]
fn a_process_that_stays_loses_nothing_by_a_network() {
    by_each_network(|_| job("recovery/checkpoint", 3, "stays"), 3);
}

#[test]
fn another_process_goes_on() {
    if on_network("another process by shared memory", "the test chooses the transport itself") {
        return;
    }
    for (procs, end) in [(2, "exit"), (3, "term")] {
        passed(&poe_again(procs, "moves", end, &format!("moves-{end}")).run(), procs);
    }
}

#[test]
fn another_process_goes_on_by_a_network() {
    for end in ["exit", "term"] {
        by_each_network(|network| poe_again(3, "moves", end, &format!("moves-{end}-{network}")), 3);
    }
}

/// The process rejoins the opening that it has left, which all others have closed, and its next
/// program meets theirs.
#[test]
fn another_process_comes_back_when_all_others_have_ended() {
    if on_network("a task alone by shared memory", "the test chooses the transport itself") {
        return;
    }
    let script = AGAIN.replace("exit $code", "[ $code -eq 0 ] && exec \"$0\" second");
    let make = |name: &str| {
        let job = Job::new("/bin/sh").procs(3).arg("-c").arg(&script).arg(program("recovery/checkpoint"));
        job.arg("alone").arg(states(name)).arg("exit").deadline(60).env("LAPI_INIT_TIMEOUT", "20")
    };
    passed(&make("alone-shm").run(), 6);
    by_each_network(|network| make(&format!("alone-{network}")), 6);
}

/// One that cannot come back, and all others have ended: its next program meets theirs.
#[test]
fn another_process_does_not_come_back_and_all_others_have_ended() {
    // There is no such device, and no such library: that is found before the job is looked at.
    for (number, invalid) in ["MP_EUIDEVICE=nosuch", "MP_EUILIB=nosuch"].into_iter().enumerate() {
        let script = format!(
            "\"$0\" \"$@\"; [ $? -eq 75 ] && {invalid} \"$0\" \"$@\" && echo no error; exec \"$0\" second"
        );
        let make = |network: &str| {
            let job = Job::new("/bin/sh").procs(3).arg("-c").arg(&script).arg(program("recovery/checkpoint"));
            let job = job.arg("alone").arg(states(&format!("failed-{number}-{network}"))).arg("term");
            job.env("LAPI_INIT_TIMEOUT", "20")
        };
        for job in over_each_network(make) {
            let outcome = job.run();
            passed(&outcome, 5);
            assert!(!outcome.stdout.contains("no error"), "{outcome}");
        }
    }
}

#[test]
fn another_process_goes_on_without_a_launcher() {
    let name = format!("alone-{}", std::process::id());
    let job = again(Job::direct("/bin/sh"), "moves", "exit", &name);
    let start = |task: usize| {
        let job = job.clone().env("MP_CHILD", task.to_string()).env("MP_PROCS", "3");
        job.env("MP_PARTITION", std::process::id().to_string()).start()
    };
    let running: Vec<_> = (0..3).map(start).collect();
    for outcome in running.into_iter().map(Running::wait) {
        passed(&outcome, 1);
    }
}

#[test]
fn all_tasks_leave_at_once_and_stay() {
    for procs in [2, 4] {
        passed(&job("recovery/checkpoint", procs, "all").run(), procs);
    }
    by_each_network(|_| job("recovery/checkpoint", 3, "all"), 3);
}

#[test]
fn all_tasks_leave_at_once_and_others_come_back() {
    if on_network("all tasks by shared memory", "the test chooses the transport itself") {
        return;
    }
    passed(&poe_again(3, "all", "exit", "all").run(), 3);
    by_each_network(|network| poe_again(3, "all", "term", &format!("all-{network}")), 3);
}

/// Meanwhile the others find the processes before it, which have ended: these are not the awaited
/// ones.
#[test]
fn the_others_await_the_one_that_comes_late() {
    if on_network("a late task by shared memory", "the test chooses the transport itself") {
        return;
    }
    passed(&poe_again(3, "all", "late", "late").run(), 3);
    by_each_network(|network| poe_again(3, "all", "late", &format!("late-{network}")), 3);
}

/// The job in which task 1 dies, by shared memory and by each network: all others pass.
fn others_survive(case: &str) {
    let survived = |job: Job| {
        let job = ["-on_death", "continue", "-infolevel", "0"].into_iter().fold(job, Job::poe_arg);
        let outcome = job.deadline(60).run();
        let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
        assert_eq!(said, 2, "every survivor prints one PASS\n{outcome}");
    };
    let make = || job("recovery/checkpoint", 3, case);
    survived(make());
    for job in over_each_network(|_| make()) {
        survived(job);
    }
}

/// A task is killed while it waits for the others to let it part: they forget that it wanted to,
/// and leave more than once without it.
#[test]
fn a_task_dies_while_it_leaves() {
    others_survive("dies");
}

/// A task is killed while another one is away, and is not waited for when that one leaves again.
#[test]
fn a_task_dies_while_another_one_is_away() {
    if on_hosts("the death of a task during a checkpoint", "task 0 reaches no process of another host") {
        return;
    }
    others_survive("left");
}
