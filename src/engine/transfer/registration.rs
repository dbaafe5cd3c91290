//! Memory of this task that peers reach by keys: its registration, and the report of a failure.

use crate::engine::context::Core;
use crate::engine::context::direct_copy::DirectCopy;
use crate::memory::bytes::Piece;
use crate::proto::ops::{Op, Registered};
use crate::transport::{Access, Exposure, Key, PeerState, Task, Withdrawal};
use crate::wire::key::{Exposed, Part};
use rustix::process::{Resource, getrlimit};
use std::io;

/// Registers parts of a message for the accesses of `peer`, over one rail or all, and adds the
/// words that say so to `words`. `None`: one of them is refused, which was reported; then none is
/// registered, and the words are as they were.
pub fn register_parts(
    core: &mut Core,
    peer: Task,
    parts: &[(u64, Piece)],
    access: Access,
    one_rail: bool,
    words: &mut Vec<u64>,
) -> Option<Box<Registered>> {
    let mut registered = Box::new(Registered { keys: Vec::new(), bytes: 0, before: 0, divided: None });
    let known = words.len();
    for &(from, piece) in parts {
        let Some(key) = register_one(core, peer, piece, access, one_rail) else {
            withdraw(core, peer, Some(registered));
            words.truncate(known);
            return None;
        };
        registered.keys.push(key);
        registered.bytes += piece.len as u64;
        let exposed = Exposed { addr: piece.ptr as u64, key };
        Part { from, len: piece.len as u64, exposed }.append_to(words);
    }
    Some(registered)
}

fn register_one(core: &mut Core, peer: Task, memory: Piece, access: Access, one_rail: bool) -> Option<Key> {
    // SAFETY: the program leaves this memory alone until the operation is done. The registration
    // is withdrawn before the program gets a report of that, and by a recall when the operation
    // ends without one.
    let registered = unsafe { core.transport.expose(peer, memory, Exposure { access, one_rail }) };
    match registered {
        Ok(key) => Some(key),
        Err(reason) => {
            core.path_to(peer).refused += 1;
            failed(core, peer, "registration", memory.len, &reason);
            None
        }
    }
}

/// Withdraws what was registered for an operation with `peer`.
pub fn withdraw(core: &mut Core, peer: Task, registered: Option<Box<Registered>>) {
    if let Some(registered) = registered {
        withdraw_keys(core, peer, &registered.keys);
    }
}

/// Withdraws what these keys name.
pub fn withdraw_keys(core: &mut Core, peer: Task, keys: &[Key]) {
    keys.iter().for_each(|&key| core.transport.withdraw(peer, Withdrawal::Key(key)));
}

/// Ends an operation that could not be asked for.
pub fn give_up(core: &mut Core, tgt: Task, cookie: u64) {
    if let Some(Op::Rendezvous { registered, .. } | Op::Get { registered, .. }) = core.ops.remove(tgt, cookie)
    {
        withdraw(core, tgt, registered);
    }
}

/// An access or a registration has failed: the data goes in packets. The first failure of the
/// session is reported, unless the peer has left.
#[cold]
pub fn failed(core: &mut Core, peer: Task, what: &str, len: usize, reason: &io::Error) {
    if core.transport.standing(peer).state != PeerState::Up || !core.reports_bulk_failure() {
        return;
    }
    let exposed: u64 = core.ops.iter().map(|pending| pending.op.registered()).sum();
    let accessed = core.copies.iter().filter(|copy| copy.waits()).map(DirectCopy::len);
    // Peers say how long their messages are.
    let needed = accessed.fold(exposed, |sum, len| sum.saturating_add(len as u64)).saturating_add(len as u64);
    let limit = getrlimit(Resource::Memlock).current;
    core.options.log.line(format_args!("{}", Failure { peer, what, len, reason, limit, needed }));
}

/// The message about a failure.
struct Failure<'a> {
    peer: Task,
    what: &'a str,
    len: usize,
    reason: &'a io::Error,
    /// The limit of locked memory, in bytes.
    limit: Option<u64>,
    /// Bytes of the present operations.
    needed: u64,
}

impl std::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { peer, what, len, reason, limit, needed } = self;
        write!(f, "bulk transfer with task {peer}: {what} of {len} bytes failed ({reason}); ")?;
        match limit {
            Some(limit) => write!(f, "locked memory (ulimit -l): limit {limit}, needed {needed}; ")?,
            None => write!(f, "locked memory (ulimit -l): unlimited, needed {needed}; ")?,
        }
        write!(f, "packets are used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_limit_found_and_the_limit_needed() {
        let reason = io::Error::from_raw_os_error(libc::ENOMEM);
        let failure = Failure {
            peer: 5,
            what: "registration",
            len: 1 << 20,
            reason: &reason,
            limit: Some(65_536),
            needed: 3 << 20,
        };
        assert_eq!(
            failure.to_string(),
            "bulk transfer with task 5: registration of 1048576 bytes failed (Cannot allocate memory (os error 12)); \
             locked memory (ulimit -l): limit 65536, needed 3145728; packets are used"
        );
        let failure = Failure { limit: None, ..failure };
        assert!(failure.to_string().contains("(ulimit -l): unlimited, needed 3145728;"));
    }
}
