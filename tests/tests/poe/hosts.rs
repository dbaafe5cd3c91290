//! Jobs on several machines, by each launcher that is installed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{
    Cluster, Hosts, Job, Launcher, Marked, Outcome, compile_plain, eventually, skipped, stage,
};

use crate::{file, job, sorted, task};

/// A way to start tasks on other machines.
struct Way<'a> {
    hosts: &'a Hosts,
    /// As -launcher has it.
    name: &'static str,
    cluster: Option<&'a Cluster<'a>>,
}

impl Way<'_> {
    /// The job on the hosts of these lines.
    fn job(&self, lines: &str, job: Job) -> Job {
        let job = match self.cluster {
            // What salloc would set.
            Some(cluster) => job.env("SLURM_CONF", cluster.configuration()),
            None => job.poe_arg("-launcher").poe_arg(self.name),
        };
        self.hosts.poe_on(&self.hosts.host_file(lines), job)
    }

    fn run(&self, lines: &str, job: Job) -> Outcome {
        Marked::start(self.job(lines, job)).over_by(self.name)
    }
}

/// Does this with each launcher that is installed, on two hosts.
fn by_each(what: &str, test: impl Fn(&Way)) {
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return skipped(what, &why),
    };
    for launcher in Launcher::installed(what) {
        test(&Way { hosts: &hosts, name: launcher.name(), cluster: None });
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// A program of `sh`.
fn shell(script: &str) -> Job {
    Job::new("sh").arg("-c").arg(script).env("MP_NOARGLIST", "yes")
}

/// Prints the number of a task, and its host.
const PLACE: &str = "echo $MP_CHILD of $MP_PROCS on $(hostname) with $MP_COMMON_TASKS";

#[test]
fn task_i_is_on_the_host_of_line_i() {
    by_each("the map of tasks to hosts", |way| {
        let outcome = way.run("# mixed\nnode1\nnode0\nnode1\nnode1\nnode0\n", shell(PLACE));
        let expected = [
            "0 of 5 on node1 with 2:2:3",
            "1 of 5 on node0 with 1:4",
            "2 of 5 on node1 with 2:0:3",
            "3 of 5 on node1 with 2:0:2",
            "4 of 5 on node0 with 1:1",
        ];
        assert_eq!(sorted(&outcome.ok().stdout), expected, "{outcome}");
        outcome.says("starts 5 tasks on 2 hosts");
        let saved = file("hosts_saved_of_several", "");
        let blocks = shell(PLACE).poe_arg("-nodes").poe_arg("2").poe_arg("-tasks_per_node").poe_arg("2");
        let outcome = way.run("node1\nnode0\n", blocks.poe_arg("-save_hostfile").poe_arg(&saved));
        let expected = ["0 of 4 on node1 with 1:1", "1 of 4 on node1 with 1:0", "2 of 4 on node0 with 1:3"];
        assert_eq!(sorted(&outcome.ok().stdout)[..3], expected, "{outcome}");
        assert_eq!(fs::read_to_string(saved).expect("it was written"), "node1\nnode1\nnode0\nnode0\n");
        let counted = way.run("node0:1\nnode1:2\n", shell(PLACE).procs(2));
        assert_eq!(sorted(&counted.ok().stdout), ["0 of 2 on node0 with 0", "1 of 2 on node1 with 0"]);
    });
}

#[test]
fn tasks_on_other_hosts_have_the_variables_and_the_folder_of_poe() {
    by_each("the environment on other hosts", |way| {
        let names =
            ["MP_EUILIB", "MP_MSG_API", "LAPI_SPIN", "MINE", "LAPI_REPORT_FD", "LAPI_JOB_FD", "POE_LINK"];
        let task = names.iter().fold(Job::new(task()).arg("env"), Job::arg);
        let task = task
            .env("MP_EUILIB", "us")
            .env("LAPI_SPIN", "7")
            .env("MINE", "two words")
            .env("LAPI_JOB_FD", "1")
            .env("LAPI_REPORT_FD", "1");
        let outcome = way.run("node0\nnode1\n", task.poe_arg("-labelio").poe_arg("yes"));
        for task in 0..2 {
            for line in ["MP_EUILIB=us", "MP_MSG_API=lapi", "LAPI_SPIN=7", "MINE=two words"] {
                assert!(outcome.ok().stdout.contains(&format!("  {task}:{line}\n")), "{line}\n{outcome}");
            }
            for name in ["LAPI_JOB_FD", "LAPI_REPORT_FD"] {
                let foreign = ["1", "(unset)"].map(|value| format!("  {task}:{name}={value}\n"));
                assert!(
                    !foreign.iter().any(|line| outcome.stdout.contains(line)),
                    "poe's own file\n{outcome}"
                );
            }
            assert!(outcome.stdout.contains(&format!("  {task}:POE_LINK=(unset)\n")), "{outcome}");
        }
        let folder = way.run("node0\nnode1\n", shell("pwd").dir(stage()));
        assert_eq!(folder.ok().stdout, format!("{0}\n{0}\n", stage().display()));
        let dry = way.run("node0\nnode1\n", shell("touch /tmp/never").poe_arg("-dry_run"));
        for task in 0..2 {
            let line = format!("task {task} on node{task}, bound by its host: sh -c 'touch /tmp/never'\n");
            assert!(dry.ok().stdout.contains(&line), "{dry}");
        }
        let bound = way.run("node0\nnode1\n", shell(":").poe_arg("-report_bindings"));
        for task in 0..2 {
            bound.ok().says(&format!("poe: task {task} on node{task}: "));
        }
        // What is asked for wins over what the machine of the task has, and may be what is not
        // forwarded otherwise.
        let exported = shell("echo $HOME $DISPLAY $MINE $NEW").env("DISPLAY", "mine:7").env("MINE", "0");
        let exported = ["HOME=/h", "DISPLAY", "MINE=1", "NEW=2"]
            .iter()
            .fold(exported, |job, export| job.poe_arg("-x").poe_arg(export));
        assert_eq!(way.run("node0\nnode1\n", exported).ok().stdout, "/h mine:7 1 2\n".repeat(2));
        let folder = shell("pwd").dir(stage()).poe_arg("-wdir").poe_arg("bin");
        assert_eq!(
            way.run("node0\nnode1\n", folder).ok().stdout,
            format!("{0}/bin\n{0}/bin\n", stage().display())
        );
    });
}

#[test]
fn a_job_on_several_hosts_has_one_secret_that_no_command_line_shows() {
    by_each("the secret of a job", |way| {
        let script =
            "echo $LAPI_JOB_SECRET $MP_PARTITION; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '";
        let outcome = way.run("node0\nnode1\n", shell(script).poe_arg("-stdoutmode").poe_arg("ordered"));
        let first = outcome.ok().stdout.lines().next().unwrap_or_default().to_owned();
        let (secret, partition) = first.split_once(' ').expect("both are set");
        assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
        // Only what the two tasks have printed themselves.
        assert_eq!(outcome.stdout.matches(secret).count(), 2, "{outcome}");
        assert!(!outcome.stdout.contains("POE_LINK=") && partition.parse::<u32>().is_ok(), "{outcome}");
    });
}

#[test]
fn the_same_address_means_the_same_on_every_host() {
    let program = compile_plain("poe_task_pie", &["tests/c/poe/task.c"], &["-fPIE", "-pie"]);
    by_each("addresses on other hosts", |way| {
        let outcome = way.run("node0:2\nnode1:2\n", Job::new(&program).arg("addresses"));
        if !outcome.stderr.contains("does not let tasks have the same addresses") {
            // The fourth is on the stack, above which are the variables: those of the
            // launcher differ.
            let of = |line: &str| -> Vec<String> {
                let fixed = line.split(' ').enumerate().filter(|(at, _)| *at != 3);
                fixed.map(|(_, place)| place.to_owned()).collect()
            };
            let places: BTreeSet<Vec<String>> = outcome.ok().stdout.lines().map(of).collect();
            assert_eq!(places.len(), 1, "{outcome}");
        }
    });
}

#[test]
fn input_and_output_are_those_of_poe_on_other_hosts_too() {
    by_each("streams of other hosts", |way| {
        let labels = |job: Job| job.poe_arg("-labelio").poe_arg("yes");
        let copy = |mode: &str| shell("cat").poe_arg("-stdinmode").poe_arg(mode).stdin("to be read\n");
        let lines = "node0\nnode1\n";
        assert_eq!(way.run(lines, labels(copy("1"))).ok().stdout, "  1:to be read\n");
        assert_eq!(
            sorted(&way.run(lines, labels(copy("all"))).ok().stdout),
            ["  0:to be read", "  1:to be read"]
        );
        assert_eq!(way.run(lines, labels(copy("none"))).ok().stdout, "");
        let ordered = shell("test $MP_CHILD = 0 && sleep 0.3; echo $MP_CHILD; echo e$MP_CHILD >&2");
        let outcome = way.run(lines, ordered.poe_arg("-stdoutmode").poe_arg("ordered"));
        assert_eq!(outcome.ok().stdout, "0\n1\n");
        outcome.says("e0\n").says("e1\n");
        let one = shell("echo $MP_CHILD").poe_arg("-stdoutmode").poe_arg("1");
        assert_eq!(way.run(lines, one).ok().stdout, "1\n");
        let terminal = way.run(lines, shell("test -t 1 && echo terminal"));
        assert_eq!(terminal.ok().stdout, "terminal\nterminal\n");
        let long = way
            .run(lines, shell("test $MP_CHILD = 0 && seq 100000").poe_arg("-on_death").poe_arg("continue"));
        let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        assert!(long.stdout == expected, "{} bytes of {}", long.stdout.len(), expected.len());
    });
}

#[test]
fn the_exit_status_is_the_highest_of_all_hosts() {
    by_each("the exit status of other hosts", |way| {
        way.run("node0\nnode1:2\n", shell("exit $((MP_CHILD * 3))"))
            .exited(6)
            .says("on node1) exited with status 6");
        way.run("node0\nnode1\n", Job::new("./no/such/program"))
            .exited(127)
            .says("./no/such/program: No such file");
        let mpmd = file("mpmd_on_hosts", "sh -c 'echo zero'\nsh -c 'echo one; exit 5'\n");
        let outcome =
            way.run("node0\nnode1\n", Job::poe().env("MP_PGMMODEL", "mpmd").env("MP_CMDFILE", mpmd));
        assert_eq!(sorted(&outcome.exited(5).stdout), ["one", "zero"]);
        let steps = file("steps_on_hosts", "echo first\necho second\n");
        let outcome = way.run("node0\nnode1\n", Job::poe().env("MP_CMDFILE", steps));
        assert_eq!(outcome.ok().stdout, "first\nfirst\nsecond\nsecond\n");
    });
}

#[test]
fn nothing_of_a_job_stays_open_during_the_next_one() {
    by_each("several jobs one after the other on other hosts", |way| {
        let goes_on = |step: usize| file(&format!("step_{step}_goes_on"), "");
        let step = |step| {
            let file = goes_on(step);
            fs::remove_file(&file).expect("it was made");
            format!("sh -c 'echo; until test -e {}; do sleep 0.05; done'\n", file.display())
        };
        let steps = file("steps_that_wait", &[0, 1, 2, 3].map(step).concat());
        let mut job = Marked::start(way.job("node0\nnode1\n", Job::poe().env("MP_CMDFILE", steps)));
        let poe = job.running().pid();
        let open = || fs::read_dir(format!("/proc/{poe}/fd")).map_or(0, Iterator::count);
        let mut first = 0;
        for step in 0..4 {
            job.running().lines(2 * step + 2);
            if step == 0 {
                first = open();
            }
            assert!(eventually(|| open() <= first), "{} instead of {first} in job {step}", open());
            goes_on(step);
        }
        job.over_by(way.name).ok();
    });
}

#[test]
fn the_death_of_a_task_ends_the_job_on_all_hosts_unless_they_are_to_continue() {
    by_each("deaths on other hosts", |way| {
        let outcome = way.run("node0\nnode1\n", Job::new(task()).arg("die").arg("9").arg("1"));
        outcome.exited(137).says("on node1) was ended by signal 9 (SIGKILL)");
        let script = "test $MP_CHILD = 1 && kill -9 $$; sleep 0.2; echo goes on";
        let outcome = way.run("node0\nnode1\n", shell(script).poe_arg("-on_death").poe_arg("continue"));
        assert_eq!(outcome.exited(137).stdout, "goes on\n");
    });
}

#[test]
fn signals_reach_the_tasks_on_all_hosts() {
    by_each("signals on other hosts", |way| {
        let mut job = Marked::start(way.job("node0\nnode1\n", Job::new(task()).arg("signals")));
        job.running().lines(2);
        job.running().signal(Signal::SIGUSR1);
        let lines = job.running().lines(4);
        assert_eq!(lines.iter().filter(|line| line.ends_with("got signal 10")).count(), 2, "{lines:?}");
        job.running().signal(Signal::SIGINT);
        job.over_by(way.name).exited(130).says("interrupted (SIGINT)");
    });
}

#[test]
fn a_stopped_job_stops_and_goes_on_on_all_hosts() {
    by_each("jobs that are stopped", |way| {
        // What poe has written before it stops is to be sent nevertheless.
        for _ in 0..5 {
            let mut job = Marked::start(way.job("node0\nnode1\n", Job::new(task()).arg("signals")));
            job.running().lines(2);
            let poe = job.running().pid();
            let state = |pid: i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let tasks: Vec<i32> =
                way.hosts.processes().into_iter().filter(|pid| state(*pid).contains("(poe_task")).collect();
            let stopped = |pid: &i32| state(*pid).contains(") T ");
            job.running().signal(Signal::SIGTSTP);
            assert!(eventually(|| tasks.len() == 2 && tasks.iter().all(stopped) && stopped(&poe)));
            job.running().signal(Signal::SIGCONT);
            assert!(eventually(|| !tasks.iter().any(stopped) && !stopped(&poe)));
            job.running().signal(Signal::SIGINT);
            job.over_by(way.name).exited(130);
        }
    });
}

/// The hosts have addresses of IPv4 alone.
#[test]
fn tasks_reach_poe_where_listeners_on_ipv6_take_ipv6_alone() {
    by_each("net.ipv6.bindv6only", |way| {
        let set = way.hosts.set_up(0, "echo 1 > /proc/sys/net/ipv6/bindv6only");
        set.expect("a host's settings are its own");
        let outcome = way.run("node0\nnode1\n", shell(PLACE).env("LAPI_INIT_TIMEOUT", "60"));
        assert_eq!(outcome.ok().stdout.lines().count(), 2, "{outcome}");
    });
}

#[test]
fn the_end_of_any_process_ends_the_job_on_all_hosts() {
    by_each("processes that are killed", |way| {
        for victim in ["poe", "launcher", "stub"] {
            let mut job = Marked::start(way.job("node0\nnode1\n", Job::new(task()).arg("deaf")));
            job.running().lines(2);
            let poe = job.running().pid();
            let below = openlapi_tests::descendants(poe);
            let named = |name: &str| {
                let command =
                    |pid: &&i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let found = way.hosts.processes();
                let found = found.iter().find(|pid| command(pid).contains(name));
                *found.unwrap_or_else(|| panic!("no process {name}"))
            };
            let pid = match victim {
                "poe" => poe,
                "launcher" => below[0],
                _ => named("--task"),
            };
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
            let outcome = job.over_soon();
            assert!(!outcome.timed_out && outcome.status != Some(0), "{victim}: {outcome}");
        }
    });
}

#[test]
fn a_launcher_that_cannot_start_the_tasks_is_named() {
    by_each("hosts that do not exist", |way| {
        let job = way.job("node0\nnode7\n", shell("echo no").env("LAPI_INIT_TIMEOUT", "12"));
        let outcome = Marked::start(job).over_soon();
        assert!(outcome.exited(1).stdout.is_empty(), "{outcome}");
        // mpirun ends, Hydra waits.
        let hydra = "mpiexec.hydra has not started task 1 on node7 for 12 s (LAPI_INIT_TIMEOUT)";
        outcome.says(if way.name == "hydra" { hydra } else { "had started" });
    });
    let there = file("hosts_there", "localhost\n192.0.2.7\n");
    let empty = stage().join("share");
    let outcome = job(2, &["args", "x"]).env("MP_HOSTFILE", &there).env("PATH", &empty).run();
    outcome.exited(1).says("tasks on other machines need mpiexec.hydra (mpich), mpirun (Open MPI) or srun");
    let outcome = job(2, &["args", "x"]).env("MP_HOSTFILE", &there).env("PATH", &empty).poe_arg("-launcher");
    outcome.poe_arg("hydra").run().exited(1).says("-launcher hydra: it is not installed");
}

#[test]
fn a_slurm_allocation_gives_the_hosts() {
    let what = "poe in a Slurm allocation";
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return skipped(what, &why),
    };
    let cluster = match hosts.slurm() {
        Ok(cluster) => cluster,
        Err(why) => return skipped(what, &why),
    };
    let poe = stage().join("bin/poe");
    let salloc_of = |slots: &str, flags: &str, words: &[&str]| {
        let job = cluster.client("salloc").arg("--quiet").arg("-N").arg("2").arg("-n").arg(slots).arg(&poe);
        let job = words.iter().fold(flags.split_whitespace().fold(job, Job::arg), Job::arg);
        Marked::start(job.env("MP_NOARGLIST", "yes")).over()
    };
    let salloc = |flags: &str, words: &[&str]| salloc_of("4", flags, words);
    // More tasks than the allocation has places for.
    let outcome = salloc_of("2", "-procs 4 -nodes 2", &["sh", "-c", PLACE]);
    assert_eq!(outcome.ok().stdout.lines().count(), 4, "{outcome}");
    outcome.says("srun starts 4 tasks on 2 hosts");
    let outcome = salloc_of("2", "-procs 4", &["true"]);
    outcome.ok().says("poe: hint: all tasks run on this one of the 2 hosts of the Slurm allocation");
    let outcome = salloc("-nodes 2 -tasks_per_node 2", &["sh", "-c", PLACE]);
    let expected = [
        "0 of 4 on node0 with 1:1",
        "1 of 4 on node0 with 1:0",
        "2 of 4 on node1 with 1:3",
        "3 of 4 on node1 with 1:2",
    ];
    assert_eq!(sorted(&outcome.ok().stdout), expected, "{outcome}");
    outcome.says("srun starts 4 tasks on 2 hosts");
    let lines = hosts.host_file("node1\nnode0\nnode1\n").display().to_string();
    let outcome = salloc(&format!("-hostfile {lines}"), &["sh", "-c", PLACE]);
    let expected = ["0 of 3 on node1 with 1:2", "1 of 3 on node0 with 0", "2 of 3 on node1 with 1:0"];
    assert_eq!(sorted(&outcome.ok().stdout), expected, "{outcome}");
    let outcome =
        salloc(&format!("-hostfile {lines}"), &["sh", "-c", "test $MP_CHILD = 1 && kill -9 $$; sleep 300"]);
    outcome.exited(137).says("on node0) was ended by signal 9");
    let fields = "env PMI_RANK PMI_SIZE SLURM_PROCID".split(' ').collect::<Vec<_>>();
    let program = task().display().to_string();
    let outcome = salloc("-nodes 2 -stdoutmode 1", &[&[&*program], &fields[..]].concat());
    assert!(outcome.ok().stdout.contains("SLURM_PROCID=1\n"), "{outcome}");
    cluster.stop();
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

#[test]
fn a_task_keeps_the_connection_to_its_launcher() {
    by_each("the launcher's variables", |way| {
        let script = if way.name == "hydra" {
            // PMI's version 1: what the launcher replies on its descriptor. A task that ends after
            // init without finalize has failed, for Hydra, which then ends the others.
            "echo cmd=init pmi_version=1 pmi_subversion=1 >&$PMI_FD; read reply <&$PMI_FD; \
             echo cmd=finalize >&$PMI_FD; read end <&$PMI_FD; echo $MP_CHILD $PMI_RANK $reply $end"
        } else {
            "echo $MP_CHILD $OMPI_COMM_WORLD_RANK $PMIX_RANK"
        };
        let outcome =
            way.run("node1\nnode0\n", Job::new("bash").arg("-c").arg(script).env("MP_NOARGLIST", "yes"));
        for (task, line) in sorted(&outcome.ok().stdout).iter().enumerate() {
            assert!(line.starts_with(&format!("{task} {task} ")), "{line}\n{outcome}");
            for reply in ["cmd=response_to_init", "cmd=finalize_ack"] {
                assert!(way.name != "hydra" || line.contains(reply), "{line}\n{outcome}");
            }
        }
    });
}

#[test]
fn what_keeps_the_hosts_of_an_allocation_unknown_is_said() {
    let run = |path: &Path| {
        let job = Job::new(task()).arg("args").arg("x").poe_arg("-nodes").poe_arg("2");
        let outcome = job.env("SLURM_JOB_NODELIST", "node[0-1]").env("PATH", path).run();
        outcome.ok().says("poe: warning: -nodes 2: this machine serves for all");
        outcome
    };
    let unknown = "poe: warning: the hosts of the Slurm allocation (node[0-1]) are not known: scontrol";
    for (name, script, says) in [
        (
            "says",
            "echo 'error: no controller' >&2; echo Sorry >&2; exit 1",
            " says: error: no controller; Sorry\n",
        ),
        ("fails", "exit 3", " has failed (exit status: 3)\n"),
        ("silent", "exit 0", " names none\n"),
    ] {
        let scontrol = file(&format!("poe_scontrol_{name}/scontrol"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755)).expect("it is ours");
        run(scontrol.parent().expect("a folder")).says(&format!("{unknown}{says}"));
    }
    run(&stage().join("share")).says(&format!("{unknown}: No such file or directory\n"));
}

#[test]
fn mistakes_in_a_host_file_are_named() {
    let refused = |text: &str, flags: &str, says: &str| {
        let path: &Path = &file(&format!("hosts_wrong_{}", text.len()), text);
        let job = Job::new(task()).arg("args").env("MP_HOSTFILE", path);
        flags.split_whitespace().fold(job, |job, word| job.poe_arg(word)).run().exited(2).says(says);
    };
    refused("localhost\n\n192.0.2.7:x\n", "", "line 3: \"192.0.2.7:x\" is not HOST or HOST:N");
    refused("192.0.2.7\n", "-procs 2", "names hosts for 1 tasks, but the job has 2");
    refused("192.0.2.7\n192.0.2.7\n", "-nodes 2", "2 hosts are needed, but");
}
