//! The parts of a pool, mapped one behind the other.

use rpmem::wire::WHOLE;
use rpmem::{Failure, Result};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap};
use std::fs::File;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::flush;

/// A file's bytes in the mapping.
struct Piece {
    /// From the beginning of the mapping, in bytes.
    offset: usize,
    /// In bytes.
    length: usize,
    /// Stores are durable when they have left the caches.
    is_direct: bool,
}

/// A mapping of files. It is used by this process and by the client, whose data lands here.
pub struct Mapping {
    base: *mut u8,
    length: usize,
    page: usize,
    pieces: Vec<Piece>,
    /// The first msync that failed. The kernel reports what it could not write only once, and to
    /// one call: later ones would succeed without that data.
    failed: OnceLock<Failure>,
}

// SAFETY: the memory belongs to the process, and all accesses go through raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: the same; the client sees to which bytes one thread alone uses, as with any memory that
// two processes share.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps files: of each, where it begins and how many bytes, both multiples of the page size.
    ///
    /// # Errors
    /// The system's.
    pub fn new(files: &[(&File, u64, u64)]) -> Result<Self> {
        let failed = |error: Errno| Failure::system("mapping the pool")(error.into());
        let length = files.iter().map(|(_, _, length)| *length as usize).sum();
        // SAFETY: new memory, which no other mapping has.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE) };
        let base = base.map_err(failed)?.cast::<u8>();
        let page = rustix::param::page_size();
        // From here on dropping it unmaps.
        let mut mapping = Self { base, length, page, pieces: Vec::new(), failed: OnceLock::new() };
        let mut offset = 0;
        for (file, start, length) in files {
            let length = *length as usize;
            let is_direct = is_direct(file, *start, page);
            let flags = if is_direct { MapFlags::SHARED_VALIDATE | MapFlags::SYNC } else { MapFlags::SHARED };
            // SAFETY: within the memory that was reserved for it.
            let mapped = unsafe {
                let at = base.add(offset).cast();
                mmap(at, length, ProtFlags::READ | ProtFlags::WRITE, flags | MapFlags::FIXED, file, *start)
            };
            mapped.map_err(failed)?;
            mapping.pieces.push(Piece { offset, length, is_direct: is_direct || flush::is_forced() });
            offset += length;
        }
        Ok(mapping)
    }

    /// The address.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Whether a part of it is made durable by msync.
    pub fn waits_for_disk(&self) -> bool {
        self.pieces.iter().any(|piece| !piece.is_direct)
    }

    /// Takes a failure that the kernel has reported to another call on one of the files.
    pub fn note_failure(&self, failure: &Failure) {
        let _ = self.failed.set(failure.clone());
    }

    /// Copies data to an offset. Of as much as a client expects to be whole ([`WHOLE`]), words of 8
    /// aligned bytes are stored at once: a daemon that is killed meanwhile leaves each of them old
    /// or new.
    ///
    /// # Panics
    /// It does not fit.
    pub fn write(&self, offset: usize, data: &[u8]) {
        assert!(offset.checked_add(data.len()).is_some_and(|end| end <= self.length));
        // SAFETY: within the mapping.
        let to = unsafe { self.base.add(offset) };
        if data.len() > WHOLE {
            // SAFETY: as below.
            return unsafe { ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        }
        let (head, rest) = data.split_at(to.align_offset(size_of::<u64>()).min(data.len()));
        let (words, tail) = rest.as_chunks::<{ size_of::<u64>() }>();
        // SAFETY: within the mapping; the data is a message's, and lies elsewhere.
        unsafe {
            ptr::copy_nonoverlapping(head.as_ptr(), to, head.len());
            let first = to.add(head.len()).cast::<u64>();
            for (at, word) in words.iter().enumerate() {
                AtomicU64::from_ptr(first.add(at)).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
            ptr::copy_nonoverlapping(tail.as_ptr(), first.add(words.len()).cast(), tail.len());
        }
    }

    /// Makes ranges durable: offset and length. `deep`: by msync in any case.
    ///
    /// # Errors
    /// The system's: all calls fail once one has.
    pub fn sync(&self, ranges: &[(usize, usize)], deep: bool) -> Result<()> {
        let mut flushed = false;
        let mut pages: Vec<(usize, usize)> = Vec::new();
        for (offset, length) in ranges {
            let end = (offset + length).min(self.length);
            for piece in &self.pieces {
                let (from, to) = ((*offset).max(piece.offset), end.min(piece.offset + piece.length));
                if from >= to {
                    continue;
                }
                if piece.is_direct {
                    // SAFETY: within the mapping.
                    unsafe { flush::lines(self.base.add(from), to - from) };
                    flushed = true;
                }
                if deep || !piece.is_direct {
                    pages.push((from / self.page * self.page, to.next_multiple_of(self.page)));
                }
            }
        }
        if flushed {
            flush::fence();
        }
        for (from, to) in merged(pages) {
            // SAFETY: pages of the mapping, whose files stay as they are.
            if let Err(error) = unsafe { msync(self.base.add(from).cast(), to - from, MsyncFlags::SYNC) } {
                let _ = self.failed.set(Failure::system("msync")(error.into()));
            }
        }
        // After the msync: another thread's may have had the failure of these pages.
        self.failed.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nothing uses any more.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}

/// Whether stores into the file are durable when they have left the caches. A page of its own says
/// so: a file system may refuse a mapping in a place only after it has taken away what was there.
fn is_direct(file: &File, start: u64, page: usize) -> bool {
    // On other processors no instruction here writes lines back.
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: new memory, which no other mapping has.
    let tried = unsafe { mmap(ptr::null_mut(), page, ProtFlags::READ, flags, file, start) };
    // SAFETY: the page that was just mapped.
    tried.is_ok_and(|at| unsafe { munmap(at, page) }.is_ok())
}

/// Ranges that touch become one.
fn merged(mut ranges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    ranges.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(merged(vec![(8, 12), (0, 4), (4, 8), (20, 24), (21, 22)]), [(0, 12), (20, 24)]);
        assert!(merged(Vec::new()).is_empty());
    }

    #[test]
    fn pieces_of_files_stand_one_behind_the_other() {
        let page = rustix::param::page_size();
        let files = [0, 1].map(|_| {
            let fd = rustix::fs::memfd_create("part", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
            let file = File::from(fd);
            file.set_len(4 * page as u64).expect("its size");
            file
        });
        let length = 4 * page as u64;
        let mapping = Mapping::new(&[(&files[0], 0, length), (&files[1], page as u64, length - page as u64)])
            .expect("a mapping");
        let data: Vec<u8> = (0..=255).collect();
        mapping.write(4 * page - 128, &data);
        mapping.sync(&[(4 * page - 128, 256)], false).expect("synced");
        mapping.sync(&[(0, 8 * page)], true).expect("synced");
        let mut found = [0; 128];
        files[0].read_exact_at(&mut found, length - 128).expect("read");
        assert_eq!(found[..], data[..128]);
        files[1].read_exact_at(&mut found, page as u64).expect("read");
        assert_eq!(found[..], data[128..]);
    }

    /// Another thread sees what a daemon that is killed would leave.
    #[test]
    fn words_are_stored_at_once() {
        let fd = rustix::fs::memfd_create("part", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let (file, page) = (File::from(fd), rustix::param::page_size());
        file.set_len(page as u64).expect("its size");
        let mapping = Mapping::new(&[(&file, 0, page as u64)]).expect("a mapping");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for value in [0x55, 0xAA].into_iter().cycle() {
                    mapping.write(3, &[value; 1500]);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let whole = [0, 0x55, 0xAA].map(|byte| u64::from_ne_bytes([byte; 8]));
            let all = (0..10_000).flat_map(|_| (8..1496).step_by(8)).all(|offset| {
                // SAFETY: an aligned word of the mapping.
                let word = unsafe { AtomicU64::from_ptr(mapping.base().add(offset).cast()) };
                whole.contains(&word.load(Ordering::Relaxed))
            });
            is_over.store(true, Ordering::Relaxed);
            // ThreadSanitizer sees this order, and not that of the scope's end.
            writer.join().expect("the other thread");
            assert!(all, "a word was neither old nor new");
        });
        mapping.write(3, &[1; 1500]);
        let mut found = [0; 1502];
        file.read_exact_at(&mut found, 2).expect("read");
        assert_eq!((found[0], found[1501]), (0, 0));
        assert!(found[1..1501].iter().all(|byte| *byte == 1));
    }

    #[test]
    fn a_failure_stays() {
        let page = rustix::param::page_size();
        let fd = rustix::fs::memfd_create("part", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let file = File::from(fd);
        file.set_len(4 * page as u64).expect("its size");
        let mapping = Mapping::new(&[(&file, 0, 4 * page as u64)]).expect("a mapping");
        mapping.sync(&[(0, page)], false).expect("synced");
        // SAFETY: a page of the mapping, which nothing accesses; msync of it fails.
        unsafe { munmap(mapping.base().add(page).cast(), page) }.expect("a page");
        for range in [(page, 1), (0, page)] {
            let failure = mapping.sync(&[range], false).expect_err("no page");
            assert_eq!(failure.errno, libc::ENOMEM);
        }
        assert!(mapping.sync(&[], false).is_err());
    }

    #[test]
    fn a_failure_of_another_call_on_the_file_counts() {
        let fd = rustix::fs::memfd_create("part", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let (file, page) = (File::from(fd), rustix::param::page_size());
        file.set_len(page as u64).expect("its size");
        let mapping = Mapping::new(&[(&file, 0, page as u64)]).expect("a mapping");
        mapping.note_failure(&Failure::new(libc::EIO, "fdatasync"));
        assert_eq!(mapping.sync(&[(0, 1)], false).expect_err("lost data").errno, libc::EIO);
    }
}
