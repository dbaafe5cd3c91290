//! One mapping of a segment for all tasks of this process, under `--cfg one_mapping`, as
//! ci/sanitize.sh sets it.
//!
//! ThreadSanitizer knows memory by its address. Where the tasks of a test are threads with a
//! mapping each, it would see neither the order that the rings make nor the races in them.

use crate::base::sync::Mutex;
use rustix::fs::fstat;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// A mapped file (by device and number), where it is, and how many use it.
struct Mapping {
    file: (u64, u64),
    at: usize,
    users: usize,
}

static MAPPINGS: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// The mapping of this file, made by `map` when there is none.
pub(super) fn share(
    file: BorrowedFd<'_>,
    map: impl FnOnce() -> rustix::io::Result<NonNull<u8>>,
) -> rustix::io::Result<NonNull<u8>> {
    let found = fstat(file)?;
    let file = (found.st_dev, found.st_ino);
    let mut mappings = MAPPINGS.lock();
    if let Some(mapping) = mappings.iter_mut().find(|mapping| mapping.file == file) {
        mapping.users += 1;
        return NonNull::new(mapping.at as *mut u8).ok_or(rustix::io::Errno::NOMEM);
    }
    let at = map()?;
    mappings.push(Mapping { file, at: at.as_ptr() as usize, users: 1 });
    Ok(at)
}

/// One user less; `unmap` when it was the last.
pub(super) fn give_back(at: NonNull<u8>, unmap: impl FnOnce()) {
    let mut mappings = MAPPINGS.lock();
    let Some(index) = mappings.iter().position(|mapping| mapping.at == at.as_ptr() as usize) else { return };
    mappings[index].users -= 1;
    if mappings[index].users == 0 {
        mappings.swap_remove(index);
        unmap();
    }
}
