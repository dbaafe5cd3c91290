//! A piece of an item that a session has opened: what may be done to its bytes, and doing it.
//!
//! Operations of one session run one after the other, those of several in whichever thread makes
//! progress for them.

use crate::marks::Range;
use crate::parts::Part;
use fam::FamError;
use fam::wire::{Change, Kind, MOST_VECTOR, READ, RUN, Shape, WRITE, runs};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The result of an operation on memory.
pub type Result<T> = std::result::Result<T, FamError>;

/// Held while a number of 128 bits changes.
static WIDE: Mutex<()> = Mutex::new(());

/// A piece of an item, with the rights of the one who has opened it.
pub struct Opened {
    /// The item.
    pub item: u64,
    /// [`READ`] and [`WRITE`].
    pub rights: u8,
    /// The part that it lies in.
    pub part: Arc<Part>,
    /// Where the piece begins in the part, in bytes.
    pub offset: u64,
    /// Bytes of the piece.
    pub length: u64,
    is_withdrawn: AtomicBool,
    /// Operations under way.
    users: AtomicU32,
    /// Nothing of the session that has opened it may go on.
    pub is_doomed: Arc<AtomicBool>,
}

impl Opened {
    /// A piece that lies within its part.
    pub fn new(
        (item, rights): (u64, u8),
        part: Arc<Part>,
        (offset, length): (u64, u64),
        is_doomed: Arc<AtomicBool>,
    ) -> Self {
        let (is_withdrawn, users) = (AtomicBool::new(false), AtomicU32::new(0));
        Self { item, rights, part, offset, length, is_withdrawn, users, is_doomed }
    }

