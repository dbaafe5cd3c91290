//! What root and others say to each other: a version, a kind, and the fields of that kind, numbers in
//! little-endian order.

use std::ffi::c_int;

use super::{MAX_BLOB, MAX_FDS, MAX_SECRET};
use crate::job::channel::{FDS_PER_MESSAGE, MESSAGE_MAX};

/// Changes whenever a message changes.
const VERSION: u32 = 0x4c41_0002;

/// A part ends when it has grown beyond this many bytes: well below what a socket buffers.
const PART_BYTES: usize = 32 * 1024;

/// The longest text of a failure, in bytes.
const MAX_TEXT: usize = 4096;

/// What the root hears.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::job) enum ToRoot {
    Hello(Hello),
    /// Everything has arrived.
    Have,
    /// The sender's patience is at its end, or something went wrong there.
    GivingUp(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::job) struct Hello {
    pub(in crate::job) task: u32,
    pub(in crate::job) tasks: u32,
    pub(in crate::job) secret: Vec<u8>,
    pub(in crate::job) blob: Vec<u8>,
    pub(in crate::job) fds: u32,
}

/// What the others hear.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToMember {
    /// The hello was taken.
    Welcome,
    /// What some of the tasks brought.
    Part(Vec<Record>),
    /// Everyone has everything.
    Go,
    /// The round has failed: a LAPI error code, and why.
    Fail(c_int, String),
    /// The job runs already, and the root has gone back to it: the others are to look for it there.
    Elsewhere,
}

/// What one task brought; its descriptors travel beside the message, in the order of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) task: u32,
    pub(super) pid: i32,
    pub(super) uid: u32,
    pub(super) blob: Vec<u8>,
    pub(super) fds: u32,
}

impl ToRoot {
    pub(in crate::job) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(hello) => {
                let mut out = begin(1);
                put(&mut out, hello.task);
                put(&mut out, hello.tasks);
                put_bytes(&mut out, &hello.secret);
                put_bytes(&mut out, &hello.blob);
                put(&mut out, hello.fds);
                out
            }
            Self::Have => begin(2),
            Self::GivingUp(why) => {
                let mut out = begin(3);
                put_bytes(&mut out, shorten(why).as_bytes());
                out
            }
        }
    }

    /// `None` when the bytes are no such message.
    pub(in crate::job) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = open(bytes)?;
        let message = match kind {
            1 => Self::Hello(Hello {
                task: take(&mut rest)?,
                tasks: take(&mut rest)?,
                secret: take_bytes(&mut rest, MAX_SECRET)?,
                blob: take_bytes(&mut rest, MAX_BLOB)?,
                fds: take(&mut rest).filter(|fds| *fds <= MAX_FDS as u32)?,
            }),
            2 => Self::Have,
            3 => Self::GivingUp(take_text(&mut rest)?),
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}

impl ToMember {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome => begin(16),
            Self::Part(records) => {
                let mut out = begin(17);
                put(&mut out, records.len() as u32);
                for record in records {
                    put(&mut out, record.task);
                    put(&mut out, record.pid as u32);
                    put(&mut out, record.uid);
                    put_bytes(&mut out, &record.blob);
                    put(&mut out, record.fds);
                }
                out
            }
            Self::Go => begin(18),
            Self::Fail(code, why) => {
                let mut out = begin(19);
                put(&mut out, *code as u32);
                put_bytes(&mut out, shorten(why).as_bytes());
                out
            }
            Self::Elsewhere => begin(20),
        }
    }

    /// `None` when the bytes are no such message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = open(bytes)?;
        let message = match kind {
            16 => Self::Welcome,
            17 => {
                let count = take(&mut rest)?;
                let records = (0..count).map(|_| {
                    Some(Record {
                        task: take(&mut rest)?,
                        pid: take(&mut rest)? as i32,
                        uid: take(&mut rest)?,
                        blob: take_bytes(&mut rest, MAX_BLOB)?,
                        fds: take(&mut rest).filter(|fds| *fds <= MAX_FDS as u32)?,
                    })
                });
                Self::Part(records.collect::<Option<_>>()?)
            }
            18 => Self::Go,
            19 => Self::Fail(take(&mut rest)? as c_int, take_text(&mut rest)?),
            20 => Self::Elsewhere,
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}

