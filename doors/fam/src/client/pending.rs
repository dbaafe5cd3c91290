//! The operations of one connection that are not complete. Nothing here sends or waits: what has
//! arrived is told to it, and it ends the operations of that.

use super::owner::{Class, Owner};
use crate::error::{Failure, FamError, Result};
use crate::wire::{Answer, Message, decode_answer};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory of the program, or of the call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Where it begins.
    pub at: *mut u8,
    /// The length in bytes.
    pub length: usize,
}

// SAFETY: an address and a length; the user of the memory says why that is allowed.
unsafe impl Send for Memory {}

/// What the reply to an operation is to be.
#[derive(Debug)]
pub enum Expected {
    /// No more than its code.
    Done,
    /// Bytes for this memory, as many as it has.
    Data(Memory),
    /// Bytes that belong to several places, in this order.
    Spread(Vec<Memory>),
    /// The old value of an atomic operation, which its owner gets.
    Old,
    /// An answer, which [`Table::take`] gives.
    Answer,
    /// An answer that is not wanted.
    Anything,
}

/// Counts to this when a message has left the program's memory for ever.
const SENT: i32 = 2;

/// An operation that is not complete.
struct Operation {
    owner: Arc<Owner>,
    class: Class,
    expected: Expected,
    /// The turn in which it has begun.
    turn: usize,
    /// Bytes of a vector message.
    held: usize,
    /// Where data lands that does not go into the program's memory at once.
    landed: Vec<u8>,
    answer: Option<Result<Answer>>,
    /// Of a message that is sent from the program's memory: what the session counts.
    sent: Option<Box<Sent>>,
    /// What the reply says, while the session still reads the program's memory.
    ended: Option<std::result::Result<(), Failure>>,
    /// Data is on the way into memory.
    is_landing: bool,
}

/// What the session uses of a message that it has not sent whole.
struct Sent {
    /// What it counts.
    count: AtomicI32,
    /// Bytes in front of the program's.
    _bytes: Vec<u8>,
}

// Operations are made in their slots: a box each would be a heap for each.
#[expect(clippy::large_enum_variant)]
enum Slot {
    /// The next free one.
    Free(u32),
    Used(Operation),
}

#[derive(Default)]
struct Slots {
    slots: Vec<(u32, Slot)>,
    /// The first free one; as many as there are slots: none is.
    free: u32,
    /// The operations that have ended but for their memory.
    leaving: Vec<u64>,
    closed: Option<Failure>,
    /// The turn of now, 0 or 1, and how many operations of each are not complete.
    turn: usize,
    of_turn: [usize; 2],
}

/// The operations of a connection, by their numbers.
#[derive(Default)]
pub struct Table {
    slots: Mutex<Slots>,
    open: AtomicUsize,
    /// Bytes of vector messages that are under way.
    held: AtomicUsize,
    /// Operations whose reply is there while the session still reads the program's memory.
    leaving: AtomicU32,
    is_broken: AtomicBool,
}

/// Where the data of a message goes.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// The message has no data, or it was taken already: it is over.
    Nowhere,
    /// Into this memory; [`Table::landed`] follows.
    Memory(Memory),
    /// Nobody waits for it, or for something else, which fails by that.
    Refused,
}

impl Table {
    /// An operation begins: its number.
    ///
    /// # Errors
    /// The connection is over.
    pub fn begin(&self, owner: &Arc<Owner>, class: Class, expected: Expected) -> Result<u64> {
        self.begin_from(owner, class, expected, None, 0).map(|(number, _)| number)
    }

    /// [`Self::begin`] of a message that is sent from memory: these bytes, and the program's. They
    /// live until the session has counted the message as sent, and so does what it counts. As many
    /// bytes as `held` are the operation's that [`Self::hold`] has given.
    ///
    /// # Errors
    /// The connection is over.
    pub fn begin_from(
        &self,
        owner: &Arc<Owner>,
        class: Class,
        expected: Expected,
        from: Option<Vec<u8>>,
        held: usize,
    ) -> Result<(u64, *const AtomicI32)> {
        let sent = from.map(|bytes| Box::new(Sent { count: AtomicI32::new(0), _bytes: bytes }));
        let counter = sent.as_ref().map_or(std::ptr::null(), |sent| &raw const sent.count);
        let mut all = self.slots();
        if let Some(failure) = &all.closed {
            self.held.fetch_sub(held, Ordering::Relaxed);
            return Err(failure.clone());
        }
        let turn = all.turn;
        let operation = Operation {
            owner: owner.clone(),
            class,
            expected,
            turn,
            held,
            landed: Vec::new(),
            answer: None,
            sent,
            ended: None,
            is_landing: false,
        };
        owner.begin(class);
        all.of_turn[turn] += 1;
        self.open.fetch_add(1, Ordering::Relaxed);
        let index = all.free;
        let count = all.slots.len() as u32;
        if index == count {
            all.slots.push((0, Slot::Used(operation)));
            all.free = count + 1;
            return Ok((u64::from(index), counter));
        }
        let (generation, slot) = &mut all.slots[index as usize];
        let number = u64::from(*generation) << 32 | u64::from(index);
        if let Slot::Free(next) = std::mem::replace(slot, Slot::Used(operation)) {
            all.free = next;
        }
        Ok((number, counter))
    }