    /// No operation begins from now on.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
    }

    /// Whether an operation is under way.
    pub fn is_in_use(&self) -> bool {
        self.users.load(Ordering::SeqCst) != 0
    }

    /// Whether an operation that needs this right may begin.
    ///
    /// # Errors
    /// [`FamError::NoPerm`], [`FamError::NotFound`].
    pub fn may(&self, right: u8) -> Result<()> {
        if self.rights & right != right {
            return Err(FamError::NoPerm);
        }
        if self.is_withdrawn.load(Ordering::SeqCst) { Err(FamError::NotFound) } else { Ok(()) }
    }

    /// Begins an operation that needs this right.
    fn begin(&self, right: u8) -> Result<()> {
        if self.rights & right != right {
            return Err(FamError::NoPerm);
        }
        // First this, then the look: a withdrawal does it in the other order.
        self.users.fetch_add(1, Ordering::SeqCst);
        if self.is_withdrawn.load(Ordering::SeqCst) {
            self.end();
            return Err(FamError::NotFound);
        }
        Ok(())
    }

    /// Ends an operation.
    fn end(&self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
    }

    fn check(&self, offset: u64, length: u64) -> Result<()> {
        let is_within = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if is_within { Ok(()) } else { Err(FamError::OutOfRange) }
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.part.at(self.offset + offset)
    }

    fn mark(&self, offset: u64, length: u64) -> Option<u16> {
        self.part.mark(Range { item: self.item, offset: self.offset + offset, length })
    }

    /// Writes data that is here.
    ///
    /// # Errors
    /// [`FamError::NoPerm`], [`FamError::NotFound`], [`FamError::OutOfRange`].
    pub fn put(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.begin(WRITE)?;
        let written = self.check(offset, data.len() as u64).map(|()| self.write(offset, data));
        self.end();
        written
    }

    /// Writes data within the piece.
    fn write(&self, offset: u64, data: &[u8]) {
        let at = self.at(offset);
        if let Ok(bytes) = <[u8; 8]>::try_from(data)
            && at.addr().is_multiple_of(8)
        {
            // SAFETY: within the mapping, aligned; others access it as shared memory, too.
            return unsafe { AtomicU64::from_ptr(at.cast()) }
                .store(u64::from_ne_bytes(bytes), Ordering::Release);
        }
        if let Ok(bytes) = <[u8; 4]>::try_from(data)
            && at.addr().is_multiple_of(4)
        {
            // SAFETY: within the mapping, aligned; others access it as shared memory, too.
            return unsafe { AtomicU32::from_ptr(at.cast()) }
                .store(u32::from_ne_bytes(bytes), Ordering::Release);
        }
        let mark = if data.len() > 1 { self.mark(offset, data.len() as u64) } else { None };
        // SAFETY: within the mapping; the data is a message's, and lies elsewhere.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
        self.part.unmark(mark);
    }

    /// Begins to write data that is on its way: its place.
    ///
    /// # Errors
    /// Those of [`Self::put`].
    pub fn begin_put(self: &Arc<Self>, offset: u64, length: u64) -> Result<Writing> {
        self.begin(WRITE)?;
        if let Err(error) = self.check(offset, length) {
            self.end();
            return Err(error);
        }
        let mark = self.mark(offset, length);
        Ok(Writing { of: self.clone(), at: self.at(offset), mark, is_whole: false })
    }

    /// Begins to read a range: its place.
    ///
    /// # Errors
    /// [`FamError::NoPerm`], [`FamError::NotFound`], [`FamError::OutOfRange`].
    pub fn begin_get(self: &Arc<Self>, offset: u64, length: u64) -> Result<Reading> {
        self.begin(READ)?;
        if let Err(error) = self.check(offset, length) {
            self.end();
            return Err(error);
        }
        Ok(Reading { of: self.clone(), at: self.at(offset), length: length as usize })
    }

    /// Changes a number as one step, and returns what it was: 0 to who may write and not read.
    ///
    /// # Errors
    /// Those of [`Self::put`]; [`FamError::Invalid`]: it is not aligned, or numbers of this kind
    /// are not changed so.
    pub fn change(
        &self,
        offset: u64,
        (change, kind): (Change, Kind),
        operand: u128,
        comparand: u128,
    ) -> Result<u128> {
        if !change.takes(kind) {
            return Err(FamError::Invalid);
        }
        self.begin(match change {
            Change::CompareSwap => READ | WRITE,
            _ if change.writes() => WRITE,
            _ => READ,
        })?;
        let size = kind.size();
        let aligned = |()| {
            let is_aligned = (self.offset + offset).is_multiple_of(size as u64);
            if is_aligned { Ok(()) } else { Err(FamError::Invalid) }
        };
        let old = self.check(offset, size as u64).and_then(aligned).map(|()| {
            let at = self.at(offset);
            let next = |old: u128| change.apply(kind, old, operand, comparand);
            match size {
                // SAFETY: within the mapping, aligned.
                4 => modify_u32(unsafe { AtomicU32::from_ptr(at.cast()) }, next),
                // SAFETY: within the mapping, aligned to its size.
                8 => modify_u64(unsafe { AtomicU64::from_ptr(at.cast()) }, next),
                _ => {
                    let _one = WIDE.lock().unwrap_or_else(PoisonError::into_inner);
                    // SAFETY: within the mapping, aligned to its size.
                    let old = unsafe { at.cast::<u128>().read_volatile() };
                    let new = next(old);
                    if new != old {
                        let mark = self.mark(offset, 16);
                        // SAFETY: within the mapping, aligned to its size.
                        unsafe { at.cast::<u128>().write_volatile(new) };
                        self.part.unmark(mark);
                    }
                    old
                }
            }
        });
        self.end();
        if self.rights & READ == 0 { old.map(|_| 0) } else { old }
    }

    /// Writes the elements of a vector message: its data, behind the runs if it has some.
    ///
    /// # Errors
    /// Those of [`Self::put`]; [`FamError::Invalid`]: the data is not what the shape says.
    pub fn scatter(&self, shape: Shape, data: &[u8]) -> Result<()> {
        let places = Places::of(shape, data).ok_or(FamError::Invalid)?;
        let data = &data[places.behind()..];
        self.begin(WRITE)?;
        let checked = self.extent(&places).and_then(|(from, to, total)| {
            if total == data.len() as u64 { Ok((from, to)) } else { Err(FamError::Invalid) }
        });
        let written = checked.map(|(from, to)| {
            let mark = if to > from { self.mark(from, to - from) } else { None };
            let mut rest = data;
            places.each(|offset, length| {
                let (now, later) = rest.split_at(length as usize);
                rest = later;
                // SAFETY: within the mapping, as `extent` has found; the data lies elsewhere.
                unsafe { ptr::copy_nonoverlapping(now.as_ptr(), self.at(offset), now.len()) };
            });
            self.part.unmark(mark);
        });
        self.end();
        written
    }

    /// Reads the elements of a vector message, whose data has the runs if there are some: at most
    /// as many bytes as there is `room` for.
    ///
    /// # Errors
    /// [`FamError::NoPerm`], [`FamError::NotFound`], [`FamError::OutOfRange`],
    /// [`FamError::Invalid`], [`FamError::Resource`]: they are too many.
    pub fn gather(&self, shape: Shape, data: &[u8], room: u64) -> Result<Vec<u8>> {
        let places = Places::of(shape, data).ok_or(FamError::Invalid)?;
        self.begin(READ)?;
        let mut all = Vec::new();
        let gathered = self.extent(&places).and_then(|(_, _, total)| {
            if total > room.min(MOST_VECTOR as u64) || all.try_reserve_exact(total as usize).is_err() {
                return Err(FamError::Resource);
            }
            places.each(|offset, length| {
                let (start, length) = (all.len(), length as usize);
                all.resize(start + length, 0);
                // SAFETY: within the mapping, as `extent` has found, and within the vector.
                unsafe { ptr::copy_nonoverlapping(self.at(offset), all[start..].as_mut_ptr(), length) };
            });
            Ok(())
        });
        self.end();
        gathered.map(|()| all)
    }

    /// The first byte, the end, and the sum of the lengths of places that are within the piece.
    fn extent(&self, places: &Places<'_>) -> Result<(u64, u64, u64)> {
        if let Shape::Strided { element, count, first, stride } = places.shape {
            if element == 0 || count == 0 {
                return Err(FamError::Invalid);
            }
            let total = element.checked_mul(count).ok_or(FamError::OutOfRange)?;
            let last = (count - 1).checked_mul(stride).and_then(|all| all.checked_add(first));
            let last = last.ok_or(FamError::OutOfRange)?;
            if stride < element && total > self.length {
                // The same bytes again and again, which cost time and nothing else.
                return Err(FamError::Invalid);
            }
            self.check(last, element)?;
            return Ok((first, last + element, total));
        }
        let (mut from, mut to, mut total, mut fault) = (u64::MAX, 0, 0_u64, None);
        places.each(|offset, length| match self.check(offset, length) {
            Ok(()) => {
                (from, to) = (from.min(offset), to.max(offset + length));
                total = total.saturating_add(length);
            }
            Err(error) => fault = Some(error),
        });
        fault.map_or(Ok((from, to, total)), Err)
    }
}

