//! The first bytes of a connection: each side proves to the other that it knows a secret, which
//! does not travel. What listens at an address may be something else, and so may what connects.
//!
//! | from | contents |
//! |---|---|
//! | the caller | what the connection is for ([`Subject`]), and a nonce |
//! | the called side | a nonce, and a proof over both nonces and the subject |
//! | the caller | a proof over the same; zeros when the other side's was wrong |
//!
//! A proof is HMAC-SHA256 with the secret, of which 16 bytes travel; the side that gives it is a
//! part of what it covers. What follows can have proofs of its own ([`Proofs::sealed`]). Nothing is
//! encrypted, as the connections of the launchers are not.

use crate::base::random::random;
use crate::job::derive::{Secret, derive, is_same};
use crate::wire::exchange::frame;
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"LAPICON1";
const NONCE: usize = 16;
const PROOF: usize = size_of::<Secret>();
const HELLO: usize = 8 + SUBJECT + NONCE;
const REPLY: usize = 8 + NONCE + PROOF;

/// Bytes of a [`Subject`].
pub const SUBJECT: usize = 32;

/// What a connection is for, in the words of those who use it.
pub type Subject = [u8; SUBJECT];

/// The SHA-256 of contents, which a proof covers.
pub type Hash = [u8; 32];

/// The SHA-256 of contents.
pub fn hash(contents: &[u8]) -> Hash {
    #[cfg(test)]
    HASHES.set(HASHES.get() + 1);
    Sha256::digest(contents).into()
}

#[cfg(test)]
thread_local! {
    /// How often this thread has called [`hash`].
    pub static HASHES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Who gives a proof.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The side that has connected.
    Caller = 1,
    /// The side that was connected with.
    Called = 2,
}

/// What one side of a connection can prove to the other one.
#[derive(Clone)]
pub struct Proofs {
    secret: Secret,
    hello: [u8; HELLO],
    nonce: [u8; NONCE],
}

impl Proofs {
    fn proof(&self, by: By, hash: &[u8]) -> Secret {
        derive(&self.secret, &[b"connection", &[by as u8], &self.hello, &self.nonce, hash])
    }

    /// A secret that both sides of this connection know, and no other connection has: one for
    /// each purpose.
    pub fn secret(&self, purpose: &[u8]) -> Secret {
        derive(&self.secret, &[b"secret of a connection", purpose, &self.hello, &self.nonce])
    }

    /// A frame with these contents and a proof of them.
    pub fn sealed(&self, by: By, contents: &[u8]) -> Vec<u8> {
        frame(&[&self.proof(by, &hash(contents))[..], contents].concat())
    }

    /// The beginning of such a frame, for contents of this length and hash that follow.
    pub fn before(&self, by: By, length: usize, hash: &Hash) -> Vec<u8> {
        [&((PROOF + length) as u32).to_le_bytes()[..], &self.proof(by, hash)].concat()
    }

    /// The contents of a frame whose proof is right.
    pub fn opened<'a>(&self, by: By, frame: &'a [u8]) -> Option<&'a [u8]> {
        let (proof, contents) = frame.split_at_checked(PROOF)?;
        is_same(proof, &self.proof(by, &hash(contents))).then_some(contents)
    }
}

/// The side that has connected.
pub struct Caller {
    proofs: Proofs,
    input: Vec<u8>,
}

/// What follows for the caller from what the other side has sent.
pub enum Answer {
    /// The other side has to send more.
    More,
    /// The other side has proved that it knows the secret; these bytes are to be sent to it.
    Proved([u8; PROOF], Proofs),
    /// The other side does not know the secret; these bytes tell it so.
    WrongSecret([u8; PROOF]),
    /// The other side is something else.
    Stranger,
}

impl Caller {
    /// A connection that begins.
    pub fn new(secret: Secret, subject: &Subject) -> Self {
        let mut hello = [0; HELLO];
        hello[..8].copy_from_slice(MAGIC);
        hello[8..8 + SUBJECT].copy_from_slice(subject);
        hello[8 + SUBJECT..].copy_from_slice(&random::<NONCE>());
        Self { proofs: Proofs { secret, hello, nonce: [0; NONCE] }, input: Vec::new() }
    }

    /// The bytes to send first.
    pub fn hello(&self) -> &[u8] {
        &self.proofs.hello
    }

    /// How many bytes are to be read at most: what follows a greeting is not part of it.
    pub fn wanted(&self) -> usize {
        REPLY.saturating_sub(self.input.len())
    }

    /// Takes bytes that the other side has sent.
    pub fn read(&mut self, bytes: &[u8]) -> Answer {
        self.input.extend_from_slice(bytes);
        let known = self.input.len().min(MAGIC.len());
        if self.input.len() > REPLY || self.input[..known] != MAGIC[..known] {
            return Answer::Stranger;
        }
        let Some(reply) = self.input.first_chunk::<REPLY>() else { return Answer::More };
        let (nonce, proof) = reply[MAGIC.len()..].split_at(NONCE);
        self.proofs.nonce.copy_from_slice(nonce);
        match is_same(proof, &self.proofs.proof(By::Called, &[])) {
            true => Answer::Proved(self.proofs.proof(By::Caller, &[]), self.proofs.clone()),
            false => Answer::WrongSecret([0; PROOF]),
        }
    }
}

/// The side that was connected with.
pub struct Called {
    secret: Secret,
    input: Vec<u8>,
    /// What the hello has begun.
    begun: Option<(Subject, Proofs)>,
}

/// What follows for the called side from what the other one has sent.
pub enum Heard {
    /// The other side has to send more.
    More,
    /// These bytes are to be written: the other side may know the secret.
    Reply([u8; REPLY]),
    /// The other side has proved that it knows the secret.
    Proved(Subject, Proofs),
    /// The other side does not know the secret.
    WrongSecret,
    /// The other side is something else.
    Stranger,
}

impl Called {
    /// A connection that was accepted.
    pub fn new(secret: Secret) -> Self {
        Self { secret, input: Vec::new(), begun: None }
    }

    /// Whether the other side has said what the connection is for.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// How many bytes are to be read at most: what follows a greeting is not part of it, and
    /// nothing else is kept of a stranger.
    pub fn wanted(&self) -> usize {
        if self.has_begun() { PROOF - self.input.len() } else { HELLO - self.input.len() }
    }

    /// Takes bytes of the other side, at most [`Self::wanted`]. `admits` says what it may want.
    pub fn read(&mut self, bytes: &[u8], admits: impl Fn(&Subject) -> bool) -> Heard {
        self.input.extend_from_slice(bytes);
        if let Some((subject, proofs)) = &self.begun {
            return match self.input.len() {
                ..PROOF => Heard::More,
                _ if is_same(&self.input, &proofs.proof(By::Caller, &[])) => {
                    Heard::Proved(*subject, proofs.clone())
                }
                _ => Heard::WrongSecret,
            };
        }
        let Some(hello) = self.input.first_chunk::<HELLO>() else { return Heard::More };
        let subject: Subject = std::array::from_fn(|at| hello[MAGIC.len() + at]);
        if hello[..MAGIC.len()] != *MAGIC || !admits(&subject) {
            return Heard::Stranger;
        }
        let proofs = Proofs { secret: self.secret, hello: *hello, nonce: random() };
        let mut reply = [0; REPLY];
        reply[..8].copy_from_slice(MAGIC);
        reply[8..8 + NONCE].copy_from_slice(&proofs.nonce);
        reply[8 + NONCE..].copy_from_slice(&proofs.proof(By::Called, &[]));
        self.begun = Some((subject, proofs));
        self.input.clear();
        Heard::Reply(reply)
    }
}
