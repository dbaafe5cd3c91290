//! Calls that move data: put, get, scatter, gather and atomics.

use super::connection::Connection;
use super::context::Context;
use super::elements::{Batch, Elements, FULL, Places};
use super::item::{Item, Opened};
use super::owner::{Class, Owner};
use super::pending::{Expected, Memory};
use crate::error::{FamError, Result};
use crate::wire::{Change, Kind, Message, READ, Shape, WRITE};
use std::sync::Arc;

/// An atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// What happens.
    pub change: Change,
    /// To which kind of number.
    pub kind: Kind,
    /// By which.
    pub operand: u128,
    /// Equal to which, of a compare-and-swap.
    pub comparand: u128,
}

thread_local! {
    /// Whose the operations of blocking calls of this thread are: one call's at a time.
    static OWN: Arc<Owner> = Arc::default();
}

/// A call, as far as its operations are begun.
struct Begun<'a> {
    context: &'a Context,
    item: &'a Item,
    opened: Arc<Opened>,
    owner: &'a Arc<Owner>,
    class: Class,
    /// The connection that all operations are on; `None`: there is none yet, or several are used.
    only: Option<Arc<Connection>>,
    begun: usize,
}

impl Context {
    /// Copies memory into an item.
    ///
    /// # Errors
    /// Of a blocking call, [`FamError::OutOfRange`], [`FamError::NoPerm`], [`FamError::NotFound`],
    /// [`FamError::Rpc`]; of one that does not wait, [`Self::quiet`] returns them.
    ///
    /// # Safety
    /// The memory can be read, and does not change, until the call has returned, or `quiet` after
    /// one that does not wait.
    pub unsafe fn put(&self, item: &Item, local: Memory, offset: u64, blocking: bool) -> Result<()> {
        self.call(item, Class::Changes, WRITE, blocking, |call| {
            call.within(offset, local.length as u64)?;
            // SAFETY: the caller's promise.
            call.segments(offset, local, |call, connection, number, at, memory| unsafe {
                let message = |id| Message::Put { number: id, item: number, offset: at };
                let data = (0, Vec::new(), &[memory][..]);
                connection.post(call.owner, call.class, Expected::Done, data, message);
            })
        })
        .map(drop)
    }

    /// Copies bytes of an item into memory.
    ///
    /// # Errors
    /// Those of [`Self::put`].
    ///
    /// # Safety
    /// The memory can be written, and nothing else uses it, until the call has returned, or `quiet`
    /// after one that does not wait.
    pub unsafe fn get(&self, item: &Item, local: Memory, offset: u64, blocking: bool) -> Result<()> {
        self.call(item, Class::Fetches, READ, blocking, |call| {
            call.within(offset, local.length as u64)?;
            // SAFETY: the caller's promise.
            call.segments(offset, local, |call, connection, number, at, memory| unsafe {
                let length = memory.length as u64;
                let message = |id| Message::Get { number: id, item: number, offset: at, length };
                let data = (0, Vec::new(), &[][..]);
                connection.post(call.owner, call.class, Expected::Data(memory), data, message);
            })
        })
        .map(drop)
    }