/// The places of a vector message.
struct Places<'a> {
    shape: Shape,
    data: &'a [u8],
}

impl<'a> Places<'a> {
    fn of(shape: Shape, data: &'a [u8]) -> Option<Self> {
        if let Shape::Runs { count } = shape {
            let _ = runs(data, count)?;
        }
        Some(Self { shape, data })
    }

    /// Where the data of the elements begins.
    fn behind(&self) -> usize {
        if let Shape::Runs { count } = self.shape { count as usize * RUN } else { 0 }
    }

    fn each(&self, mut one: impl FnMut(u64, u64)) {
        match self.shape {
            Shape::Strided { element, count, first, stride } => {
                (0..count).for_each(|number| one(first + number * stride, element));
            }
            Shape::Runs { count } => {
                runs(self.data, count).into_iter().flatten().for_each(|(offset, length)| one(offset, length));
            }
        }
    }
}

fn modify_u32(word: &AtomicU32, next: impl Fn(u128) -> u128) -> u128 {
    let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(next(old.into()) as u32));
    u128::from(old.unwrap_or_else(|old| old))
}

fn modify_u64(word: &AtomicU64, next: impl Fn(u128) -> u128) -> u128 {
    let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(next(old.into()) as u64));
    u128::from(old.unwrap_or_else(|old| old))
}

/// Data that is on its way to a piece.
pub struct Writing {
    of: Arc<Opened>,
    /// Where it goes.
    pub at: *mut u8,
    mark: Option<u16>,
    is_whole: bool,
}

impl Writing {
    /// All data is there.
    pub fn end_whole(mut self) {
        self.is_whole = true;
    }
}

// SAFETY: the address is of a part's mapping, which lives as long as this.
unsafe impl Send for Writing {}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.is_whole {
            self.of.part.unmark(self.mark);
        } else {
            // The rest will not come.
            self.of.part.tear(self.mark);
        }
        self.of.end();
    }
}

/// A range of a piece that is read.
pub struct Reading {
    of: Arc<Opened>,
    /// Where it begins.
    pub at: *const u8,
    /// Bytes.
    pub length: usize,
}

// SAFETY: the address is of a part's mapping, which lives as long as this; the session reads there.
unsafe impl Send for Reading {}