/// Cuts records into parts, each of which fits one message.
pub(super) fn parts(records: &[Record]) -> Vec<&[Record]> {
    let mut parts = Vec::new();
    let (mut first, mut bytes, mut fds) = (0, 0, 0);
    for (at, record) in records.iter().enumerate() {
        if bytes > PART_BYTES || fds + record.fds as usize > FDS_PER_MESSAGE {
            parts.push(&records[first..at]);
            (first, bytes, fds) = (at, 0, 0);
        }
        bytes += 20 + record.blob.len();
        fds += record.fds as usize;
    }
    parts.push(&records[first..]);
    parts
}

const _: () = assert!(PART_BYTES + 2 * MAX_BLOB < MESSAGE_MAX);

fn begin(kind: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, VERSION);
    put(&mut out, kind);
    out
}

fn open(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut rest = bytes;
    let version = take(&mut rest)?;
    let kind = take(&mut rest)?;
    (version == VERSION).then_some((kind, rest))
}

fn put(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn take(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

fn take_bytes(rest: &mut &[u8], most: usize) -> Option<Vec<u8>> {
    let len = take(rest)? as usize;
    if len > most {
        return None;
    }
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(bytes.to_vec())
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_bytes(rest, MAX_TEXT)?).ok()
}

fn shorten(text: &str) -> &str {
    let mut len = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(task: u32, blob: usize, fds: u32) -> Record {
        Record { task, pid: 77, uid: 1000, blob: vec![task as u8; blob], fds }
    }

    #[test]
    fn round_trips() {
        let hello = Hello { task: 3, tasks: 9, secret: vec![1; 16], blob: vec![2; MAX_BLOB], fds: 2 };
        for message in [ToRoot::Hello(hello), ToRoot::Have, ToRoot::GivingUp("why".to_owned())] {
            assert_eq!(ToRoot::decode(&message.encode()), Some(message));
        }
        let part = ToMember::Part(vec![record(0, 0, 0), record(1, 4096, 2)]);
        for message in [
            ToMember::Welcome,
            part,
            ToMember::Go,
            ToMember::Fail(439, "why".to_owned()),
            ToMember::Elsewhere,
        ] {
            assert_eq!(ToMember::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn nothing_that_is_cut_grown_or_foreign_is_believed() {
        let hello = Hello { task: 3, tasks: 9, secret: vec![1; 16], blob: vec![2; 40], fds: 2 };
        let bytes = ToRoot::Hello(hello).encode();
        for len in 0..bytes.len() {
            assert_eq!(ToRoot::decode(&bytes[..len]), None);
        }
        assert_eq!(ToRoot::decode(&[&bytes[..], &[0]].concat()), None);
        let part = ToMember::Part(vec![record(1, 10, 1)]).encode();
        for len in 0..part.len() {
            assert_eq!(ToMember::decode(&part[..len]), None);
        }
        assert_eq!(ToMember::decode(&bytes), None, "a message for the other side");
        let mut other = bytes;
        other[0] ^= 1;
        assert_eq!(ToRoot::decode(&other), None, "another version");
        assert_eq!(
            ToMember::decode(&ToMember::Part(vec![record(0, 0, 4)]).encode()),
            None,
            "four descriptors"
        );
        assert_eq!(ToMember::decode(&ToMember::Part(vec![record(0, 4097, 0)]).encode()), None, "a long blob");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = format!("x{}", "é".repeat(MAX_TEXT));
        match ToRoot::decode(&ToRoot::GivingUp(text.clone()).encode()) {
            Some(ToRoot::GivingUp(cut)) => assert!(cut.len() >= MAX_TEXT - 1 && text.starts_with(&cut)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_hold_everything_in_order_and_fit_a_message() {
        for (tasks, blob, fds) in [(1, 0, 0), (128, 4096, 2), (300, 16, 2), (127, 0, 2), (1000, 0, 1)] {
            let records: Vec<Record> = (0..tasks).map(|task| record(task, blob, fds)).collect();
            let parts = parts(&records);
            assert_eq!(parts.concat(), records);
            for part in parts {
                assert!(!part.is_empty());
                assert!(part.iter().map(|record| record.fds as usize).sum::<usize>() <= FDS_PER_MESSAGE);
                assert!(ToMember::Part(part.to_vec()).encode().len() <= MESSAGE_MAX);
            }
        }
    }
}
