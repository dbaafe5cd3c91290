//! The first cause of a job's failure: its status is the job's, and its text the last line
//! that the user sees. When a task fails, others fail because of it, and their messages and
//! statuses hide it.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use openlapi::wire::launcher::Stage;

use super::error::say;

/// What LAPI has said last in a task of an error, other than of the loss of another task if there
/// is such a one; without the beginning that names the task.
pub(super) type Errors = BTreeMap<usize, String>;

/// How every error of LAPI is named, and the number of that which blames another task: it has
/// ended, or cannot be reached.
const AN_ERROR: &str = "LAPI_ERR_";
const OF_ANOTHER: &str = "(434)";

/// Takes in a line that a task has written to standard error.
pub(super) fn note(errors: &mut Errors, task: usize, line: &[u8]) {
    let Some(rest) = line.strip_prefix(b"LAPI: ") else { return };
    let rest = String::from_utf8_lossy(rest);
    let rest = rest.trim_end();
    let rest = rest.strip_prefix(&format!("task {task}: ")).unwrap_or(rest);
    if !rest.contains(AN_ERROR) || rest.contains(OF_ANOTHER) && errors.contains_key(&task) {
        return;
    }
    errors.insert(task, rest.to_owned());
}

/// The tasks that have failed, or whose ends may have made others fail, in the order in which
/// that was seen.
#[derive(Default)]
pub(super) struct Causes {
    ended: Vec<Failure>,
}

struct Failure {
    task: usize,
    /// The task, and how it has ended.
    text: String,
    status: u8,
    effect: Effect,
}

/// What the end of a task may do to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The task was ended by a signal or a status that ends the job, or has left without LAPI_Term:
    /// others fail because of that.
    TakesOthers,
    /// No task had used LAPI, as far as was known: those that do so later may fail because of it.
    BeforeLapi,
    /// None.
    Alone,
}

impl Effect {
    /// The effect of the end of a task with this status, and this state of its use of LAPI; `None`:
    /// no task of the job has used LAPI, as far as is known. `elsewhere`: the tasks run on other
    /// machines, where nothing is known of one that has left nothing open.
    pub(super) fn of(status: u8, stage: Option<Stage>, elsewhere: bool) -> Self {
        match stage {
            _ if status >= 128 => Self::TakesOthers,
            Some(Stage::Left) => Self::Alone,
            Some(_) => Self::TakesOthers,
            None if elsewhere && status == 0 => Self::Alone,
            None => Self::BeforeLapi,
        }
    }
}

impl Causes {
    /// A task has ended.
    pub(super) fn add(&mut self, task: usize, text: String, status: u8, effect: Effect) {
        self.ended.push(Failure { task, text, status, effect });
    }

    /// The status of the job: of the first cause if a task has failed in a way that makes others
    /// fail; else the highest.
    pub(super) fn status(&self, errors: &Errors) -> u8 {
        let highest = self.ended.iter().map(|failure| failure.status).max().unwrap_or_default();
        self.first(errors).map(|cause| cause.status).filter(|status| *status != 0).unwrap_or(highest)
    }

    /// The status of a job whose output was lost, for which tasks were ended by SIGPIPE; 0: no task
    /// has failed otherwise.
    pub(super) fn status_after_loss(&mut self) -> u8 {
        self.ended.retain(|failure| failure.status != 128 + Signal::SIGPIPE as u8);
        self.status(&Errors::new())
    }

    /// Says the first cause, unless it was all that has been said.
    pub(super) fn say_first(&self, errors: &Errors) {
        let Some(cause) = self.first(errors).filter(|_| self.status(errors) != 0) else { return };
        let error = errors.get(&cause.task);
        let is_alone = self.ended.iter().all(|other| other.task == cause.task || other.status == 0);
        if !is_alone || error.is_some() {
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            say(&format!("first cause: {}{error}", cause.text));
        }
    }

