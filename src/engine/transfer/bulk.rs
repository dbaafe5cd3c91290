//! Bulk transfer: long messages between tasks that reach each other's memory by keys.
//!
//! The task that starts an operation registers its memory, and sends its address and the key; the other task makes the access,
//! because only it knows the other place, or because its memory would have to be registered first:
//!
//! | operation | the request | the access | then |
//! |---|---|---|---|
//! | put | [`Head::PutRequest`] | the target reads | [`Head::Fetched`], delivery |
//! | get | [`Head::Get`] with a body | the target writes | [`Head::Written`] |
//! | active message | [`Head::RequestToSend`] with a key behind the user header | the target reads | [`Head::Fetched`], delivery |
//!
//! The access is given to the transport whole ([`direct`]). When a registration is refused, or an access fails, the data goes
//! in packets, from its beginning. The first failure of a process is reported.

use crate::abi::LAPI_NORMAL;
use crate::base::bytes::Piece;
use crate::engine::context::direct_copy::DirectCopy;
use crate::engine::context::incoming::{Delivery, IncomingPut, Then};
use crate::engine::context::request::{Get, Marks, Places, Put};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::send::{self, answer};
use crate::engine::transfer::{direct, reply};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::ops::{Op, Registered};
use crate::proto::outbox::{Body, SendDone, Sent};
use crate::transport::{Access, PeerState, Task};
use crate::wire::key::Exposed;
use crate::wire::packet::Head;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Registers memory for the accesses of `peer`. `None`: it is refused, which was reported.
pub fn register(core: &mut Core, peer: Task, memory: Piece, access: Access) -> Option<Box<Registered>> {
    let remote = core.transport.remote()?;
    // SAFETY: the program leaves this memory alone until the operation is done. The registration is withdrawn before the
    // program gets a report of that, and by a recall when the operation ends without one.
    match unsafe { remote.register(peer, memory, access) } {
        Ok(key) => Some(Box::new(Registered { keys: vec![key], bytes: memory.len as u64 })),
        Err(reason) => {
            core.path_to(peer).refused += 1;
            failed(core, peer, "registration", memory.len, &reason);
            None
        }
    }
}

/// Withdraws what was registered for an operation with `peer`.
pub fn withdraw(core: &mut Core, peer: Task, registered: Option<Box<Registered>>) {
    let (Some(registered), Some(remote)) = (registered, core.transport.remote()) else { return };
    for &key in &registered.keys {
        remote.deregister(peer, key);
    }
}

/// Asks the target to read the data of a put. `None`: the data cannot be registered.
///
/// # Safety
/// The data must be readable until the put is done.
pub unsafe fn put(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let Places::Contiguous { local, remote: addr, len } = put.places else { return None };
    let (tgt, core) = (put.tgt, held.core());
    let memory = Piece { ptr: local as *const u8, len };
    let registered = register(core, tgt, memory, Access::Read)?;
    let exposed = Exposed { addr: local as u64, key: registered.keys[0] };
    let op = Op::Rendezvous {
        done: SendDone { bytes: len as u64, ..put.done },
        cmpl_cntr: put.cmpl_cntr,
        id: marks.id,
        data: local,
        registered: Some(registered),
        fetched: false,
        concluded: false,
    };
    // The operation that waits for the completion, if there is one, waits for the access as well.
    let cookie = match core.ops.get_mut(tgt, marks.cookie) {
        Some(completion) => {
            *completion = op;
            marks.cookie
        }
        None => core.ops.insert(tgt, op, false),
    };
    let head = Head::PutRequest { id: marks.id, addr, total: len as u64, cookie, tgt_cntr: marks.tgt_cntr };
    let sent = request(core, tgt, &head, &exposed.encode());
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        give_up(core, tgt, cookie);
        return Some(sent);
    }
    Some(Sent::Queued)
}

/// Asks the target to write the data of a get, which is operation `cookie`.
pub fn get(held: &mut Held<'_>, get: &Get, cookie: u64, exposed: Exposed) -> Sent {
    let Places::Contiguous { remote: addr, len, .. } = get.places else {
        unreachable!("one place is exposed")
    };
    let head = Head::Get { addr, len: len as u64, cookie, tgt_cntr: get.tgt_cntr };
    request(held.core(), get.tgt, &head, &exposed.encode())
}

