//! Collective calls, made of puts into windows and counters: barrier, broadcast, reduction
//! and gathering.
//!
//! Task p exchanges data with p + 2^k and p - 2^k, modulo the number of tasks, for each k: whatever
//! the root, each of these channels has one sender and one receiver. A channel has two slots in the
//! memory of its receiver and a counter there for each of them, which says that it is full:
//! messages may overtake each other, so that one counter for both slots would not say which. The
//! sender has a counter that says how many are free. So a task that is already in the next call
//! cannot overwrite what a slower task still reads.

use crate::counter::TargetCounter;
use crate::port::Port;
use crate::window::Window;
use bytemuck::Pod;
use openlapi::abi::{LAPI_ERR_DATA_LEN, LAPI_ERR_TGT};
use openlapi::error::{Error, Result};
use std::cmp::min;
use std::sync::Arc;

/// Of a channel: the sender fills one while the receiver empties the other.
const SLOTS: usize = 2;
/// Bytes in a word of the window.
const WORD: usize = size_of::<u64>();

/// Which way a message goes: to p + 2^k, or to p - 2^k.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The ends of one channel to, and one from another task.
struct Channel {
    /// For each slot here, whether it is full.
    full: [TargetCounter; SLOTS],
    /// Slots of the receiver that are free again.
    room: TargetCounter,
    sent: usize,
    taken: usize,
}

/// Collective calls of a context: all tasks call the same methods in the same order, with the same
/// root and sizes that agree.
///
/// A task sends and receives at most 2 ceil(log2(tasks)) messages for each piece of the data.
/// One thread at a time uses it; a program with several makes one for each. Messages of the
/// program that are under way are not touched: a barrier is no fence. After an error it can
/// only be dropped.
///
/// ```
/// use lapi::{Collectives, Context};
///
/// fn main() -> lapi::Result<()> {
///     let context = Context::open()?;
///     let mut collectives = Collectives::new(&context)?;
///     let mut sum = [f64::from(context.task()), 1.0];
///     collectives.allreduce(&mut sum, |one, other| one + other)?;
///     assert_eq!(sum[1], f64::from(context.tasks()));
///     collectives.free()
/// }
/// ```
pub struct Collectives {
    port: Arc<Port>,
    board: Window<u64>,
    channels: [Vec<Channel>; 2],
    /// Words of a slot.
    piece: usize,
    /// A message on its way.
    words: Vec<u64>,
}

impl Collectives {
    /// Prepares collective calls, whose data travels in pieces of 16 KiB. All tasks call this.
    ///
    /// # Errors
    /// The errors of [`Window::new`].
    pub fn new(port: &Arc<Port>) -> Result<Self> {
        Self::with_piece(port, 16 << 10)
    }

    /// Prepares collective calls, whose data travels in pieces of this number of bytes, the
    /// same in all tasks.
    ///
    /// # Errors
    /// The errors of [`Window::new`].
    pub fn with_piece(port: &Arc<Port>, bytes: usize) -> Result<Self> {
        let piece = bytes.max(1).div_ceil(WORD);
        let levels = port.tasks().next_power_of_two().trailing_zeros() as usize;
        let board = Window::new(port, 2 * levels * SLOTS * piece)?;
        let channel = |_| {
            Ok(Channel {
                full: [TargetCounter::new(port)?, TargetCounter::new(port)?],
                room: TargetCounter::new(port)?,
                sent: 0,
                taken: 0,
            })
        };
        let channels = || (0..levels).map(channel).collect::<Result<Vec<_>>>();
        Ok(Self { port: port.clone(), board, channels: [channels()?, channels()?], piece, words: Vec::new() })
    }

    /// Returns when all tasks have called.
    ///
    /// # Errors
    /// Those of a put, or of a wait.
    pub fn barrier(&mut self) -> Result<()> {
        for level in 0..self.levels() {
            self.send::<u8>(Way::Up, level, &[])?;
            self.take::<u8>(Way::Up, level, &mut [])?;
        }
        Ok(())
    }

    /// Copies the elements of the root to those of every task.
    ///
    /// # Errors
    /// `LAPI_ERR_TGT`: the root is no task. `LAPI_ERR_DATA_LEN`: an element is longer than a piece.
    /// Those of a put, or of a wait.
    pub fn broadcast<T: Pod>(&mut self, data: &mut [T], root: u32) -> Result<()> {
        // A task of rank r, counted from the root, gets the data from the rank without its highest
        // bit, and passes it on by the levels above that bit.
        let rank = self.rank(root)?;
        let first = (u32::BITS - rank.leading_zeros()) as usize;
        for part in data.chunks_mut(self.elements::<T>()?) {
            if rank != 0 {
                self.take(Way::Up, first - 1, part)?;
            }
            for level in first..self.levels() {
                if self.has(rank, level) {
                    self.send(Way::Up, level, part)?;
                }
            }
        }
        Ok(())
    }

    /// Combines the elements of all tasks, the i-th with the i-th. Those of the root become
    /// the result; what those of the others become is not said. `combine` must be associative
    /// and commutative.
    ///
    /// # Errors
    /// The errors of [`Self::broadcast`].
    pub fn reduce<T: Pod>(&mut self, data: &mut [T], root: u32, combine: impl Fn(T, T) -> T) -> Result<()> {
        let rank = self.rank(root)?;
        let mut other = Vec::new();
        for part in data.chunks_mut(self.elements::<T>()?) {
            for level in 0..self.levels() {
                if rank >> level & 1 == 1 {
                    self.send(Way::Down, level, part)?;
                    break;
                }
                if self.has(rank, level) {
                    other.clear();
                    other.resize(part.len(), T::zeroed());
                    self.take(Way::Down, level, &mut other)?;
                    part.iter_mut().zip(&other).for_each(|(one, other)| *one = combine(*one, *other));
                }
            }
        }
        Ok(())
    }

