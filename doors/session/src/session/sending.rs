//! Messages to the peer.

use super::Session;
use crate::error::{Error, Result};
use crate::messages::{HANDLER, LONGEST_HEADER};
use openlapi::api::request::{Hint, Message as Request};
use openlapi::api::{Content, MAX_UHDR, Piece, SendDone, active_message};
use openlapi::dgsp::Layout;
use openlapi::wire::user_header::{self, PREFIX};
use std::sync::atomic::AtomicI32;

/// Bytes of a header for which little room is enough, which is faster to clear.
const SHORT_HEADER: usize = 60;

impl Session {
    /// Sends a message to the peer, who takes it by [`Self::receive`]. The header has at most 1020
    /// bytes; header and data may be changed at once. [`Self::fence`] says when it has arrived.
    ///
    /// # Errors
    /// [`Error::Limit`]: the header is too long. [`Error::Closed`], [`Error::Lost`]: the session is
    /// over. [`Error::Core`].
    pub fn send(&self, header: &[u8], data: &[u8]) -> Result<()> {
        let mut room = [0; MAX_UHDR];
        let packed = packed(header, &mut room)?;
        let data = Content::Piece(Piece { ptr: data.as_ptr(), len: data.len() });
        let message = self.message(packed, data, self.counter(), SendDone::nothing(self.peer()), true);
        // SAFETY: header and data are copied before this returns.
        self.start(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// Sends a message as [`Self::send`] does, of whose arrival nothing tells: for one that the
    /// peer replies to, or that is a reply. [`Self::fence`] and [`Self::close`] do not wait for it.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    #[inline]
    pub fn post(&self, header: &[u8], data: &[u8]) -> Result<()> {
        let (mut short, mut long);
        let packed = if header.len() <= SHORT_HEADER {
            short = [0; SHORT_HEADER + PREFIX];
            packed(header, &mut short)?
        } else {
            long = [0; MAX_UHDR];
            packed(header, &mut long)?
        };
        let data = Content::Piece(Piece { ptr: data.as_ptr(), len: data.len() });
        let message = self.message(packed, data, 0, SendDone::nothing(self.peer()), true);
        self.check()?;
        // SAFETY: header and data are copied before this returns.
        self.enter_and(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// Starts to send a message whose data is gathered from several pieces of memory, one behind
    /// the other, without a copy of long ones. The header has at most 1020 bytes and is copied.
    /// `ended` rises by 2 in all, and has risen so far when the message is in the peer's inbox and
    /// the pieces may be changed. [`Self::fence`] and [`Self::close`] do not wait for it.
    ///
    /// # Errors
    /// [`Error::Limit`]: the header is too long. [`Error::Closed`], [`Error::Lost`]: the session is
    /// over. [`Error::Core`]. Then `ended` does not rise any more.
    ///
    /// # Safety
    /// Until `ended` has risen by 2, or a call has said that the session is over, it lives, and the
    /// bytes of the pieces are readable and do not change.
    pub unsafe fn send_pieces(
        &self,
        header: &[u8],
        pieces: &[(*const u8, usize)],
        ended: *const AtomicI32,
    ) -> Result<()> {
        let mut room = [0; MAX_UHDR];
        let packed = packed(header, &mut room)?;
        let layout = Layout::pieces(pieces.iter().map(|(at, length)| (at.cast_mut(), *length as u64)));
        let counter = ended.expose_provenance();
        let done = SendDone { org_cntr: counter, ..SendDone::nothing(self.peer()) };
        let message = self.message(packed, Content::from(layout), counter, done, false);
        self.check()?;
        // SAFETY: the caller's promise; the header is copied with the first packet, which leaves
        // or is kept before this returns.
        self.enter_and(|held| unsafe { active_message::amsend(held, &message) })
    }

    /// A message to the inbox of the peer.
    fn message(
        &self,
        header: &[u8],
        data: Content,
        cmpl_cntr: usize,
        done: SendDone,
        copied: bool,
    ) -> Request {
        let done = SendDone { bytes: data.len() as u64, user: true, ..done };
        Request {
            tgt: self.peer(),
            handler: HANDLER,
            header: Piece { ptr: header.as_ptr(), len: header.len() },
            data,
            shape: None,
            atom: 0,
            tgt_cntr: 0,
            cmpl_cntr,
            done,
            hint: Hint::None,
            copied,
        }
    }
}

/// A header as the core carries it.
fn packed<'a>(header: &[u8], room: &'a mut [u8]) -> Result<&'a [u8]> {
    user_header::pack(header, room)
        .ok_or_else(|| Error::Limit(format!("a header of {} bytes; at most {LONGEST_HEADER}", header.len())))
}
