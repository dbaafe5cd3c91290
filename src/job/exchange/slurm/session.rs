//! One connection between a task and task 0, without the socket: bytes in, bytes out. Both sides
//! prove that they know the key before anything else is believed.
//!
//! | frame | from | contents |
//! |---|---|---|
//! | request | the task | which fence of which job, and a nonce |
//! | reply | task 0 | a nonce, and a proof over both nonces and the request |
//! | proof | the task | a proof over the same; one that fails when task 0's proof was wrong |
//! | values | the task, at once | a proof over the same and its values |
//! | table | task 0 | a proof over the same and the values of all tasks |
//!
//! A proof is HMAC-SHA256 with the key, over the hash of the contents: task 0 hashes the table
//! once, however many tasks there are. The direction is a part of what it covers. Task 0 keeps a
//! few hundred bytes of a connection before its proof. The contents are not encrypted, as those of
//! the other launchers are not.

use super::key::Secret;
use crate::base::random::random;
use crate::wire::exchange::{
    LONGEST_FIRST_FRAME, LONGEST_FRAME, LONGEST_VALUES, MAGIC, NONCE, PROOF, Request, Values, decode_table,
    decode_values, encode_values, frame, take_frame,
};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Why a connection is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The other side does not use this protocol.
    Stranger,
    /// The other side is of another job, or at another fence.
    Elsewhere,
    /// The other side does not know the key.
    WrongKey,
    /// Two tasks with one number.
    Twice,
}

/// What is covered by the proofs of a connection.
#[derive(Clone)]
struct Proofs {
    key: Secret,
    request: Vec<u8>,
    nonce: [u8; NONCE],
}

/// Who gives a proof of what.
#[derive(Clone, Copy)]
enum Of {
    Reply = 1,
    Task = 2,
    Values = 3,
    Table = 4,
}

impl Proofs {
    fn mac(&self, of: Of, hash: &Hash) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length is one");
        mac.chain_update(MAGIC)
            .chain_update([of as u8])
            .chain_update(&self.request)
            .chain_update(self.nonce)
            .chain_update(hash)
    }

    fn seal(&self, of: Of, contents: &[u8]) -> Vec<u8> {
        let proof = self.mac(of, &hash(contents)).finalize().into_bytes();
        frame(&[&proof[..], contents].concat())
    }

    /// The contents of a frame whose proof is right.
    fn open<'a>(&self, of: Of, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (proof, contents) = bytes.split_at_checked(PROOF)?;
        self.mac(of, &hash(contents)).verify_slice(proof).is_ok().then_some(contents)
    }
}

/// What a proof covers of contents.
pub type Hash = [u8; 32];

/// The hash of contents.
pub fn hash(contents: &[u8]) -> Hash {
    Sha256::digest(contents).into()
}

/// A task's side.
pub struct Initiator {
    proofs: Proofs,
    input: Vec<u8>,
    values: Option<Vec<u8>>,
}

/// What an [`Initiator`] does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Read more.
    Read,
    /// Write these bytes, then read more: task 0 has proved that it knows the key.
    Write(Vec<u8>),
    /// Write these bytes, then give up: task 0 does not know the key.
    Refuse(Vec<u8>),
    /// The values of all tasks.
    Done(Vec<Values>),
}

impl Initiator {
    /// A connection that begins, and the bytes to write first.
    pub fn new(key: Secret, request: Request, values: &Values) -> (Self, Vec<u8>) {
        let request = request.encode();
        let first = frame(&request);
        let proofs = Proofs { key, request, nonce: [0; NONCE] };
        (Self { proofs, input: Vec::new(), values: Some(encode_values(values)) }, first)
    }

    /// Takes bytes from task 0.
    ///
    /// # Errors
    /// It is not task 0 of this job, or sends something else.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Next, Refusal> {
        self.input.extend_from_slice(bytes);
        let longest = if self.values.is_some() { LONGEST_FIRST_FRAME } else { LONGEST_FRAME };
        let Some(bytes) = take_frame(&mut self.input, longest).map_err(|_| Refusal::Stranger)? else {
            return Ok(Next::Read);
        };
        let Some(values) = self.values.take() else {
            let table = self.proofs.open(Of::Table, &bytes).ok_or(Refusal::WrongKey)?;
            return decode_table(table).map(Next::Done).ok_or(Refusal::Stranger);
        };
        let nonce = bytes.strip_prefix(&MAGIC).and_then(<[u8]>::split_first_chunk::<NONCE>);
        let (nonce, proof) = nonce.ok_or(Refusal::Stranger)?;
        self.proofs.nonce = *nonce;
        Ok(match self.proofs.open(Of::Reply, proof) {
            Some([]) => {
                let proof = self.proofs.seal(Of::Task, &[]);
                Next::Write([proof, self.proofs.seal(Of::Values, &values)].concat())
            }
            _ => Next::Refuse(frame(&[0; PROOF])),
        })
    }
}

