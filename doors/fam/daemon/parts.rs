//! Parts of regions: memory of this daemon, volatile or the bytes of a file.

use crate::log::{self, Few};
use crate::marks::{self, HEAD, Label, Marks, Range};
use fam::wire::PartKind;
use fam::{Failure, FamError, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A mapping of a part's file. One that has grown has another mapping; both are the same memory.
pub struct Part {
    /// The number of the part.
    pub number: u64,
    file: File,
    /// Of a persistent part.
    path: Option<PathBuf>,
    base: *mut u8,
    /// Bytes of the part, without its head.
    size: u64,
    free: Arc<Mutex<Vec<u16>>>,
    /// No range beyond this was an item's since the part was made.
    used: Arc<AtomicU64>,
    /// What the log says of torn ranges.
    said: Arc<Few>,
    /// The log says that there are no marks.
    is_full: AtomicBool,
}

// SAFETY: the memory belongs to the process, and is accessed by raw pointers alone, but for the
// head, which is atomic numbers.
unsafe impl Send for Part {}
// SAFETY: the same; which bytes are written at a time is the program's matter, as with any memory
// that is shared.
unsafe impl Sync for Part {}

fn failed(what: &'static str) -> impl Fn(Errno) -> Failure {
    move |error| {
        let code = match error {
            Errno::NOSPC | Errno::NOMEM | Errno::FBIG | Errno::DQUOT => FamError::NoSpace,
            _ => FamError::Memory,
        };
        code.because(format!("{what}: {error}"))
    }
}

fn by_file(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |error| {
        let code = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => FamError::NoSpace,
            _ => FamError::Memory,
        };
        code.because(format!("{what} {path}: {error}"))
    }
}

/// The name of a part's file.
fn name(label: Label) -> String {
    format!("part-{:032x}-{:016x}", label.pool, label.part)
}

/// How long a folder may be looked through by `openfamd --torn` as a daemon begins.
const LOOK: Duration = Duration::from_secs(2);

/// Holds a folder of parts for this daemon alone, as long as the file that this returns is open.
///
/// # Errors
/// [`FamError::Memory`]: another daemon has it.
pub fn hold(folder: &Path) -> Result<File> {
    let file = File::open(folder).map_err(by_file("the folder", folder))?;
    let until = Instant::now() + LOOK;
    while let Err(error) = file.try_lock() {
        if Instant::now() >= until || !matches!(error, TryLockError::WouldBlock) {
            return Err(FamError::Memory.because(format!("another daemon uses {}", folder.display())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(file)
}

/// The files of a pool's parts in a folder, by part.
pub fn files(folder: &Path, pool: u128) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let parts = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let rest = name.strip_prefix(&format!("part-{pool:032x}-"))?;
        Some((u64::from_str_radix(rest, 16).ok()?, entry.path()))
    });
    parts.collect()
}

/// Removes the file of a part that is not open.
///
/// # Errors
/// [`FamError::NotFound`]: there is none. [`FamError::Memory`].
pub fn remove(label: Label, folder: &Path) -> Result<()> {
    unlink(&folder.join(name(label)))?;
    sync_folder(folder)
}

fn unlink(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FamError::NotFound.because(format!("there is no {}", path.display())))
        }
        removed => removed.map_err(by_file("the part", path)),
    }
}

/// Torn ranges of all parts in a folder, of any pool, by file.
pub fn torn(folder: &Path) -> Result<Vec<(PathBuf, Vec<Range>)>> {
    let entries = std::fs::read_dir(folder).map_err(by_file("the folder", folder))?;
    let mut all = Vec::new();
    // Others may look at the same time.
    let held = File::open(folder).map_err(by_file("the folder", folder))?;
    let is_used = held.try_lock_shared().is_err();
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with("part-") {
            continue;
        }
        let path = entry.path();
        let bytes = std::fs::File::open(&path).and_then(|file| {
            let mut head = vec![0; HEAD];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0).map(|()| head)
        });
        let bytes = bytes.map_err(by_file("the file", &path))?;
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<AtomicU64> =
            words.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
        if marks::label(&words).is_some() {
            let found = Marks::new(&words, &marks::all_free()).torn(is_used);
            all.push((path, found));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
}