    /// Combines as [`Self::reduce`], and every task gets the result: the same bits in all of them.
    ///
    /// # Errors
    /// The errors of [`Self::broadcast`].
    pub fn allreduce<T: Pod>(&mut self, data: &mut [T], combine: impl Fn(T, T) -> T) -> Result<()> {
        self.reduce(data, 0, combine)?;
        self.broadcast(data, 0)
    }

    /// The elements of all tasks, which have equally many, in the order of the tasks, at the root;
    /// `None` at the others.
    ///
    /// # Errors
    /// The errors of [`Self::broadcast`].
    pub fn gather<T: Pod>(&mut self, data: &[T], root: u32) -> Result<Option<Vec<T>>> {
        let rank = self.rank(root)?;
        let (tasks, step) = (self.port.tasks(), self.elements::<T>()?);
        // A task collects the blocks of the ranks from its own to below rank + 2^level, where level
        // is its lowest bit.
        let level = if rank == 0 { self.levels() } else { rank.trailing_zeros() as usize };
        let held = min(1 << level, (tasks - rank) as usize);
        let mut kept = vec![T::zeroed(); held * data.len()];
        kept[..data.len()].copy_from_slice(data);
        for below in 0..level {
            if !self.has(rank, below) {
                break;
            }
            let first = 1 << below;
            let end = min(2 * first, held) * data.len();
            for part in kept[first * data.len()..end].chunks_mut(step) {
                self.take(Way::Down, below, part)?;
            }
        }
        if rank != 0 {
            for part in kept.chunks(step) {
                self.send(Way::Down, level, part)?;
            }
            return Ok(None);
        }
        // Rank 0 is the root, and behind the last task comes task 0.
        kept.rotate_right(root as usize * data.len());
        Ok(Some(kept))
    }

    /// The elements of all tasks, in every task.
    ///
    /// # Errors
    /// The errors of [`Self::broadcast`].
    pub fn allgather<T: Pod>(&mut self, data: &[T]) -> Result<Vec<T>> {
        let gathered = self.gather(data, 0)?;
        let mut all = gathered.unwrap_or_else(|| vec![T::zeroed(); data.len() * self.port.tasks() as usize]);
        self.broadcast(&mut all, 0)?;
        Ok(all)
    }

    /// Returns its memory when all tasks have called this.
    ///
    /// # Errors
    /// The errors of [`Window::free`].
    pub fn free(self) -> Result<()> {
        self.board.free()
    }

    fn levels(&self) -> usize {
        self.channels[0].len()
    }

    /// This task's number, counted from the root.
    fn rank(&self, root: u32) -> Result<u32> {
        let tasks = self.port.tasks();
        if root >= tasks {
            return Err(Error::new(LAPI_ERR_TGT, format!("root {root}; the job has {tasks} tasks")));
        }
        Ok((self.port.task() + tasks - root) % tasks)
    }

    /// Whether there is a rank of this rank and 2^level.
    fn has(&self, rank: u32, level: usize) -> bool {
        u64::from(rank) + (1 << level) < u64::from(self.port.tasks())
    }

    /// How many elements a piece has.
    fn elements<T>(&self) -> Result<usize> {
        let (piece, size) = (self.piece * WORD, size_of::<T>());
        match piece.checked_div(size) {
            // Elements without bytes.
            None => Ok(usize::MAX),
            Some(0) => {
                let detail = format!("elements of {size} bytes; a piece has {piece}");
                Err(Error::new(LAPI_ERR_DATA_LEN, detail))
            }
            Some(elements) => Ok(elements),
        }
    }

    fn other(&self, way: Way, level: usize) -> u32 {
        let tasks = u64::from(self.port.tasks());
        let distance = (1 << level) % tasks;
        let step = if way == Way::Up { distance } else { tasks - distance };
        ((u64::from(self.port.task()) + step) % tasks) as u32
    }

    fn slot(&self, way: Way, level: usize, number: usize) -> usize {
        ((way as usize * self.levels() + level) * SLOTS + number % SLOTS) * self.piece
    }

    /// Puts at most a piece into the next slot of a channel.
    fn send<T: Pod>(&mut self, way: Way, level: usize, data: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        self.words.clear();
        self.words.resize(bytes.len().div_ceil(WORD), 0);
        bytemuck::cast_slice_mut(&mut self.words)[..bytes.len()].copy_from_slice(bytes);
        let to = self.other(way, level);
        let number = self.channels[way as usize][level].sent;
        let at = self.slot(way, level, number);
        let channel = &mut self.channels[way as usize][level];
        if number >= SLOTS {
            channel.room.wait(1)?;
        }
        channel.sent += 1;
        self.board.put_notify(to, at, &self.words, &channel.full[number % SLOTS])
    }

    /// Waits for the next piece of a channel, and copies it out. The sender may use the slot again.
    fn take<T: Pod>(&mut self, way: Way, level: usize, into: &mut [T]) -> Result<()> {
        let from = self.other(if way == Way::Up { Way::Down } else { Way::Up }, level);
        let number = self.channels[way as usize][level].taken;
        let at = self.slot(way, level, number);
        let channel = &mut self.channels[way as usize][level];
        channel.taken += 1;
        channel.full[number % SLOTS].wait(1)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        let words = self.board.to_vec(at..at + bytes.len().div_ceil(WORD));
        bytes.copy_from_slice(&bytemuck::cast_slice(&words)[..bytes.len()]);
        self.board.put_notify(from, 0, &[], &channel.room)
    }
}
