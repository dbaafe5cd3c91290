//! The options of `poe`, and those that it refuses.

use std::fs;

use openlapi_tests::Job;

use crate::{file, job, sorted, task};

#[test]
fn the_help_names_the_environment_in_its_first_line() {
    let help = Job::poe().poe_arg("-h").arg("all").run();
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
fn the_number_of_tasks_has_the_names_of_other_launchers_before_the_program() {
    for flag in ["-n", "-np"] {
        let outcome =
            Job::poe().poe_arg(flag).poe_arg("3").poe_arg(task()).poe_arg("args").arg(flag).arg("5");
        assert_eq!(outcome.run().ok().stdout.matches(&format!("{flag}\n")).count(), 3);
    }
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
                 -pulse 60 -cpu_use unique -adapter_use shared -pmdlog no -newjob no -coredir . -corefile_format STDERR \
                 -euidevelop no -llfile ll -save_llfile ll -clock_source OS -thread_stacksize 1000000 -priority_log no";
    let job = flags.split_whitespace().fold(Job::new(task()).arg("args").arg("x"), |job, word| job.arg(word));
    assert_eq!(job.run().ok().stdout, "x\nx\n");
    // Programs have flags of these names, too.
    let flags = ["-tmpdir", "/tmp", "-statistics", "no", "-printenv", "no"];
    let before = flags.iter().fold(Job::poe(), Job::poe_arg).poe_arg(task()).arg("args").arg("x");
    assert_eq!(before.run().ok().stdout, "x\n");
    let after = flags.iter().fold(Job::new(task()).arg("args"), Job::arg);
    assert_eq!(after.run().ok().stdout, "-tmpdir\n/tmp\n-statistics\nno\n-printenv\nno\n");
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
        outcome.exited(2).says(says);
    };
    refused(&["-nonsense", "1"], "unknown flag -nonsense; see poe -h");
    refused(&["-procs", "0"], "-procs: \"0\"");
    refused(&["-np", "0"], "-np: \"0\"");
    refused(&["-timeout", "0"], "-timeout: \"0\" is not a number from 1");
    refused(&["-procs", "many"], "many");
    refused(&["-labelio", "maybe"], "yes or no");
    refused(&["-stdoutmode", "both"], "-stdoutmode");
    refused(&["-procs", "2", "-stdoutmode", "2"], "-stdoutmode 2: the highest task number is 1");
    refused(&["-procs", "2", "-stdinmode", "5"], "-stdinmode 5: the highest task number is 1");
    refused(&["-infolevel", "9"], "-infolevel");
    refused(&["-infolevel=+2"], "-infolevel: \"+2\" is not a number from 0 to 6");
    refused(&["-euilib", "US"], "-euilib: \"US\" is not ip or us, in small letters");
    refused(&["--labelio", "yes"], "unknown flag --labelio; poe's flag is -labelio");
    refused(&["-task_affinity", "perhaps"], "-task_affinity");
    refused(&["-procs", "1025"], "a number from 1 to 1024");
    refused(&["-procs", "3", "-tasks_per_node", "2"], "-procs 3 is not a multiple of -tasks_per_node 2");
    refused(&["-procs", "3", "-nodes", "2", "-tasks_per_node", "2"], "make 4");
    refused(&["-pgmmodel", "mpmd"], "mpmd");
    // What is named rightly, and is not there, is no wrong usage.
    let missing = Job::new(task()).arg("args").poe_arg("-hostfile").poe_arg("/nowhere/hosts").run();
    missing.exited(1).says("/nowhere/hosts");
    let missing = Job::new(task()).arg("args").poe_arg("-cmdfile").poe_arg("/nowhere/commands").run();
    missing.exited(1).says("/nowhere/commands: No such file or directory");
    let endless = Job::new(task()).arg("args").poe_arg("-hostfile").poe_arg("/dev/zero").run();
    endless.exited(1).says("/dev/zero: longer than 4 MiB");
    let endless = Job::poe().poe_arg("-cmdfile").poe_arg("/dev/zero").run();
    endless.exited(1).says("/dev/zero: longer than 4 MiB");
    Job::new(task()).arg("args").env("MP_PROCS", "x").run().exited(2).says("MP_PROCS: \"x\"");
    Job::poe().run().exited(2).says("no program given; usage: poe [flags] program [arguments]");
    Job::new(task()).arg("args").arg("-procs").run().exited(2).says("-procs needs a value");
}