/// Task 0's side.
pub struct Responder {
    key: Secret,
    /// What a request must be, but for its task and nonce.
    expected: Request,
    input: Vec<u8>,
    requested: Option<(u32, Proofs)>,
    has_proved: bool,
    has_values: bool,
}

/// What a [`Responder`] does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    /// Read more.
    Read,
    /// Write these bytes, then read more.
    Write(Vec<u8>),
    /// The values of a task that knows the key.
    Values(u32, Values),
}

impl Responder {
    /// A connection that was accepted; `expected` is the request that this task would send.
    pub fn new(key: Secret, expected: Request) -> Self {
        Self { key, expected, input: Vec::new(), requested: None, has_proved: false, has_values: false }
    }

    /// The task that has sent the request, as it says.
    pub fn task(&self) -> Option<u32> {
        self.requested.as_ref().map(|(task, _)| *task)
    }

    /// Whether the other side has proved that it is a task of this job.
    pub fn has_proved(&self) -> bool {
        self.has_proved
    }

    /// Takes bytes from the task.
    ///
    /// # Errors
    /// It is no task of this job, or sends something else.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Got, Refusal> {
        self.input.extend_from_slice(bytes);
        loop {
            let longest = if self.has_proved { LONGEST_VALUES } else { LONGEST_FIRST_FRAME };
            let Some(bytes) = take_frame(&mut self.input, longest).map_err(|_| Refusal::Stranger)? else {
                return Ok(Got::Read);
            };
            let Some((task, proofs)) = &self.requested else { return self.reply_to(bytes).map(Got::Write) };
            if self.has_values {
                return Err(Refusal::Stranger);
            }
            if self.has_proved {
                let values = proofs.open(Of::Values, &bytes).ok_or(Refusal::WrongKey)?;
                let values = decode_values(values).ok_or(Refusal::Stranger)?;
                self.has_values = true;
                return Ok(Got::Values(*task, values));
            }
            let nothing = proofs.open(Of::Task, &bytes).ok_or(Refusal::WrongKey)?;
            self.has_proved = nothing.is_empty();
        }
    }

    /// Replies to a request with the proof of this side.
    fn reply_to(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let request = Request::decode(&bytes).ok_or(Refusal::Stranger)?;
        let expected = Request { task: request.task, nonce: request.nonce, ..self.expected };
        if request != expected || request.task == 0 || request.task >= request.tasks {
            return Err(Refusal::Elsewhere);
        }
        // A task waits for the reply: what is more than a request is not kept.
        if !self.input.is_empty() {
            return Err(Refusal::Stranger);
        }
        let proofs = Proofs { key: self.key, request: bytes, nonce: random() };
        let proof = proofs.mac(Of::Reply, &hash(&[])).finalize().into_bytes();
        let reply = frame(&[&MAGIC[..], &proofs.nonce, &proof].concat());
        self.requested = Some((request.task, proofs));
        Ok(reply)
    }

    /// The beginning of the last frame, which the table follows: the values of all tasks, as
    /// [`crate::wire::exchange::encode_table`] has them, with this length and this hash.
    pub fn before_table(&self, length: usize, hash: &Hash) -> Vec<u8> {
        let Some((_, proofs)) = &self.requested else { return Vec::new() };
        let proof = proofs.mac(Of::Table, hash).finalize().into_bytes();
        [&((PROOF + length) as u32).to_le_bytes()[..], &proof].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;
    use crate::wire::exchange::encode_table;

    fn request() -> Request {
        Request { job: [1; 16], task: 2, tasks: 4, opening: 1, fence: 1, nonce: random() }
    }

    fn values() -> Values {
        Values::from([("address".to_owned(), vec![5; 300]), ("empty".to_owned(), Vec::new())])
    }

    /// Gives bytes in pieces of any length; returns what the last one led to.
    fn feed<T: PartialEq>(
        rng: &mut Rng,
        bytes: &[u8],
        none: &T,
        mut read: impl FnMut(&[u8]) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut rest = bytes;
        loop {
            let (piece, next) = rest.split_at(rest.len().min(1 + rng.below(50) as usize));
            rest = next;
            let found = read(piece)?;
            if rest.is_empty() {
                return Ok(found);
            }
            assert!(found == *none, "before the end of the frame");
        }
    }

    #[test]
    fn a_connection() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let (mut initiator, first) = Initiator::new([7; 16], request(), &values());
            let mut responder = Responder::new([7; 16], Request { task: 0, ..request() });
            let Ok(Got::Write(reply)) = feed(&mut rng, &first, &Got::Read, |bytes| responder.read(bytes))
            else {
                panic!("a reply")
            };
            assert_eq!(responder.task(), Some(2));
            let Ok(Next::Write(sealed)) = feed(&mut rng, &reply, &Next::Read, |bytes| initiator.read(bytes))
            else {
                panic!("values")
            };
            let got = feed(&mut rng, &sealed, &Got::Read, |bytes| responder.read(bytes));
            assert_eq!(got, Ok(Got::Values(2, values())));
            let table = vec![Values::new(), values()];
            let encoded = encode_table(&table);
            let bytes = [responder.before_table(encoded.len(), &hash(&encoded)), encoded].concat();
            assert_eq!(
                feed(&mut rng, &bytes, &Next::Read, |bytes| initiator.read(bytes)),
                Ok(Next::Done(table))
            );
        }
    }

    #[test]
    fn another_key_is_seen_by_both() {
        let (mut initiator, first) = Initiator::new([7; 16], request(), &values());
        let mut responder = Responder::new([8; 16], Request { task: 0, ..request() });
        let Ok(Got::Write(reply)) = responder.read(&first) else { panic!("a reply") };
        let Ok(Next::Refuse(last)) = initiator.read(&reply) else { panic!("a refusal") };
        assert!(!last.windows(4).any(|part| part == [5; 4]), "no value is shown");
        assert_eq!(responder.read(&last), Err(Refusal::WrongKey));
    }

    #[test]
    fn other_jobs_fences_and_tasks() {
        for other in [
            Request { job: [2; 16], ..request() },
            Request { tasks: 5, ..request() },
            Request { opening: 2, ..request() },
            Request { fence: 2, ..request() },
            Request { task: 0, ..request() },
            Request { task: 4, ..request() },
        ] {
            let (_, first) = Initiator::new([7; 16], other, &values());
            let mut responder = Responder::new([7; 16], Request { task: 0, ..request() });
            assert_eq!(responder.read(&first), Err(Refusal::Elsewhere), "{other:?}");
        }
    }

    /// A recorded session is of no use: task 0's nonce is another one.
    #[test]
    fn a_recorded_session() {
        let (mut initiator, first) = Initiator::new([7; 16], request(), &values());
        let mut responder = Responder::new([7; 16], Request { task: 0, ..request() });
        let Ok(Got::Write(reply)) = responder.read(&first) else { panic!("a reply") };
        let Ok(Next::Write(sealed)) = initiator.read(&reply) else { panic!("values") };
        let mut later = Responder::new([7; 16], Request { task: 0, ..request() });
        assert!(matches!(later.read(&first), Ok(Got::Write(_))));
        assert_eq!(later.read(&sealed), Err(Refusal::WrongKey));
    }

    #[test]
    fn garbage_and_changed_bytes() {
        let mut rng = Rng::new(21);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..rng.below(300)).map(|_| rng.below(256) as u8).collect();
            let mut responder = Responder::new([7; 16], request());
            assert!(matches!(responder.read(&bytes), Ok(Got::Read) | Err(_)));
            let (mut initiator, _) = Initiator::new([7; 16], request(), &values());
            assert!(matches!(initiator.read(&bytes), Ok(Next::Read | Next::Refuse(_)) | Err(_)));
        }
        let (mut initiator, first) = Initiator::new([7; 16], request(), &values());
        let mut responder = Responder::new([7; 16], Request { task: 0, ..request() });
        let Ok(Got::Write(reply)) = responder.read(&first) else { panic!("a reply") };
        let Ok(Next::Write(mut sealed)) = initiator.read(&reply) else { panic!("values") };
        let at = 4 + rng.below(sealed.len() as u64 - 4) as usize;
        sealed[at] ^= 1;
        assert_eq!(responder.read(&sealed), Err(Refusal::WrongKey));
    }

    /// A peer that has proved nothing makes task 0 keep no more than a short frame, before its
    /// request and after it.
    #[test]
    fn what_is_kept_of_a_stranger() {
        let expected = Request { task: 0, ..request() };
        let (_, first) = Initiator::new([7; 16], request(), &values());
        for before in [0, 1, first.len()] {
            let mut responder = Responder::new([7; 16], expected);
            let _ = responder.read(&first[..before]).expect("a request");
            let mut kept = 0;
            for byte in (1000_u32 << 8).to_le_bytes().into_iter().cycle().take(300_000) {
                match responder.read(&[byte]) {
                    Ok(_) => kept = kept.max(responder.input.len()),
                    Err(_) => break,
                }
            }
            assert!(kept <= LONGEST_FIRST_FRAME + 4, "{kept} bytes after {before}");
        }
        let mut responder = Responder::new([7; 16], expected);
        assert_eq!(responder.read(&[&first[..], &[1; 9000]].concat()), Err(Refusal::Stranger));
        let mut responder = Responder::new([7; 16], expected);
        assert_eq!(responder.read(&1000_u32.to_le_bytes()), Err(Refusal::Stranger));
    }
}