/// Ends an operation that could not be asked for.
pub fn give_up(core: &mut Core, tgt: Task, cookie: u64) {
    if let Some(Op::Rendezvous { registered, .. } | Op::Get { registered, .. }) = core.ops.remove(tgt, cookie)
    {
        withdraw(core, tgt, registered);
    }
}

/// Sends a packet with a body of the library's own.
fn request(core: &mut Core, tgt: Task, head: &Head, body: &[u8]) -> Sent {
    let content = Content::Piece(Piece::of(body));
    let (outbox, mut wire) = core.out();
    // SAFETY: the body is copied when the packet has to wait.
    unsafe { outbox.send(&mut wire, tgt, head, Body::data(&content), usize::MAX, SendDone::nothing(tgt)) }
}

/// The origin of a put asks this task to read its data.
pub fn put_requested(held: &mut Held<'_>, put: &IncomingPut, body: Piece) {
    let IncomingPut { src, id, addr, tgt_cntr, cookie, total } = *put;
    let (Some(exposed), 1..) = (exposed(body), total) else { return send::broken(held, src) };
    let delivery = Delivery {
        src,
        id: Some(id),
        tgt_cntr,
        cookie,
        handler: None,
        parameter: 0,
        ret_flags: LAPI_NORMAL,
        bytes: total,
    };
    let then = Then::Deliver(delivery);
    let assembly = Assembly { sink: Sink::Buffer(addr as usize), total, arrived: 0, then };
    held.core().inbox.begin(src, id, assembly);
    let copy = DirectCopy::pull(src, id, cookie, exposed.addr, addr as usize, total as usize);
    direct::begin(held, copy.by(Some(exposed.key)));
}

/// The origin of a get asks this task to write the data into its memory.
pub fn get_requested(held: &mut Held<'_>, src: Task, data: Piece, cookie: u64, tgt_cntr: u64, body: Piece) {
    let Some(exposed) = exposed(body) else { return send::broken(held, src) };
    if data.len == 0 {
        return reply::serve_get(held, src, &Content::Piece(data), cookie, tgt_cntr);
    }
    let copy = DirectCopy::serve(src, cookie, tgt_cntr, data, exposed.addr);
    direct::begin(held, copy.by(Some(exposed.key)));
}

/// The data of a get was written.
pub fn write_done(held: &mut Held<'_>, peer: Task, cookie: u64, tgt_cntr: u64, len: usize) {
    answer(held.core(), peer, &Head::Written { cookie });
    // The target's counter shows that the target's data may be changed.
    let done = SendDone { org_cntr: tgt_cntr as usize, bytes: len as u64, ..SendDone::nothing(peer) };
    send::finish(held, &done);
}

/// The target has written the data of a get.
pub fn written(held: &mut Held<'_>, src: Task, cookie: u64) {
    match held.core().ops.get_mut(src, cookie) {
        Some(Op::Get { .. }) => reply::got(held, src, cookie),
        _ => send::broken(held, src),
    }
}

fn exposed(body: Piece) -> Option<Exposed> {
    if body.len < Exposed::LEN {
        return None;
    }
    // SAFETY: the body is in the packet.
    Exposed::decode(unsafe { std::slice::from_raw_parts(body.ptr, body.len) })
}

/// An access or a registration has failed: the data goes in packets. The first failure of the process is reported, unless
/// the peer has left.
#[cold]
pub fn failed(core: &mut Core, peer: Task, what: &str, len: usize, reason: &io::Error) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if core.transport.state(peer) != PeerState::Up || REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let exposed: u64 = core.ops.iter().map(|pending| pending.op.registered()).sum();
    let accessed: usize =
        core.direct_copies.iter().filter(|copy| copy.waits.is_some()).map(DirectCopy::len).sum();
    let needed = exposed + accessed as u64 + len as u64;
    let limit = getrlimit(Resource::Memlock).current;
    crate::error::log(format_args!("{}", Failure { peer, what, len, reason, limit, needed }));
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