    /// Copies memory to elements of an item.
    ///
    /// # Errors
    /// Those of [`Self::put`].
    ///
    /// # Safety
    /// Those of [`Self::put`], for memory of all elements.
    pub unsafe fn scatter(
        &self,
        item: &Item,
        local: *mut u8,
        elements: &Elements<'_>,
        blocking: bool,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.vector(item, local, elements, blocking, Class::Changes) }
    }

    /// Copies elements of an item into memory.
    ///
    /// # Errors
    /// Those of [`Self::put`].
    ///
    /// # Safety
    /// Those of [`Self::get`], for memory of all elements.
    pub unsafe fn gather(
        &self,
        item: &Item,
        local: *mut u8,
        elements: &Elements<'_>,
        blocking: bool,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.vector(item, local, elements, blocking, Class::Fetches) }
    }

    /// Changes a number of an item as one step; the old one, of a call that waits.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: the offset is not a multiple of the number's size. Those of
    /// [`Self::put`].
    pub fn atomic(&self, item: &Item, offset: u64, atomic: &Atomic, blocking: bool) -> Result<u128> {
        let Atomic { change, kind, operand, comparand } = *atomic;
        let size = kind.size();
        if !offset.is_multiple_of(size as u64) {
            let why =
                format!("an atomic operation of {size} bytes at offset {offset}, not a multiple of them");
            return Err(FamError::Invalid.because(why));
        }
        let class = if change.writes() { Class::Changes } else { Class::Fetches };
        let rights = if change.writes() { WRITE } else { 0 } | if blocking { READ } else { 0 };
        let owner = self.call(item, class, rights, blocking, |call| {
            call.within(offset, size as u64)?;
            let segment = call.opened.ticket.segments(offset, 1).next();
            let segment = segment.ok_or_else(|| FamError::OutOfRange.because("no such byte"))?;
            let (connection, number) = call.number(segment.piece)?;
            let message = |id| Message::Atomic {
                number: id,
                item: number,
                offset: segment.offset,
                change,
                kind,
                operand,
                comparand,
            };
            let data = (0, Vec::new(), &[][..]);
            // SAFETY: no memory of the program is used.
            unsafe { connection.post(call.owner, call.class, Expected::Old, data, message) };
            Ok(())
        })?;
        Ok(owner.map_or(0, |owner| owner.old()))
    }

    /// Begins the operations of a call, and waits for them if it is to wait; then whose they were.
    fn call(
        &self,
        item: &Item,
        class: Class,
        rights: u8,
        blocking: bool,
        begin: impl FnOnce(&mut Begun<'_>) -> Result<()>,
    ) -> Result<Option<Arc<Owner>>> {
        let opened =
            item.opened(&self.client().shared).and_then(|opened| match rights & !opened.ticket.rights {
                0 => Ok(opened),
                _ => Err(FamError::NoPerm.because("the descriptor has not the right")),
            });
        if !blocking {
            let owner = self.owner();
            let begun = opened.and_then(|opened| begin(&mut Begun::new(self, item, opened, owner, class)));
            if let Err(failure) = begun {
                // An operation that has failed before it has begun.
                owner.begin(class);
                owner.end(class, Err(failure));
            }
            return Ok(None);
        }
        // A thread that ends has lost its own already when destructors of the program run.
        let own = OWN.try_with(Arc::clone).unwrap_or_default();
        let mut call = Begun::new(self, item, opened?, &own, class);
        let begun = begin(&mut call);
        let is_complete = || own.pending() == 0;
        match &call.only {
            Some(connection) => connection.wait(is_complete),
            None => self.wait(is_complete),
        }
        let ended = own.take_failure();
        begun.and(ended)?;
        Ok(Some(own))
    }

    /// A scatter, which changes, or a gather.
    ///
    /// # Safety
    /// Those of [`Self::scatter`] and [`Self::gather`].
    unsafe fn vector(
        &self,
        item: &Item,
        local: *mut u8,
        elements: &Elements<'_>,
        blocking: bool,
        class: Class,
    ) -> Result<()> {
        let post =
            |call: &Begun<'_>, connection: &Connection, number, shape, runs: Vec<u8>, memory: &[Memory]| {
                let (expected, sent) = match (class, memory) {
                    (Class::Changes, _) => (Expected::Done, memory),
                    (Class::Fetches, [one]) => (Expected::Data(*one), &[][..]),
                    (Class::Fetches, _) => (Expected::Spread(memory.to_vec()), &[][..]),
                };
                let message = |id| match class {
                    Class::Changes => Message::Scatter { number: id, item: number, shape },
                    Class::Fetches => Message::Gather { number: id, item: number, shape },
                };
                let held = memory.iter().fold(runs.len(), |sum, one| sum + one.length);
                // SAFETY: the caller's promise.
                unsafe { connection.post(call.owner, class, expected, (held, runs, sent), message) };
            };
        let rights = if class == Class::Changes { WRITE } else { READ };
        self.call(item, class, rights, blocking, |call| {
            elements.check(&call.opened.ticket)?;
            let is_whole = call.opened.ticket.pieces.len() == 1;
            // One place again and again goes as runs: the daemon takes no strided message that
            // moves more bytes than the piece has. Of a single element the stride is anything.
            if let Places::Strided { first, stride } = elements.places
                && is_whole
                && (stride != 0 || elements.count == 1)
            {
                let (size, mut begin, mut at) = (elements.size, 0, local);
                let stride = if elements.count == 1 { 0 } else { stride };
                while begin < elements.count {
                    let count = (FULL / size).clamp(1, elements.count - begin);
                    let first = (first + begin * stride) * size;
                    let shape = Shape::Strided { element: size, count, first, stride: stride * size };
                    let memory = Memory { at, length: (count * size) as usize };
                    let (connection, number) = call.number(0)?;
                    post(call, &connection, number, shape, Vec::new(), &[memory]);
                    begin += count;
                    at = at.wrapping_add(memory.length);
                }
                return Ok(());
            }
            let whole = call.opened.clone();
            elements.batches(&whole.ticket, local, |batch| {
                let (connection, number) = call.number(batch.piece)?;
                let shape = Shape::Runs { count: batch.count() };
                let Batch { runs, local, .. } = batch;
                post(call, &connection, number, shape, runs, &local);
                Ok(())
            })
        })
        .map(drop)
    }
}