#[test]
fn a_host_file_that_names_this_host_only_changes_nothing() {
    let here = file("hosts_here", "! this host\nlocalhost\n127.0.0.1:3\n");
    let outcome = job(2, &["args", "x"]).poe_arg("-hostfile").poe_arg(here).run();
    assert_eq!((&*outcome.ok().stdout, &*outcome.stderr), ("x\nx\n", ""));
}

#[test]
fn the_lines_of_a_host_file_that_names_this_host_only_are_counted() {
    let here = file("hosts_counted", "localhost:2\n# one more\n127.0.0.1\n");
    let run = |words: &[&str]| {
        let job = Job::new(task()).arg("args").arg("x").poe_arg("-hostfile").poe_arg(&here);
        let outcome = words.iter().fold(job, Job::arg).run();
        assert_eq!(outcome.ok().stderr, "", "{words:?}");
        outcome.stdout
    };
    assert_eq!(run(&[]), "x\n".repeat(3));
    // More tasks than it has lines for, and one machine by two names.
    assert_eq!(run(&["-procs", "4"]), "x\n".repeat(4));
    assert_eq!(run(&["-tasks_per_node", "2"]), "x\n".repeat(2));
    // No hint that one task was started.
    assert_eq!(run(&["-np", "4"]).lines().filter(|line| *line == "-np").count(), 3);
    // Of a file with one line for this host the hint is true.
    let one = Job::new(task()).arg("args").arg("-np").arg("4").poe_arg("-hostfile");
    one.poe_arg(file("hosts_one", "localhost\n")).run().ok().says("hint: \"-np 4\" was passed to ");
    let none = Job::new(task()).procs(2).arg("args").arg("x").env("MP_HOSTFILE", "/dev/null").run();
    assert_eq!(none.ok().stdout, "x\n".repeat(2));
    let empty = file("hosts_none", "# nothing\n\n");
    let refused = Job::new(task()).arg("args").poe_arg("-hostfile").poe_arg(&empty).run();
    refused.exited(2).says(&format!("poe: {} names no host\n", empty.display()));
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
    Job::new("Cargo.toml").run().exited(127).says("Cargo.toml (did you mean ./Cargo.toml?");
    for folder in [".", "./tests"] {
        Job::new(folder).run().exited(126).says(&format!("poe: {folder}: Is a directory"));
    }
    Job::new("tests").run().exited(127).says("poe: tests: No such file");
    Job::new("./Cargo.toml").run().exited(126).says("./Cargo.toml: Permission denied");
    Job::new("./no/such/program").procs(8).run().exited(127);
}