    /// The first one that blames no other task. (On several machines the end of the one that is
    /// blamed may be seen later.)
    fn first(&self, errors: &Errors) -> Option<&Failure> {
        let blames = |task| errors.get(&task).is_some_and(|error| error.contains(OF_ANOTHER));
        let of = |effect| self.ended.iter().filter(move |failure| failure.effect == effect);
        let first = of(Effect::TakesOthers).next()?;
        let blameless = of(Effect::TakesOthers).find(|failure| !blames(failure.task));
        Some(blameless.or_else(|| of(Effect::BeforeLapi).next()).unwrap_or(first))
    }
}

#[cfg(test)]
mod tests {
    use super::Effect::{Alone, BeforeLapi, TakesOthers};
    use super::*;

    fn causes(ended: &[(usize, u8, Effect)]) -> Causes {
        let mut causes = Causes::default();
        for (task, status, effect) in ended {
            causes.add(*task, format!("task {task}"), *status, *effect);
        }
        causes
    }

    fn errors(lines: &[(usize, &str)]) -> Errors {
        let mut errors = Errors::new();
        for (task, line) in lines {
            note(&mut errors, *task, line.as_bytes());
        }
        errors
    }

    #[test]
    fn what_is_remembered_of_a_task() {
        let lines = [
            (1, "LAPI: task 1: LAPI_Gfence: LAPI_ERR_UNKNOWN (400): LAPI_Gfence of task 1 met LAPI_Term\n"),
            (1, "LAPI: task 1: LAPI_Put: LAPI_ERR_NO_CONNECTIVITY (434): task 2 has ended\n"),
            (1, "LAPI: task 1: signal 6 (SIGABRT)\n"),
            (2, "LAPI_ERR_UNKNOWN (400) of my own\n"),
        ];
        let found = errors(&lines);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&1], "LAPI_Gfence: LAPI_ERR_UNKNOWN (400): LAPI_Gfence of task 1 met LAPI_Term");
    }

    #[test]
    fn a_good_end_on_another_machine_is_no_cause() {
        for (status, stage, elsewhere, effect) in [
            (0, None, true, Alone),
            (0, Some(Stage::Ready), true, TakesOthers),
            (2, None, true, BeforeLapi),
            (0, None, false, BeforeLapi),
            (0, Some(Stage::Left), false, Alone),
            (134, None, true, TakesOthers),
        ] {
            assert_eq!(Effect::of(status, stage, elsewhere), effect, "{status} {stage:?} {elsewhere}");
        }
        // Each of those that have failed blames another.
        let blame = "LAPI: task 1: LAPI_ERR_NO_CONNECTIVITY (434): task 2 cannot be reached\n";
        let failed = causes(&[(0, 0, Effect::of(0, None, true)), (1, 134, TakesOthers)]);
        assert_eq!(failed.first(&errors(&[(1, blame)])).map(|cause| cause.task), Some(1));
    }

    #[test]
    fn the_status_is_that_of_the_first_cause_or_the_highest() {
        let blame = "LAPI: task 1: LAPI_ERR_NO_CONNECTIVITY (434): task 3 has ended\n";
        let none = Errors::new();
        for (failed, errors, status) in [
            (&[][..], &none, 0),
            (&[(0, 1, Alone), (1, 3, Alone), (2, 2, Alone)], &none, 3),
            (&[(3, 3, TakesOthers), (1, 134, TakesOthers)], &none, 3),
            (&[(0, 7, Alone), (1, 139, TakesOthers)], &none, 139),
            // Left with status 0, and without LAPI_Term.
            (&[(3, 0, TakesOthers), (1, 134, TakesOthers)], &none, 134),
            // Seen in another order.
            (&[(1, 134, TakesOthers), (3, 3, TakesOthers)], &errors(&[(1, blame)]), 3),
            (&[(1, 134, TakesOthers)], &errors(&[(1, blame)]), 134),
            // It had ended before the others called LAPI_Init, or has nothing to do with it.
            (&[(3, 2, BeforeLapi), (1, 134, TakesOthers)], &errors(&[(1, blame)]), 2),
            (&[(3, 2, BeforeLapi), (1, 139, TakesOthers)], &none, 139),
        ] {
            assert_eq!(causes(failed).status(errors), status, "{failed:?}");
        }
    }
}
