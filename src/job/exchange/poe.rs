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
                return Ok(());
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
mod tests {
    use super::*;
    use crate::wire::board::size;
    use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
    use std::os::fd::AsRawFd;

    #[test]
    fn tasks_read_what_the_others_have_published() {
        let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("a memory file");
        ftruncate(&file, size(3)).expect("room");
        let value = format!("{}:{}@9", file.as_raw_fd(), fstat(&file).expect("a file").st_ino);
        let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
        let turn = Turn { instance: 1, opening: 2 };
        let mut tasks: Vec<Poe> = (0..3)
            .map(|me| {
                let board = Board::from_env(&env, "MP_PARTITION 9", 3).expect("the board");
                Poe::new(board, me, 3, turn, Arc::new(Ends::of_none()))
            })
            .collect();
        for task in &mut tasks {
            task.publish("number", &[task.me as u8]).expect("room");
            task.publish("name", format!("task {}", task.me).as_bytes()).expect("room");
        }
        let soon = Instant::now() + Duration::from_millis(20);
        let board = Board::from_env(&env, "MP_PARTITION 9", 3).expect("the board");
        let mut alone = Poe::new(board, 0, 3, Turn { instance: 2, opening: 2 }, Arc::new(Ends::of_any_job()));
        let late = alone.fence(soon).expect_err("two have published nothing");
        assert!(late.to_string().contains("task 1 has not called LAPI_Init"), "{late}");
        let end = Instant::now() + Duration::from_secs(20);
        let [first, rest @ ..] = &mut tasks[..] else { unreachable!("three tasks") };
        std::thread::scope(|scope| {
            for task in rest.iter_mut() {
                scope.spawn(move || task.fence(end).expect("all are there"));
            }
            first.fence(end).expect("all are there");
        });
        for task in &mut tasks {
            for other in 0..3 {
                assert_eq!(task.lookup(other, "number").expect("a value"), [other as u8]);
                assert_eq!(task.lookup(other, "name").expect("a value"), format!("task {other}").as_bytes());
            }
            assert!(task.lookup(1, "nothing").is_err());
        }
        // The launcher has seen the ends of two tasks, one of which had closed its opening.
        for task in [1, 2] {
            assert!(!tasks[0].has_died(task));
            board.write(Word::Ended, task, 1);
        }
        board.write(Word::Closed(1), 2, 2);
        assert!(tasks[0].has_died(1) && !tasks[0].has_died(2));
        // Another fence is another one.
        tasks[2].publish("later", b"x").expect("room");
        let late = tasks[2].fence(Instant::now() + Duration::from_millis(20));
        assert!(late.is_err(), "the others have not come");
        assert_eq!(tasks[0].lookup(2, "later").expect("a value"), b"x");
    }
}
