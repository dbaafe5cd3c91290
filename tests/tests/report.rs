//! Reports of which task waits for which: by signal, after a stall, with and without poe.

mod ltest;

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use ltest::{job, passed, program, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Deadline, Job, Running, descendants, eventually};

const END: &str = "poe: end of the report\n";

/// A job that is about to hang, with the processes of its tasks.
struct Hanging {
    job: Running,
    pids: Vec<i32>,
}

fn hang(case: &str, procs: usize) -> Hanging {
    start(job("report/hang", procs, case), procs)
}

fn start(job: Job, procs: usize) -> Hanging {
    // Threads that wait shall sleep soon.
    let mut job = job.env("LAPI_SPIN", "0").start();
    let mut pids = vec![0; procs];
    for line in job.lines(procs) {
        let (task, pid) = line.split_once(' ').unwrap_or_else(|| panic!("TASK PID, not {line}"));
        pids[task.parse::<usize>().expect("a task")] = pid.parse().expect("a process");
    }
    Hanging { job, pids }
}

impl Hanging {
    /// The reports of poe so far, each from its first to its last line.
    fn reports(&mut self) -> Vec<String> {
        let text = self.job.stderr_so_far();
        let whole = text.rfind(END).map_or("", |at| &text[..at]);
        whole.split(END).filter(|report| !report.is_empty()).map(str::to_owned).collect()
    }

    /// Waits for this number of reports; returns the last one.
    #[track_caller]
    fn wait_for(&mut self, count: usize) -> String {
        self.wait(&format!("report number {count}"), |reports| reports.len() >= count)
    }

