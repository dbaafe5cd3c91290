//! The exchange at start-up under the launchers themselves. The tasks are
//! `tests/src/bin/exchange.rs`: each publishes 4 KiB and reads those of all.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use openlapi_tests::{Job, Outcome};

use super::Folder;
use super::installed::{Installed, hydra_itself, open_mpi_itself};
use super::slurm;
use openlapi_tests::{Cluster, compile_plain, skipped};

const TASK: &str = env!("CARGO_BIN_EXE_exchange");
const MPICH: &str = "libmpich.so.12";
const OPEN_MPI: &str = "libmpi.so.40";
const SECRET: &str = "00112233445566778899aabbccddeeff";

/// A launcher with what is different under it.
struct Under<'a> {
    launcher: &'a Installed,
    /// What carries the values.
    name: &'a str,
    /// The variable with the rank of a task.
    rank: &'a str,
    /// Of the tasks.
    folder: Folder,
}

impl<'a> Under<'a> {
    fn new(launcher: &'a Installed, name: &'a str, rank: &'a str) -> Self {
        Self { launcher, name, rank, folder: Folder::new() }
    }

    fn steps(&self, tasks: usize, steps: &str) -> Outcome {
        self.launcher.run(tasks, Path::new(TASK), steps)
    }

    /// Runs a script in each task: `RANK` is its rank, `TASK` the program.
    fn script(&self, tasks: usize, text: &str) -> Outcome {
        let script = self.folder.0.join("script");
        let text = format!("#!/bin/sh\nRANK=${}\nTASK='{TASK}'\n{text}\n", self.rank);
        fs::write(&script, text).expect("a script can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script may be executable");
        self.launcher.run(tasks, &script, "")
    }

    /// Fails unless each task has printed each of these lines; `NAME` is what carries the values. A
    /// line that ends with `secret` goes on with the same secret in all tasks, which is returned
    /// with the others, in the order of the lines.
    #[track_caller]
    fn all(&self, outcome: &Outcome, tasks: usize, lines: &[&str]) -> Vec<String> {
        outcome.ok();
        let mut secrets = Vec::new();
        for line in lines {
            let line = line.replace("NAME", self.name).replace("HERE", &format!("{tasks} here"));
            let mut found = HashSet::new();
            for task in 0..tasks {
                let start = format!("task {task} of {tasks}: {line}");
                let own: Vec<&str> =
                    outcome.stdout.lines().filter_map(|text| text.strip_prefix(&start)).collect();
                assert_eq!(own.len(), 1, "\"{start}\" stands there once\n{outcome}");
                found.insert(own[0].trim().to_owned());
            }
            assert_eq!(found.len(), 1, "the same in all tasks: {line} {found:?}\n{outcome}");
            secrets.extend(found.into_iter().filter(|secret| secret.len() == 32));
        }
        secrets
    }

    /// What stands before a task's program so that its exchange comes in parts. The sockets of PMIx
    /// are its own, and PMIx_Init does not return then.
    fn in_parts(&self) -> Option<String> {
        match self.name {
            // The task makes its system calls itself: a library that is loaded before sees
            // none of them, and what lies between the two cuts.
            "PMI-1" => {
                let relay = compile_plain("launchers_relay", &["tests/field/relay.c"], &[]);
                Some(format!("'{}'", relay.display()))
            }
            // Sockets of the standard library, which calls the C library.
            "Slurm" => {
                let flags = ["-shared", "-fPIC", "-ldl"];
                let short = compile_plain("launchers_short.so", &["tests/field/short.c"], &flags);
                Some(format!("LD_PRELOAD='{}'", short.display()))
            }
            _ => None,
        }
    }

    /// Several exchanges, one after the other and at a time, children, and tasks that end at
    /// different times.
    fn serves(&self, children: &str) {
        for tasks in [2, 4] {
            let outcome = self.steps(tasks, &format!("round round two {children} round"));
            let lines = ["NAME 1, HERE, secret", "NAME 2, HERE, secret", "two", "NAME 3, HERE, secret"];
            let secrets = self.all(&outcome, tasks, &lines);
            let different: HashSet<_> = secrets.iter().collect();
            assert_eq!((secrets.len(), different.len()), (3, 3), "a secret for each opening\n{outcome}");
        }
        // The launcher calls no end of a task abnormal that has ended by exit(3), while
        // others continue.
        let outcome = self.script(2, "\"$TASK\" round || exit\ntest $RANK = 0 || sleep 1\necho later");
        self.all(&outcome, 2, &["NAME 1, HERE, secret"]);
        assert_eq!(outcome.stdout.matches("later").count(), 2, "{outcome}");
        if let Some(around) = self.in_parts() {
            // What it writes is gathered: launchers would mix the pieces of lines.
            let script = format!("out=$({around} \"$TASK\" round round) && echo \"$out\"");
            let outcome = self.script(3, &script);
            self.all(&outcome, 3, &["NAME 1, HERE, secret", "NAME 2, HERE, secret"]);
        }
        // Tasks that their launcher has numbered, and that number themselves again.
        let outcome = self.script(3, "MP_CHILD=$((2 - RANK)) MP_PROCS=3 exec \"$TASK\" round round");
        self.all(&outcome, 3, &["NAME 1, HERE, secret", "NAME 2, HERE, secret"]);
    }

