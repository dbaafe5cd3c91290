//! Pools in files: the set file, and the headers of the parts. Nothing here touches a file.

mod header;
mod set;

pub use header::{HEADER, Header, Place, check_features, checksum_of, machine_flags};
pub use set::{MIN_PART, Part, Set, parse};
