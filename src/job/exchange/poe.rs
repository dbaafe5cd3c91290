//! The exchange of tasks that poe has started: each writes its values into the file that poe's
//! tasks share ([`crate::job::board`]), and reads those of the others there. On several machines
//! poe copies them from file to file.

use super::{Exchange, Turn, failed, late, unpublished};
use crate::error::Result;
use crate::job::board::Board;
use crate::job::ended::Ends;
use crate::wire::board::Word;
use crate::wire::exchange::{Values, decode_values, encode_values};
use crate::wire::frame::Task;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause after a look at values that are not there yet, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(10));

/// The file, for one opening of an instance.
pub(super) struct Poe {
    board: Board,
    me: Task,
    tasks: u32,
    turn: Turn,
    ends: Arc<Ends>,
    own: Values,
    /// What the others had published when the last fence was complete.
    seen: BTreeMap<Task, Values>,
    /// How many fences this task has entered. Each adds a value, so that what was written before
    /// stays as it is.
    fences: u32,
}

impl Poe {
    pub(super) fn new(board: Board, me: Task, tasks: u32, turn: Turn, ends: Arc<Ends>) -> Self {
        Self { board, me, tasks, turn, ends, own: Values::new(), seen: BTreeMap::new(), fences: 0 }
    }

    fn values(&self, task: Task) -> Option<Values> {
        decode_values(&self.board.card(task, self.turn.instance, self.turn.opening)?)
    }
}

impl Exchange for Poe {
    fn name(&self) -> &'static str {
        "poe"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.own.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        self.fences += 1;
        let mark = format!("fence {}", self.fences);
        self.publish(&mark, b"")?;
        let has_come = |values: &Values| values.contains_key(&mark);
        let own = encode_values(&self.own);
        if !self.board.publish(self.me, self.turn.instance, self.turn.opening, &own) {
            return Err(failed(format!("poe: no room for {} bytes in LAPI_JOB_FD's file", own.len())));
        }
        let (mut missing, mut pause) = (0, PAUSE.0);
        loop {
            while missing < self.tasks
                && let Some(values) = self.values(missing).filter(|values| has_come(values))
            {
                self.seen.insert(missing, values);
                missing += 1;
            }
            if missing == self.tasks {
                // One that was there may have given up since, and published again or not yet.
                let there = |task| self.board.card(task, self.turn.instance, self.turn.opening).is_some();
                match (0..self.tasks).find(|&task| !there(task)) {
                    None => return Ok(()),
                    Some(task) => missing = task,
                }
                continue;
            }
            if let Some(end) = self.ends.of(missing).filter(|end| end.was_never_ready()) {
                return Err(late(format!("task {missing} {end}")));
            }
            if self.board.read(Word::Ended, missing) == Some(1)
                && !self.values(missing).is_some_and(|values| has_come(&values))
            {
                return Err(late(format!("task {missing} has ended before or in LAPI_Init")));
            }
            if Instant::now() >= deadline {
                return Err(late(format!("task {missing} has not called LAPI_Init in time")));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn lookup(&mut self, task: Task, key: &str) -> Result<Vec<u8>> {
        // A task that has ended this opening may have published for the next one.
        let values = self.values(task).or_else(|| self.seen.get(&task).cloned());
        let found = values.and_then(|mut values| values.remove(key));
        found.ok_or_else(|| unpublished("poe", task, key))
    }

    fn follows(&self) -> bool {
        true
    }

    fn has_died(&self, task: Task) -> bool {
        let Turn { instance, opening } = self.turn;
        self.board.read(Word::Ended, task) == Some(1)
            && self.board.read(Word::Closed(instance), task).is_some_and(|closed| closed < opening)
    }
}

#[cfg(test)]
#[path = "poe_tests.rs"]
mod tests;
