//! Requests for memory that this task cannot have: of a task of 64 bits, say, to one of 32 bits.
//! The error is reported here. The operation ends nevertheless, because the origin's fence waits
//! for it: the data of a put is dropped, and a get ends at its origin with an error.

use crate::abi::{INT_ERR, LAPI_ERR_UNKNOWN};
use crate::engine::context::Held;
use crate::engine::context::incoming::{Delivery, Incoming};
use crate::engine::transfer::beyond::report;
use crate::engine::transfer::send::send_control;
use crate::engine::transfer::{assembly, deliver, registration};
use crate::error::Error;
use crate::memory::bytes::Piece;
use crate::proto::content::Sink;
use crate::proto::ops::Op;
use crate::transport::Task;
use crate::wire::packet::{Head, VECTOR_BY_KEYS, VECTOR_GET};

/// A put or get whose description is none, or is one of such memory; `here` is data that came with
/// it.
#[cold]
pub fn vector(held: &mut Held<'_>, src: Task, id: u32, incoming: &Incoming, here: Piece) {
    let Incoming { op, data, total, cookie, .. } = *incoming;
    if op & VECTOR_GET != 0 {
        deliver::described(held, src, id, op);
        return get(held, src, cookie, total);
    }
    let delivery = |id| Delivery::without_handler(src, id, incoming.tgt_cntr, cookie, total);
    if op & VECTOR_BY_KEYS != 0 {
        deliver::confirm(held, src, id);
        return fetched(held, delivery(data));
    }
    if here.len as u64 == total {
        return put(held, id, delivery(id), here);
    }
    deliver::confirm(held, src, id);
    put(held, data, delivery(data), Piece::EMPTY);
}

/// A put whose data is `first`, or comes in packets and begins with it.
#[cold]
pub fn put(held: &mut Held<'_>, id: u32, delivery: Delivery, first: Piece) {
    let src = delivery.src;
    if delivery.bytes == first.len as u64 {
        deliver::delivered(held, delivery);
    } else {
        assembly::begin_delivery(held, id, Sink::Nowhere, delivery.bytes, delivery, first);
    }
    report(held, src);
}

/// A put whose data this task is to read: none is.
#[cold]
pub fn fetched(held: &mut Held<'_>, delivery: Delivery) {
    let Delivery { src, cookie, .. } = delivery;
    send_control(held.core(), src, &Head::Fetched { cookie, refused: 0 });
    deliver::delivered(held, Delivery { bytes: 0, ..delivery });
    report(held, src);
}

/// A get of `total` bytes: its origin learns that they will not come.
#[cold]
pub fn get(held: &mut Held<'_>, src: Task, cookie: u64, total: u64) {
    send_control(held.core(), src, &Head::Fetched { cookie, refused: total });
    report(held, src);
}

/// The target has said so: the operation ends without its data.
#[cold]
pub fn got_nothing(held: &mut Held<'_>, tgt: Task, cookie: u64) {
    let core = held.core();
    if let Some(Op::Get { registered, .. }) = core.ops.remove(tgt, cookie) {
        registration::withdraw(core, tgt, registered);
        let detail = format!("a get from task {tgt} has ended without data: it cannot have that memory");
        let error = Error::new(LAPI_ERR_UNKNOWN, detail);
        held.context().report(held, INT_ERR, tgt, &error);
    }
}
