//! Partings for a checkpoint: which tasks want to part from this one, and how far this one is with
//! its own.

use crate::transport::Task;
use std::collections::BTreeMap;

/// How far this task is with its own parting from all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The task does not want to part.
    #[default]
    None,
    /// The task waits for what is under way.
    Waiting,
    /// The task has asked the others to send nothing more. No handler of the program runs here
    /// from now on.
    Asking,
    /// All have granted that, and part.
    Parting,
    /// The task has parted from all of them.
    Parted,
}

/// What another task has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing yet.
    Awaited,
    /// The other task sends nothing more.
    Granted,
    /// Not now.
    Refused,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Partings {
    /// The other tasks that want to part, and whether a call has paused for that since they asked.
    wanted: BTreeMap<Task, bool>,
    stage: Stage,
    /// The tasks that were asked in this stage.
    answers: BTreeMap<Task, Answer>,
    /// The tasks from which this one has parted.
    parted: Vec<Task>,
}

impl Partings {
    /// Another task asks to part.
    pub fn want(&mut self, peer: Task) {
        self.wanted.insert(peer, false);
    }

    /// The tasks that want to part.
    pub fn wanted(&self) -> Vec<Task> {
        self.wanted.keys().copied().collect()
    }

    /// Whether another task wants to part.
    pub fn is_any_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Whether this task wants to part.
    pub fn is_wanted(&self, peer: Task) -> bool {
        self.wanted.contains_key(&peer)
    }

    /// Whether a call is to pause before it sends to the peer: once for each time that it asks.
    pub fn pauses_for(&self, peer: Task) -> bool {
        self.wanted.get(&peer) == Some(&false)
    }

    /// A call has paused for the peer, which has not parted.
    pub fn has_paused(&mut self, peer: Task) {
        self.wanted.entry(peer).and_modify(|paused| *paused = true);
    }

    /// The task has parted, or is given up.
    pub fn forget(&mut self, peer: Task) {
        self.wanted.remove(&peer);
        self.answers.remove(&peer);
    }

    /// How far this task is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Begins a stage, in which no task was asked yet.
    pub fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.answers.clear();
    }

    /// The messages of others are kept for now, and their handlers run later.
    #[inline]
    pub fn keep_messages(&self) -> bool {
        matches!(self.stage, Stage::Asking | Stage::Parting)
    }

    /// Whether this task refuses to part from the peer because it is about to part itself. Of two
    /// tasks that ask each other at the same time the lower one parts first.
    pub fn refuses(&self, me: Task, peer: Task) -> bool {
        match self.stage {
            Stage::None | Stage::Waiting | Stage::Parted => false,
            Stage::Asking => me < peer,
            Stage::Parting => true,
        }
    }

    /// The peer was asked.
    pub fn ask(&mut self, peer: Task) {
        self.answers.insert(peer, Answer::Awaited);
    }

    /// The peer has answered. An answer that was not awaited does not count.
    pub fn answer(&mut self, peer: Task, granted: bool) {
        if let Some(answer) = self.answers.get_mut(&peer) {
            *answer = if granted { Answer::Granted } else { Answer::Refused };
        }
    }

    /// Whether the peer was asked in this stage, and has not gone.
    pub fn was_asked(&self, peer: Task) -> bool {
        self.answers.contains_key(&peer)
    }

    /// The tasks that have yet to answer.
    pub fn awaited(&self) -> impl Iterator<Item = Task> + '_ {
        self.answers.iter().filter(|(_, answer)| **answer == Answer::Awaited).map(|(peer, _)| *peer)
    }

    /// The tasks that have granted it.
    pub fn granted(&self) -> Vec<Task> {
        let granted = self.answers.iter().filter(|(_, answer)| **answer == Answer::Granted);
        granted.map(|(peer, _)| *peer).collect()
    }

    /// Whether all that were asked have granted it; `None`: not all have answered.
    pub fn all_granted(&self) -> Option<bool> {
        let answered = self.awaited().next().is_none();
        answered.then(|| self.answers.values().all(|answer| *answer == Answer::Granted))
    }

    /// This task has parted from the peer.
    pub fn part(&mut self, peer: Task) {
        self.parted.push(peer);
    }

    /// The next task that this one has parted from and that may rejoin.
    pub fn next_parted(&mut self) -> Option<Task> {
        self.parted.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_were_asked_must_answer() {
        let mut partings = Partings::default();
        partings.enter(Stage::Asking);
        assert_eq!(partings.all_granted(), Some(true), "no task was asked");
        partings.ask(1);
        partings.ask(3);
        partings.answer(2, true);
        partings.answer(3, true);
        assert_eq!((partings.all_granted(), partings.was_asked(2)), (None, false));
        partings.answer(1, false);
        assert_eq!((partings.all_granted(), partings.was_asked(1)), (Some(false), true));
        partings.forget(1);
        assert_eq!(partings.all_granted(), Some(true), "one has gone");
        assert_eq!(partings.granted(), [3]);
        partings.enter(Stage::Parting);
        assert!(partings.keep_messages() && !partings.was_asked(3));
    }

    #[test]
    fn the_lower_of_two_tasks_parts_first() {
        let mut partings = Partings::default();
        assert!(!partings.refuses(1, 2) && !partings.refuses(2, 1));
        partings.enter(Stage::Waiting);
        assert!(!partings.refuses(1, 2) && !partings.refuses(2, 1));
        partings.enter(Stage::Asking);
        assert!(partings.refuses(1, 2) && !partings.refuses(2, 1));
        partings.enter(Stage::Parting);
        assert!(partings.refuses(1, 2) && partings.refuses(2, 1), "it does so");
        partings.enter(Stage::Parted);
        assert!(!partings.refuses(1, 2));
    }

    #[test]
    fn a_task_wants_to_part_until_it_has() {
        let mut partings = Partings::default();
        [3, 5, 3].into_iter().for_each(|peer| partings.want(peer));
        partings.forget(3);
        assert!(!partings.is_wanted(3) && partings.is_wanted(5) && partings.is_any_wanted());
        assert_eq!(partings.wanted(), [5]);
        partings.part(5);
        assert_eq!((partings.next_parted(), partings.next_parted()), (Some(5), None));
    }

    #[test]
    fn a_call_pauses_once_for_each_time_that_a_task_asks() {
        let mut partings = Partings::default();
        partings.has_paused(3);
        assert!(!partings.is_wanted(3) && !partings.pauses_for(3), "it has not asked");
        partings.want(3);
        assert!(partings.pauses_for(3));
        partings.has_paused(3);
        assert!(!partings.pauses_for(3) && partings.is_wanted(3));
        partings.want(3);
        assert!(partings.pauses_for(3), "it asks again");
    }
}