    /// Another program of the same tasks.
    fn serves_a_second_program(&self) {
        let script = || self.script(2, "\"$TASK\" round | sed 's/: /: first /' && \"$TASK\" round");
        // Seen with PMIx 4.2 on a busy machine, in one of a hundred jobs: both tasks of the second
        // program are in the fence, and it ends with an error, or never (docs/launchers.md).
        let lost = |outcome: &Outcome| {
            let said = |text| outcome.stderr.contains(text);
            self.name == "PMIx"
                && (said("PMIx_Fence: PARTIAL SUCCESS") || said("PMIx: not all tasks have come"))
        };
        for _ in 0..3 {
            let first = script();
            let outcome = if lost(&first) { script() } else { first };
            let secrets = self.all(&outcome, 2, &["first NAME 1, HERE, secret", "NAME 1, HERE, secret"]);
            assert_ne!(secrets[0], secrets[1], "nothing is left of the first one\n{outcome}");
        }
    }

    /// A secret of the user wins; tasks that disagree fail, as does a fence to which a task
    /// does not come.
    fn refuses(&self, disagreement: &str) {
        // In each job another one follows from it.
        let secrets = [0, 1].map(|_| {
            let outcome = self.script(2, &format!("LAPI_JOB_SECRET={SECRET} exec \"$TASK\" round"));
            self.all(&outcome, 2, &["NAME 1, HERE, secret"])
        });
        assert_eq!((secrets[0].len(), secrets[1].len()), (1, 1));
        assert!(secrets[0] != secrets[1] && !secrets.concat().contains(&SECRET.to_owned()), "{secrets:?}");
        let other = SECRET.replace("77", "78");
        let outcome = self.script(
            2,
            &format!(
                "test $RANK = 0 && export LAPI_JOB_SECRET={SECRET} || export LAPI_JOB_SECRET={other}\n\
                 EXCHANGE_SECONDS=20 exec \"$TASK\" refused"
            ),
        );
        outcome.ok();
        for text in disagreement.split('|') {
            assert!(outcome.stdout.contains(text), "{text}\n{outcome}");
        }
        // A launcher may call it a failure that one of its tasks has not taken part.
        let outcome =
            self.script(2, "test $RANK = 0 || exec sleep 10\nEXCHANGE_SECONDS=3 exec \"$TASK\" refused");
        assert!(!outcome.timed_out, "{outcome}");
        assert!(outcome.stdout.contains("task 0 of 2: refused with 434: "), "{outcome}");
        assert!(outcome.stdout.contains("in time"), "{outcome}");
    }

    /// MPI is initialised before the exchange, or after it, and ends; `last` is what
    /// comes after that.
    fn serves_mpi(&self, library: &str, preload: bool, last: (&str, &str)) {
        let lacks = || {
            let probe = format!("import ctypes; ctypes.CDLL('{library}')");
            Job::direct("python3").arg("-c").arg(probe).run().status != Some(0)
        };
        if lacks() {
            return skipped(&format!("the exchange beside {library}"), "it cannot be opened");
        }
        // As if the program were linked with it.
        let preload = if preload { format!("LD_PRELOAD={library} ") } else { String::new() };
        let first = if preload.is_empty() { self.name } else { "Slurm" };
        let (step, line) = last;
        let outcome =
            self.script(2, &format!("{preload}exec \"$TASK\" round mpi={library} round mpi-ends {step}"));
        self.all(
            &outcome,
            2,
            &[&format!("{first} 1, HERE, secret"), "MPI 2, HERE, secret", "mpi ends", line],
        );
        let outcome = self.script(2, &format!("exec \"$TASK\" mpi={library} round two round mpi-ends"));
        self.all(&outcome, 2, &["MPI 1, HERE, secret", "two", "MPI 2, HERE, secret", "mpi ends"]);
        let outcome = self.script(
            3,
            &format!("MP_CHILD=$((2 - RANK)) MP_PROCS=3 exec \"$TASK\" mpi={library} round mpi-ends"),
        );
        self.all(&outcome, 3, &["MPI 1, HERE, secret", "mpi ends"]);
    }
}

const DIFFER: &str = "task 0 of 2: refused with 510: LAPI_JOB_SECRET: it differs between tasks 0 and 1|\
                      task 1 of 2: refused with 510: LAPI_JOB_SECRET: it differs between tasks 1 and 0";
