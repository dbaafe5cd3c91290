//! Peers that are not there: those that this task has parted from, and those that it lets come back.
//!
//! Each of two tasks that come together again gives the other its segment, its event descriptor, and a new ring for what it
//! is sent. The rings in the segments are not used again: nobody knows what is still in them, or who still writes there.

use super::remote::landmark;
use super::segment::RejoinRing;
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::ring::Consumer;
use crate::error::{Error, Result};
use crate::transport::{NO_EPOCH, Task};
use crate::wire::reunion::{Event, Offer, Reunion};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A ring for what a peer will send when it is back.
pub(super) struct Inlet {
    /// Before the memory that it lies in.
    pub(super) consumer: Consumer,
    pub(super) ring: RejoinRing,
    file: OwnedFd,
}

/// Someone who is not there.
enum Absent {
    /// Parted from.
    Parted,
    /// May come back.
    Awaited { epoch: u64, inlet: Option<Inlet> },
}

/// A peer that has come back: what it passes, and our end of the connection.
pub(super) struct Returned {
    pub(super) task: Task,
    pub(super) pid: i32,
    pub(super) words: Words,
    pub(super) segment: OwnedFd,
    pub(super) event: OwnedFd,
    pub(super) ring: OwnedFd,
    pub(super) inlet: Inlet,
}

/// What a task says of itself when it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The engine's epoch.
    pub(super) epoch: u64,
    /// For copies across address spaces.
    pub(super) landmark: u64,
    /// It takes part in asymmetric barriers.
    pub(super) asymmetric: bool,
}

impl Words {
    const VERSION: u64 = 1;

    fn encode(self) -> Vec<u8> {
        [Self::VERSION, self.epoch, self.landmark, self.asymmetric.into()]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    fn decode(blob: &[u8]) -> Option<Self> {
        let words: Vec<u64> =
            blob.chunks(8).map(|word| word.try_into().map(u64::from_le_bytes).ok()).collect::<Option<_>>()?;
        match *words {
            [Self::VERSION, epoch, landmark, asymmetric @ (0 | 1)] => {
                Some(Self { epoch, landmark, asymmetric: asymmetric != 0 })
            }
            _ => None,
        }
    }
}

/// Who is not there.
pub(super) struct Away {
    tasks: u32,
    absent: BTreeMap<Task, Absent>,
    /// Calls of tasks that nobody has asked for yet.
    early: BTreeMap<Task, Offer>,
    reunion: Option<Box<dyn Reunion>>,
    /// What the peers get of us, beside the ring.
    file: OwnedFd,
    asymmetric: bool,
    /// Who has come back and was not named yet.
    pub(super) back: VecDeque<(Task, u64)>,
}

impl Away {
    /// Nobody is away. `file` is this task's segment.
    pub(super) fn new(
        tasks: u32,
        file: OwnedFd,
        asymmetric: bool,
        reunion: Option<Box<dyn Reunion>>,
    ) -> Self {
        let (absent, early, back) = Default::default();
        Self { tasks, absent, early, reunion, file, asymmetric, back }
    }

    /// The segment's file.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// All tasks have met as a job begins: none is absent, and none is called for. `asymmetric`: they use asymmetric
    /// barriers, and so must those that rejoin.
    pub(super) fn all_met(&mut self, asymmetric: bool) {
        self.asymmetric = asymmetric;
        self.absent.clear();
        self.early.clear();
        self.reunion.iter_mut().for_each(|reunion| reunion.shut());
    }

    /// Calls at everyone who may come back and has not been called, or whose call was lost.
    pub(super) fn call_all(&mut self, event: BorrowedFd<'_>) {
        let tasks: Vec<Task> = self.absent.keys().copied().filter(|&task| self.awaits(task)).collect();
        tasks.into_iter().for_each(|task| self.call(task, event));
    }

    /// Whether the task may come back.
    pub(super) fn awaits(&self, task: Task) -> bool {
        matches!(self.absent.get(&task), Some(Absent::Awaited { .. }))
    }

    /// Whether anybody may come back.
    pub(super) fn awaits_any(&self) -> bool {
        self.absent.values().any(|absent| matches!(absent, Absent::Awaited { .. }))
    }

    /// The task is away, and not to come back. Its lobby is open from now on: the other may be the first to call.
    pub(super) fn part(&mut self, task: Task) {
        self.absent.insert(task, Absent::Parted);
        self.early.remove(&task);
        if let Some(reunion) = self.reunion.as_deref_mut() {
            reunion.forget(task);
            // It is tried again when somebody is awaited.
            let _ = reunion.open();
        }
    }

    /// The task may come back.
    pub(super) fn expect(&mut self, task: Task, epoch: u64) -> Result<()> {
        if let Err(reason) = self.open() {
            let detail = format!("no socket for task {task} to come back by: {reason}");
            return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
        }
        self.absent.insert(task, Absent::Awaited { epoch, inlet: None });
        Ok(())
    }

