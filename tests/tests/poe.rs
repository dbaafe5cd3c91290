//! `poe` as its users see it: options, input and output, ends of all kinds, and what is left behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{
    Job, Outcome, Running, build_dir, compile_plain, descendants, eventually, named, stage,
};

/// The program that all tests start: its first argument says what it does.
fn task() -> PathBuf {
    compile_plain("poe_task", &["tests/c/poe/task.c"], &[])
}

fn job(tasks: usize, what: &[&str]) -> Job {
    what.iter().fold(Job::new(task()).procs(tasks), Job::arg)
}

/// A job that can be found again by what stands in its environment, wherever its processes went.
struct Marked {
    mark: String,
    running: Option<Running>,
}

impl Marked {
    fn start(job: Job) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("POE_TEST_MARK={}.{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (name, value) = mark.split_once('=').expect("it is a variable");
        Self { running: Some(job.env(name, value).start()), mark }
    }

    /// Waits for the end of the job; then nothing of it may be left.
    #[track_caller]
    fn over(&mut self) -> Outcome {
        let running = self.running.take().expect("it ends once");
        let outcome = running.wait();
        assert_eq!(named(&self.mark), [0; 0], "left behind\n{outcome}");
        outcome
    }

    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it has not ended")
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        assert!(eventually(|| named(&self.mark).is_empty()), "left behind: {:?}", named(&self.mark));
    }
}

