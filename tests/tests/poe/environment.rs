//! The environment and the descriptors of a task.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use openlapi_tests::{Job, build_dir, compile, compile_plain, stage};

use crate::{file, job, sorted, task};

#[test]
fn a_task_knows_who_it_is() {
    let outcome = job(4, &["env", "MP_CHILD", "MP_PROCS", "MP_COMMON_TASKS", "MP_MSG_API", "MP_INFOLEVEL"]);
    let outcome = outcome.poe_arg("-stdoutmode").poe_arg("1").run();
    let expected = "MP_CHILD=1\nMP_PROCS=4\nMP_COMMON_TASKS=3:0:2:3\nMP_MSG_API=lapi\nMP_INFOLEVEL=1\n";
    assert_eq!(outcome.ok().stdout, expected);
}

#[test]
fn a_job_has_one_partition_and_one_secret_that_no_other_job_has() {
    let of = || {
        let outcome =
            job(3, &["env", "MP_PARTITION", "LAPI_JOB_SECRET"]).env("LAPI_JOB_SECRET", "stale").run();
        let lines: BTreeSet<String> = outcome.ok().stdout.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        lines
    };
    let (one, other) = (of(), of());
    assert!(one.is_disjoint(&other), "{one:?} {other:?}");
    let secret =
        one.iter().find_map(|line| line.strip_prefix("LAPI_JOB_SECRET=")).expect("it is in the environment");
    assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
}

#[test]
fn the_same_address_means_the_same_in_every_task() {
    // A position-independent program, which would have another address in every task.
    let program = compile_plain("poe_task_pie", &["tests/c/poe/task.c"], &["-fPIE", "-pie"]);
    let outcome = Job::new(program).procs(4).arg("addresses").run();
    if outcome.stderr.contains("does not let tasks have the same addresses") {
        // Some containers refuse it to all users.
        Job::direct("setarch").arg("-R").arg("true").run().exited(1);
        return;
    }
    let places: BTreeSet<&str> = outcome.ok().stdout.lines().collect();
    assert_eq!(places.len(), 1, "{outcome}");
}

#[test]
fn nothing_of_poe_leaks_into_a_task() {
    let descriptors = |line: &str| -> BTreeSet<i32> {
        line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    };
    let direct = descriptors(&Job::direct(task()).arg("descriptors").run().ok().stdout);
    let outcome = job(5, &["descriptors"]).run();
    let lines: BTreeSet<&str> = outcome.ok().stdout.lines().collect();
    assert_eq!(lines.len(), 1, "the same in every task\n{outcome}");
    let all = descriptors(lines.first().expect("a line"));
    assert!(direct.is_subset(&all), "{outcome}");
    // The socket for reports and the file of openings, out of the way of those that programs open.
    let more: Vec<i32> = all.difference(&direct).copied().collect();
    assert!(more.len() == 2 && more.iter().all(|&number| number >= 100), "{more:?}\n{outcome}");
}

/// What this process may use.
fn processors() -> Vec<usize> {
    let mine = sched_getaffinity(Pid::from_raw(0)).expect("it can be asked");
    (0..CpuSet::count()).filter(|processor| mine.is_set(*processor) == Ok(true)).collect()
}

#[test]
fn tasks_are_pinned_when_there_are_cores_for_all() {
    let mine = processors();
    let all: String = mine.iter().map(|processor| format!("{processor} ")).collect();
    let places = |flags: &[&str], tasks| -> BTreeSet<String> {
        let outcome = flags.iter().fold(job(tasks, &["processors"]), Job::poe_arg).run();
        outcome.ok().stdout.lines().map(str::to_owned).collect()
    };
    let free = BTreeSet::from([all]);
    assert_eq!(places(&[], 1), free);
    assert_eq!(places(&["-task_affinity", "no"], 2), free);
    assert_eq!(places(&["-cpu_use", "multiple"], 2), free);
    assert_eq!(places(&["-task_affinity", "yes"], mine.len() + 1), free);
    // Each task is in one memory domain, and each domain is used that has processors.
    let listed = |set: &str| set.split_whitespace().map(|cpu| cpu.parse().expect("a number")).collect();
    let domains: Vec<Vec<usize>> =
        places(&["-task_affinity", "NUMA"], mine.len()).iter().map(|set| listed(set)).collect();
    let mut together = domains.concat();
    together.sort_unstable();
    assert_eq!(together, mine, "{domains:?}");
    let each = places(&["-task_affinity", "CPU"], mine.len());
    assert_eq!(each, mine.iter().map(|processor| format!("{processor} ")).collect());
}

#[test]
fn a_list_says_which_task_gets_which_processors() {
    let mine = processors();
    let list = mine.iter().rev().map(usize::to_string).collect::<Vec<_>>().join(",");
    let place = |tasks: usize, list: &str| {
        let job = job(tasks, &["processors"]).poe_arg("-labelio").poe_arg("yes");
        job.poe_arg("-task_affinity").poe_arg(format!("LIST:{list}")).run()
    };
    let expected: Vec<String> =
        mine.iter().rev().enumerate().map(|(task, cpu)| format!("{task:3}:{cpu} ")).collect();
    assert_eq!(sorted(&place(mine.len(), &list).ok().stdout), expected);
    place(mine.len() + 1, &list).exited(2).says("the list has processors for");
    place(1, "1023").exited(2).says("poe: -task_affinity: poe may not use processor");
    place(1, "0,x").exited(2).says("LIST:0,1,4-5");
}