impl Part {
    /// A new part, all zeros. `folder`: of persistent ones.
    ///
    /// # Errors
    /// [`FamError::NoSpace`], [`FamError::NotCreated`]: the server has no such memory;
    /// [`FamError::Memory`].
    pub fn make(label: Label, size: u64, kind: PartKind, folder: Option<&Path>) -> Result<Self> {
        if kind == PartKind::Volatile {
            let file = memfd_create(name(label), MemfdFlags::CLOEXEC).map_err(failed("memory"))?;
            return Self::map(label.part, file.into(), None, size);
        }
        let folder =
            folder.ok_or_else(|| FamError::NotCreated.because("the server has no persistent memory"))?;
        let path = folder.join(name(label));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(by_file("the part", &path))?;
        let made = Self::map(label.part, file, Some(path.clone()), size).and_then(|part| {
            fallocate(&part.file, FallocateFlags::empty(), 0, HEAD as u64).map_err(failed("the part"))?;
            marks::set_label(part.head(), label);
            part.file.sync_all().map_err(by_file("the part", &path))?;
            sync_folder(folder)?;
            Ok(part)
        });
        if made.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        made
    }

    /// A part that is in a folder since before. Returns the ranges that are torn, too.
    ///
    /// # Errors
    /// [`FamError::Memory`]: there is no such part.
    pub fn open(label: Label, folder: &Path) -> Result<(Self, Vec<Range>)> {
        let path = folder.join(name(label));
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(by_file("the part", &path))?;
        let length = file.metadata().map_err(by_file("the part", &path))?.len();
        let size = length
            .checked_sub(HEAD as u64)
            .filter(|size| *size != 0)
            .ok_or_else(|| FamError::Memory.because(format!("{} is no part", path.display())))?;
        let mut part = Self::map(label.part, file, Some(path.clone()), size)?;
        part.used = Arc::new(AtomicU64::new(u64::MAX));
        if marks::label(part.head()) != Some(label) {
            return Err(FamError::Memory.because(format!("{} is another part", path.display())));
        }
        let (mut torn, before) = Marks::new(part.head(), &part.free).recover();
        torn.extend(before);
        Ok((part, torn))
    }

    /// The part with another size, in another mapping of the same memory.
    ///
    /// # Errors
    /// Those of [`Self::make`].
    pub fn resized(&self, size: u64) -> Result<Self> {
        let file = self.file.try_clone().map_err(|error| FamError::Memory.because(error.to_string()))?;
        let mut part = Self::map(self.number, file, self.path.clone(), size)?;
        (part.free, part.used, part.said) = (self.free.clone(), self.used.clone(), self.said.clone());
        Ok(part)
    }

    fn map(number: u64, file: File, path: Option<PathBuf>, size: u64) -> Result<Self> {
        let head = if path.is_some() { HEAD as u64 } else { 0 };
        let length = size.checked_add(head).filter(|length| usize::try_from(*length).is_ok());
        let length = length.ok_or_else(|| FamError::NoSpace.because(format!("a part of {size} bytes")))?;
        // A part that shrinks is cut when it is mapped: what fails leaves it as it was.
        let shrinks = file.metadata().is_ok_and(|about| about.len() > length);
        let set_size = || rustix::fs::ftruncate(&file, length).map_err(failed("the size of a part"));
        if !shrinks {
            set_size()?;
        }
        // SAFETY: a new mapping of the whole file.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let base = base.map_err(failed("mapping a part"))?.cast();
        if shrinks {
            set_size()?;
        }
        Ok(Self {
            number,
            file,
            path,
            base,
            size,
            free: Arc::new(marks::all_free()),
            used: Arc::default(),
            said: Arc::default(),
            is_full: AtomicBool::new(false),
        })
    }

    fn head_length(&self) -> u64 {
        if self.path.is_some() { HEAD as u64 } else { 0 }
    }

    /// The head of a persistent part.
    fn head(&self) -> &[AtomicU64] {
        debug_assert!(self.path.is_some());
        // SAFETY: the mapping begins with the head, and is aligned to pages; it lives as long as
        // this, and is accessed by atomic numbers alone.
        unsafe { std::slice::from_raw_parts(self.base.cast::<AtomicU64>(), HEAD / 8) }
    }

