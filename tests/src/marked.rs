//! Jobs whose processes can always be found.

use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::hosts::Launcher;
use crate::job::Job;
use crate::processes::{eventually, named};
use crate::running::{Outcome, Running};

/// A job that is identified by a variable in its environment: its processes may change their
/// parent, their group and their session.
#[derive(Debug)]
pub struct Marked {
    mark: String,
    running: Option<Running>,
}

impl Marked {
    /// Starts a job with a mark of its own.
    pub fn start(job: Job) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("OPENLAPI_TEST={}.{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (name, value) = mark.split_once('=').expect("it is a variable");
        Self { running: Some(job.env(name, value).start()), mark }
    }

    /// The job while it runs.
    pub fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it has not ended")
    }

    /// Waits for the end of the job; then none of its processes may be left.
    #[track_caller]
    pub fn over(&mut self) -> Outcome {
        let running = self.running.take().expect("it ends once");
        let outcome = running.wait();
        assert_eq!(named(&self.mark), [0; 0], "left behind\n{outcome}");
        outcome
    }

    /// Waits for the end of the job; soon after it none of its processes may be left.
    #[track_caller]
    pub fn over_soon(&mut self) -> Outcome {
        let outcome = self.running.take().expect("it ends once").wait();
        self.nothing_is_left();
        outcome
    }

    /// Waits for the end of a job that this launcher has started on several hosts. Open MPI's own
    /// process on another host ends by itself, after its mpirun.
    #[track_caller]
    pub fn over_by(&mut self, launcher: &str) -> Outcome {
        if launcher == Launcher::OpenMpi.name() { self.over_soon() } else { self.over() }
    }

    /// Waits until no process of the job is left, and fails when one remains.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        assert!(eventually(|| named(&self.mark).is_empty()), "left behind: {:?}", named(&self.mark));
    }
}

impl Drop for Marked {
    /// A failing test ends the processes that it has found.
    fn drop(&mut self) {
        for pid in named(&self.mark) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
