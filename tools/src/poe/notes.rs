//! The notes by which `poe` and those that own its tasks tell each other what happens and what is
//! to be done.
//!
//! Each of the two may have more to say than a socket takes, and neither reads while it waits for
//! room. So the owners of tasks (the supervisor, and the thread in its place where the tasks are on
//! other machines) never wait for it: an [`Exchange`] keeps what is to be sent until there is room,
//! and they read meanwhile. `poe` may then wait for room, because it is always made.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use openlapi::wire::launcher;

/// The longest list of changes that is sent or accepted, in bytes: no task writes as much.
pub(super) const LONGEST: usize = 64 << 20;

/// The longest reply to a look that is sent or accepted, in bytes: a message of a task, each
/// character of which may take some.
pub(super) const LONGEST_REPLY: usize = 8 * launcher::LONGEST;

/// What the two send each other, and what `poe` and a task on another machine do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// A task runs as this process.
    Started { task: usize, pid: i32 },
    /// A program could not be executed, for this `errno`; no task runs any more.
    NotStarted { task: usize, errno: i32 },
    /// Addresses are randomised because the system does not allow otherwise, for this `errno`.
    Randomized { errno: i32 },
    /// A task exited with this status; with [`LEFT_OPEN`] when `poe --task` knows that it had
    /// not closed LAPI.
    Exited { task: usize, status: i32 },
    /// A task was ended by this signal.
    Killed { task: usize, signal: i32 },
    /// The connection to a task on another machine is lost.
    Lost { task: usize },
    /// All tasks have ended and no process of theirs is left.
    Done,
    /// To the supervisor: send this signal to every task.
    Signal { signal: i32 },
    /// To the supervisor: send this signal to every process of the tasks that has a handler for it.
    Offer { signal: i32 },
    /// To the supervisor: send this signal to one task.
    SignalTask { task: usize, signal: i32 },
    /// Between `poe` and tasks on other machines: this number of bytes follows, changes of their
    /// files (`remote::mirror`).
    Changes { length: usize },
    /// To tasks on other machines: a viewer asks, with this number; replies repeat it.
    Look { number: u32 },
    /// What a task on another machine does: the reply to the look of that number, of which this
    /// number of bytes follows (`reports::state`).
    Reply { task: usize, number: u32, length: usize },
}

/// A flag of the status in [`Note::Exited`].
pub(super) const LEFT_OPEN: i32 = 0x100;

impl Note {
    /// A note on its way: what it is, which task, a value, a length.
    pub(super) const LENGTH: usize = 16;
    /// The version of the notes, of `reports::state::Task` in them, and of the order before them
    /// (`remote`): both ends must have the same. The first one was not said.
    pub(super) const VERSION: &str = "2";

