//! The processes that take the places of dead tasks: their deaths may be known here late,
//! or not at all.

use crate::base::process::Process;
use crate::transport::Task;
use crate::transport::fabric::FabricTransport;
use crate::wire::network::{Content, Notice};

/// With how many cards a look compares what is known of the processes of peers.
const COMPARED: usize = 4;

/// Among how many tasks a look searches for peers whose cards it compares: the time of a look does
/// not grow with the job.
const SEARCHED: Task = 64;

impl FabricTransport {
    /// A notice names another process of the task than the one that is known here. Either that was
    /// long ago, or this task has missed a death, as one that has replaced a process itself while
    /// another task was replaced.
    pub(super) fn note_unknown_life(&mut self, from: Task, task: Task, life: u32) {
        let known = self.watch.as_ref().map_or(life, |watch| watch.shared.ring.life(task));
        if known == life || task == self.me {
            return;
        }
        self.compare_card(from, task, known);
    }

    /// When the peer's card shows another process than the one that is known, that one has died.
    fn compare_card(&mut self, from: Task, task: Task, known: u32) {
        let Some(present) = self.directory.process_of(task).filter(|present| present.life() != known) else {
            return;
        };
        if let Some(watch) = &mut self.watch {
            let now = watch.now();
            watch.shared.note(from, Notice { content: Content::Died, task, life: known }, now);
        }
        self.watch_changed = true;
        self.follow_ring();
        self.note_process(task, present);
    }

    /// Another process has the peer's number: the one before has died, which may not be
    /// known here yet.
    pub(in crate::transport::fabric) fn note_successor(&mut self, task: Task, process: Process) {
        if let Some(watch) =
            self.watch.as_mut().filter(|watch| watch.shared.ring.life(task) != process.life())
        {
            let now = watch.now();
            watch.shared.ring.found_dead(task, now);
            self.watch_changed = true;
        }
    }

    /// Whether the peer's process is known ([`crate::transport::deaths::Watch::knows`]).
    pub(in crate::transport::fabric) fn is_known_process(&self, task: Task, process: Process) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch.shared.knows(task, process.life()))
    }

    /// Looks whether other processes have taken the places of those that have died: tasks of one
    /// host reach each other otherwise. And of those with which this task has had contact, a few at
    /// a time: when two processes follow each other quickly, the tasks of their host may never have
    /// seen the first of them, so that no notice of its death is sent.
    pub(super) fn look_for_successors(&mut self) {
        let dead = self.watch.as_mut().map(|watch| watch.shared.ring.some_dead(COMPARED)).unwrap_or_default();
        for task in dead {
            if let Some(process) = self.directory.process_of(task) {
                self.note_process(task, process);
            }
        }
        for task in self.next_met() {
            if let Some(known) = self.watch.as_ref().map(|watch| watch.shared.ring.life(task)) {
                self.compare_card(task, task, known);
            }
        }
    }

    /// The next [`COMPARED`] peers with which this task has had contact, in turn, among the next
    /// [`SEARCHED`] tasks.
    fn next_met(&mut self) -> Vec<Task> {
        let tasks = self.peers.len() as Task;
        let Some(first) = self.watch.as_ref().map(|watch| watch.next_compared) else { return Vec::new() };
        let mut met = Vec::with_capacity(COMPARED);
        let mut task = first;
        for _ in 0..SEARCHED.min(tasks) {
            if self.peer(task).is_some_and(|peer| peer.is_up() && peer.has_met()) {
                met.push(task);
            }
            task = (task + 1) % tasks;
            if met.len() == COMPARED {
                break;
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.next_compared = task;
        }
        met
    }

    /// The peer may be another process now.
    pub(in crate::transport::fabric) fn note_process(&mut self, task: Task, process: Process) {
        if let Some(watch) = &mut self.watch {
            let now = watch.now();
            if watch.shared.replaced(task, process, now) {
                watch.probes.take_if(|probes| probes.task == task);
                watch.contacts.retain(|contact| *contact != task);
                self.watch_changed = true;
                if self.is_elsewhere(task) && self.peer(task).is_some() {
                    let _ = self.look_up(task);
                }
            }
        }
    }
}
