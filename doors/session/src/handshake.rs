//! How two processes begin to trust a channel: a state machine without a socket or a clock.
//!
//! Each side proves that it knows the key, over fresh numbers of both ([`greeting`]), and then
//! sends its card in a frame with a proof. Until then nothing of the other side is kept but the
//! bytes of its greeting. A channel that needs no key, because the kernel or ssh says who is at its
//! other end, is used in the same way with a key of zeros: the fresh numbers, which travel on it
//! alone, are what the session's secret follows from.
//!
//! [`greeting`]: openlapi::job::start_up::greeting

use crate::error::{Error, Result};
use crate::wire::{Card, Frames, MessageKind, Side};
use openlapi::job::start_up::greeting::{Answer, Called, Caller, Heard, SUBJECT, Subject};

/// Why a side believes that the other one may have a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Who is at the other end of the channel is known.
    Channel,
    /// The other side knows this key.
    Key([u8; 16]),
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Channel => "Channel",
            Self::Key(_) => "Key(..)",
        })
    }
}

impl Trust {
    fn key(self) -> [u8; 16] {
        match self {
            Self::Channel => [0; 16],
            Self::Key(key) => key,
        }
    }

    /// What the connection is for, and by what it is trusted: a key of zeros is none.
    pub(crate) fn subject(self) -> Subject {
        let mut subject = [0; SUBJECT];
        subject[..16].copy_from_slice(b"OpenLAPI session");
        subject[16] = match self {
            Self::Channel => 1,
            Self::Key(_) => 2,
        };
        subject
    }
}

/// What the two sides know when the handshake is over.
pub struct Agreed {
    /// What the other side has said of itself.
    pub peer: Card,
    /// The channel's frames from now on.
    pub frames: Frames,
}

enum State {
    Calling(Caller),
    Called(Called),
    Card(Frames),
    Over,
}

/// One side of a handshake.
pub struct Handshake {
    state: State,
    trust: Trust,
    side: Side,
    card: Vec<u8>,
    output: Vec<u8>,
}

impl Handshake {
    /// The handshake of this side, with what it says of itself. The connecting side has something
    /// to send at once.
    pub fn new(side: Side, trust: Trust, own: &Card) -> Self {
        let (state, output) = match side {
            Side::Accepting => (State::Called(Called::new(trust.key())), Vec::new()),
            Side::Connecting => {
                let caller = Caller::new(trust.key(), &trust.subject());
                let hello = caller.hello().to_vec();
                (State::Calling(caller), hello)
            }
        };
        Self { state, trust, side, card: own.encode(), output }
    }

    /// The bytes that are to be sent now.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether the other side has proved that it knows the key.
    pub fn is_proved(&self) -> bool {
        matches!(self.state, State::Card(_))
    }

    /// Whether the other side has sent a whole greeting, proved or not.
    pub fn has_begun(&self) -> bool {
        match &self.state {
            State::Called(called) => called.has_begun(),
            State::Calling(_) => false,
            State::Card(_) | State::Over => true,
        }
    }

    /// How many bytes of the other side this takes at most: no more is read of one that has proved
    /// nothing.
    pub fn wanted(&self) -> usize {
        match &self.state {
            State::Called(called) => called.wanted(),
            State::Calling(caller) => caller.wanted(),
            State::Card(_) => 4096,
            State::Over => 0,
        }
    }

    /// Takes bytes of the other side, at most [`Self::wanted`]. Returns what the two sides know,
    /// when the handshake is over. After an error, what [`Self::output`] has is still sent, and the
    /// channel is closed.
    ///
    /// # Errors
    /// [`Error::Stranger`], [`Error::WrongKey`], [`Error::Version`], [`Error::Forged`].
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<Agreed>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Calling(mut caller) => match caller.read(bytes) {
                Answer::More => self.state = State::Calling(caller),
                Answer::Proved(proof, proofs) => {
                    self.output.extend(proof);
                    self.send_card(Frames::new(proofs, self.side));
                }
                Answer::WrongSecret(last) => {
                    self.output.extend(last);
                    return Err(Error::WrongKey);
                }
                Answer::Stranger => return Err(Error::Stranger),
            },
            State::Called(mut called) => {
                let expected = self.trust.subject();
                match called.read(bytes, |subject| *subject == expected) {
                    Heard::More => self.state = State::Called(called),
                    Heard::Reply(reply) => {
                        self.output.extend(reply);
                        self.state = State::Called(called);
                    }
                    Heard::Proved(_, proofs) => self.send_card(Frames::new(proofs, self.side)),
                    Heard::WrongSecret => return Err(Error::WrongKey),
                    Heard::Stranger => return Err(Error::Stranger),
                }
            }
            State::Card(mut frames) => {
                frames.push(bytes);
                match frames.next()? {
                    None => self.state = State::Card(frames),
                    Some((MessageKind::Card, body)) => {
                        return Ok(Some(Agreed { peer: Card::decode(&body)?, frames }));
                    }
                    Some((MessageKind::Failed, body)) => {
                        return Err(Error::Refused(String::from_utf8_lossy(&body).into_owned()));
                    }
                    Some(_) => return Err(Error::Forged("another frame than the card")),
                }
            }
            State::Over => return Err(Error::Closed),
        }
        Ok(None)
    }

    /// The other side has closed the channel: what that means now.
    pub fn ended(&self) -> Error {
        let when = match &self.state {
            State::Calling(_) => "it has closed the channel before it has proved what it is",
            State::Called(_) => "it has closed the channel, or knows another key",
            State::Card(_) | State::Over => "it has closed the channel before the session was open",
        };
        Error::Lost(when.to_owned())
    }

    fn send_card(&mut self, mut frames: Frames) {
        self.output.extend(frames.seal(MessageKind::Card, &self.card));
        self.state = State::Card(frames);
    }
}

#[cfg(test)]
mod tests;