impl Drop for Marked {
    /// What a failing test finds left behind must not stay behind.
    fn drop(&mut self) {
        for pid in named(&self.mark) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A file in a folder of the tests, with this in it.
fn file(name: &str, text: &str) -> PathBuf {
    let path = build_dir().join("tests").join(name);
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder can be made");
    fs::write(&path, text).expect("the file can be written");
    path
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

// --- options -------------------------------------------------------------------------------------------------------

#[test]
fn the_help_names_the_environment_in_its_first_line() {
    let help = Job::poe().poe_arg("-h").run();
    let first = help.ok().stdout.lines().next().unwrap_or_default().to_owned();
    assert!(first.contains("Parallel Operating Environment"), "{first}");
    for flag in "nodes tasks_per_node hostfile msg_api euilib euidevice rmpool resd retry retrycount rdma_count \
                 use_bulk_xfer shared_memory wait_mode infolevel ilevel labelio stdinmode stdoutmode cmdfile pgmmodel \
                 pulse task_affinity cpu_use adapter_use save_hostfile procs"
        .split_whitespace()
    {
        assert!(help.stdout.contains(&format!("-{flag} ")), "{flag}");
    }
}

#[test]
fn flags_may_stand_before_and_after_the_programs_arguments() {
    let outcome = Job::poe().poe_arg("-labelio").poe_arg("yes").poe_arg(task());
    let outcome =
        ["args", "-x", "one", "-procs=2", "two words", "-stdoutmode", "1"].iter().fold(outcome, Job::arg);
    assert_eq!(outcome.run().ok().stdout, "  1:-x\n  1:one\n  1:two words\n");
}

#[test]
fn a_flag_wins_over_its_variable_and_reaches_the_tasks_as_one() {
    let outcome = job(1, &["env", "MP_PROCS", "MP_EUILIB", "MP_USE_BULK_XFER"]).env("MP_PROCS", "7");
    let outcome = outcome.env("MP_EUILIB", "us").poe_arg("-use_bulk_xfer").poe_arg("yes").run();
    assert_eq!(outcome.ok().stdout, "MP_PROCS=1\nMP_EUILIB=us\nMP_USE_BULK_XFER=yes\n");
}

#[test]
fn variables_alone_are_enough() {
    let outcome = Job::new(task()).arg("args").arg("x").env("MP_PROCS", "2").env("MP_LABELIO", "YES").run();
    assert_eq!(sorted(&outcome.ok().stdout), ["  0:x", "  1:x"]);
}

#[test]
fn flags_of_other_systems_are_accepted() {
    let flags = "-nodes 1 -tasks_per_node 2 -msg_api lapi -euilib us -euidevice sn_all -rmpool 1 -resd no -retry 10 \
                 -retrycount 3 -rdma_count 2,2 -use_bulk_xfer no -shared_memory yes -wait_mode poll -ilevel 1 \
                 -pulse 60 -cpu_use unique -adapter_use shared";
    let job = flags.split_whitespace().fold(Job::new(task()).arg("args").arg("x"), |job, word| job.arg(word));
    assert_eq!(job.run().ok().stdout, "x\nx\n");
}

#[test]
fn the_fence_and_no_argument_list_protect_the_programs_own_flags() {
    let fenced = job(1, &["args", "-labelio", "yes", "--", "-procs", "9"]).env("MP_FENCE", "--").run();
    assert_eq!(fenced.ok().stdout, "  0:-procs\n  0:9\n");
    let whole = job(1, &["args", "-procs", "9"]).env("MP_NOARGLIST", "yes").run();
    assert_eq!(whole.ok().stdout, "-procs\n9\n");
}

#[test]
fn mistakes_are_refused_by_name() {
    let refused = |flags: &[&str], says: &str| {
        let outcome = flags.iter().fold(Job::new(task()).arg("args"), Job::poe_arg).run();
        assert!(outcome.stdout.is_empty(), "{outcome}");
        outcome.exited(1).says(says);
    };
    refused(&["-nonsense", "1"], "-nonsense is no flag of poe");
    refused(&["-procs", "0"], "-procs: \"0\"");
    refused(&["-procs", "many"], "many");
    refused(&["-labelio", "maybe"], "yes or no");
    refused(&["-stdoutmode", "both"], "-stdoutmode");
    refused(&["-procs", "2", "-stdoutmode", "2"], "MP_STDOUTMODE is 2");
    refused(&["-procs", "2", "-stdinmode", "5"], "MP_STDINMODE is 5");
    refused(&["-infolevel", "9"], "-infolevel");
    refused(&["-task_affinity", "perhaps"], "-task_affinity");
    refused(&["-nodes", "2"], "several hosts");
    refused(&["-procs", "3", "-tasks_per_node", "2"], "MP_TASKS_PER_NODE");
    refused(&["-pgmmodel", "mpmd"], "mpmd");
    refused(&["-hostfile", "/nowhere/hosts"], "/nowhere/hosts");
    Job::new(task()).arg("args").env("MP_PROCS", "x").run().exited(1).says("MP_PROCS: \"x\"");
    Job::poe().run().exited(1).says("no program");
    Job::new(task()).arg("args").arg("-procs").run().exited(1).says("-procs needs a value");
}

#[test]
fn a_host_file_may_name_this_host_only() {
    let here = file("hosts_here", "! this host\nlocalhost\n127.0.0.1\n");
    job(2, &["args", "x"]).poe_arg("-hostfile").poe_arg(here).run().ok();
    let there = file("hosts_there", "localhost\n192.0.2.7\n");
    let outcome = job(2, &["args", "x"]).env("MP_HOSTFILE", there).run();
    outcome.exited(1).says("192.0.2.7").says("not built yet");
}

#[test]
fn the_hosts_that_were_used_are_saved() {
    let saved = file("hosts_saved", "");
    job(2, &["args"]).poe_arg("-save_hostfile").poe_arg(&saved).run().ok();
    let host = nix::unistd::gethostname().expect("this host has a name");
    assert_eq!(fs::read_to_string(saved).expect("it was written").trim(), host.to_string_lossy());
}

#[test]
fn a_program_that_is_not_there_is_named() {
    Job::new("./no/such/program").run().exited(127).says("./no/such/program: No such file");
    Job::new("tests").run().exited(127).says("tests (is ./tests meant?");
    Job::new("./Cargo.toml").run().exited(126).says("./Cargo.toml: Permission denied");
    Job::new("./no/such/program").procs(8).run().exited(127);
}

// --- what a task is told and given -----------------------------------------------------------------------------------

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
    let secret = one.iter().find_map(|line| line.strip_prefix("LAPI_JOB_SECRET=")).expect("it is told");
    assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
}

#[test]
fn the_same_address_means_the_same_in_every_task() {
    // A position-independent program, which would be somewhere else in every task.
    let program = compile_plain("poe_task_pie", &["tests/c/poe/task.c"], &["-fPIE", "-pie"]);
    let outcome = Job::new(program).procs(4).arg("addresses").run();
    if outcome.stderr.contains("does not let tasks have the same addresses") {
        // Some containers refuse it to everybody.
        Job::direct("setarch").arg("-R").arg("true").run().exited(1);
        return;
    }
    let places: BTreeSet<&str> = outcome.ok().stdout.lines().collect();
    assert_eq!(places.len(), 1, "{outcome}");
}

#[test]
fn nothing_of_poe_leaks_into_a_task() {
    let direct = Job::direct(task()).arg("descriptors").run();
    assert_eq!(job(5, &["descriptors"]).run().ok().stdout, direct.ok().stdout.repeat(5));
}

#[test]
fn tasks_are_pinned_when_there_are_cores_for_all() {
    let mine = sched_getaffinity(Pid::from_raw(0)).expect("it can be asked");
    let mine: Vec<usize> =
        (0..CpuSet::count()).filter(|processor| mine.is_set(*processor) == Ok(true)).collect();
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
    let each = places(&["-task_affinity", "CPU"], mine.len());
    assert_eq!(each, mine.iter().map(|processor| format!("{processor} ")).collect());
}

// --- several programs --------------------------------------------------------------------------------------------------

#[test]
fn each_task_can_have_a_program_of_its_own() {
    let task = task().display().to_string();
    let commands =
        file("mpmd", &format!("# who does what\n{task} args zero\n\n{task} args 'o n e'\n/bin/echo two\n"));
    let run =
        |job: Job| job.env("MP_PGMMODEL", "mpmd").env("MP_LABELIO", "yes").env("MP_CMDFILE", &commands).run();
    assert_eq!(sorted(&run(Job::poe()).ok().stdout), ["  0:zero", "  1:o n e", "  2:two"]);
    run(Job::poe().procs(4)).exited(1).says("3 commands, and there are 4 tasks");
}

#[test]
fn commands_can_come_from_standard_input() {
    let task = task().display().to_string();
    let mpmd = Job::poe().poe_arg("-pgmmodel").poe_arg("mpmd").poe_arg("-stdoutmode").poe_arg("ordered");
    let outcome = mpmd.stdin(format!("{task} args a\n{task} copy\n{task} args b\n")).run();
    assert_eq!(outcome.ok().stdout, "a\nb\n");
    let steps = Job::poe().procs(2).stdin(format!("{task} args first\n{task} args second\n")).run();
    assert_eq!(steps.ok().stdout, "first\nfirst\nsecond\nsecond\n");
}

// --- input and output --------------------------------------------------------------------------------------------------

#[test]
fn labels_stand_before_every_line_of_both_outputs() {
    let outcome =
        job(2, &["lines", "100", "50"]).poe_arg("-labelio").poe_arg("yes").env("MP_INFOLEVEL", "0").run();
    let expected: Vec<String> = ["a", "b"]
        .iter()
        .enumerate()
        .flat_map(|(task, letter)| vec![format!("  {task}:{}", letter.repeat(49)); 100])
        .collect();
    assert_eq!(sorted(&outcome.ok().stdout), expected);
    assert_eq!(sorted(&outcome.stderr), expected);
}

#[test]
fn ordered_output_comes_task_after_task() {
    let outcome = job(5, &["lines", "30000", "80"]).poe_arg("-stdoutmode").poe_arg("ordered").run();
    let expected: String =
        ["a", "b", "c", "d", "e"].iter().map(|letter| (letter.repeat(79) + "\n").repeat(30000)).collect();
    assert!(outcome.ok().stdout == expected, "{} bytes", outcome.stdout.len());
}

#[test]
fn one_tasks_output_can_be_chosen() {
    let outcome =
        job(3, &["lines", "10", "5"]).poe_arg("-stdoutmode").poe_arg("2").env("MP_INFOLEVEL", "0").run();
    assert_eq!(outcome.ok().stdout, "cccc\n".repeat(10));
    assert_eq!(outcome.stderr.lines().count(), 30);
}

#[test]
fn much_output_arrives_whole() {
    let outcome = job(4, &["lines", "80000", "100"]).env("MP_INFOLEVEL", "0").deadline(120).run();
    for text in [&outcome.ok().stdout, &outcome.stderr] {
        assert_eq!(text.len(), 4 * 80000 * 100);
        for letter in ["a", "b", "c", "d"] {
            let line = letter.repeat(99);
            assert_eq!(text.lines().filter(|found| **found == line).count(), 80000);
        }
    }
}

#[test]
fn a_question_is_shown_before_it_is_answered() {
    let mut asked = job(1, &["ask"]).stdin("somebody\n").start();
    assert_eq!(asked.lines(1), ["name? it is somebody"]);
    asked.wait().ok();
    // Nobody answers before the question can be read.
    let mut open = std::process::Command::new(stage().join("bin/poe"));
    let mut open = open.arg(task()).arg("ask");
    open = open.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut open = open.spawn().expect("poe can be run");
    let mut question = [0; 6];
    let stdout = open.stdout.as_mut().expect("it is a pipe");
    std::io::Read::read_exact(stdout, &mut question).expect("the question comes");
    assert_eq!(&question, b"name? ");
    drop(open.stdin.take());
    assert_eq!(open.wait().expect("poe ends").code(), Some(93));
}

#[test]
fn standard_input_goes_where_it_should() {
    let text = "line\n".repeat(100_000);
    let lengths = |mode: &str, tasks| {
        let outcome = job(tasks, &["copy"]).poe_arg("-stdinmode").poe_arg(mode).stdin(&*text).run();
        outcome.ok().stdout.len()
    };
    assert_eq!(
        job(3, &["copy"]).stdin(&*text).poe_arg("-stdoutmode").poe_arg("0").run().ok().stdout.len(),
        text.len()
    );
    assert_eq!(lengths("2", 3), text.len());
    assert_eq!(lengths("all", 3), 3 * text.len());
    assert_eq!(lengths("none", 3), 0);
}

#[test]
fn a_reader_that_goes_away_ends_the_job() {
    let script = r#""$0" -procs 2 "$1" lines 100000000 100 2>/dev/null | head -n 1"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).run();
    assert_eq!(outcome.ok().stdout.lines().count(), 1);
}

// --- ends --------------------------------------------------------------------------------------------------------------

#[test]
fn the_exit_status_is_the_highest() {
    job(3, &["leave", "0", "0", "0"]).run().ok();
    let outcome = job(4, &["leave", "3", "0", "17", "5"]).run();
    outcome.exited(17).says("task 2 (").says("exited with status 17");
    job(4, &["leave", "3", "0", "17", "5"]).poe_arg("-infolevel").poe_arg("0").run().exited(17);
}

#[test]
fn a_low_status_does_not_end_the_others() {
    let script = r#"if [ $MP_CHILD = 0 ]; then exit 9; else sleep 1; echo done; fi"#;
    let outcome = Job::new("/bin/sh").procs(2).arg("-c").arg(script).run();
    assert_eq!(outcome.exited(9).stdout, "done\n");
}

#[test]
fn a_status_of_128_and_above_ends_the_job() {
    let script = r#"if [ $MP_CHILD = 1 ]; then exit 130; else sleep 1000; fi"#;
    Job::new("/bin/sh").procs(3).arg("-c").arg(script).run().exited(130).says("exited with status 130");
}

#[test]
fn a_task_that_dies_ends_the_job_and_is_named() {
    for (signal, name) in [(9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT"), (36, "SIGRTMIN+2")] {
        let outcome = job(4, &["die", &signal.to_string(), "2"]).run();
        outcome.exited(128 + signal).says("task 2 (").says(&format!("was ended by signal {signal} ({name})"));
        assert_eq!(outcome.stderr.matches("poe: task").count(), 1, "{outcome}");
    }
}

#[test]
fn a_task_that_is_killed_from_outside_takes_the_others_along() {
    let mut job = Marked::start(job(3, &["wait"]));
    let lines = job.running().lines(3);
    let victim = lines.iter().find(|line| line.starts_with("task 1 ")).expect("task 1 waits");
    let victim: i32 =
        victim.rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("it tells its number");
    kill(Pid::from_raw(victim), Signal::SIGKILL).expect("it can be killed");
    let says = format!("task 1 ({}, pid {victim}) was ended by signal 9 (SIGKILL)", task().display());
    job.over().exited(137).says(&says);
}

#[test]
fn tasks_that_do_not_end_when_told_are_killed() {
    let script = r#"if [ $MP_CHILD = 0 ]; then sleep 1; kill -SEGV $$; else exec "$0" deaf; fi"#;
    let mut job = Marked::start(Job::new("/bin/sh").procs(3).arg("-c").arg(script).arg(task()));
    job.over().exited(139).says("did not end within");
}

#[test]
fn the_keys_of_the_terminal_end_everything() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut job = Marked::start(job(3, &["beget"]));
        job.running().lines(9);
        job.running().signal_group(signal);
        job.over().exited(128 + signal as i32);
    }
}

#[test]
fn tasks_can_end_in_good_order_when_interrupted() {
    let mut running = job(2, &["listen"]).start();
    running.lines(2);
    running.signal(Signal::SIGINT);
    let outcome = running.wait();
    let told = outcome.exited(130).stdout.lines().filter(|line| line.ends_with("got signal 2")).count();
    assert_eq!(told, 2, "{outcome}");
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let mut job = Marked::start(job(2, &["deaf"]).deadline(60));
    job.running().lines(2);
    job.running().signal(Signal::SIGINT);
    std::thread::sleep(std::time::Duration::from_millis(700));
    job.running().signal(Signal::SIGINT);
    let outcome = job.over();
    assert!(!outcome.exited(130).stderr.contains("did not end within"), "{outcome}");
}

#[test]
fn other_signals_are_passed_on() {
    let mut running = job(2, &["listen"]).start();
    running.lines(2);
    for (signal, lines) in [(Signal::SIGUSR1, 4), (Signal::SIGUSR2, 6)] {
        running.signal(signal);
        let text = running.lines(lines).join("\n");
        assert_eq!(text.matches(&format!("got signal {}", signal as i32)).count(), 2, "{text}");
    }
    running.signal(Signal::SIGTERM);
    running.wait().exited(143);
}

#[test]
fn a_stopped_job_stops_and_goes_on() {
    let mut running = job(2, &["listen"]).start();
    running.lines(2);
    let poe = running.pid();
    let state = |pid: i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let tasks: Vec<i32> =
        descendants(poe).into_iter().filter(|pid| state(*pid).contains("(poe_task")).collect();
    let stopped = |pid: &i32| state(*pid).contains(") T ");
    running.signal(Signal::SIGTSTP);
    assert!(eventually(|| tasks.len() == 2 && tasks.iter().all(stopped) && stopped(&poe)));
    running.signal(Signal::SIGCONT);
    assert!(eventually(|| !tasks.iter().any(stopped) && !stopped(&poe)));
    running.signal(Signal::SIGINT);
    running.wait().exited(130);
}

#[test]
fn what_poe_was_told_to_ignore_it_ignores() {
    let script = r#"trap '' HUP; exec "$0" -procs 2 "$1" listen"#;
    let mut running =
        Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).arg(task()).start();
    running.lines(2);
    running.signal(Signal::SIGHUP);
    running.signal(Signal::SIGUSR1);
    running.lines(4);
    running.signal(Signal::SIGTERM);
    running.wait().exited(143);
}