impl Drop for Reading {
    fn drop(&mut self) {
        self.of.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Label;
    use fam::wire::PartKind;

    fn opened(rights: u8) -> Arc<Opened> {
        let label = Label { pool: 1, part: 1 };
        let part = Part::make(label, 1 << 16, PartKind::Volatile, None).expect("a part");
        let part = Arc::new(part);
        Arc::new(Opened::new((9, rights), part, (4096, 1000), Arc::default()))
    }

    #[test]
    fn an_operation_stays_within_its_piece_and_its_rights() {
        let one = opened(READ | WRITE);
        one.put(992, &[7; 8]).expect("within");
        for (offset, length) in [(993, 8), (1000, 1), (u64::MAX, 2)] {
            assert_eq!(one.put(offset, &vec![1; length]), Err(FamError::OutOfRange));
            assert_eq!(one.begin_get(offset, length as u64).err(), Some(FamError::OutOfRange));
            assert_eq!(one.begin_put(offset, length as u64).err(), Some(FamError::OutOfRange));
        }
        let add = (Change::Add, Kind::Int64);
        assert_eq!(one.change(992, add, 1, 0), Ok(u64::from_ne_bytes([7; 8]).into()));
        assert_eq!(one.change(988, add, 1, 0), Err(FamError::Invalid));
        assert_eq!(one.change(1000, add, 1, 0), Err(FamError::OutOfRange));
        assert_eq!(one.change(0, (Change::And, Kind::Double), 1, 0), Err(FamError::Invalid));
        assert_eq!(opened(READ).put(0, &[1]), Err(FamError::NoPerm));
        assert_eq!(opened(READ).change(0, add, 1, 0), Err(FamError::NoPerm));
        let (writes, set) = (opened(WRITE), (Change::Swap, Kind::Int64));
        assert_eq!(writes.change(0, set, 5, 0), Ok(0));
        assert_eq!(writes.change(0, set, 6, 0), Ok(0), "what it was is not said");
        assert_eq!(writes.change(0, (Change::CompareSwap, Kind::Int64), 1, 6), Err(FamError::NoPerm));
        assert_eq!(writes.change(0, (Change::Fetch, Kind::Int64), 0, 0), Err(FamError::NoPerm));
        assert_eq!(opened(WRITE).begin_get(0, 1).err(), Some(FamError::NoPerm));
        assert!(!one.is_in_use());
        let reading = one.begin_get(0, 8).expect("within");
        one.withdraw();
        assert!(one.is_in_use());
        assert_eq!(one.put(0, &[1]), Err(FamError::NotFound));
        drop(reading);
        assert!(!one.is_in_use());
    }

    #[test]
    fn vectors_are_written_and_read_where_they_say() {
        let one = opened(READ | WRITE);
        let strided = Shape::Strided { element: 4, count: 3, first: 8, stride: 12 };
        one.scatter(strided, b"aaaabbbbcccc").expect("within");
        assert_eq!(one.gather(strided, &[], 99).expect("within"), b"aaaabbbbcccc");
        let run = |offset: u64, length: u64| [offset.to_le_bytes(), length.to_le_bytes()].concat();
        let two = [run(20, 2), run(34, 3)].concat();
        assert_eq!(one.gather(Shape::Runs { count: 2 }, &two, 99).expect("within"), b"bbcc\0");
        let with_data = [two.clone(), b"xxyyy".to_vec()].concat();
        one.scatter(Shape::Runs { count: 2 }, &with_data).expect("within");
        assert_eq!(one.gather(Shape::Runs { count: 2 }, &two, 99).expect("within"), b"xxyyy");
        for (shape, data, error) in [
            (Shape::Runs { count: 3 }, two.clone(), FamError::Invalid),
            (Shape::Runs { count: 2 }, [two.clone(), b"xxyy".to_vec()].concat(), FamError::Invalid),
            (Shape::Runs { count: 1 }, [run(999, 2), b"xx".to_vec()].concat(), FamError::OutOfRange),
            (Shape::Runs { count: 1 }, [run(u64::MAX, 2), b"xx".to_vec()].concat(), FamError::OutOfRange),
            (strided, b"aaaa".to_vec(), FamError::Invalid),
            (
                Shape::Strided { element: 4, count: 3, first: 990, stride: 4 },
                vec![0; 12],
                FamError::OutOfRange,
            ),
            (
                Shape::Strided { element: 4, count: u64::MAX, first: 0, stride: 0 },
                vec![],
                FamError::OutOfRange,
            ),
            (
                Shape::Strided { element: 1, count: 5000, first: 0, stride: 0 },
                vec![0; 5000],
                FamError::Invalid,
            ),
            (Shape::Strided { element: 0, count: 3, first: 0, stride: 4 }, vec![], FamError::Invalid),
            (
                Shape::Strided { element: 1, count: 3, first: 0, stride: u64::MAX / 2 },
                vec![0; 3],
                FamError::OutOfRange,
            ),
        ] {
            assert_eq!(one.scatter(shape, &data), Err(error), "{shape:?}");
        }
    }
}