impl<'a> Begun<'a> {
    fn new(
        context: &'a Context,
        item: &'a Item,
        opened: Arc<Opened>,
        owner: &'a Arc<Owner>,
        class: Class,
    ) -> Self {
        Self { context, item, opened, owner, class, only: None, begun: 0 }
    }

    /// The connection to the server of a piece, and the item's number there, for an operation.
    #[inline]
    fn number(&mut self, piece: usize) -> Result<(Arc<Connection>, u32)> {
        let (connection, number) =
            self.item.number(&self.context.client().shared, &mut self.opened, piece)?;
        match &self.only {
            Some(only) if Arc::ptr_eq(only, connection) => {}
            None if self.begun == 0 => self.only = Some(connection.clone()),
            _ => self.only = None,
        }
        self.begun += 1;
        Ok((connection.clone(), number))
    }

    fn within(&self, offset: u64, length: u64) -> Result<()> {
        match self.opened.ticket.has(offset, length) {
            true => Ok(()),
            false => {
                let size = self.opened.ticket.size;
                let why = format!("{length} bytes at offset {offset} of an item of {size} bytes");
                Err(FamError::OutOfRange.because(why))
            }
        }
    }

    /// Begins an operation for each range of memory whose bytes lie together at one server.
    #[inline]
    fn segments(
        &mut self,
        offset: u64,
        local: Memory,
        mut post: impl FnMut(&Self, &Connection, u32, u64, Memory),
    ) -> Result<()> {
        if self.opened.ticket.pieces.len() == 1 {
            let shared = &self.context.client().shared;
            let (connection, number) = self.item.number(shared, &mut self.opened, 0)?;
            let connection = connection.clone();
            self.begun += 1;
            post(self, &connection, number, offset, local);
            self.only = Some(connection);
            return Ok(());
        }
        let (mut at, whole) = (local.at, self.opened.clone());
        for segment in whole.ticket.segments(offset, local.length as u64) {
            let memory = Memory { at, length: segment.length as usize };
            let (connection, number) = self.number(segment.piece)?;
            post(self, &connection, number, segment.offset, memory);
            at = at.wrapping_add(memory.length);
        }
        Ok(())
    }
}