    /// Bytes of the part.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The address of an offset.
    pub fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset <= self.size);
        self.base.wrapping_add((self.head_length() + offset) as usize)
    }

    /// The descriptor of the file, and where an offset is in it.
    pub fn in_file(&self, offset: u64) -> (RawFd, u64) {
        (self.file.as_raw_fd(), self.head_length() + offset)
    }

    /// Marks a range before it is written, where that outlives the daemon. Without a free mark it
    /// is not marked.
    pub fn mark(&self, range: Range) -> Option<u16> {
        self.path.as_ref()?;
        let mark = Marks::new(self.head(), &self.free).set(range);
        if mark.is_none() && !self.is_full.swap(true, Ordering::Relaxed) {
            log::line(&format!("part {} has no mark left: torn ranges are not found there", self.number));
        }
        mark
    }

    /// The range of a mark is written.
    pub fn unmark(&self, mark: Option<u16>) {
        if let Some(mark) = mark {
            Marks::new(self.head(), &self.free).clear(mark);
        }
    }

    /// The range of a mark will not be written as a whole.
    pub fn tear(&self, mark: Option<u16>) {
        let torn = mark.and_then(|mark| Marks::new(self.head(), &self.free).tear(mark));
        if let Some(range) = torn {
            self.log_torn(range);
        }
    }

    /// Says in the log that a range is torn; of many there are the first ones.
    pub fn log_torn(&self, range: Range) {
        let (Range { item, offset, length }, part) = (range, self.number);
        self.said.line(
            &format!(
                "item {item} is torn: {length} bytes at {offset} of part {part} were not written as a whole"
            ),
            &format!("more ranges of part {part} are torn: openfamd --torn lists them"),
        );
    }

    /// A range becomes zeros, and has its space.
    ///
    /// # Errors
    /// [`FamError::NoSpace`], [`FamError::OutOfRange`], [`FamError::Memory`].
    pub fn clear(&self, offset: u64, length: u64) -> Result<()> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size);
        let end = end.ok_or_else(|| FamError::OutOfRange.because("a range beyond the part"))?;
        let at = self.head_length() + offset;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let has_holes = match fallocate(&self.file, hole, at, length) {
            Err(Errno::OPNOTSUPP) => false,
            punched => punched.map(|()| true).map_err(failed("space of an item"))?,
        };
        if self.path.is_some() {
            fallocate(&self.file, FallocateFlags::empty(), at, length).map_err(failed("space of an item"))?;
        }
        if !has_holes {
            // After the space is there: on a full disk a write into a hole would end the daemon.
            // SAFETY: within the mapping; there is no item.
            unsafe { ptr::write_bytes(self.at(offset), 0, length as usize) };
        }
        let was_used = offset < self.used.fetch_max(end, Ordering::Relaxed);
        if self.path.is_some() {
            if was_used {
                // A power failure brings nothing of an earlier item back.
                self.file.sync_data().map_err(|error| FamError::Memory.because(error.to_string()))?;
            }
            Marks::new(self.head(), &self.free).renew(offset, length);
        }
        Ok(())
    }

    /// Makes the part durable.
    ///
    /// # Errors
    /// [`FamError::Memory`]: the system cannot write it.
    pub fn sync(&self) -> Result<()> {
        if self.path.is_none() {
            return Ok(());
        }
        let length = self.head_length() + self.size;
        // SAFETY: the whole mapping.
        unsafe { msync(self.base.cast(), length as usize, MsyncFlags::SYNC) }
            .map_err(failed("writing a part to its file"))
    }

    /// Removes the part: its space is free, though sessions may still have it mapped, in which
    /// nothing can be done any more.
    ///
    /// # Errors
    /// [`FamError::Memory`]: its file is still there, or would be after a power failure.
    pub fn remove(&self) -> Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, hole, 0, self.head_length() + self.size);
        let Some(path) = &self.path else { return Ok(()) };
        match unlink(path) {
            Err(failure) if failure.error != FamError::NotFound => Err(failure),
            _ => path.parent().map_or(Ok(()), sync_folder),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let length = self.head_length() + self.size;
        // SAFETY: the whole mapping, which nothing uses any more.
        let _ = unsafe { munmap(self.base.cast(), length as usize) };
    }
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(by_file("the folder", folder))
}
