//! The first bytes of a connection between `poe` and `poe --task`: each proves to the other that it
//! knows the job's token, which does not travel. What listens at one of `poe`'s addresses may be
//! something else, and so may what connects to its port.
//!
//! | from | contents |
//! |---|---|
//! | the task | which task, which of its connections, and a nonce |
//! | `poe` | a nonce, and a proof over both nonces and the connection |
//! | the task | a proof over the same |
//!
//! A proof is HMAC-SHA256 with the token, of which 16 bytes travel; the side that gives it is
//! a part of what it covers. What follows is not encrypted, as the connections of the
//! launchers are not.

use openlapi::base::random::random;
use openlapi::job::reach::{Answer, Greeting};
use openlapi::job::secret::{Secret, derive};

const MAGIC: &[u8; 8] = b"POELINK2";
const NONCE: usize = 16;
const PROOF: usize = size_of::<Secret>();
/// Bytes of the task's first message.
pub(super) const HELLO: usize = 8 + 4 + 1 + NONCE;
/// Bytes of `poe`'s reply.
const CHALLENGE: usize = NONCE + PROOF;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    Control,
    Input,
    Output,
    Error,
}

/// The kinds in the order of their numbers.
pub(super) const KINDS: [ConnectionKind; 4] =
    [ConnectionKind::Control, ConnectionKind::Input, ConnectionKind::Output, ConnectionKind::Error];

/// A task's first message.
pub(super) fn hello(task: usize, kind: ConnectionKind, nonce: [u8; NONCE]) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&(task as u32).to_le_bytes());
    bytes[12] = kind as u8;
    bytes[13..].copy_from_slice(&nonce);
    bytes
}

/// The task and the kind of the connection, as a message claims.
pub(super) fn claimed(hello: &[u8; HELLO]) -> Option<(usize, ConnectionKind)> {
    let task = u32::from_le_bytes(hello[8..12].try_into().ok()?);
    let kind = *KINDS.get(usize::from(hello[12]))?;
    (hello[..8] == *MAGIC).then_some((task as usize, kind))
}

/// The proof of one side.
fn proof(token: &Secret, side: &[u8], hello: &[u8], nonce: &[u8]) -> Secret {
    derive(token, &[b"poe link", side, hello, nonce])
}

/// Compared as a whole, so that the time does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}

/// The task's side.
pub(super) struct Caller {
    token: Secret,
    hello: [u8; HELLO],
    input: Vec<u8>,
}

impl Caller {
    /// A connection that begins, and the bytes to write first.
    pub(super) fn new(token: Secret, task: usize, kind: ConnectionKind) -> (Self, Vec<u8>) {
        let hello = hello(task, kind, random());
        (Self { token, hello, input: Vec::new() }, hello.to_vec())
    }
}

impl Greeting for Caller {
    fn read(&mut self, bytes: &[u8]) -> Answer {
        self.input.extend_from_slice(bytes);
        if self.input.len() > CHALLENGE {
            return Answer::Stranger;
        }
        let Some((nonce, proved)) = self.input.split_at_checked(NONCE) else { return Answer::More };
        if proved.len() < PROOF {
            return Answer::More;
        }
        if !is_same(proved, &proof(&self.token, b"poe", &self.hello, nonce)) {
            return Answer::Stranger;
        }
        Answer::Proved(proof(&self.token, b"task", &self.hello, nonce).to_vec())
    }
}

/// `poe`'s side of a connection that was accepted.
#[derive(Default)]
pub(super) struct Called {
    input: Vec<u8>,
    nonce: Option<[u8; NONCE]>,
}

/// What follows from what the other side has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The other side has to send more.
    More,
    /// These bytes are to be written: it may be a task.
    Reply(Vec<u8>),
    /// The other side is this task, and this is its connection of this kind.
    Task(usize, ConnectionKind),
    /// The other side does not know the token, or is something else.
    Stranger,
}

impl Called {
    /// How many bytes are to be read at most: what follows a greeting is not part of it.
    pub(super) fn wanted(&self) -> usize {
        HELLO + if self.nonce.is_some() { PROOF } else { 0 } - self.input.len()
    }

    /// Takes bytes of the other side.
    pub(super) fn read(&mut self, token: &Secret, bytes: &[u8]) -> Heard {
        self.input.extend_from_slice(bytes);
        let Some((hello, proved)) = self.input.split_first_chunk::<HELLO>() else { return Heard::More };
        let Some((task, kind)) = claimed(hello) else { return Heard::Stranger };
        match &self.nonce {
            None => {
                let nonce = random();
                let reply = [&nonce[..], &proof(token, b"poe", hello, &nonce)].concat();
                self.nonce = Some(nonce);
                Heard::Reply(reply)
            }
            Some(_) if proved.len() < PROOF => Heard::More,
            Some(nonce) if is_same(proved, &proof(token, b"task", hello, nonce)) => Heard::Task(task, kind),
            Some(_) => Heard::Stranger,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `poe` with one token makes of a task with another one, and what it has got from it.
    fn between(
        caller: Secret,
        called: Secret,
        change: impl Fn(usize, &mut Vec<u8>),
    ) -> (Option<Heard>, Vec<u8>) {
        let (mut task, mut sent) = Caller::new(caller, 70_000, ConnectionKind::Output);
        let mut poe = Called::default();
        change(0, &mut sent);
        let mut travelled = sent.clone();
        let mut heard = Heard::More;
        for byte in sent {
            assert!(poe.wanted() > 0);
            heard = poe.read(&called, &[byte]);
        }
        let Heard::Reply(mut reply) = heard else { return (Some(heard), travelled) };
        change(1, &mut reply);
        travelled.extend(&reply);
        let Answer::Proved(mut last) = task.read(&reply) else { return (None, travelled) };
        change(2, &mut last);
        travelled.extend(&last);
        let heard = poe.read(&called, &last);
        assert_eq!(poe.wanted(), 0);
        (Some(heard), travelled)
    }

    #[test]
    fn each_proves_that_it_knows_the_token() {
        let token = *b"0123456789abcdef";
        let (heard, travelled) = between(token, token, |_, _| ());
        assert_eq!(heard, Some(Heard::Task(70_000, ConnectionKind::Output)));
        assert!(!travelled.windows(4).any(|part| part == &token[..4]), "the token does not travel");
        assert_eq!(between(token, [7; 16], |_, _| ()).0, None, "the task does not reply to another poe");
        for message in 0..3 {
            for at in 0..16 {
                let (heard, _) =
                    between(token, token, |which, bytes| bytes[at] ^= u8::from(which == message));
                assert!(!matches!(heard, Some(Heard::Task(..))), "byte {at} of message {message}");
            }
        }
    }

    #[test]
    fn a_recorded_connection_is_of_no_use() {
        let token = [7; 16];
        let (mut task, hello) = Caller::new(token, 1, ConnectionKind::Control);
        let [mut one, mut other] = [Called::default(), Called::default()];
        let (Heard::Reply(reply), Heard::Reply(_)) = (one.read(&token, &hello), other.read(&token, &hello))
        else {
            panic!("both reply")
        };
        let Answer::Proved(last) = task.read(&reply) else { panic!("poe has proved itself") };
        assert_eq!(other.read(&token, &last), Heard::Stranger);
        let (mut later, _) = Caller::new(token, 1, ConnectionKind::Control);
        assert!(matches!(later.read(&reply), Answer::Stranger));
    }
}
