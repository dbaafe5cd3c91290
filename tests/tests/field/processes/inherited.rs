//! Signals and descriptors as the parent of `poe` has left them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::side_by_side;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, geteuid, pipe2};
use openlapi_tests::{
    Job, Outcome, compile, compile_plain, eventually, is_installed, named, on_network, skipped, stage,
};

/// A program that is started with this in a state that parents may leave to their children.
fn inheriting(state: &str, program: impl AsRef<Path>) -> Job {
    let inherit = compile_plain("field_inherit", &["tests/field/inherit.c"], &[]);
    state.split_whitespace().fold(Job::direct(inherit), Job::arg).arg("--").arg(program.as_ref()).deadline(30)
}

/// The job with more arguments.
fn with(job: Job, arguments: &[&str]) -> Job {
    arguments.iter().fold(job, Job::arg)
}

fn poe() -> PathBuf {
    stage().join("bin/poe")
}

/// Every state that servers, shells, `nohup`, Python and Java leave to their children.
const STATES: [&str; 8] =
    ["", "i17", "i17 b17", "i13", "i22 i21 b14", "i1", "i25 i20 i18", "b2 b15 b10 b12 b20 b18 i10"];

#[test]
fn tasks_get_the_signals_that_poe_has_got() {
    let masks = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("SigIgn") || line.starts_with("SigBlk"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    side_by_side(STATES, |state| {
        let direct = inheriting(state, "cat").arg("/proc/self/status").run();
        let outcome =
            inheriting(state, poe()).arg("-procs").arg("2").arg("cat").arg("/proc/self/status").run();
        assert_eq!(masks(&outcome.ok().stdout), masks(&direct.ok().stdout), "{state}\n{outcome}");
    });
}

#[test]
fn poe_ends_a_job_whatever_it_was_started_with() {
    side_by_side(STATES, |state| {
        let mut running =
            with(inheriting(state, poe()), &["-procs", "2", "sh", "-c", "echo here; exec sleep 1000"])
                .start();
        running.lines(2);
        running.signal(Signal::SIGTERM);
        running.wait().exited(128 + 15);
    });
    // A task that dies is noticed.
    let outcome = with(inheriting("i17", poe()), &["-procs", "3", "sh", "-c"]);
    let outcome = outcome.arg("if [ $MP_CHILD = 1 ]; then exit 7; fi").run();
    outcome.exited(7).says("exited with status 7");
}

/// A job of two tasks, as a shell starts it after this.
fn after(prelude: &str, redirections: &str, words: &[&str]) -> Outcome {
    let script = format!(r#"{prelude} exec "$0" -procs 2 "$@" {redirections}"#);
    let job = Job::direct("sh").arg("-c").arg(script).arg(poe());
    with(job, words).deadline(120).run()
}

/// Servers start programs without standard input and outputs: what poe opens then must not have
/// their numbers.
#[test]
fn poe_and_its_tasks_do_without_standard_input_and_outputs() {
    let contact = compile("field-first_contact", &["tests/field/first_contact.c"], &[]);
    let contact = contact.to_str().expect("an ordinary name");
    let script = "cat; echo out; echo err >&2; exit 3";
    side_by_side(["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"], |closed| {
        let lines = |end: &str| if closed.split(' ').any(|one| one == end) { 0 } else { 2 };
        let outcome = after("", closed, &["sh", "-c", script]);
        outcome.exited(3);
        assert_eq!(outcome.stdout.matches("out\n").count(), lines(">&-"), "{outcome}");
        assert_eq!(outcome.stdout.len(), 4 * outcome.stdout.matches("out\n").count(), "{outcome}");
        assert_eq!(outcome.stderr.matches("err\n").count(), lines("2>&-"), "{outcome}");
        let outcome = after("", closed, &[contact]);
        let said = outcome.ok().stdout.matches("done\n").count();
        assert_eq!(said, lines(">&-"), "{closed}\n{outcome}");
    });
}

#[test]
fn a_job_starts_in_a_folder_that_is_gone() {
    let contact = compile("field-first_contact", &["tests/field/first_contact.c"], &[]);
    let contact = contact.to_str().expect("an ordinary name");
    let folder = openlapi_tests::build_dir().join(format!("tests/gone-{}", std::process::id()));
    let gone = format!("mkdir '{0}' && cd '{0}' && rmdir '{0}' &&", folder.display());
    assert_eq!(after(&gone, "", &[contact]).ok().stdout, "done\ndone\n");
    // What needs it is named.
    let outcome = after(&gone, "", &["-profile", "out", contact]);
    assert_eq!(outcome.exited(1).stderr, "poe: -profile: out: No such file or directory\n", "{outcome}");
}

#[test]
fn a_launcher_without_its_children_finds_the_hosts_of_slurm() {
    // scontrol is a child of poe, which must be able to wait for it.
    let folder = openlapi_tests::build_dir().join("tests/field_scontrol");
    std::fs::create_dir_all(&folder).expect("a folder");
    let scontrol = folder.join("scontrol");
    std::fs::write(&scontrol, "#!/bin/sh\necho one.invalid\necho two.invalid\n").expect("a file");
    std::fs::set_permissions(&scontrol, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    for state in ["", "i17"] {
        let job = with(inheriting(state, poe()), &["-nodes", "2", "-dry_run", "-launcher", "hydra", "true"]);
        let outcome = job.env("PATH", &path).env("SLURM_JOB_NODELIST", "x[1-2]").run();
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(text.contains("two.invalid") || text.contains("not installed"), "{outcome}");
    }
}

#[test]
fn the_first_process_of_a_container_is_no_special_one() {
    if !geteuid().is_root() || !is_installed("unshare") {
        return skipped("the first process of a container", "it takes root and unshare");
    }
    let inside = |flags: &[&str], words: &[&str]| {
        let job = with(with(Job::direct("unshare"), &["--pid", "--fork", "--kill-child"]), flags);
        with(job.arg(poe()), words).deadline(30)
    };
    // A number that no other process has among its arguments.
    let seconds = format!("1012.{}", std::process::id());
    for flags in [&["--mount-proc"][..], &[]] {
        // A process that leaves its task's group ends with the job.
        let script = format!("setsid sleep {seconds} & sleep 0.2; echo $MP_CHILD");
        let outcome = inside(flags, &["-procs", "2", "sh", "-c", &script]).run();
        assert_eq!(outcome.ok().stdout.len(), 4, "{outcome}");
        // It cannot be stopped by the terminal's key, and neither are its tasks.
        let script = "echo here; read line; echo \"got $line\"";
        let mut running = inside(flags, &["-procs", "1", "sh", "-c", script]).stdin_stays_open().start();
        running.lines(1);
        let first = openlapi_tests::descendants(running.pid());
        nix::sys::signal::kill(Pid::from_raw(first[0]), Signal::SIGTSTP).expect("poe runs");
        nix::sys::signal::kill(Pid::from_raw(first[0]), Signal::SIGTERM).expect("poe runs");
        running.wait().exited(128 + 15);
    }
    assert!(eventually(|| named(&seconds).is_empty()), "a process is left");
}

#[test]
fn input_that_does_not_block_is_read_to_its_end() {
    // The other end writes late: a reader finds nothing, and not the end.
    let late = |tail: &str| {
        let script =
            format!(r#"(sleep 0.5; printf 'echo one\n'; sleep 0.5; printf 'echo two\n') | "$0" n -- {tail}"#);
        let inherit = compile_plain("field_inherit", &["tests/field/inherit.c"], &[]);
        Job::direct("sh").arg("-c").arg(script).arg(inherit).arg(poe()).deadline(30).run()
    };
    let all = late(r#""$1" -procs 2 -stdinmode all cat"#);
    assert_eq!(all.ok().stdout.matches("echo one\n").count(), 2, "{all}");
    assert_eq!(all.stdout.matches("echo two\n").count(), 2, "{all}");
    let commands = late(r#""$1" -procs 2"#);
    assert_eq!(commands.ok().stdout, "one\none\ntwo\ntwo\n", "{commands}");
}

/// A pipe as another program may have left it: its writing end does not block, and it is full until
/// it is read.
#[test]
fn an_output_that_does_not_block_is_waited_for() {
    for (tool, argument) in [
        ("poe", "-V"),
        ("lapi_info", "--version"),
        ("lapi_perf", "--version"),
        ("lapi_prof", "--version"),
        ("lapi_top", "--version"),
    ] {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).expect("a pipe");
        fcntl(&read, FcntlArg::F_SETFL(OFlag::empty())).expect("the reader waits");
        let (mut read, mut write) = (File::from(read), File::from(write));
        let mut full = 0;
        while let Ok(length) = write.write(&[b'x'; 4096]) {
            full += length;
        }
        let mut child = Command::new(stage().join("bin").join(tool))
            .arg(argument)
            .stdout(write)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Time to find the pipe full.
        std::thread::sleep(Duration::from_millis(300));
        let mut text = String::new();
        read.read_to_string(&mut text).expect("it can be read");
        let mut errors = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("it can be read");
        assert!(child.wait().expect("it ends").success(), "{tool}: {errors}");
        assert_eq!(errors, "", "{tool}");
        assert!(text[full..].contains(env!("CARGO_PKG_VERSION")), "{tool}: {:?}", &text[full..]);
    }
}

/// Reads and writes that move a few bytes, or are interrupted: nothing is lost, doubled or changed,
/// in poe, its tasks and lapi_prof.
#[test]
fn short_and_interrupted_reads_and_writes_lose_nothing() {
    if on_network("short reads and writes", "it chooses the transport itself") {
        return;
    }
    let flags = ["-shared", "-fPIC", "-ldl"];
    let short = compile_plain("field_short.so", &["tests/field/short.c"], &flags);
    let under = |script: &str| {
        let job = Job::direct("sh").arg("-c").arg(script).arg(poe()).env("SHORT", &short);
        job.env("OUT", crate::scratch("short")).deadline(120).run()
    };
    // The shell itself has whole ones.
    let copies = under(
        "seq 100000 > $OUT/lines
         LD_PRELOAD=$SHORT $0 -procs 3 -stdinmode all -labelio yes cat < $OUT/lines > $OUT/all || exit 1
         for task in 0 1 2; do sed -n \"s/^ *$task://p\" $OUT/all | cmp - $OUT/lines || exit 2; done
         LD_PRELOAD=$SHORT $0 -procs 3 -stdinmode all -stdoutmode ordered cat < $OUT/lines > $OUT/all || exit 3
         cat $OUT/lines $OUT/lines $OUT/lines | cmp - $OUT/all || exit 4
         for i in $(seq 40); do echo echo $i; done | LD_PRELOAD=$SHORT $0 -procs 2 > $OUT/all || exit 5
         for i in $(seq 40); do echo $i; echo $i; done | cmp - $OUT/all || exit 6",
    );
    copies.ok();
    let program = compile("field-exchange", &["tests/field/exchange.c"], &[]);
    // Over libfabric these would be its own.
    for network in ["", "LAPI_USE_SHM=no MP_EUILIB=ip"] {
        let script = format!(
            "env LD_PRELOAD=$SHORT {network} $0 -procs 2 -profile $OUT/profile '{}' && test -s $OUT/profile/report.html",
            program.display()
        );
        let outcome = under(&script);
        assert_eq!(outcome.exited(0).stdout, "good\ngood\n", "{network}\n{outcome}");
    }
}

/// LAPI calls in a signal handler are not allowed (docs/api-conventions.md), and programs make
/// them: they are carried out, or refused, and hang nothing.
#[test]
fn a_signal_handler_that_calls_lapi_ends_its_task() {
    let mut ways: Vec<(&str, Option<&str>)> = vec![("outside", None)];
    ways.extend(["0", "auto", "1000000000"].map(|spin| ("waits", Some(spin))));
    side_by_side(ways, |(way, spin)| {
        let job = crate::job("at_signal", 2, way).deadline(60);
        let job = spin.into_iter().fold(job, |job, spin| job.env("LAPI_SPIN", spin));
        let mut running = job.start();
        assert_eq!(running.lines(2), ["READY", "READY"]);
        running.signal(Signal::SIGTERM);
        let outcome = running.wait();
        assert!(!outcome.timed_out && !outcome.stderr.contains("killing"), "{way} {spin:?}\n{outcome}");
        let said = ["fence ok\n", "refused\n", "failed\n"].map(|said| outcome.stdout.matches(said).count());
        // One whose fence is carried out may find that the other one, refused, has left.
        let ended = outcome.stderr.matches("no error handler is registered: this task ends").count();
        assert_eq!(said.iter().sum::<usize>() + ended, 2, "{way} {spin:?}\n{outcome}");
        // Outside of a call it is a call like any other.
        assert!(way != "outside" || said[0] == 2, "{outcome}");
    });
}
