//! Messages on their way in.
//!
//! A message of several packets is *assembled*: its first packet says where it goes, the others are
//! placed by their offset, in whatever order they come; what comes before the first packet is kept
//! until then. Each sender numbers its messages, and the inbox knows up to which number all have
//! been delivered, which is what a fence asks.

use super::before;
use super::content::Sink;
use crate::memory::bytes::{self, Piece};
use crate::wire::frame::Task;
use bytemuck::allocation::zeroed_slice_box;
use std::collections::{HashMap, VecDeque};

/// A message being assembled. `T` is what the caller wants to know when it is complete.
#[derive(Debug)]
pub struct Assembly<T> {
    /// Where its data goes.
    pub sink: Sink,
    /// Bytes of data in all.
    pub total: u64,
    /// Bytes that have arrived.
    pub arrived: u64,
    /// What follows.
    pub then: T,
}

/// Why bytes were not placed.
#[derive(Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Their message is not known (yet).
    Unknown,
    /// They do not lie inside of their message: the packet is malformed.
    Outside,
}

/// A packet that came before the first one of its message: where in the message its bytes belong,
/// and these (8-byte aligned, so in words) with their length.
pub struct Early {
    /// Where in the message they belong.
    pub offset: u64,
    words: Box<[u64]>,
    len: usize,
}

impl Early {
    /// The bytes.
    pub fn bytes(&self) -> Piece {
        Piece { ptr: self.words.as_ptr().cast(), len: self.len }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + 8 * self.words.len()
    }
}

/// How many malformed messages of one sender are remembered.
const REFUSED: usize = 64;

struct Source<T> {
    /// All messages before this number are delivered,
    delivered: u32,
    /// and so are those in these ranges, each with its end, which is not in it: in ascending order,
    /// and apart from each other. While one message is refused, any number of later ones may be
    /// delivered: they take one range.
    beyond: VecDeque<(u32, u32)>,
    /// What the sender's fence waits for.
    asked: Option<u32>,
    /// Messages under way. Few at a time, so a list is the fastest table.
    assemblies: Vec<(u32, Assembly<T>)>,
    early: HashMap<u32, Vec<Early>>,
    /// How many bytes these take.
    early_bytes: usize,
    /// Messages whose first packet was malformed: the rest of them is dropped. The last ones only.
    refused: VecDeque<u32>,
}

impl<T> Default for Source<T> {
    fn default() -> Self {
        Self {
            delivered: 0,
            beyond: VecDeque::new(),
            asked: None,
            assemblies: Vec::new(),
            early: HashMap::new(),
            early_bytes: 0,
            refused: VecDeque::new(),
        }
    }
}

/// Everything on its way to a task.
pub struct Inbox<T> {
    /// A page of this table takes no memory until a source in it is made.
    sources: Box<[Option<Box<Source<T>>>]>,
}

