//! What two tasks send each other to connect: a version, a kind, and the fields of that kind, all
//! numbers little-endian. The descriptors of a request or a reply travel with it.

use super::VERSION;
use super::bytes::{cut, take};
use super::frame::Task;

/// The upper half of the first word of a message; the lower one is its version.
const MAGIC: u32 = 0x4c41;

/// What a refusal is, in all versions.
const REFUSE: u8 = 4;

/// The longest message, in bytes.
pub const LONGEST: usize = 1024;

/// The longest text of a refusal, in bytes.
const LONGEST_TEXT: usize = 400;

/// The longest secret, in bytes.
pub const LONGEST_SECRET: usize = 64;

/// The epoch of a task that does not rejoin: see [`Hello::epoch`].
pub const NO_EPOCH: u64 = 0;

/// What a task sends about itself when it connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Which task it is.
    pub task: Task,
    /// The number of tasks in its job.
    pub tasks: u32,
    /// How often this task has opened this instance of LAPI in this job: tasks of equal generations
    /// belong together.
    pub generation: u32,
    /// A random number of this context, which distinguishes a process from the one before it.
    pub incarnation: u64,
    /// Not [`NO_EPOCH`] when the program has resumed the receiver: the sender's place among the
    /// collective operations.
    pub epoch: u64,
    /// Where the sender's landmark lies in its memory.
    pub landmark: u64,
    /// What the landmark holds.
    pub mark: u64,
    /// The sender takes part in asymmetric barriers.
    pub asymmetric: bool,
    /// The address of its program, 0 if that is not linked with the library; and the address
    /// of the library.
    pub maps: [u64; 2],
    /// The job's secret.
    pub secret: Vec<u8>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first message of a connection, from its initiator.
    Request(Hello),
    /// The responder's.
    Reply(Hello),
    /// The initiator has mapped everything: packets may flow.
    Confirm,
    /// There will be no connection, for this reason.
    Refuse(String),
}

impl Message {
    /// The message's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(VERSION);
        match self {
            Self::Request(hello) => {
                out.push(1);
                hello.put(&mut out);
            }
            Self::Reply(hello) => {
                out.push(2);
                hello.put(&mut out);
            }
            Self::Confirm => out.push(3),
            Self::Refuse(why) => return refusal(VERSION, why),
        }
        out
    }

    /// `None` when the bytes are not such a message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        if version(&mut rest)? != VERSION {
            return None;
        }
        let [kind] = take(&mut rest)?;
        match kind {
            1 => Hello::take(rest).map(Self::Request),
            2 => Hello::take(rest).map(Self::Reply),
            3 => rest.is_empty().then_some(Self::Confirm),
            REFUSE if rest.len() <= LONGEST_TEXT => {
                Some(Self::Refuse(String::from_utf8_lossy(rest).into_owned()))
            }
            _ => None,
        }
    }
}

fn head(version: u16) -> Vec<u8> {
    (MAGIC << 16 | u32::from(version)).to_le_bytes().to_vec()
}

fn version(bytes: &mut &[u8]) -> Option<u16> {
    let word = u32::from_le_bytes(take(bytes)?);
    (word >> 16 == MAGIC).then_some(word as u16)
}

/// The version of a message that is another one's than this library's; nothing else of it is known.
pub fn other_version(mut bytes: &[u8]) -> Option<u16> {
    version(&mut bytes).filter(|version| *version != VERSION)
}

/// A [`Message::Refuse`] as libraries of this version read it: it has the same form in all.
pub fn refusal(version: u16, why: &str) -> Vec<u8> {
    [&head(version)[..], &[REFUSE], cut(why, LONGEST_TEXT).as_bytes()].concat()
}

impl Hello {
    fn put(&self, out: &mut Vec<u8>) {
        for word in [self.task, self.tasks, self.generation, self.asymmetric.into()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.incarnation, self.epoch, self.landmark, self.mark, self.maps[0], self.maps[1]] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.secret);
    }

    fn take(mut rest: &[u8]) -> Option<Self> {
        let mut short = || take(&mut rest).map(u32::from_le_bytes);
        let (task, tasks, generation, asymmetric) = (short()?, short()?, short()?, short()?);
        let mut long = || take(&mut rest).map(u64::from_le_bytes);
        let (incarnation, epoch, landmark, mark) = (long()?, long()?, long()?, long()?);
        let maps = [long()?, long()?];
        let asymmetric = match asymmetric {
            0 => false,
            1 => true,
            _ => return None,
        };
        let secret = rest.to_vec();
        (secret.len() <= LONGEST_SECRET).then_some(Self {
            task,
            tasks,
            generation,
            incarnation,
            epoch,
            landmark,
            mark,
            asymmetric,
            maps,
            secret,
        })
    }
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
