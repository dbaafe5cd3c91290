//! Jobs that other launchers than poe start: where the tasks find their number, the number of tasks
//! and the job's key.
//!
//! What is tested here runs everywhere: a shell starts the tasks with the variables of each
//! launcher. The launchers themselves are tested in [`installed`] and [`slurm`], where they are
//! installed; so is the exchange at start-up, in [`exchange`].

#[path = "launchers/exchange.rs"]
mod exchange;
#[path = "launchers/installed.rs"]
mod installed;
mod ltest;
#[path = "launchers/slurm.rs"]
mod slurm;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ltest::{passed, program, run};
use openlapi_tests::{Job, Marked, Outcome};

/// A launcher's variables: `@` means the task, `#` for the number of tasks, `%` for the job's key.
#[derive(Clone, Copy, Debug)]
struct Launcher {
    vars: &'static str,
    /// Whether they hold a key. Otherwise the process that starts the tasks is what they
    /// have in common.
    is_keyed: bool,
}

const BY_HAND: Launcher = Launcher { vars: "MP_CHILD=@ MP_PROCS=#", is_keyed: false };
const HYDRA: Launcher =
    Launcher { vars: "PMI_RANK=@ PMI_SIZE=# MPI_LOCALNRANKS=# MPI_LOCALRANKID=@ PMI_FD=99", is_keyed: false };
const SRUN: Launcher = Launcher {
    vars: "SLURM_JOB_ID=% SLURM_STEP_ID=0 SLURM_PROCID=@ SLURM_NTASKS=# SLURM_STEP_NUM_TASKS=# SLURM_NODEID=0 \
           SLURM_STEP_TASKS_PER_NODE=#",
    is_keyed: true,
};
const LAUNCHERS: [Launcher; 8] = [
    BY_HAND,
    Launcher { vars: "MP_CHILD=@ MP_PROCS=# MP_PARTITION=%", is_keyed: true },
    Launcher {
        vars: "OMPI_COMM_WORLD_RANK=@ OMPI_COMM_WORLD_SIZE=# OMPI_COMM_WORLD_LOCAL_SIZE=# PMIX_RANK=@ \
               PMIX_NAMESPACE=%",
        is_keyed: true,
    },
    HYDRA,
    Launcher {
        vars: "PMI_RANK=@ PMI_SIZE=# PMI_JOBID=%.0 SLURM_JOB_ID=% SLURM_STEP_ID=0 SLURM_PROCID=@ SLURM_NTASKS=#",
        is_keyed: true,
    },
    Launcher {
        vars: "PMIX_RANK=@ PMIX_NAMESPACE=slurm.pmix.%.0 SLURM_JOB_ID=% SLURM_STEP_ID=0 SLURM_PROCID=@ \
               SLURM_NTASKS=#",
        is_keyed: true,
    },
    Launcher { vars: "PMIX_RANK=@ PMI_SIZE=# PMIX_NAMESPACE=%", is_keyed: true },
    SRUN,
];

/// A number that nothing else on this machine uses as a key.
fn key() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Removes the variables that launchers have set for the tests themselves.
fn bare(job: Job) -> Job {
    job.without_launchers()
}

/// A shell that starts tasks in the background, waits for them, and fails when one of them fails.
struct Shell(String);

impl Shell {
    fn new() -> Self {
        Self("pids=\n".to_owned())
    }

    /// Adds the tasks of one job; `command` is read by the shell.
    fn start(mut self, launcher: Launcher, tasks: usize, key: &str, command: &str) -> Self {
        for task in 0..tasks {
            let vars = launcher.vars.replace('@', &task.to_string());
            let vars = vars.replace('#', &tasks.to_string()).replace('%', key);
            writeln!(self.0, "env {vars} {command} & pids=\"$pids $!\"").expect("a string takes everything");
        }
        self
    }

    fn job(self) -> Job {
        let text = self.0 + "failed=0\nfor pid in $pids; do wait $pid || failed=$?; done\nexit $failed\n";
        bare(Job::direct("sh").arg("-c").arg(text)).env("LAPI_INIT_TIMEOUT", "30")
    }

    /// Runs the job to its end. None of its processes may be left.
    fn run(self) -> Outcome {
        Marked::start(self.job()).over()
    }
}

/// The command that runs a program of `tests/c/launchers`.
fn command(name: &str, args: &str) -> String {
    format!("'{}' {args}", program(&format!("launchers/{name}")).display())
}

