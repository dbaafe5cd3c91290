//! Memory of a daemon of this host, mapped into this process.

use crate::error::{FamError, Result};
use crate::wire::WRITE;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::OpenOptions;

/// Maps a range of a file that a process of this host has open: where the mapping begins, and where
/// the range in it.
///
/// # Errors
/// [`FamError::Unimpl`]: the file cannot be opened from here.
pub fn map(
    process: u32,
    descriptor: i32,
    (offset, length): (u64, u64),
    rights: u8,
) -> Result<(usize, usize)> {
    let writes = rights & WRITE != 0;
    let path = format!("/proc/{process}/fd/{descriptor}");
    let failed = |error: std::io::Error| FamError::Unimpl.because(format!("fam_map: {path}: {error}"));
    let file = OpenOptions::new().read(true).write(writes).open(&path).map_err(failed)?;
    // No more of the file than the item must be in this mapping that can be touched by mistake.
    let page = rustix::param::page_size() as u64;
    let start = offset % page;
    if file.metadata().map_err(failed)?.len() < offset + length {
        return Err(FamError::Unimpl.because(format!("fam_map: {path} is another file than the daemon's")));
    }
    let protection = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // SAFETY: a new mapping, at an address that the system chooses.
    let base = unsafe {
        mmap(
            std::ptr::null_mut(),
            (start + length) as usize,
            protection,
            MapFlags::SHARED,
            &file,
            offset - start,
        )
    };
    let base = base.map_err(|error| failed(error.into()))?;
    Ok((base.expose_provenance(), start as usize))
}

/// Takes a mapping away.
pub fn unmap(base: usize, length: usize) {
    // SAFETY: a mapping of `map`, which the program uses no more.
    let _ = unsafe { munmap(std::ptr::with_exposed_provenance_mut(base), length) };
}