#[test]
fn a_job_leaves_the_cores_of_others_alone() {
    let mine = processors();
    let mut first = job(mine.len(), &["wait"]).poe_arg("-task_affinity").poe_arg("CPU").start();
    first.lines(mine.len());
    let said = |flags: &[&str]| {
        let second = job(mine.len(), &["args"]).poe_arg("-report_bindings");
        let outcome = flags.iter().fold(second, Job::poe_arg).run();
        outcome.ok().stderr.clone()
    };
    assert_eq!(said(&[]).matches("not bound").count(), mine.len());
    // It was asked for.
    assert_eq!(said(&["-task_affinity", "CPU"]).matches(": bound to").count(), mine.len());
    first.signal(nix::sys::signal::Signal::SIGTERM);
    first.wait();
}

#[test]
fn a_job_is_profiled_on_request() {
    let folder = build_dir().join("tests/poe_profile");
    let _ = std::fs::remove_dir_all(&folder);
    let variables = job(2, &["env", "LD_PRELOAD", "LAPIPROF_OUT"]).poe_arg("-stdoutmode").poe_arg("0");
    let outcome = variables.poe_arg("-profile").poe_arg(&folder).env("LD_PRELOAD", "libdl.so.2").run();
    let library = stage().canonicalize().expect("the stage").join("lib/liblapiprof.so.1");
    let expected =
        format!("LD_PRELOAD={}:libdl.so.2\nLAPIPROF_OUT={}\n", library.display(), folder.display());
    assert_eq!(outcome.ok().stdout, expected);
    outcome.says(&format!("poe: profile: no task has left a part in {}", folder.display()));
    let program = compile("poe_profile", &["samples/tutorial/put.c"], &[]);
    Job::new(program).procs(2).poe_arg("-profile").poe_arg(&folder).run().ok();
    let page = std::fs::read_to_string(folder.join("report.html")).expect("the report");
    assert!(page.contains("LAPI_Put"), "{page}");
    // Nothing is started whose report would be lost.
    let lost = job(1, &["args", "x"]).poe_arg("-profile").poe_arg("/dev/null").run();
    assert_eq!(lost.exited(1).says("poe: -profile: /dev/null: Not a directory").stdout, "");
}

#[test]
fn the_tasks_run_in_the_folder_that_is_asked_for() {
    let folder = file("wdir/prog", "#!/bin/sh\npwd; echo $PWD\n");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let folder = folder.parent().expect("it lies in a folder").to_owned();
    let own = folder.parent().expect("it lies in a folder").to_owned();
    let expected = format!("{0}\n{0}\n", folder.display()).repeat(2);
    // Relative to the folder of poe; and the program relative to it.
    let outcome = Job::new("./prog").dir(&own).procs(2).poe_arg("-wdir").poe_arg("wdir").run();
    assert_eq!(outcome.ok().stdout, expected);
    assert_eq!(Job::new("./prog").procs(2).env("MP_WDIR", &folder).run().ok().stdout, expected);
    // Mistakes are named.
    let refused = |wdir: &str, says: &str| {
        Job::new("pwd").poe_arg("-wdir").poe_arg(wdir).run().exited(1).says(says);
    };
    refused("/no/such", "poe: -wdir /no/such: No such file or directory\n");
    refused("/bin/sh", "poe: -wdir /bin/sh: Not a directory\n");
    let outcome = Job::new("prog").poe_arg("-wdir").poe_arg(&folder).run();
    outcome.exited(127).says("prog (did you mean ./prog?");
}

#[test]
fn the_tasks_get_variables_from_the_command_line() {
    let names = ["ONE", "TWO", "THREE", "MP_INFOLEVEL"];
    let job = names.iter().fold(job(1, &["env"]), Job::arg).arg("-x").arg("FOUR=4");
    let exports = ["ONE=a b=c", "TWO", "THREE=", "MP_INFOLEVEL=3", "NOT_THERE"];
    let job = exports.iter().fold(job, |job, export| job.poe_arg("-x").poe_arg(export));
    let outcome = job.env("ONE", "0").env("TWO", "2").env("THREE", "3").run();
    let expected = "ONE=a b=c\nTWO=2\nTHREE=\nMP_INFOLEVEL=3\n-x=(unset)\nFOUR=4=(unset)\n";
    assert_eq!(outcome.ok().stdout, expected);
    assert_eq!(outcome.stderr, "poe: warning: -x NOT_THERE: this variable is not set\n");
    let refused = |export: &str, says: &str| {
        Job::new(task()).poe_arg("-x").poe_arg(export).run().exited(2).says(says);
    };
    refused("=x", "poe: -x: \"=x\" is not VAR or VAR=VALUE");
    refused("MP_CHILD=7", "poe: -x MP_CHILD: poe sets this variable itself");
}

#[test]
fn the_processors_of_each_task_are_reported() {
    let outcome =
        job(2, &["processors"]).poe_arg("-report_bindings").poe_arg("-labelio").poe_arg("yes").run();
    let used = sorted(&outcome.ok().stdout);
    let pinned =
        used[0].split_once(':').map(|(_, list)| list) != used[1].split_once(':').map(|(_, list)| list);
    let expected: Vec<String> = used
        .iter()
        .map(|line| {
            let (task, list) = line.split_once(':').expect("a label");
            let list: Vec<&str> = list.split_whitespace().collect();
            let plural = if list.len() == 1 { "" } else { "s" };
            let bound = if pinned { "bound to 1 core" } else { "not bound" };
            format!("poe: task {}: {bound}, processor{plural} {}", task.trim(), list.join(", "))
        })
        .collect();
    assert_eq!(sorted(&outcome.stderr), expected);
    let outcome = job(1, &["args"]).poe_arg("-report_bindings").run();
    outcome.ok().says("poe: task 0: not bound, processor");
    let outcome =
        job(2, &["args"]).env("MP_REPORT_BINDINGS", "yes").poe_arg("-report_bindings").poe_arg("no").run();
    assert_eq!(outcome.ok().stderr, "");
}