    /// Opens the lobby.
    pub(super) fn open(&mut self) -> io::Result<()> {
        match self.reunion.as_deref_mut() {
            Some(reunion) => reunion.open().map(drop),
            None => Err(io::Error::other("tasks of this job cannot come back")),
        }
    }

    /// This task does not know whether it has to come back itself: it would be glad of the other, which cannot call here yet.
    /// Two of those cannot tell each other anything, and must not take each other for the job.
    pub(super) fn seek(&mut self, task: Task) {
        if !self.awaits(task) {
            self.absent.insert(task, Absent::Awaited { epoch: NO_EPOCH, inlet: None });
        }
    }

    /// Whether any call waits for its answer.
    pub(super) fn has_called(&self) -> bool {
        self.reunion.as_deref().is_some_and(|reunion| (0..self.tasks).any(|task| reunion.has_called(task)))
    }

    /// Calls at the lobby of an awaited task, if that is open and does not know of us yet.
    pub(super) fn call(&mut self, task: Task, event: BorrowedFd<'_>) {
        let Some(reunion) = self.reunion.as_deref_mut() else { return };
        let Some(Absent::Awaited { epoch, inlet }) = self.absent.get_mut(&task) else { return };
        if reunion.has_called(task)
            || self.early.contains_key(&task)
            || !matches!(reunion.reach(task), Ok(true))
        {
            return;
        }
        let words = Words { epoch: *epoch, landmark: landmark(), asymmetric: self.asymmetric };
        let called = open_inlet(inlet, self.tasks).is_ok_and(|inlet| {
            let fds = [self.file.as_fd(), event, inlet.file.as_fd()];
            reunion.call(task, &words.encode(), &fds).unwrap_or(false)
        });
        if !called {
            reunion.forget(task);
        }
    }

    /// The next peer that has come back, for the transport to connect with.
    pub(super) fn returned(&mut self, event: BorrowedFd<'_>) -> Option<Returned> {
        loop {
            let waiting = self.early.keys().copied().find(|&task| self.awaits(task));
            if let Some(offer) = waiting.and_then(|task| self.early.remove(&task)) {
                if let Some(returned) = self.answer(offer, event) {
                    return Some(returned);
                }
                continue;
            }
            let happened: io::Result<_> = self.reunion.as_deref_mut()?.poll();
            // Out of descriptors, most likely: it is tried again when somebody looks the next time.
            match happened.ok()?? {
                Event::Called(offer) => {
                    self.early.insert(offer.task, offer);
                }
                Event::Answered(offer) => {
                    if let Some(returned) = self.accept(offer) {
                        return Some(returned);
                    }
                }
                Event::HungUp(_) => {}
            }
        }
    }

    fn answer(&mut self, offer: Offer, event: BorrowedFd<'_>) -> Option<Returned> {
        let task = offer.task;
        let Some(Absent::Awaited { epoch, inlet }) = self.absent.get_mut(&task) else { return None };
        let words = Words { epoch: *epoch, landmark: landmark(), asymmetric: self.asymmetric };
        let reunion = self.reunion.as_deref_mut()?;
        let Ok(inlet) = open_inlet(inlet, self.tasks) else {
            // It sees that, and calls again.
            reunion.forget(task);
            return None;
        };
        let fds = [self.file.as_fd(), event, inlet.file.as_fd()];
        let answered = reunion.answer(task, &words.encode(), &fds);
        if answered.unwrap_or(false) { self.accept(offer) } else { None }
    }

    fn accept(&mut self, offer: Offer) -> Option<Returned> {
        let Offer { task, pid, blob, fds } = offer;
        let words = Words::decode(&blob)?;
        let [segment, event, ring] = <[OwnedFd; 3]>::try_from(fds).ok()?;
        match self.absent.remove(&task) {
            Some(Absent::Awaited { inlet: Some(inlet), .. }) => {
                Some(Returned { task, pid, words, segment, event, ring, inlet })
            }
            other => {
                self.absent.extend(other.map(|absent| (task, absent)));
                None
            }
        }
    }

    /// This task ends LAPI: whoever calls at it is told.
    pub(super) fn close(&mut self) {
        self.reunion = None;
        self.early.clear();
    }
}

fn open_inlet(inlet: &mut Option<Inlet>, tasks: u32) -> Result<&Inlet> {
    if inlet.is_none() {
        let (file, ring) = RejoinRing::create(tasks)?;
        *inlet = Some(Inlet { consumer: ring.consumer(), ring, file });
    }
    inlet.as_ref().ok_or_else(|| Error::from(LAPI_ERR_SHM_SETUP))
}