const FINALIZED: &str = "refused with 404: PMI-1: MPI_Finalize has closed PMI_FD; call LAPI_Init before it";
const CLOSED: &str = "the launcher has closed PMI_FD before init";

#[test]
fn under_poe() {
    let outcome = Job::new(TASK).procs(3).arg("round").arg("round").arg("round").run();
    outcome.ok();
    for round in ["poe 1, 3 here", "poe 2, 3 here", "poe 3, 3 here"] {
        assert_eq!(outcome.stdout.matches(round).count(), 3, "{outcome}");
    }
}

#[test]
fn under_hydra() {
    let Some(hydra) = hydra_itself() else {
        return skipped("the exchange under MPICH's Hydra", "mpiexec.hydra is not installed");
    };
    let under = Under::new(&hydra, "PMI-1", "PMI_RANK");
    under.serves("fork child");
    under.refuses(DIFFER);
    under.serves_mpi(MPICH, false, ("refused", FINALIZED));

    let outcome = under.script(2, "\"$TASK\" round && exec \"$TASK\" refused");
    outcome.ok();
    assert_eq!(outcome.stdout.matches(CLOSED).count(), 2, "{outcome}");
    for (value, why) in
        [("99", "PMI_FD is 99, which is not an open socket"), ("x", "PMI_FD is x, which is no descriptor")]
    {
        let outcome = under.script(2, &format!("PMI_FD={value} exec \"$TASK\" refused"));
        outcome.ok();
        assert_eq!(outcome.stdout.matches(why).count(), 2, "{outcome}");
    }
    // A task that ends without the handlers of exit(3), as by _exit, has not said "finalize": Hydra
    // ends the others. They say to files what they have to say: Hydra may lose lines then.
    let outcome = under.script(
        2,
        "test $RANK = 0 && exec \"$TASK\" round abort >$0.0\n\"$TASK\" round; sleep 20; echo survived >$0.1",
    );
    let said = |task: usize| fs::read_to_string(under.folder.0.join(format!("script.{task}")));
    assert!(!outcome.timed_out && said(0).is_ok_and(|text| text.contains("aborts")), "{outcome}");
    assert!(said(1).is_err(), "task 1 survived\n{outcome}");
}

#[test]
fn under_open_mpi() {
    let Some(mpirun) = open_mpi_itself() else {
        return skipped("the exchange under Open MPI's mpirun", "it is not installed");
    };
    let under = Under::new(&mpirun, "PMIx", "OMPI_COMM_WORLD_RANK");
    under.serves("fork child");
    under.serves_a_second_program();
    under.refuses(DIFFER);
    under.serves_mpi(OPEN_MPI, false, ("round", "PMIx 3, HERE, secret"));
}

#[test]
fn under_slurm() {
    let cluster = match Cluster::start(vec![slurm::this_machine()]) {
        Ok(cluster) => cluster,
        Err(why) => return skipped("the exchange under Slurm", &why),
    };
    let home = Folder::new();
    let srun = |way: &str| {
        let mut srun = slurm::srun(&cluster, way);
        srun.env.push(("HOME".to_owned(), home.text()));
        srun
    };
    let none = srun("none");
    let under = Under::new(&none, "Slurm", "SLURM_PROCID");
    under.serves("child");
    under.serves_a_second_program();
    let node = slurm::this_machine().name;
    under.refuses(&format!(
        "task 1 of 2: refused with 404: Slurm: task 0 on {node} has another secret (LAPI_JOB_SECRET)|\
         task 0 of 2: refused with 434: Slurm: only 1 of 2 tasks have come in time; one had another secret"
    ));
    let names: Vec<_> =
        fs::read_dir(&home.0).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert_eq!(names, [".openlapi"], "the tasks have made the user's key file");

    for way in ["pmi2", "pmix"] {
        if !cluster.knows(way) {
            skipped(&format!("the exchange under srun --mpi={way}"), "this Slurm does not have it");
            continue;
        }
        let srun = srun(way);
        if way == "pmix" {
            let under = Under::new(&srun, "PMIx", "SLURM_PROCID");
            under.serves("fork child");
            under.serves_a_second_program();
            under.refuses(DIFFER);
            under.serves_mpi(OPEN_MPI, false, ("round", "PMIx 3, HERE, secret"));
        } else {
            let under = Under::new(&srun, "PMI-1", "SLURM_PROCID");
            under.serves("fork child");
            under.refuses(DIFFER);
            // Slurm lets one library of a task say "init", and MPI's must be that one.
            under.serves_mpi(MPICH, true, ("round", "Slurm 3, HERE, secret"));
            let outcome = under.script(2, "\"$TASK\" round && exec \"$TASK\" refused");
            outcome.ok();
            assert_eq!(outcome.stdout.matches(CLOSED).count(), 2, "{outcome}");
        }
    }
    cluster.stop();
}
