//! The exchange of tasks that poe has started on one machine: each writes its value into the file that they share
//! ([`crate::job::board`]), and reads those of the others there.

use super::{Exchange, Turn, failed, late, unpublished};
use crate::error::Result;
use crate::job::board::Board;
use crate::job::ended;
use crate::wire::frame::Task;
use std::time::{Duration, Instant};

/// The pause after a look at values that are not there yet, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(10));

/// The file, for one opening of an instance.
pub(super) struct Poe {
    board: Board,
    me: Task,
    tasks: u32,
    turn: Turn,
}

impl Poe {
    pub(super) fn new(board: Board, me: Task, tasks: u32, turn: Turn) -> Self {
        Self { board, me, tasks, turn }
    }

    fn value(&self, task: Task) -> Option<Vec<u8>> {
        self.board.card(task, self.turn.instance, self.turn.opening)
    }
}

impl Exchange for Poe {
    fn name(&self) -> &'static str {
        "poe"
    }

    /// There is one value of each task; its key is not written.
    fn publish(&mut self, _key: &str, value: &[u8]) -> Result<()> {
        match self.board.publish(self.me, self.turn.instance, self.turn.opening, value) {
            true => Ok(()),
            false => Err(failed(format!("poe: no room for {} bytes in LAPI_JOB_FD's file", value.len()))),
        }
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        let (mut missing, mut pause) = (0, PAUSE.0);
        loop {
            while missing < self.tasks && self.value(missing).is_some() {
                missing += 1;
            }
            if missing == self.tasks {
                return Ok(());
            }
            if let Some(end) = ended::of(missing).filter(|end| end.was_never_ready()) {
                return Err(late(format!("task {missing} {end}")));
            }
            if Instant::now() >= deadline {
                return Err(late(format!("task {missing} has not called LAPI_Init in time")));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn lookup(&mut self, task: Task, key: &str) -> Result<Vec<u8>> {
        self.value(task).ok_or_else(|| unpublished("poe", task, key))
    }
}