    /// Has as many bytes more under way, unless that would be more than `most`, and something else
    /// is. `false`: it has not.
    pub fn hold(&self, held: usize, most: usize) -> bool {
        let more = |now: usize| Some(now + held).filter(|all| now == 0 || *all <= most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// How many operations are not complete.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Another turn begins, for who waits for the operations of now and not for later ones. The
    /// operations of the one before last must have ended, see [`Self::has_turned`].
    pub fn turn(&self) {
        let mut all = self.slots();
        all.turn = 1 - all.turn;
    }

    /// Whether all operations that had begun before the last call of [`Self::turn`] have ended.
    pub fn has_turned(&self) -> bool {
        let all = self.slots();
        all.of_turn[1 - all.turn] == 0
    }

    /// What has arrived is no message.
    pub fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    /// Whether something has arrived that is no message: the connection is to end.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// A message has begun to arrive, with this many bytes of data.
    pub fn arriving(&self, message: &Message, length: usize) -> Place {
        let mut all = self.slots();
        let number = message.number();
        let Some(operation) = used(&mut all, number) else { return Place::Refused };
        if operation.is_landing || operation.ended.is_some() || operation.answer.is_some() {
            return Place::Refused;
        }
        match (message, &operation.expected) {
            (Message::Done { code, .. }, _) if *code != 0 && length == 0 => {
                let code = *code;
                self.end(&mut all, number, Owner::outcome(code));
            }
            (Message::Done { .. }, Expected::Done) if length == 0 => self.end(&mut all, number, Ok(())),
            (Message::Old { value, .. }, Expected::Old) if length == 0 => {
                operation.owner.set_old(*value);
                self.end(&mut all, number, Ok(()));
            }
            (Message::Data { .. }, Expected::Data(memory)) if length == memory.length => {
                operation.is_landing = true;
                return Place::Memory(*memory);
            }
            (Message::Data { .. }, Expected::Spread(parts))
                if length == parts.iter().map(|part| part.length).sum::<usize>() =>
            {
                return self.land(all, number, length);
            }
            (Message::Answer { .. }, Expected::Anything) => {
                self.end(&mut all, number, Ok(()));
                return Place::Refused;
            }
            (Message::Answer { .. }, Expected::Answer) => return self.land(all, number, length),
            _ => {
                let strange = FamError::Rpc.because("the daemon's reply is none to what was asked");
                self.end(&mut all, number, Err(strange));
                return Place::Refused;
            }
        }
        Place::Nowhere
    }

    /// Memory of the table for data of an operation, which fails if there is none.
    fn land(&self, mut all: MutexGuard<'_, Slots>, number: u64, length: usize) -> Place {
        let Some(operation) = used(&mut all, number) else { return Place::Refused };
        operation.landed = Vec::new();
        if operation.landed.try_reserve_exact(length).is_err() {
            let none = FamError::Resource.because("no memory for the daemon's reply");
            self.end(&mut all, number, Err(none));
            return Place::Refused;
        }
        operation.landed.resize(length, 0);
        operation.is_landing = true;
        Place::Memory(Memory { at: operation.landed.as_mut_ptr(), length })
    }

    /// The data of a message is in the memory that [`Self::arriving`] has given.
    pub fn landed(&self, number: u64) {
        let mut all = self.slots();
        let Some(operation) = used(&mut all, number).filter(|operation| operation.is_landing) else { return };
        operation.is_landing = false;
        match &operation.expected {
            Expected::Spread(parts) => {
                let mut rest = &operation.landed[..];
                for part in parts {
                    let (data, others) = rest.split_at(part.length);
                    // SAFETY: the program's memory, which it leaves to the operation until that is
                    // complete; the bytes that have arrived are the table's own.
                    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), part.at, data.len()) };
                    rest = others;
                }
            }
            Expected::Answer => operation.answer = Some(decode_answer(&operation.landed)),
            Expected::Done | Expected::Data(_) | Expected::Old | Expected::Anything => {}
        }
        self.end(&mut all, number, Ok(()));
    }

    /// The answer to an operation, and its end; `None`: it has not come yet.
    pub fn take(&self, number: u64) -> Option<Result<Answer>> {
        let mut all = self.slots();
        let answer = used(&mut all, number)?.answer.take()?;
        self.free(&mut all, number);
        Some(answer)
    }

    /// Whether an operation has its answer, which [`Self::take`] gives.
    pub fn is_answered(&self, number: u64) -> bool {
        used(&mut self.slots(), number).is_none_or(|operation| operation.answer.is_some())
    }

    /// The message of an operation was not sent.
    pub fn unsent(&self, number: u64, failure: Failure) {
        let mut all = self.slots();
        if let Some(operation) = used(&mut all, number) {
            operation.sent = None;
            self.end(&mut all, number, Err(failure));
        }
    }

    /// Ends the operations whose reply is there, and whose memory the session does not read any
    /// more.
    pub fn sweep(&self) {
        if self.leaving.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.slots();
        let mut place = 0;
        while let Some(&number) = all.leaving.get(place) {
            let operation = used(&mut all, number);
            if operation.as_ref().is_some_and(|operation| !operation.has_left()) {
                place += 1;
                continue;
            }
            let ended = operation.and_then(|operation| operation.ended.take());
            all.leaving.swap_remove(place);
            self.leaving.fetch_sub(1, Ordering::Relaxed);
            if let Some(outcome) = ended {
                self.end(&mut all, number, outcome);
            }
        }
    }

    /// The connection is over: all operations end with this failure, and no other one begins. The
    /// session must use no memory of theirs any more.
    pub fn close(&self, failure: &Failure) {
        let mut all = self.slots();
        all.closed.get_or_insert_with(|| failure.clone());
        all.leaving.clear();
        for index in 0..all.slots.len() as u32 {
            let number = u64::from(all.slots[index as usize].0) << 32 | u64::from(index);
            let Some(operation) = used(&mut all, number) else { continue };
            operation.sent = None;
            operation.is_landing = false;
            if operation.answer.is_some() {
                continue;
            }
            let outcome = operation.ended.take();
            if outcome.is_some() {
                self.leaving.fetch_sub(1, Ordering::Relaxed);
            }
            self.end(&mut all, number, outcome.unwrap_or_else(|| Err(failure.clone())));
        }
    }

    /// An operation has its reply.
    fn end(&self, all: &mut Slots, number: u64, outcome: std::result::Result<(), Failure>) {
        let Some(operation) = used(all, number) else { return };
        if !operation.has_left() {
            operation.ended = Some(outcome);
            all.leaving.push(number);
            self.leaving.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (owner, class, turn) = (operation.owner.clone(), operation.class, operation.turn);
        self.held.fetch_sub(std::mem::take(&mut operation.held), Ordering::Relaxed);
        if matches!(operation.expected, Expected::Answer) {
            // It stays until its answer is taken, which has the failure.
            if let Err(failure) = outcome {
                operation.answer = Some(Err(failure));
            }
            owner.end(class, Ok(()));
        } else {
            self.free(all, number);
            owner.end(class, outcome);
        }
        all.of_turn[turn] -= 1;
        // Who sees that none is under way sees that their owners know it.
        self.open.fetch_sub(1, Ordering::Release);
    }

    fn free(&self, all: &mut Slots, number: u64) {
        let index = number as u32;
        let next = all.free;
        let (generation, slot) = &mut all.slots[index as usize];
        *generation = generation.wrapping_add(1);
        *slot = Slot::Free(next);
        all.free = index;
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation {
    /// Whether the session reads the program's memory no more.
    fn has_left(&self) -> bool {
        self.sent.as_ref().is_none_or(|sent| sent.count.load(Ordering::Acquire) >= SENT)
    }
}

fn used(all: &mut Slots, number: u64) -> Option<&mut Operation> {
    match all.slots.get_mut(number as u32 as usize)? {
        (generation, Slot::Used(operation)) if u64::from(*generation) == number >> 32 => Some(operation),
        _ => None,
    }
}