/// Fails unless all tasks of a job have passed and each number was given once.
#[track_caller]
fn numbered(outcome: &Outcome, tasks: usize, job: &str) {
    outcome.ok();
    for task in 0..tasks {
        let line = format!("task {task} of {tasks} in job {job}");
        let found = outcome.stdout.lines().filter(|text| *text == line).count();
        assert_eq!(found, 1, "\"{line}\" stands there once\n{outcome}");
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lapi-launch-{}", key()));
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    fn text(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn poe() {
    run("launchers/apart", 2, "5 poe");
}

#[test]
fn the_variables_of_each_launcher() {
    for launcher in LAUNCHERS {
        for tasks in [1, 2, 4] {
            let outcome = Shell::new().start(launcher, tasks, &key(), &command("apart", "3 one")).run();
            numbered(&outcome, tasks, "one");
        }
    }
}

/// The process number is all that some launchers' tasks have in common: scripts around them
/// must not hide it.
#[test]
fn a_script_that_starts_programs_one_after_another() {
    for launcher in LAUNCHERS {
        let (first, second) = (command("apart", "2 first"), command("apart", "2 second"));
        let script = format!("sh -c \"{first} && {second}; failed=\\$?; exit \\$failed\"");
        let outcome = Shell::new().start(launcher, 3, &key(), &script).run();
        numbered(&outcome, 3, "first");
        numbered(&outcome, 3, "second");
    }
}

/// Two jobs whose tasks one shell starts.
#[test]
fn jobs_at_the_same_time_by_key() {
    for launcher in LAUNCHERS.into_iter().filter(|launcher| launcher.is_keyed) {
        let folder = Folder::new();
        let [left, right] = [("left", "right"), ("right", "left")]
            .map(|(own, other)| command("apart", &format!("20 {own} '{}' {other}", folder.text())));
        let shell = Shell::new().start(launcher, 2, &key(), &left).start(launcher, 2, &key(), &right);
        let outcome = shell.run();
        numbered(&outcome, 2, "left");
        numbered(&outcome, 2, "right");
    }
}

/// Two jobs, each with a shell of its own, inside a task of another launcher: in a Slurm step whose
/// number of tasks is the same or another one, or started by mpirun.
#[test]
fn jobs_at_the_same_time_inside_of_another() {
    for (launcher, around) in [
        (HYDRA, "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=% SLURM_STEP_ID=0"),
        (HYDRA, "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_JOB_ID=% SLURM_STEP_ID=0"),
        (HYDRA, "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_JOB_ID=%"),
        (
            HYDRA,
            "PMI_RANK=0 PMI_SIZE=1 PMI_JOBID=%.0 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=% SLURM_STEP_ID=0",
        ),
        (
            HYDRA,
            "PMI_RANK=0 PMI_SIZE=3 PMI_JOBID=%.0 SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_JOB_ID=% SLURM_STEP_ID=0",
        ),
        (HYDRA, "PMIX_RANK=0 PMIX_NAMESPACE=% SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=% SLURM_STEP_ID=0"),
        (BY_HAND, "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=% SLURM_STEP_ID=0"),
        (BY_HAND, "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 PMIX_NAMESPACE=%"),
        (SRUN, "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_JOB_ID=% SLURM_STEP_ID=0"),
    ] {
        let folder = Folder::new();
        let around = around.replace('%', &key());
        let mut jobs = [("left", "right"), ("right", "left")].map(|(own, other)| {
            let command = command("apart", &format!("20 {own} '{}' {other}", folder.text()));
            let job = Shell::new().start(launcher, 3, &key(), &command).job();
            let around = around.split(' ').filter_map(|var| var.split_once('='));
            Marked::start(around.fold(job, |job, (name, value)| job.env(name, value)))
        });
        let [left, right] = jobs.each_mut().map(Marked::over);
        numbered(&left, 3, "left");
        numbered(&right, 3, "right");
    }
}

/// Tasks that their launcher has numbered, and that number themselves again: from the
/// last to the first.
#[test]
fn tasks_that_number_themselves() {
    for (launcher, rank) in
        [(HYDRA, "PMI_RANK"), (SRUN, "SLURM_PROCID"), (LAUNCHERS[2], "OMPI_COMM_WORLD_RANK")]
    {
        let renumber = format!("MP_CHILD=\\$((2 - {rank})) MP_PROCS=3");
        let script =
            format!("sh -c \"{renumber} {}; failed=\\$?; exit \\$failed\"", command("apart", "3 turned"));
        let outcome = Shell::new().start(launcher, 3, &key(), &script).run();
        numbered(&outcome, 3, "turned");
    }
}

#[test]
fn no_task_of_a_job() {
    for vars in ["", "SLURM_JOB_ID=% SLURM_PROCID=0 SLURM_NTASKS=4", "PMI_SIZE=4", "OMPI_COMM_WORLD_SIZE=4"] {
        let alone = Launcher { vars, is_keyed: false };
        let outcome = Shell::new().start(alone, 1, &key(), &command("apart", "2 alone")).run();
        numbered(&outcome, 1, "alone");
    }
}

#[test]
fn a_rank_without_a_size_is_refused() {
    let init = format!("'{}' code 510", program("init/init").display());
    for rank in ["MP_CHILD", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"] {
        let outcome =
            bare(Job::direct("sh")).arg("-c").arg(&init).env(rank, "0").env("MP_INFOLEVEL", "1").run();
        passed(&outcome, 1);
        outcome.says(rank);
    }
}

/// An MPI library that finds no launcher sets PMIx's variables in its own process.
#[test]
fn what_an_mpi_library_says_of_itself() {
    let outcome = bare(Job::direct(program("launchers/singleton"))).arg("1").run();
    passed(&outcome, 1);
    run("launchers/singleton", 2, "2");
    for launcher in [BY_HAND, HYDRA, SRUN] {
        passed(&Shell::new().start(launcher, 2, &key(), &command("singleton", "2")).run(), 2);
    }
}
