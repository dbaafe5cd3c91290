//! Descriptors of tasks that have not been started yet, kept out of the table of the process
//! that starts them.
//!
//! A process inherits all descriptors, to close them when it becomes another program: to start a
//! task costs more the more tasks there are to come. Their descriptors therefore wait in a socket,
//! some tasks' in each message.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::streams::{Stdin, Theirs};

/// As many tasks as one message has room for: at most four descriptors of each, and 253 in all.
const TASKS: usize = 60;
const DESCRIPTORS: usize = 4 * TASKS;

/// What a task gets: its streams, and its socket for reports.
type Ends = (Theirs, Option<UnixDatagram>);

/// What each task gets, in the order of the tasks.
pub(super) struct Parked {
    /// The tasks whose turn is next.
    next: VecDeque<Ends>,
    later: VecDeque<Group>,
    /// Where the descriptors of later groups wait: the end that they come out of.
    from: Option<OwnedFd>,
}

enum Group {
    /// The system did not take them.
    Kept(Vec<Ends>),
    InSocket(Vec<Shape>),
}

/// Which descriptors a task has.
struct Shape {
    /// What is no descriptor; `None`: it is one.
    stdin: Option<Stdin>,
    has_stdout: bool,
    has_reports: bool,
}

impl Parked {
    pub(super) fn new(streams: Vec<Theirs>, reports: Vec<Option<UnixDatagram>>) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok();
        let (into, from) = pair.unzip();
        let mut tasks = streams.into_iter().zip(reports);
        let next = tasks.by_ref().take(TASKS).collect();
        let mut later = VecDeque::new();
        while tasks.len() > 0 {
            let group: Vec<Ends> = tasks.by_ref().take(TASKS).collect();
            later.push_back(match &into {
                Some(into) => Group::park(group, into),
                None => Group::Kept(group),
            });
        }
        Self { next, later, from }
    }
}

impl Iterator for Parked {
    type Item = io::Result<Ends>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_empty() {
            match self.later.pop_front()?.fetch(self.from.as_ref()) {
                Ok(group) => self.next = group.into(),
                Err(error) => return Some(Err(error)),
            }
        }
        self.next.pop_front().map(Ok)
    }
}

impl Group {
    fn park(group: Vec<Ends>, into: &OwnedFd) -> Self {
        let fds: Vec<_> = group
            .iter()
            .flat_map(|(streams, reports)| {
                let stdin = if let Stdin::Own(end) = &streams.stdin { Some(end) } else { None };
                let ends = stdin.into_iter().chain(&streams.stdout).chain([&streams.stderr]);
                ends.map(AsFd::as_fd).chain(reports.as_ref().map(AsFd::as_fd))
            })
            .collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = control.push(SendAncillaryMessage::ScmRights(&fds));
        // The system bounds how many descriptors of a user are under way.
        if !fits || sendmsg(into, &[IoSlice::new(&[0])], &mut control, SendFlags::empty()).is_err() {
            return Self::Kept(group);
        }
        let shape = |(streams, reports): Ends| Shape {
            stdin: if matches!(streams.stdin, Stdin::Own(_)) { None } else { Some(streams.stdin) },
            has_stdout: streams.stdout.is_some(),
            has_reports: reports.is_some(),
        };
        Self::InSocket(group.into_iter().map(shape).collect())
    }

    fn fetch(self, from: Option<&OwnedFd>) -> io::Result<Vec<Ends>> {
        let (shapes, from) = match (self, from) {
            (Self::Kept(group), _) => return Ok(group),
            (Self::InSocket(shapes), Some(from)) => (shapes, from),
            (Self::InSocket(_), None) => return Err(io::ErrorKind::NotConnected.into()),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        recvmsg(from, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let rights =
            |message| if let RecvAncillaryMessage::ScmRights(fds) = message { Some(fds) } else { None };
        let mut fds = control.drain().filter_map(rights).flatten();
        let mut fd = || fds.next().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
        shapes
            .into_iter()
            .map(|shape| {
                let stdin = match shape.stdin {
                    Some(stdin) => stdin,
                    None => Stdin::Own(fd()?),
                };
                let stdout = if shape.has_stdout { Some(fd()?) } else { None };
                let streams = Theirs { stdin, stdout, stderr: fd()? };
                let reports = if shape.has_reports { Some(UnixDatagram::from(fd()?)) } else { None };
                Ok((streams, reports))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poe::streams::pipe;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn each_task_gets_its_own_streams_in_the_order_of_the_tasks() {
        let mut readers = Vec::new();
        let mut end = || {
            let (read, write) = pipe().expect("a pipe");
            readers.push(File::from(read));
            write
        };
        let tasks = 3 * TASKS + 1;
        let streams: Vec<Theirs> = (0..tasks)
            .map(|task| {
                let stdin = match task % 3 {
                    0 => Stdin::Inherit,
                    1 => Stdin::Nothing,
                    _ => Stdin::Own(end()),
                };
                Theirs { stdin, stdout: (task % 5 > 0).then(&mut end), stderr: end() }
            })
            .collect();
        let mut expected = String::new();
        let (sockets, reports): (Vec<_>, Vec<_>) = (0..tasks)
            .map(|task| (task % 7 > 0).then(|| UnixDatagram::pair().expect("sockets")).unzip())
            .unzip();
        let mut write = |to: OwnedFd, text: String| {
            expected += &text;
            File::from(to).write_all(text.as_bytes()).expect("the pipe has room");
        };
        let mut count = 0;
        for (task, ends) in Parked::new(streams, reports).enumerate() {
            let (Theirs { stdin, stdout, stderr }, report) = ends.expect("what was parked");
            assert_eq!(
                report.map(|socket| socket.send(&[task as u8]).is_ok()),
                (task % 7 > 0).then_some(true)
            );
            match stdin {
                Stdin::Inherit => assert_eq!(task % 3, 0),
                Stdin::Nothing => assert_eq!(task % 3, 1),
                Stdin::Own(end) => write(end, format!("in {task} ")),
            }
            assert_eq!(stdout.is_some(), task % 5 > 0);
            stdout.into_iter().for_each(|end| write(end, format!("out {task} ")));
            write(stderr, format!("err {task} "));
            count += 1;
        }
        let mut read = String::new();
        for mut reader in readers {
            reader.read_to_string(&mut read).expect("the other end is closed");
        }
        assert_eq!((count, read), (tasks, expected));
        for (task, socket) in
            sockets.iter().enumerate().filter_map(|(task, socket)| Some((task, socket.as_ref()?)))
        {
            let mut byte = [0];
            assert_eq!((socket.recv(&mut byte).expect("a message"), byte), (1, [task as u8]));
        }
    }
}
