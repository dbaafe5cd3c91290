//! Two tasks that reach each other's memory by keys, and the ends that their
//! connection may come to.

use super::calls::enter;
use super::job::{self, Habits, Task};
use super::recovery::{all_is_well, look, purge, resume, settle};
use crate::engine::context::request::Preference;
use crate::transport::testing::mem::{MemOptions, NetworkHandle, network};
use std::sync::Arc;

/// Two tasks, the handle of their network, and how their long messages go without a hint.
pub fn two(options: MemOptions, preference: Preference) -> (Vec<Arc<Task>>, NetworkHandle) {
    two_with(options, &Habits { preference, ..Habits::STEPPED })
}

/// Two tasks which register no more parts of a message than this at a time.
pub fn two_in_batches(options: MemOptions, batch: usize) -> (Vec<Arc<Task>>, NetworkHandle) {
    two_with(options, &Habits { batch, ..Habits::STEPPED })
}

fn two_with(options: MemOptions, habits: &Habits) -> (Vec<Arc<Task>>, NetworkHandle) {
    let ends = network(2, options);
    let handle = ends[0].handle();
    (job::open(job::boxed(ends), &Habits { copy_limit: 0, ..*habits }), handle)
}

/// How many packets a task has sent and received.
pub fn packets_of(task: &Task) -> u64 {
    let mut held = enter(task);
    let stats = &held.core().stats.peers;
    stats.packets_sent + stats.packets_received
}

/// What ends the connection of the two tasks while operations of task 0, the origin, are under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    OriginPurges,
    TargetPurges,
    OriginDies,
    TargetDies,
}

impl End {
    pub const ALL: [Self; 4] = [Self::OriginPurges, Self::TargetPurges, Self::OriginDies, Self::TargetDies];

    /// The task whose memory is its program's again.
    pub fn survivor(self) -> usize {
        match self {
            Self::OriginPurges | Self::TargetDies => 0,
            Self::TargetPurges | Self::OriginDies => 1,
        }
    }

    fn is_death(self) -> bool {
        matches!(self, Self::OriginDies | Self::TargetDies)
    }

    /// The other task dies, if it is to die, and the survivor gives it up.
    pub fn happens(self, tasks: &[Arc<Task>], handle: &NetworkHandle) {
        let (survivor, other) = (self.survivor(), 1 - self.survivor() as u32);
        if self.is_death() {
            handle.kill(other);
        }
        purge(&tasks[survivor], other);
    }

    /// Nothing stays registered. Unless a task has died, the origin has reported each of its send
    /// operations, the parameters of whose handlers are `sends`, once; the tasks meet again, and
    /// all goes well. Returns whether they have.
    pub fn is_overcome(
        self,
        tasks: &[Arc<Task>],
        handle: &NetworkHandle,
        sends: &[usize],
        what: &str,
    ) -> bool {
        if self.is_death() {
            assert_eq!(handle.registrations(), 0, "{self:?}, {what}");
            return false;
        }
        purge(&tasks[1 - self.survivor()], self.survivor() as u32);
        assert_eq!(handle.registrations(), 0, "{self:?}, {what}");
        (0..20).for_each(|_| _ = tasks[0].step());
        let mut reported: Vec<_> = tasks[0].reported.lock().iter().map(|(parameter, _)| *parameter).collect();
        reported.sort_unstable();
        assert_eq!(reported, sends, "{self:?}, {what}");
        tasks.iter().for_each(|task| resume(task, 1 - task.me));
        look(tasks);
        look(tasks);
        settle(tasks);
        all_is_well(tasks, 0, 1);
        all_is_well(tasks, 1, 0);
        true
    }
}