impl<T> Inbox<T> {
    /// For a job of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        Self { sources: zeroed_slice_box(tasks as usize) }
    }

    /// Takes note of a message of several packets. The caller then places the first packet's bytes,
    /// and those of the packets that [`Self::early`] gives back.
    pub fn begin(&mut self, src: Task, id: u32, assembly: Assembly<T>) {
        self.source(src).assemblies.push((id, assembly));
    }

    /// Where `len` bytes at `offset` of a message belong. The bytes count as arrived. When they are
    /// the last, the message is returned too and forgotten; it still has to be [`Self::deliver`]ed.
    pub fn place(
        &mut self,
        src: Task,
        id: u32,
        offset: u64,
        len: usize,
    ) -> Result<(Sink, Option<Assembly<T>>), Misplaced> {
        let assemblies = &mut self.source(src).assemblies;
        let at = assemblies.iter().position(|(known, _)| *known == id).ok_or(Misplaced::Unknown)?;
        let assembly = &mut assemblies[at].1;
        if offset.checked_add(len as u64).is_none_or(|end| end > assembly.total) {
            return Err(Misplaced::Outside);
        }
        assembly.arrived += len as u64;
        let to = assembly.sink.clone();
        let complete = assembly.arrived >= assembly.total;
        Ok((to, complete.then(|| assemblies.swap_remove(at).1)))
    }

    /// Keeps a packet whose message is not known yet. Returns how many bytes of the
    /// sender's are kept now.
    ///
    /// # Safety
    /// The body must be readable.
    pub unsafe fn keep(&mut self, src: Task, id: u32, offset: u64, body: Piece) -> usize {
        let source = self.source(src);
        if source.refused.contains(&id) {
            return source.early_bytes;
        }
        // SAFETY: the caller's promise.
        let words = unsafe { bytes::aligned(body) };
        let early = Early { offset, words, len: body.len };
        source.early_bytes += early.size();
        source.early.entry(id).or_default().push(early);
        source.early_bytes
    }

    /// How many bytes are taken by packets of this sender whose message is not known yet.
    pub fn early_bytes(&self, src: Task) -> usize {
        self.sources[src as usize].as_deref().map_or(0, |source| source.early_bytes)
    }

    /// The packets of a message that came before its first one.
    pub fn early(&mut self, src: Task, id: u32) -> Vec<Early> {
        let source = self.source(src);
        if source.early.is_empty() {
            return Vec::new();
        }
        let early = source.early.remove(&id).unwrap_or_default();
        source.early_bytes -= early.iter().map(Early::size).sum::<usize>();
        early
    }

    /// Drops what has arrived of a message whose first packet is malformed, and what is
    /// still to arrive.
    pub fn refuse(&mut self, src: Task, id: u32) {
        self.early(src, id);
        let refused = &mut self.source(src).refused;
        if refused.len() == REFUSED {
            refused.pop_front();
        }
        refused.push_back(id);
    }

    /// Notes that all data of a message is where it belongs. Returns the count that the sender's
    /// fence asked about, when this was the last that it waited for.
    #[inline(always)]
    pub fn deliver(&mut self, src: Task, id: u32) -> Option<u32> {
        let source = match &mut self.sources[src as usize] {
            Some(source) => source,
            none => none.insert(Box::default()),
        };
        if id != source.delivered {
            source.insert_beyond(id);
            return None;
        }
        source.delivered = id.wrapping_add(1);
        if !source.beyond.is_empty() {
            source.catch_up();
        }
        source.take_delivered()
    }

    /// The sender's fence asks about the messages before `count`. Returns `count` when they are all
    /// delivered; otherwise [`Self::deliver`] will.
    pub fn ask(&mut self, src: Task, count: u32) -> Option<u32> {
        let source = self.source(src);
        if source.asked.is_none_or(|asked| before(asked, count)) {
            source.asked = Some(count);
        }
        source.take_delivered()
    }

    /// Up to which number all messages of a sender are delivered.
    pub fn delivered(&self, src: Task) -> u32 {
        self.sources[src as usize].as_deref().map_or(0, |source| source.delivered)
    }

    /// Forgets what a peer that has left did not finish.
    pub fn abandon(&mut self, src: Task) -> Vec<(u32, Assembly<T>)> {
        match self.sources[src as usize].as_deref_mut() {
            Some(source) => {
                source.early.clear();
                source.early_bytes = 0;
                std::mem::take(&mut source.assemblies)
            }
            None => Vec::new(),
        }
    }

    /// Forgets everything about a peer that will rejoin.
    pub fn forget(&mut self, src: Task) {
        self.sources[src as usize] = None;
    }

    /// Takes a message under way out, for example when its data will arrive by another path.
    pub fn withdraw(&mut self, src: Task, id: u32) -> Option<Assembly<T>> {
        let assemblies = &mut self.source(src).assemblies;
        let at = assemblies.iter().position(|(known, _)| *known == id)?;
        Some(assemblies.swap_remove(at).1)
    }

    /// The messages being assembled: sender, number and what is known of each.
    pub fn assemblies(&self) -> impl Iterator<Item = (Task, u32, &Assembly<T>)> + '_ {
        (0..).zip(&self.sources).flat_map(|(src, source)| {
            let assemblies = source.as_deref().map_or(&[][..], |source| &source.assemblies);
            assemblies.iter().map(move |(id, assembly)| (src, *id, assembly))
        })
    }

    /// How many packets of each sender are kept because the first one of their
    /// message has not come.
    pub fn kept(&self) -> impl Iterator<Item = (Task, usize)> + '_ {
        let count = |source: &Source<T>| source.early.values().map(Vec::len).sum();
        (0..).zip(&self.sources).filter_map(move |(src, source)| Some((src, count(source.as_deref()?))))
    }

    fn source(&mut self, src: Task) -> &mut Source<T> {
        self.sources[src as usize].get_or_insert_default()
    }
}

impl<T> Source<T> {
    #[cold]
    fn catch_up(&mut self) {
        if let Some(&(start, end)) = self.beyond.front()
            && start == self.delivered
        {
            self.delivered = end;
            self.beyond.pop_front();
        }
    }

    #[cold]
    fn insert_beyond(&mut self, id: u32) {
        if before(id, self.delivered) {
            // No correct task sends a message twice, and what a wrong one sends is not kept.
            return;
        }
        let (base, next) = (self.delivered, id.wrapping_add(1));
        let place = |number: u32| number.wrapping_sub(base);
        let at = self.beyond.partition_point(|&(start, _)| place(start) <= place(id));
        let follows = self.beyond.get(at).is_some_and(|&(start, _)| start == next);
        match at.checked_sub(1).and_then(|before| self.beyond.get_mut(before)) {
            Some((_, end)) if place(*end) > place(id) => {}
            Some((_, end)) if *end == id => {
                *end = next;
                if follows && let Some((_, last)) = self.beyond.remove(at) {
                    self.beyond[at - 1].1 = last;
                }
            }
            _ if follows => self.beyond[at].0 = id,
            _ => self.beyond.insert(at, (id, next)),
        }
    }

    /// The count that the sender's fence has asked about, once all messages before it
    /// are delivered.
    #[inline]
    fn take_delivered(&mut self) -> Option<u32> {
        let asked = self.asked?;
        if before(self.delivered, asked) {
            return None;
        }
        self.asked = None;
        Some(asked)
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
