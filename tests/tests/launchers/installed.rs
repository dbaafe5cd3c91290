//! Hydra and Open MPI themselves, where they are installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Job, Marked, Outcome, compile, is_installed, skipped};

use super::ltest::{passed, program};
use super::{Folder, bare, key, numbered};

/// A launcher as a user calls it.
pub struct Installed {
    /// The words of the command before the number of tasks.
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The place of the jobs' temporary folders.
    pub folder: Folder,
}

impl Installed {
    /// A program as a job of `tasks` tasks.
    fn job(&self, tasks: usize, program: &Path, args: &str) -> Job {
        let [launcher, words @ ..] = &self.command[..] else { panic!("a launcher has a name") };
        // Hydra's mpiexec may end by SIGPIPE when its input ends (docs/launchers.md).
        let job = bare(Job::direct(launcher)).env("LAPI_INIT_TIMEOUT", "30").stdin_stays_open();
        // Two of Open MPI 4.1's mpirun that start at once fail in a folder that both create.
        let folder = self.folder.0.join(key());
        fs::create_dir(&folder).expect("a folder can be made");
        let job = job.env("TMPDIR", folder);
        let job = self.env.iter().fold(job, |job, (name, value)| job.env(name, value));
        let job = words.iter().fold(job, Job::arg).arg("-n").arg(tasks.to_string()).arg(program);
        args.split_whitespace().fold(job, Job::arg)
    }

    /// Runs it; none of its processes may be left.
    pub fn run(&self, tasks: usize, program: &Path, args: &str) -> Outcome {
        Marked::start(self.job(tasks, program, args)).over()
    }

    /// Everything that must hold under every launcher.
    pub fn serves(&self) {
        eprintln!("under {:?}", self.command);
        for tasks in [2, 4] {
            self.samples(tasks);
            self.script(tasks);
            self.two_jobs(tasks);
        }
        self.failures();
    }

    /// LAPI and MPI in one process, whichever is initialised and terminated first.
    pub fn serves_mpi(&self, mpicc: Option<String>) {
        let Some(mpicc) = mpicc else {
            return skipped(
                &format!("MPI and LAPI in one process under {:?}", self.command),
                "there is no mpicc with its headers",
            );
        };
        let sources = ["tests/c/launchers/with_mpi.c", "tests/c/common/ltest.c"];
        let program = compile(&format!("launchers-with-{mpicc}"), &sources, &["-compiler", &mpicc]);
        for (first, last) in [("lapi", "lapi"), ("lapi", "mpi"), ("mpi", "lapi"), ("mpi", "mpi")] {
            for tasks in [2, 4] {
                passed(&self.run(tasks, &program, &format!("{first} {last}")), tasks);
            }
        }
        // Without a launcher both are jobs of one task.
        for first in ["lapi", "mpi"] {
            let job = bare(Job::direct(&program)).arg(first).arg("mpi").env("TMPDIR", &self.folder.0);
            let job = self.env.iter().fold(job, |job, (name, value)| job.env(name, value));
            passed(&Marked::start(job).over(), 1);
        }
    }

    fn samples(&self, tasks: usize) {
        for (sample, every_second_says) in [
            ("lapi_api/Am", "the message is as it was sent"),
            ("lapi_api/Put", "the board is as it was put"),
            ("basic/accumulate_and_return.Am", "the sums are right"),
            ("basic/accumulate_and_return.Put", "the sums are right"),
            ("basic/accumulate_and_return.Xfer", "the sums are right"),
        ] {
            let source = format!("samples/{sample}.c");
            let program = compile(&format!("launch-{}", sample.replace('/', "-")), &[&source], &[]);
            let outcome = self.run(tasks, &program, "");
            outcome.ok();
            let said = outcome.stdout.lines().filter(|line| line.contains(every_second_says)).count();
            assert_eq!(said, tasks / 2, "{sample}: \"{every_second_says}\"\n{outcome}");
        }
    }

    /// Two programs one after the other in the same tasks.
    fn script(&self, tasks: usize) {
        let folder = Folder::new();
        let script = folder.0.join("script");
        let apart = program("launchers/apart");
        let text = format!("#!/bin/sh\nset -e\n'{0}' 3 first\n'{0}' 3 second\n", apart.display());
        fs::write(&script, text).expect("a script can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script may be executable");
        let outcome = self.run(tasks, &script, "");
        numbered(&outcome, tasks, "first");
        numbered(&outcome, tasks, "second");
    }

    /// Two jobs of the same user at the same time.
    fn two_jobs(&self, tasks: usize) {
        let folder = Folder::new();
        let mut jobs = [("left", "right"), ("right", "left")].map(|(own, other)| {
            let args = format!("20 {own} {} {other}", folder.text());
            Marked::start(self.job(tasks, &program("launchers/apart"), &args))
        });
        let [left, right] = jobs.each_mut().map(Marked::over);
        assert!(left.status == Some(0) && right.status == Some(0), "left: {left}\nright: {right}");
        numbered(&left, tasks, "left");
        numbered(&right, tasks, "right");
    }

