//! The address space that libfabric takes: it reports no connection that fails for want of memory,
//! and tries for ever.

use crate::abi::LAPI_ERR_MEMORY_EXHAUSTED;
use crate::base::limits;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes for the first endpoint of a process, with libfabric itself, its threads and the first
/// connections: most of it is reserved by the allocator, for each thread.
const FIRST: u64 = 256 << 20;
/// Bytes for another endpoint.
const ANOTHER: u64 = 80 << 20;

/// This process has had an endpoint.
static HAS_OPENED: AtomicBool = AtomicBool::new(false);

/// An endpoint of libfabric was opened in this process.
pub fn note_open() {
    HAS_OPENED.store(true, Ordering::Relaxed);
}

/// The limit of the address space leaves room for an endpoint.
///
/// # Errors
/// `LAPI_ERR_MEMORY_EXHAUSTED`, with the limit.
pub fn has_room() -> Result<()> {
    let needed = if HAS_OPENED.load(Ordering::Relaxed) { ANOTHER } else { FIRST };
    limits::scarce_address_space(needed).map_or(Ok(()), |limit| {
        let detail = format!("libfabric needs {needed} bytes: {limit}; MP_EUILIB=ip needs fewer");
        Err(Error::new(LAPI_ERR_MEMORY_EXHAUSTED, detail))
    })
}