#[test]
fn each_task_can_have_a_program_of_its_own() {
    let task = task().display().to_string();
    let commands =
        file("mpmd", &format!("# who does what\n{task} args zero\n\n{task} args 'o n e'\n/bin/echo two\n"));
    let run =
        |job: Job| job.env("MP_PGMMODEL", "mpmd").env("MP_LABELIO", "yes").env("MP_CMDFILE", &commands).run();
    assert_eq!(sorted(&run(Job::poe()).ok().stdout), ["  0:zero", "  1:o n e", "  2:two"]);
    run(Job::poe().procs(4)).exited(2).says("has 3 commands, but the job has 4 tasks");
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

#[test]
fn one_machine_serves_for_all() {
    let flags = |flags: &str| {
        flags.split_whitespace().fold(Job::new(task()).arg("args").arg("x"), |job, word| job.poe_arg(word))
    };
    for (given, tasks, named) in [
        ("-nodes 2 -procs 2", 2, "-nodes 2"),
        ("-nodes 2 -tasks_per_node 2", 4, "-nodes 2"),
        ("-nodes 3", 3, "-nodes 3"),
        ("-procs 4 -tasks_per_node 2", 4, "-tasks_per_node 2"),
    ] {
        let outcome = flags(given).run();
        assert_eq!(outcome.ok().stdout, "x\n".repeat(tasks), "{given}");
        outcome.says(&format!("warning: {named}: this machine serves for all"));
    }
    for given in ["-nodes 1 -procs 2", "-procs 2 -tasks_per_node 2", "-nodes 2 -procs 2 -infolevel 0"] {
        assert_eq!(flags(given).run().ok().stderr, "", "{given}");
    }
}

#[test]
fn what_looks_like_a_mistake_gets_a_hint() {
    let outcome = Job::new(task()).arg("args").arg("-np").arg("4").run();
    assert_eq!(outcome.ok().stdout, "-np\n4\n");
    outcome.says("poe: hint: \"-np 4\" was passed to ").says("poe's flag is -procs 4");
    let outcome = job(2, &["args", "-np", "4"]).run();
    assert_eq!(outcome.ok().stderr, "", "the number of tasks was given");
    let outcome = Job::new(task()).arg("args").env("MP_PROC", "2").env("MP_INFOLVEL", "2").run();
    outcome.ok().says("hint: the variable MP_PROC has no effect; did you mean MP_PROCS?");
    outcome.says("did you mean MP_INFOLEVEL?");
    let outcome = job(2, &["args", "-timeout", "600"]).run();
    outcome.ok().says("hint: \"-timeout 600\" was passed to ").says("poe -timeout 600 ");
    let limited = job(2, &["args", "-timeout", "600"]).env("MP_TIME_LIMIT", "60").run();
    assert_eq!(limited.ok().stderr, "", "the job has a time limit");
    // What was said to be the program's is no mistake.
    let words = ["args", "-procs", "2", "-timeout", "600", "-labelo"];
    let whole = words.iter().fold(Job::new(task()), Job::arg).env("MP_NOARGLIST", "yes").run();
    assert_eq!(whole.ok().stderr, "");
    let fenced = words[1..].iter().fold(Job::new(task()).arg("args").arg("--"), Job::arg);
    assert_eq!(fenced.env("MP_FENCE", "--").run().ok().stderr, "");
    // A word that a profile sets, and that is not there, says nothing.
    let unfenced = Job::new(task()).arg("args").arg("-np").arg("4").env("MP_FENCE", "--").run();
    unfenced.ok().says("hint: \"-np 4\" was passed to ");
    let quiet = Job::new(task()).arg("args").arg("-np").arg("4").env("MP_PROC", "2").env("MP_INFOLEVEL", "0");
    assert_eq!(quiet.run().ok().stderr, "");
}

#[test]
fn a_dry_run_shows_the_job_and_starts_nothing() {
    let made = file("dry_run/made", "");
    fs::remove_file(&made).expect("it was made");
    let saved = file("dry_run/saved", "as before");
    let outcome = Job::new("touch")
        .arg(&made)
        .arg("two words")
        .procs(2)
        .dir("/tmp")
        .env("LAPI_SPIN", "7")
        .env("HOME", "/h");
    let flags = "-dry_run -x MINE=1 -labelio yes -task_affinity no -save_hostfile".split_whitespace();
    let outcome = flags.fold(outcome, Job::poe_arg).poe_arg(&saved).run();
    let (lines, stdout) = (outcome.ok().stdout.lines().collect::<Vec<_>>(), &outcome.stdout);
    assert_eq!(lines[0], "2 tasks, started by poe, in /tmp");
    for task in 0..2 {
        let line = lines.iter().find(|line| line.starts_with(&format!("task {task}, not bound, processor")));
        let line = line.unwrap_or_else(|| panic!("{outcome}"));
        assert!(line.ends_with(&format!(": touch {} 'two words'", made.display())), "{line}");
    }
    for line in [
        "MP_CHILD=0",
        "MP_CHILD=1",
        "MP_COMMON_TASKS=1:0",
        "MP_PROCS=2",
        "MINE=1",
        "LAPI_SPIN=7",
        "MP_LABELIO=yes",
    ] {
        assert!(lines.contains(&&*format!("    {line}")), "{line}\n{outcome}");
    }
    assert!(lines.contains(&"    LAPI_JOB_SECRET=(another one in each job)"), "{outcome}");
    assert!(!stdout.contains("HOME=") && !stdout.contains("MP_DRY_RUN"), "{outcome}");
    assert!(!made.exists(), "a task was started");
    assert_eq!(fs::read_to_string(saved).expect("it is there"), "as before");
    // A request that would be refused is refused.
    let refused = job(2, &["args"]).env("MP_DRY_RUN", "yes").poe_arg("-stdoutmode").poe_arg("2").run();
    assert_eq!(refused.exited(2).says("the highest task number is 1").stdout, "");
    let refused = job(2, &["args"]).env("MP_DRY_RUN", "yes").env("MP_LABELIO", "maybe").run();
    assert_eq!(refused.exited(2).says("MP_LABELIO").stdout, "");
}

#[test]
fn a_host_list_that_is_not_read_is_named() {
    let folder = file("poe_host_list/host.list", "far\nfar\n");
    let folder = folder.parent().expect("it lies in a folder");
    let hint = "poe: hint: ./host.list is not read unless it is asked for";
    let two = job(2, &["args"]).dir(folder);
    two.clone().run().ok().says(hint);
    for quiet in [two.env("MP_HOSTFILE", "NULL"), job(1, &["args"]).dir(folder), job(2, &["args"])] {
        let outcome = quiet.run();
        assert!(!outcome.ok().stderr.contains("host.list"), "{outcome}");
    }
}