    pub(super) fn write(self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.bytes())
    }

    /// The note on its way.
    pub(super) fn bytes(self) -> [u8; Self::LENGTH] {
        let (kind, task, value) = match self {
            Self::Started { task, pid } => (0, task, pid),
            Self::NotStarted { task, errno } => (1, task, errno),
            Self::Randomized { errno } => (2, 0, errno),
            Self::Exited { task, status } => (3, task, status),
            Self::Killed { task, signal } => (4, task, signal),
            Self::Done => (5, 0, 0),
            Self::Signal { signal } => (6, 0, signal),
            Self::Offer { signal } => (7, 0, signal),
            Self::SignalTask { task, signal } => (8, task, signal),
            Self::Lost { task } => (9, task, 0),
            Self::Changes { length } => (10, length, 0),
            Self::Look { number } => (11, 0, number as i32),
            Self::Reply { task, number, .. } => (12, task, number as i32),
        };
        let length = if let Self::Reply { length, .. } = self { length } else { 0 };
        let mut bytes = [0; Self::LENGTH];
        for (field, word) in bytes.chunks_exact_mut(4).zip([kind, task as i32, value, length as i32]) {
            field.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The note of a supervisor with one task, as one of a job in which that task has this number.
    pub(super) fn of_task(self, task: usize) -> Self {
        match self {
            Self::Started { pid, .. } => Self::Started { task, pid },
            Self::NotStarted { errno, .. } => Self::NotStarted { task, errno },
            Self::Exited { status, .. } => Self::Exited { task, status },
            Self::Killed { signal, .. } => Self::Killed { task, signal },
            other => other,
        }
    }

    /// Waits for the next note. An error is the end of the other side.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; Self::LENGTH];
        from.read_exact(&mut bytes)?;
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (task, value, length) = (word(4) as usize, word(8), word(12) as usize);
        match word(0) {
            0 => Ok(Self::Started { task, pid: value }),
            1 => Ok(Self::NotStarted { task, errno: value }),
            2 => Ok(Self::Randomized { errno: value }),
            3 => Ok(Self::Exited { task, status: value }),
            4 => Ok(Self::Killed { task, signal: value }),
            5 => Ok(Self::Done),
            6 => Ok(Self::Signal { signal: value }),
            7 => Ok(Self::Offer { signal: value }),
            8 => Ok(Self::SignalTask { task, signal: value }),
            9 => Ok(Self::Lost { task }),
            10 => Ok(Self::Changes { length: task }),
            11 => Ok(Self::Look { number: value as u32 }),
            12 => Ok(Self::Reply { task, number: value as u32, length }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// One end of a socket that does not block: what arrives is put together to notes, and what is to
/// be sent waits here until the other end takes it.
pub(super) struct Exchange<S> {
    socket: S,
    /// What has arrived and is no complete note yet.
    input: Vec<u8>,
    /// What waits to be sent. Several may send the same bytes.
    output: VecDeque<Arc<[u8]>>,
    /// How much of the first of these was sent.
    sent: usize,
}

/// What has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Note(Note),
    /// What follows [`Note::Changes`].
    Changes(Vec<u8>),
    /// A [`Note::Reply`], and what follows it.
    Reply {
        task: usize,
        number: u32,
        bytes: Vec<u8>,
    },
}

impl<S: AsFd + Read + Write> Exchange<S> {
    /// Over a socket that does not block.
    pub(super) fn new(socket: S) -> Self {
        Self { socket, input: Vec::new(), output: VecDeque::new(), sent: 0 }
    }

    /// What it is to be polled for.
    pub(super) fn events(&self) -> PollFlags {
        let writes = if self.output.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
        PollFlags::POLLIN | writes
    }

    /// Has a note sent. An error is the end of the other side.
    pub(super) fn send(&mut self, note: Note) -> io::Result<()> {
        self.send_bytes(note.bytes().as_slice().into())
    }

    /// Has bytes sent: those of a note, and what follows it.
    pub(super) fn send_bytes(&mut self, bytes: Arc<[u8]>) -> io::Result<()> {
        self.output.push_back(bytes);
        self.write()
    }

    /// Sends what there is room for now.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while let Some(first) = self.output.front() {
            match self.socket.write(&first[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.sent == first.len() {
                self.output.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Waits until all is sent. What arrives meanwhile is too late, and is thrown away: the other
    /// side may wait for that.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match poll(&mut [PollFd::new(self.socket.as_fd(), self.events())], PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            self.read()?;
            self.input.clear();
            self.write()?;
        }
        Ok(())
    }

    /// Reads what is there, once. An error is the end of the other side.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1 << 16];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.input.extend_from_slice(&bytes[..read]);
                Ok(())
            }
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next of what has arrived as a whole. An error: it is no note.
    pub(super) fn next(&mut self) -> io::Result<Option<Arrived>> {
        let Some(head) = self.input.get(..Note::LENGTH) else { return Ok(None) };
        let note = Note::read(&mut &head[..])?;
        let (length, longest) = match note {
            Note::Changes { length } => (length, LONGEST),
            Note::Reply { length, .. } => (length, LONGEST_REPLY),
            _ => (0, 0),
        };
        if length > longest {
            return Err(ErrorKind::InvalidData.into());
        }
        let end = Note::LENGTH + length;
        if self.input.len() < end {
            return Ok(None);
        }
        let bytes = self.input[Note::LENGTH..end].to_vec();
        self.input.drain(..end);
        Ok(Some(match note {
            Note::Changes { .. } => Arrived::Changes(bytes),
            Note::Reply { task, number, .. } => Arrived::Reply { task, number, bytes },
            note => Arrived::Note(note),
        }))
    }
}

impl<S: AsFd> AsFd for Exchange<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn notes_arrive_as_they_were_written() {
        let (mut here, mut there) = UnixStream::pair().expect("sockets can be made");
        for note in [
            Note::Started { task: 3, pid: 77 },
            Note::NotStarted { task: 1, errno: 2 },
            Note::Randomized { errno: 1 },
            Note::Exited { task: 16383, status: 255 },
            Note::Killed { task: 0, signal: 64 },
            Note::Done,
            Note::Signal { signal: 15 },
            Note::Offer { signal: 12 },
            Note::SignalTask { task: 7, signal: 13 },
            Note::Lost { task: 2 },
            Note::Changes { length: 70_000 },
            Note::Look { number: u32::MAX },
            Note::Reply { task: 5, number: 1 << 31, length: 9 },
        ] {
            note.write(&mut here).expect("the other end is open");
            assert_eq!(Note::read(&mut there).expect("a note was written"), note);
        }
        drop(here);
        assert!(Note::read(&mut there).is_err());
    }

    /// A length that nothing has would take memory, or the notes that follow.
    #[test]
    fn what_follows_a_note_has_a_longest_length() {
        let length_of = |length, room: usize| {
            let (mut here, there) = UnixStream::pair().expect("sockets can be made");
            there.set_nonblocking(true).expect("it is a socket");
            Note::Reply { task: 3, number: 7, length }.write(&mut here).expect("the other end is open");
            here.write_all(&vec![1; room]).expect("it has room");
            let mut exchange = Exchange::new(there);
            exchange.read().expect("there is something");
            exchange.next().map(|arrived| match arrived {
                Some(Arrived::Reply { task: 3, number: 7, bytes }) => Some(bytes.len()),
                None => None,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(length_of(4, 4).expect("a reply"), Some(4));
        assert_eq!(length_of(0, 0).expect("a reply"), Some(0));
        assert_eq!(length_of(LONGEST_REPLY, 4).expect("the rest is to come"), None);
        for wrong in [LONGEST_REPLY + 1, i32::MAX as usize, usize::MAX, 1 << 31] {
            assert!(length_of(wrong, 4).is_err(), "{wrong}");
        }
    }

    /// Neither side reads before it has written more than the sockets take.
    #[test]
    fn notes_of_both_sides_pass_also_where_there_is_no_room() {
        const NOTES: usize = 20_000;
        let (mut here, there) = UnixStream::pair().expect("sockets can be made");
        there.set_nonblocking(true).expect("it is a socket");
        let poe = std::thread::spawn(move || {
            for task in 0..NOTES {
                Note::SignalTask { task, signal: 13 }.write(&mut here).expect("the other end is open");
            }
            for task in 0..NOTES {
                assert_eq!(Note::read(&mut here).expect("a note"), Note::Exited { task, status: 0 });
            }
            assert_eq!(Note::read(&mut here).expect("a note"), Note::Done);
        });
        let mut owner = Exchange::new(there);
        for task in 0..NOTES {
            owner.send(Note::Exited { task, status: 0 }).expect("the other end is open");
        }
        assert!(!owner.output.is_empty(), "it is more than the socket takes");
        let mut next = 0;
        while next < NOTES {
            poll(&mut [PollFd::new(owner.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).expect("a socket");
            owner.read().expect("the other end is open");
            while let Some(arrived) = owner.next().expect("a note") {
                assert_eq!(arrived, Arrived::Note(Note::SignalTask { task: next, signal: 13 }));
                next += 1;
            }
        }
        owner.send(Note::Done).and_then(|()| owner.finish()).expect("all is read");
        poe.join().expect("nothing fails");
    }

    /// The other side's notes come too late, and it has no room for more before they are read.
    #[test]
    fn the_last_note_arrives_though_the_other_side_still_writes() {
        const NOTES: usize = 20_000;
        let (mut here, there) = UnixStream::pair().expect("sockets can be made");
        there.set_nonblocking(true).expect("it is a socket");
        let mut owner = Exchange::new(there);
        for task in 0..NOTES {
            owner.send(Note::Exited { task, status: 0 }).expect("the other end is open");
        }
        let poe = std::thread::spawn(move || {
            for task in 0..NOTES {
                Note::SignalTask { task, signal: 13 }.write(&mut here).expect("the other end is open");
            }
            while Note::read(&mut here).expect("a note") != Note::Done {}
        });
        owner.send(Note::Done).and_then(|()| owner.finish()).expect("all is read");
        poe.join().expect("nothing fails");
    }
}
