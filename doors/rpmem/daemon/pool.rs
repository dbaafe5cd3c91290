//! An open pool: its files, their mapping, and what each lane has flushed.

use crate::files::{Files, read_set};
use crate::log;
use crate::mapping::Mapping;
use rpmem::disk::{HEADER, Header, check_features};
use rpmem::wire::{Depth, Range};
use rpmem::{Attributes, Failure, Result};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lane has flushed since its last drain.
#[derive(Default)]
struct Lane {
    ranges: Vec<(usize, usize)>,
    /// How many flushes have arrived, and how many the drain that has arrived before them awaits.
    arrived: u64,
    awaited: Option<u64>,
    failure: Option<Failure>,
}

/// A pool that a client has opened.
pub struct Pool {
    // The mapping goes before the files, and these before their locks are seen as free.
    mapping: Mapping,
    files: Files,
    headers: Mutex<Vec<Header>>,
    lanes: Vec<Mutex<Lane>>,
    /// The size of the client's pool, in bytes.
    size: usize,
}

impl Pool {
    /// Creates a pool of at least `size` bytes.
    ///
    /// # Errors
    /// EINVAL: attributes and headers do not go together, or the attributes have features that are
    /// not known. EFBIG: the set is smaller. ENOTSUP: its headers are smaller than this machine's
    /// pages. Those of [`read_set`] and [`Files::create`].
    pub fn create(folder: &Path, name: &str, size: u64, lanes: u32, attributes: Attributes) -> Result<Self> {
        let (path, set) = read_set(folder, name)?;
        if set.has_header() == attributes.is_none() {
            let text = if set.has_header() {
                "the set has headers, and there are no attributes for them"
            } else {
                "the set has the option NOHDRS, and no place for attributes"
            };
            return Err(Failure::invalid(format!("{}: {text}", path.display())));
        }
        check_features(&attributes)?;
        check_set(&set, size)?;
        let files = Files::create(set)?;
        let mut headers = files.new_headers(attributes);
        headers.iter_mut().for_each(|header| header.is_dirty = header.has_state());
        let mut pool = Self::map(files, headers, size, lanes)?;
        pool.files.write_headers(&lock(&pool.headers))?;
        pool.files.keep()?;
        log::info(&format!("{} is created", path.display()));
        Ok(pool)
    }

    /// Opens a pool of at least `size` bytes.
    ///
    /// # Errors
    /// EINVAL: the pool is damaged, or has lost data in a power failure. EFBIG: it is smaller.
    /// ENOTSUP: as of [`Self::create`]. Those of [`read_set`] and [`Files::open`].
    pub fn open(folder: &Path, name: &str, size: u64, lanes: u32) -> Result<Self> {
        let (path, set) = read_set(folder, name)?;
        let files = Files::open(set)?;
        check_set(&files.set, size)?;
        let mut headers = files.headers()?;
        if let Some(first) = headers.first()
            && first.has_state()
            && first.is_dirty
            && first.devices != [0; 2]
        {
            let text = "the pool was not closed in order, and its devices have been switched off since";
            return Err(Failure::invalid(format!("{}: {text}", path.display())));
        }
        // While it is open it is this side's, which knows no devices: those of a host that has had
        // it before must not decide whether it is whole if the daemon dies.
        headers.iter_mut().for_each(|header| header.devices = [0; 2]);
        let pool = Self::map(files, headers, size, lanes)?;
        pool.mark(true)?;
        log::info(&format!("{} is open", path.display()));
        Ok(pool)
    }

    fn map(files: Files, headers: Vec<Header>, size: u64, lanes: u32) -> Result<Self> {
        let page = rustix::param::page_size() as u64;
        let pieces: Vec<_> = files
            .parts
            .iter()
            .enumerate()
            .map(|(at, file)| {
                let (start, length) = files.set.piece(at, page);
                (file, start, length)
            })
            .collect();
        let mapping = Mapping::new(&pieces)?;
        let lanes = (0..lanes).map(|_| Mutex::default()).collect();
        Ok(Self { mapping, files, headers: Mutex::new(headers), lanes, size: size as usize })
    }

    /// The address of its first byte.
    pub fn base(&self) -> u64 {
        self.mapping.base().expose_provenance() as u64
    }

    /// Whether it begins with a header.
    pub fn has_header(&self) -> bool {
        self.files.set.has_header()
    }

    /// Whether msync makes a part of it durable.
    pub fn waits_for_disk(&self) -> bool {
        self.mapping.waits_for_disk()
    }

    /// The attributes; zeros without a header.
    pub fn attributes(&self) -> Attributes {
        lock(&self.headers).first().map(|header| header.attributes).unwrap_or_default()
    }

