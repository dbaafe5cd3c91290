//! Bulk transfer of contiguous data: long messages between tasks that reach each other's
//! memory by keys.
//!
//! The task that starts an operation registers its memory, and sends its address and the key; the
//! other task makes the access, because only it knows the other place, or because its memory would
//! have to be registered first:
//!
//! | operation | the request | the access | then |
//! |---|---|---|---|
//! | put | [`Head::PutRequest`] | the target reads | [`Head::Fetched`], delivery |
//! | get | [`Head::Get`] with a body | the target writes | [`Head::Written`] |
//! | active message | [`Head::RequestToSend`] with a key behind the user header | the target reads | [`Head::Fetched`], delivery |
//!
//! The access is given to the transport whole ([`direct`]). Data in many places:
//! [`crate::engine::transfer::parts`]. When a registration is refused, or an access fails, the data
//! goes in packets, from its beginning ([`registration`] reports the first failure).

use crate::engine::context::direct_copy::{DirectCopy, Keyed};
use crate::engine::context::incoming::{Delivery, IncomingPut, Then};
use crate::engine::context::request::{Get, Marks, Places, Put};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::{direct, impossible, registration, reply, send};
use crate::memory::bytes::{Piece, is_memory};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::ops::Op;
use crate::proto::outbox::{Body, SendDone, Sent};
use crate::transport::{Access, Task};
use crate::wire::key::Exposed;
use crate::wire::packet::Head;

/// Asks the target to read the data of a put. `None`: the data cannot be registered.
///
/// # Safety
/// The data must be readable until the put is done.
pub unsafe fn put(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let Places::Contiguous { local, remote: addr, len } = put.places else { return None };
    let (tgt, core) = (put.tgt, held.core());
    let memory = Piece { ptr: local as *const u8, len };
    let registered = registration::register(core, tgt, memory, Access::Read, put.hint)?;
    let exposed = Exposed { addr: local as u64, key: registered.keys[0] };
    let done = SendDone { bytes: len as u64, ..put.done };
    let op = Op::rendezvous(done, put.cmpl_cntr, marks.id, local, Some(registered));
    let cookie = begin(core, tgt, op, marks.cookie);
    let head = Head::PutRequest { id: marks.id, addr, total: len as u64, cookie, tgt_cntr: marks.tgt_cntr };
    let sent = request(core, tgt, &head, &exposed.encode());
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        registration::give_up(core, tgt, cookie);
        return Some(sent);
    }
    Some(Sent::Queued)
}

/// Inserts the operation of a put, and returns its cookie. The operation `completion` that waits
/// for the put's completion, if there is one, waits for the accesses as well.
pub(super) fn begin(core: &mut Core, tgt: Task, op: Op, completion: u64) -> u64 {
    match core.ops.get_mut(tgt, completion) {
        Some(waiting) => {
            *waiting = op;
            completion
        }
        None => core.ops.insert(tgt, op, false),
    }
}

/// Asks the target to write the data of a get, which is operation `cookie`.
pub fn get(held: &mut Held<'_>, get: &Get, cookie: u64, exposed: Exposed) -> Sent {
    let Places::Contiguous { remote: addr, len, .. } = get.places else {
        unreachable!("one place is exposed")
    };
    let head = Head::Get { addr, len: len as u64, cookie, tgt_cntr: get.tgt_cntr };
    request(held.core(), get.tgt, &head, &exposed.encode())
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
    let exposed = exposed(body).filter(|exposed| exposed.has(total));
    let (Some(exposed), 1..) = (exposed, total) else { return send::broken(held, src) };
    let delivery = Delivery::without_handler(src, id, tgt_cntr, cookie, total);
    if !is_memory(addr, total) {
        return impossible::fetched(held, delivery);
    }
    let then = Then::Deliver(delivery);
    let assembly = Assembly { sink: Sink::Buffer(addr as usize), total, arrived: 0, then };
    held.core().inbox.begin(src, id, assembly);
    let keyed = Keyed::contiguous(exposed, addr as usize, total);
    direct::begin(held, DirectCopy::pull_by_keys(src, id, cookie, keyed));
}

/// The origin of a get asks this task to write the data into its memory.
pub fn get_requested(held: &mut Held<'_>, src: Task, data: Piece, cookie: u64, tgt_cntr: u64, body: Piece) {
    let len = data.len as u64;
    let exposed = exposed(body).filter(|exposed| exposed.has(len));
    let Some(exposed) = exposed else { return send::broken(held, src) };
    if data.len == 0 {
        return reply::serve_get(held, src, &Content::Piece(data), cookie, tgt_cntr);
    }
    let keyed = Keyed::contiguous(exposed, data.ptr as usize, len);
    direct::begin(held, DirectCopy::serve(src, cookie, tgt_cntr, keyed));
}

/// The target has written the data of a get that was registered.
pub fn written(held: &mut Held<'_>, src: Task, cookie: u64) {
    let Some(Op::Get { registered: Some(registered), len, arrived, .. }) =
        held.core().ops.get_mut(src, cookie)
    else {
        return send::broken(held, src);
    };
    *arrived += registered.before + registered.bytes;
    if *arrived >= *len {
        reply::got(held, src, cookie);
    }
}

fn exposed(body: Piece) -> Option<Exposed> {
    if body.len < Exposed::LEN {
        return None;
    }
    // SAFETY: the body is in the packet.
    Exposed::decode(unsafe { std::slice::from_raw_parts(body.ptr, body.len) })
}