    /// A task that ends with a status of its own, and one that is killed, end the job.
    fn failures(&self) {
        let outcome = self.run(2, &program("launchers/apart"), "");
        assert!(!outcome.timed_out && outcome.status != Some(0), "the job has failed\n{outcome}");

        let mut job = Marked::start(self.job(3, &program("failure/victim"), "transfer"));
        let pids = job.running().lines(3);
        let pid =
            pids.iter().find_map(|line| line.strip_prefix("1 ")).expect("task 1 says which process it is");
        let pid = Pid::from_raw(pid.parse().expect("a task prints its process number"));
        kill(pid, Signal::SIGKILL).expect("the task is there to be killed");
        let outcome = job.over();
        assert!(!outcome.timed_out && outcome.status != Some(0), "the job has failed\n{outcome}");
    }
}

/// Whether a command exists and prints `text` when it is called with `argument`.
fn says(command: &str, argument: &str, text: &str) -> bool {
    if !is_installed(command) {
        return false;
    }
    let job = bare(Job::direct(command)).arg(argument).deadline(20);
    let job = job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let outcome = job.run();
    outcome.stdout.contains(text) || outcome.stderr.contains(text)
}

/// The first of these for which this is true.
fn first_of(commands: &[&str], argument: &str, text: &str) -> Option<String> {
    commands.iter().find(|command| says(command, argument, text)).map(|command| (*command).to_owned())
}

/// The compiler wrapper of MPICH, if MPI's header is installed, too.
pub fn mpicc_of_mpich() -> Option<String> {
    first_of(&["mpicc.mpich", "mpicc"], "-show", "mpich").filter(has_header)
}

/// The compiler wrapper of Open MPI, if MPI's header is installed, too.
pub fn mpicc_of_open_mpi() -> Option<String> {
    first_of(&["mpicc.openmpi", "mpicc"], "-show", "openmpi").filter(has_header)
}

/// The package of a launcher has the wrapper already, and that of the library for
/// developers the header.
fn has_header(mpicc: &String) -> bool {
    // A file, not `-`: without one Open MPI's wrapper looks in no folder of its own.
    let job = ["-E", "-x", "c", "/dev/stdin"].iter().fold(bare(Job::direct(mpicc)), Job::arg);
    job.stdin("#include <mpi.h>\n").run().status == Some(0)
}

/// The settings that Open MPI requires for root, and for more tasks than processors.
pub fn env_of_open_mpi() -> Vec<(String, String)> {
    ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_mpi_yield_when_idle"]
        .map(|name| (name.to_owned(), "1".to_owned()))
        .to_vec()
}

/// Hydra, if it is installed.
pub fn hydra_itself() -> Option<Installed> {
    let mpiexec = first_of(&["mpiexec.hydra", "mpiexec.mpich", "mpiexec"], "--version", "HYDRA")?;
    Some(Installed { command: vec![mpiexec], env: Vec::new(), folder: Folder::new() })
}

/// Open MPI's mpirun, if it is installed.
pub fn open_mpi_itself() -> Option<Installed> {
    let names = ["mpirun.openmpi", "mpirun"];
    let mpirun =
        first_of(&names, "--version", "Open MPI").or_else(|| first_of(&names, "--version", "OpenRTE"))?;
    let command = [&mpirun, "--oversubscribe", "--bind-to", "none"].map(str::to_owned).to_vec();
    Some(Installed { command, env: env_of_open_mpi(), folder: Folder::new() })
}

#[test]
fn hydra() {
    let Some(hydra) = hydra_itself() else {
        return skipped("jobs under MPICH's Hydra", "mpiexec.hydra is not installed");
    };
    hydra.serves();
    hydra.serves_mpi(mpicc_of_mpich());
}

/// Hydra has a daemon for each name of a machine, and so the tasks of one machine may have been
/// started by different processes.
#[test]
fn hydra_with_several_daemons_on_one_machine() {
    let Some(Installed { command, folder, .. }) = hydra_itself() else {
        return skipped("a machine that Hydra knows by two names", "mpiexec.hydra is not installed");
    };
    let words = |hosts: &str| ["-launcher", "fork", "-hosts", hosts].map(str::to_owned);
    let env = vec![("LAPI_INIT_TIMEOUT".to_owned(), "60".to_owned())];
    let mut hydra = Installed { command: Vec::new(), env, folder };
    for (tasks, hosts) in [(2, "localhost,127.0.0.1"), (3, "localhost,127.0.0.1,localhost")] {
        hydra.command = [&command[..], &words(hosts)].concat();
        numbered(&hydra.run(tasks, &program("launchers/apart"), "3 named"), tasks, "named");
    }
}

#[test]
fn open_mpi() {
    let Some(mpirun) = open_mpi_itself() else {
        return skipped("jobs under Open MPI's mpirun", "it is not installed");
    };
    mpirun.serves();
    mpirun.serves_mpi(mpicc_of_open_mpi());
}