    /// Puts data in its place, if there is any, and makes the range durable.
    ///
    /// # Errors
    /// EINVAL: no range of the pool. The system's.
    pub fn persist(&self, range: Range, data: &[u8], depth: Depth) -> Result<()> {
        let range = self.land(range, data)?;
        self.mapping.sync(&[range], depth == Depth::Deep)
    }

    /// Puts data in its place, if there is any. Returns what a drain that waits for it has done.
    pub fn flush(&self, lane: u32, range: Range, data: &[u8]) -> Option<Result<()>> {
        let landed = self.land(range, data);
        let mut lane = lock(self.lanes.get(lane as usize)?);
        lane.arrived += 1;
        match landed {
            Ok(range) => lane.ranges.push(range),
            Err(failure) => lane.failure = Some(failure),
        }
        self.drained(&mut lane)
    }

    /// Makes durable what the lane has flushed; `None`: flushes are still on the way.
    ///
    /// # Errors
    /// EINVAL: there is no such lane. What has failed since the last drain.
    pub fn drain(&self, lane: u32, flushes: u64) -> Option<Result<()>> {
        let Some(lane) = self.lanes.get(lane as usize) else {
            return Some(Err(Failure::invalid(format!("lane {lane}"))));
        };
        let mut lane = lock(lane);
        lane.awaited = Some(flushes);
        self.drained(&mut lane)
    }

    fn drained(&self, lane: &mut Lane) -> Option<Result<()>> {
        if lane.awaited.is_none_or(|awaited| lane.arrived < awaited) {
            return None;
        }
        self.settle(lane);
        let Lane { failure, .. } = std::mem::take(lane);
        Some(failure.map_or(Ok(()), Err))
    }

    fn settle(&self, lane: &mut Lane) {
        let ranges = std::mem::take(&mut lane.ranges);
        if let Err(failure) = self.mapping.sync(&ranges, false) {
            lane.failure = Some(failure);
        }
    }

    /// Changes the attributes in all headers.
    ///
    /// # Errors
    /// EINVAL: there is no header, or the features are not known. The system's.
    pub fn set_attributes(&self, attributes: Attributes) -> Result<()> {
        if !self.has_header() {
            return match attributes.is_none() {
                true => Ok(()),
                false => Err(Failure::invalid("the set has the option NOHDRS, and no place for attributes")),
            };
        }
        check_features(&attributes)?;
        let mut headers = lock(&self.headers);
        let mut changed = self.files.changed(&headers, attributes);
        changed.iter_mut().for_each(|header| header.is_dirty = header.has_state());
        // The kernel may have reported to it what it could not write of the pool's data.
        self.files.write_headers(&changed).inspect_err(|failure| self.mapping.note_failure(failure))?;
        *headers = changed;
        Ok(())
    }

    /// What was flushed is durable, and the headers say that the pool is closed in order.
    ///
    /// # Errors
    /// The system's, also those of earlier calls: then the headers do not change.
    pub fn close(self) -> Result<()> {
        let ranges: Vec<_> =
            self.lanes.iter().flat_map(|lane| std::mem::take(&mut lock(lane).ranges)).collect();
        self.mapping.sync(&ranges, false)?;
        self.mark(false)
    }

    /// Writes the mark of an open pool, where headers have one.
    fn mark(&self, is_open: bool) -> Result<()> {
        let mut headers = lock(&self.headers);
        if !headers.first().is_some_and(Header::has_state) {
            return Ok(());
        }
        headers.iter_mut().for_each(|header| header.is_dirty = is_open);
        self.files.write_headers(&headers)
    }

    /// Data that stands in the message is put in its place. The range, as it is in the mapping.
    fn land(&self, range: Range, data: &[u8]) -> Result<(usize, usize)> {
        let wrong = || Failure::invalid(format!("offset {}, {} bytes", range.offset, range.length));
        let (Ok(offset), Ok(length)) = (usize::try_from(range.offset), usize::try_from(range.length)) else {
            return Err(wrong());
        };
        let first = if self.has_header() { HEADER } else { 0 };
        if offset < first || offset.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(wrong());
        }
        if !data.is_empty() {
            if data.len() != length {
                return Err(wrong());
            }
            self.mapping.write(offset, data);
        }
        Ok((offset, length))
    }
}

/// Whether this machine can map a pool of that size of the set.
fn check_set(set: &rpmem::disk::Set, size: u64) -> Result<()> {
    let page = rustix::param::page_size() as u64;
    set.check_pages(page)?;
    let found = set.size(page);
    if size > found {
        let text = format!("the local pool has {size} bytes, and the remote one {found}");
        return Err(Failure::new(libc::EFBIG, text));
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
