//! LAPI_Putv, LAPI_Getv, LAPI_Amsendv, and their forms in LAPI_Xfer.
//!
//! The vectors themselves are checked whatever ERROR_CHK is: it costs little compared with using
//! them, and vectors that do not fit each other would write where nothing should be written.

use super::{active_message, check, put_get};
use crate::dgsp::Layout;
use crate::dgsp::description::{describe, describe_contiguous};
pub use crate::dgsp::vector::Vector;
use crate::dgsp::vector::{self as vectors};
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Layouts, Message, Places, Put};
use crate::error::Result;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use std::sync::Arc;

/// The two vectors of a put or get.
pub struct Pair {
    /// The vector at the origin.
    pub origin: Option<Vector>,
    /// The vector at the target.
    pub target: Option<Vector>,
    /// BUFFER_BOTH_CONTIGUOUS: the bytes lie one after the other, from the first address of
    /// each vector on.
    pub contiguous: bool,
}

/// A put between two vectors.
pub struct PutRequest {
    /// The vectors.
    pub pair: Pair,
    /// The put, without its data.
    pub put: Put,
}

/// A get between two vectors.
pub struct GetRequest {
    /// The vectors.
    pub pair: Pair,
    /// The get, without its data.
    pub get: Get,
}

impl Pair {
    /// The places, checked; none without vectors.
    fn places(&self) -> Result<Option<Places>> {
        vectors::check_pair(self.origin.as_ref(), self.target.as_ref())?;
        let (Some(origin), Some(target)) = (&self.origin, &self.target) else { return Ok(None) };
        let (local, remote, description) = if self.contiguous {
            let (at, len) = beginning(target, Layout::vector(target).len());
            let (local, remote) = (beginning(origin, len), contiguous((at, len)));
            (contiguous(local), remote, describe_contiguous(at, len))
        } else {
            (Layout::vector(origin), Layout::vector(target), describe(target))
        };
        let layouts = Layouts { local: Arc::new(local), remote: Arc::new(remote), description };
        Ok(Some(Places::Layouts(Arc::new(layouts))))
    }
}

/// The first address of a vector, if `len` bytes lie there; that of an empty piece may be null.
fn beginning(vector: &Vector, len: u64) -> (u64, u64) {
    let strided = vector.template().map(|template| template.base);
    let first = strided.or_else(|| vector.pieces().find(|&(_, len)| len != 0).map(|(at, _)| at));
    first.map_or((0, 0), |first| (first, len))
}

fn contiguous((at, len): (u64, u64)) -> Layout {
    Layout::contiguous(std::ptr::with_exposed_provenance_mut(at as usize), len)
}

/// Starts a put between two vectors (man page LAPI_Putv).
///
/// # Safety
/// The vectors must be as the man page wants them.
pub unsafe fn put(held: &mut Held<'_>, request: PutRequest) -> Result<()> {
    check::target(held, request.put.tgt)?;
    let Some(places) = request.pair.places()? else { return Ok(()) };
    // SAFETY: the caller's promise.
    unsafe { put_get::put(held, &request.put.with(places)) }
}

/// Starts a get between two vectors (man page LAPI_Getv).
///
/// # Safety
/// The vectors must be as the man page wants them.
pub unsafe fn get(held: &mut Held<'_>, request: GetRequest) -> Result<()> {
    check::target(held, request.get.tgt)?;
    let Some(places) = request.pair.places()? else { return Ok(()) };
    // SAFETY: the caller's promise.
    unsafe { put_get::get(held, &Get { places, ..request.get }) }
}

/// Starts an active message whose data is a vector (man page LAPI_Amsendv). The request comes
/// without its data. With `contiguous` (BUFFER_BOTH_CONTIGUOUS) its bytes lie one after the other
/// from the vector's first address on.
///
/// # Safety
/// The vector and the addresses must be as the man page wants them.
pub unsafe fn amsend(
    held: &mut Held<'_>,
    message: Message,
    origin: Option<Vector>,
    contiguous: bool,
) -> Result<()> {
    check::target(held, message.tgt)?;
    vectors::check_origin(origin.as_ref())?;
    let Some(origin) = origin else { return Ok(()) };
    let layout = Layout::vector(&origin);
    let data =
        Content::from(if contiguous { self::contiguous(beginning(&origin, layout.len())) } else { layout });
    let done = SendDone { bytes: data.len() as u64, ..message.done };
    let shape = Some(u64::from(origin.kind()) << 32 | origin.count() as u64);
    // SAFETY: the caller's promise.
    unsafe { active_message::amsend(held, &Message { data, shape, done, ..message }) }
}