// --- nothing is left behind ----------------------------------------------------------------------------------------------

#[test]
fn killing_poe_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    job.running().signal(Signal::SIGKILL);
    job.nothing_is_left();
    assert_eq!(job.over().signal, Some(9));
}

#[test]
fn killing_poe_and_its_whole_group_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    job.running().signal_group(Signal::SIGKILL);
    job.nothing_is_left();
}

#[test]
fn killing_poe_while_it_starts_leaves_nothing() {
    for _ in 0..20 {
        let mut job = Marked::start(job(8, &["beget"]));
        let poe = job.running().pid();
        // At any moment from its first child on.
        assert!(eventually(|| !descendants(poe).is_empty()));
        job.running().signal(Signal::SIGKILL);
        job.nothing_is_left();
    }
}

#[test]
fn killing_the_keeper_leaves_nothing() {
    let mut job = Marked::start(job(3, &["beget"]));
    job.running().lines(9);
    let children = descendants(job.running().pid());
    kill(Pid::from_raw(children[0]), Signal::SIGKILL).expect("the keeper is poe's first child");
    job.over().exited(137).says("keeper");
}

#[test]
fn offspring_of_tasks_does_not_outlive_the_job() {
    Marked::start(job(3, &["beget-and-leave"])).over().ok();
}

#[test]
fn many_tasks_on_few_cores() {
    let outcome = job(64, &["env", "MP_CHILD"]).poe_arg("-labelio").poe_arg("yes").run();
    let mut expected: Vec<String> = (0..64).map(|task| format!("{task:3}:MP_CHILD={task}")).collect();
    expected.sort_unstable();
    assert_eq!(sorted(&outcome.ok().stdout), expected);
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_poe_and_not_for_the_tasks() {
    let script = r#"ulimit -S -n 40; exec "$0" -procs 32 /bin/sh -c 'ulimit -n'"#;
    let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/poe")).run();
    assert_eq!(outcome.ok().stdout, "40\n".repeat(32));
}