    #[track_caller]
    fn wait(&mut self, what: &str, enough: impl Fn(&[String]) -> bool) -> String {
        let mut last = Deadline::after(Duration::from_secs(20));
        loop {
            let reports = self.reports();
            if enough(&reports) {
                return reports.last().cloned().unwrap_or_default();
            }
            assert!(!last.has_passed(), "{what} does not come\n{}", self.job.stderr_so_far());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Requests reports from poe until one has all these lines, because a job takes a moment to
    /// hang, task by task; returns it.
    #[track_caller]
    fn ask(&mut self, lines: &[&str]) -> String {
        let mut last = Deadline::after(Duration::from_secs(30));
        loop {
            let count = self.reports().len();
            self.job.signal(Signal::SIGUSR2);
            let report = self.wait_for(count + 1);
            if lines.iter().all(|line| report.contains(line)) {
                return report;
            }
            let missing = lines.iter().filter(|line| !report.contains(**line)).collect::<Vec<_>>();
            assert!(!last.has_passed(), "{missing:?} are expected\n{report}");
        }
    }

    fn signal(&self, task: usize, signal: Signal) {
        kill(Pid::from_raw(self.pids[task]), signal).expect("the task is there");
    }
}

fn has(report: &str, lines: &[&str]) {
    for line in lines {
        assert!(report.contains(line), "\"{line}\" is expected\n{report}");
    }
}

/// The line about the counter ends with what is wanted, or names the place of the call, which is
/// known once the thread has slept for a moment.
fn ends_with_the_counter(report: &str) {
    let counter = report.lines().find_map(|line| line.split_once(" is 0, wanted is 1"));
    let (_, end) = counter.unwrap_or_else(|| panic!("no counter\n{report}"));
    assert!(end.is_empty() || end.starts_with(", called in main at hang.c:"), "{end:?}\n{report}");
}

fn scratch(name: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("openlapi-report-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&file);
    file
}

#[test]
fn a_put_that_never_comes() {
    let mut hanging = hang("counter", 3);
    let report = hanging.ask(&[
        "task 0 waits in LAPI_Waitcntr for a counter that no pending operation of this task will increment",
        "poe: job report (requested): 3 of 3 tasks have replied\n",
        "  task 1 is not inside LAPI (asleep, process state S)\n",
        "  task 2 is not inside LAPI",
        " is 0, wanted is 1",
        &format!("--- task 2 (pid {})\n", hanging.pids[2]),
        ") has waited in LAPI_Waitcntr for ",
        "lapi-intr: state S",
    ]);
    assert!(!report.contains("a circle"), "{report}");
    // The process to which the next request can be sent.
    let last = format!("--- poe (pid {})\n", hanging.job.pid());
    assert!(report.ends_with(&last), "{report}");
    ends_with_the_counter(&report);
}

#[test]
fn a_task_that_does_not_come_to_the_fence() {
    hang("gfence", 4).ask(&[
        "  task 2 waits in LAPI_Gfence for task 3",
        "  task 0 waits in LAPI_Gfence for task",
        "  task 1 waits in LAPI_Gfence for task",
        "  task 3 is not inside LAPI (",
        "entered by tasks 0-2, not by task 3\n",
        " and needs the packet of task 3\n",
    ]);
}

#[test]
fn a_full_ring_to_a_stopped_task() {
    let packets = job("report/hang", 2, "full").env("LAPI_SHM_BULK", "pipeline");
    let mut hanging = start(packets, 2);
    hanging.signal(1, Signal::SIGSTOP);
    let report = hanging.ask(&[
        "  task 0 waits in LAPI_Fence for task 1",
        " (at least ",
        "1 of 2 tasks have replied",
        &format!("  task 1 has not replied (stopped, process state T, pid {})\n", hanging.pids[1]),
        "; its ring holds at most 256 of 256 packets, no room; ",
        " of 16777216 bytes (at least ",
        "a fence has asked it to confirm ",
    ]);
    // Of 2,000 packets the ring holds 256.
    let parked = report.split(" packets wait for room (").collect::<Vec<_>>();
    let number = |text: &str| text.rsplit(' ').next().and_then(|word| word.parse::<usize>().ok());
    let count = number(parked[0]).expect("a number of packets");
    let bytes: usize = parked[1].split(' ').next().and_then(|word| word.parse().ok()).expect("bytes");
    assert!(
        (1700..=1800).contains(&count) && bytes >= 500 * 1700,
        "{count} packets, {bytes} bytes\n{report}"
    );
    hanging.signal(1, Signal::SIGCONT);
    hanging.ask(&["2 of 2 tasks have replied", "  task 1 is not inside LAPI"]);
}

#[test]
fn half_a_message() {
    let packets = job("report/hang", 2, "half").env("LAPI_SHM_BULK", "pipeline");
    let report = start(packets, 2).ask(&[
        "  task 1 waits in LAPI_Waitcntr for task 0",
        "  task 0 is not inside LAPI, and INTERRUPT_SET is off (",
        "messages being assembled: 1\n",
        "a stream has sent ",
    ]);
    let line = report.lines().find(|line| line.contains("bytes have arrived")).expect("a message");
    let words: Vec<usize> = line.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
    let [.., arrived, total] = words[..] else { panic!("{line}") };
    assert!(arrived > 0 && arrived < total && total == 16 << 20, "{line}");
}

#[test]
fn a_completion_handler_that_does_not_return() {
    hang("blocked", 2).ask(&[
        "  task 0 waits in LAPI_Waitcntr for task 1",
        "  task 1 has been in a completion handler for ",
        "; at least ",
        "completion handlers: 1 run, 0 are queued\n",
        "(lapi-compl-0) has been in blocks at hang.c:",
        "operations that wait for a reply: 1\n",
        "with task 1: put or message, to raise the completion counter at 0x",
    ]);
}

#[test]
fn a_header_handler_that_does_not_return() {
    hang("stuck", 2).ask(&[
        "  task 1 has been in a header handler, sticks at hang.c:",
        ", for at least ",
        "  task 0 waits in LAPI_Waitcntr for task 1",
        "LAPI's lock was not available: thread ",
        " has been in a header handler, sticks at hang.c:",
    ]);
}

#[test]
fn a_task_that_does_not_come_to_init() {
    let mut hanging = hang("init", 2);
    assert!(eventually(|| catches(hanging.pids[0], Signal::SIGUSR2)), "LAPI_Init sets its handler");
    assert!(!catches(hanging.pids[1], Signal::SIGUSR2));
    hanging.ask(&[
        "  task 0 waits in LAPI_Gfence for task 1",
        "which has not called LAPI_Init",
        "  task 1 has not replied (",
    ]);
}

/// Whether the process has a handler for this signal.
fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|bits| bits >> (signal as i32 - 1) & 1 == 1)
}

#[test]
fn a_circle_is_named() {
    hang("circle", 2).ask(&[
        "  task 0 waits in LAPI_Waitcntr for task 1",
        "  task 1 waits in LAPI_Waitcntr for task 0",
        "  a circle of waiting tasks: task 0 waits for task 1, task 1 waits for task 0\n",
    ]);
}

/// The others are queried too; and poe prints one report, although each has got the signal
/// and poe's query.
#[test]
fn a_signal_to_one_task_or_to_poe_is_one_report() {
    let mut hanging = hang("counter", 3);
    hanging.signal(1, Signal::SIGUSR2);
    let report = hanging.wait_for(1);
    has(&report, &["job report (requested): 3 of 3 tasks have replied", "--- task 0 ", "--- task 2 "]);
    // A spontaneous report in the two seconds after a report belongs to it.
    thread::sleep(Duration::from_millis(2500));
    hanging.job.signal(Signal::SIGUSR2);
    hanging.wait_for(2);
    thread::sleep(Duration::from_millis(1000));
    assert_eq!(hanging.reports().len(), 2, "{}", hanging.job.stderr_so_far());
}

#[test]
fn a_stall_is_reported_once() {
    let file = scratch("again");
    let args = format!("again {}", file.display());
    let mut hanging = start(job("report/hang", 2, &args).env("LAPI_STALL_SECONDS", "1"), 2);
    // On a busy machine the tasks may have stalled before: in LAPI_Init, or in a fence.
    let stalls = |reports: &[String]| {
        let waits = |report: &&String| report.contains("  task 0 waits in LAPI_Waitcntr for a counter");
        reports.iter().filter(waits).count()
    };
    let report = hanging.wait("the first stall", |reports| stalls(reports) >= 1);
    has(&report, &["(no progress for 1 s): 2 of 2", "  task 0 waits in LAPI_Waitcntr for a counter"]);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(stalls(&hanging.reports()), 1, "{}", hanging.job.stderr_so_far());
    // Now there is progress, and then another stall.
    fs::write(&file, "").expect("the file can be written");
    hanging.job.lines(3);
    hanging.wait("the second stall", |reports| stalls(reports) >= 2);
    thread::sleep(Duration::from_secs(4));
    assert_eq!(stalls(&hanging.reports()), 2, "{}", hanging.job.stderr_so_far());
    let _ = fs::remove_file(file);
}

#[test]
fn a_stuck_handler_is_a_stall_too() {
    let stuck = job("report/hang", 2, "stuck").env("LAPI_STALL_SECONDS", "1");
    start(stuck, 2).wait("the handler", |reports| {
        reports.last().is_some_and(|report| {
            report.contains("no progress for 1 s") && report.contains("has been in a header handler")
        })
    });
}

#[test]
fn a_handler_of_the_program_stays() {
    let mut hanging = hang("own", 2);
    hanging.ask(&["  task 0 waits in LAPI_Waitcntr", "2 of 2 tasks have replied"]);
    assert!(hanging.job.lines(4).iter().filter(|line| line.ends_with("OWN")).count() >= 2);
}

#[test]
fn another_signal_or_none() {
    let urgent = job("report/hang", 2, "counter").env("LAPI_REPORT_SIGNAL", "urg");
    let mut hanging = start(urgent, 2);
    hanging.signal(1, Signal::SIGURG);
    has(&hanging.wait_for(1), &["2 of 2 tasks have replied"]);
    hanging.signal(1, Signal::SIGUSR2);
    let outcome = hanging.job.wait();
    outcome.exited(128 + Signal::SIGUSR2 as i32);

    let none = job("report/hang", 2, "counter").env("LAPI_REPORT_SIGNAL", "none");
    let hanging = start(none, 2);
    hanging.signal(0, Signal::SIGUSR2);
    hanging.job.wait().exited(128 + Signal::SIGUSR2 as i32).says("was ended by signal 12");

    let usr1 = job("report/hang", 2, "counter").env("LAPI_REPORT_SIGNAL", "10");
    let mut hanging = start(usr1, 2);
    hanging.job.signal(Signal::SIGUSR1);
    has(&hanging.wait_for(1), &["2 of 2 tasks have replied"]);

    let wrong = job("report/hang", 1, "counter").env("LAPI_REPORT_SIGNAL", "KILL").run();
    wrong.exited(199).says("LAPI_REPORT_SIGNAL is \"KILL\"");
}

/// Tasks are scripts that start the LAPI program, and one task does not use LAPI: the signal
/// ends none of them.
#[test]
fn a_task_that_does_not_reply_is_not_harmed() {
    let file = scratch("work");
    let hang = program("report/hang");
    let script = format!(
        "if test $MP_CHILD = 2; then while ! test -e {file}; do sleep 0.05; done; echo PASS 2; exit; fi\n\
         MP_PROCS=2 MP_COMMON_TASKS=1:$((1 - MP_CHILD)) {hang} work {file}\n\
         exit $?",
        file = file.display(),
        hang = hang.display()
    );
    let job = Job::new("sh").procs(3).arg("-c").arg(script).env("MP_NOARGLIST", "no").env("LAPI_SPIN", "0");
    let mut job = job.start();
    let lines = job.lines(2);
    let pids =
        lines.iter().map(|line| line.split(' ').nth(1).and_then(|pid| pid.parse().ok()).expect("a pid"));
    let mut hanging = Hanging { pids: pids.collect(), job };
    hanging.signal(0, Signal::SIGUSR2);
    let report = hanging.wait_for(1);
    // Whether they call LAPI again and again is seen only when the processors are not busy.
    has(&report, &["--- task 0 (pid ", "--- task 1 (pid "]);
    has(&report, &["2 of 3 tasks have replied", "  task 2 has not replied ("]);
    hanging.signal(1, Signal::SIGUSR2);
    fs::write(&file, "").expect("the file can be written");
    passed(&hanging.job.wait(), 3);
    let _ = fs::remove_file(file);
}

/// poe's socket is closed, and its number is a file of the program: the file does not change, and
/// the report goes to standard error.
#[test]
fn a_program_that_has_closed_all_descriptors() {
    let file = scratch("closed");
    let mut hanging = start(job("report/hang", 2, &format!("closed {}", file.display())), 2);
    let pid = hanging.pids[0];
    until_it_reports(&mut hanging.job, pid, "LAPI: task 0: it waits in LAPI_Waitcntr for a counter");
    let found = hanging.job.until_it_says("LAPI: task 0: threads of the process: ");
    has(&found, &["LAPI: task 0: report of process "]);
    assert!(!found.contains("poe: report"), "{found}");
    assert_eq!(fs::metadata(&file).expect("the file is there").len(), 0, "nothing was written to it");
    let _ = fs::remove_file(file);
}

/// Requests reports from a task until one says this: the first signal may come before
/// the task waits.
fn until_it_reports(job: &mut Running, pid: i32, text: &str) {
    let mut last = Deadline::after(Duration::from_secs(20));
    while !job.stderr_so_far().contains(text) {
        assert!(!last.has_passed(), "{}", job.stderr_so_far());
        kill(Pid::from_raw(pid), Signal::SIGUSR2).expect("the task is there");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn without_poe_it_goes_to_standard_error() {
    let single = Job::direct(program("report/hang")).arg("counter").env("LAPI_SPIN", "0");
    let mut job = single.start();
    job.lines(1);
    let pid = job.pid();
    until_it_reports(&mut job, pid, "LAPI: task 0: it waits in LAPI_Waitcntr");
    let text = job.stderr_so_far();
    has(
        &text,
        &["task 0 of 1 on transport ", " is 0, wanted is 1", "LAPI: task 0: threads of the process: "],
    );
    assert!(text.lines().all(|line| line.starts_with("LAPI: task 0: ")), "{text}");
    ends_with_the_counter(&text);

    let stalled = Job::direct(program("report/hang")).arg("counter").env("LAPI_STALL_SECONDS", "1").start();
    let mut stalled = stalled;
    stalled.until_it_says("(no progress for 1 s)\n");
}

/// The process that reads source lines is none of the program's.
#[test]
fn a_program_that_waits_for_any_child_finds_none_of_the_library() {
    let mut job = Job::direct(program("report/hang")).arg("reaps").env("LAPI_SPIN", "0").start();
    let lines = job.lines(1);
    let pid = job.pid();
    until_it_reports(&mut job, pid, "hang.c:");
    assert_eq!(job.lines(1), lines, "{}", job.stderr_so_far());
    assert!(descendants(pid).is_empty());
}

#[test]
fn the_signal_harms_no_task_that_has_called_init() {
    run("report/hang", 2, "work /");
    let outcome = Job::direct(program("report/hang")).arg("life").run();
    passed(&outcome, 1);
    assert!(outcome.stdout.contains("OWN\n"), "the program's own handler\n{outcome}");
}
