//! What `poe --task` replies when a viewer asks: the state of the task's process, and what the
//! task says of itself over a socket for that alone.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

use openlapi::wire::launcher::{Cause, FromLauncher, FromTask, LONGEST, Report};

use super::super::notes::{LONGEST_REPLY, Note};
use super::super::reports::state::Task;

/// The one task, for those who look on.
pub(super) struct Looks {
    /// `None`: there is none, or it cannot be used.
    socket: Option<UnixDatagram>,
    /// The task's process; 0: it has not begun, or has ended.
    pid: i32,
    /// The look to which the task has not replied.
    asked: Option<u32>,
    buffer: Vec<u8>,
}

impl Looks {
    /// Over this end of the task's socket.
    pub(super) fn new(socket: Option<UnixDatagram>) -> Self {
        let socket = socket.filter(|socket| socket.set_nonblocking(true).is_ok());
        Self { socket, pid: 0, asked: None, buffer: vec![0; LONGEST + 1] }
    }

    /// Readable when the task has said something.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// The task's process; 0: it has none.
    pub(super) fn runs_as(&mut self, pid: i32) {
        self.pid = pid;
    }

    /// Asks the task, for a viewer. Returns what is known without it, as `poe` reads it.
    pub(super) fn look(&mut self, number: u32) -> Vec<u8> {
        let known = self.reply(number, None);
        if self.pid != 0
            && let Some(socket) = &self.socket
        {
            // Full of requests that are not read: not a LAPI program.
            let asked = socket.send(FromLauncher::Look(number.into()).encode().as_bytes());
            self.asked = asked.is_ok().then_some(number);
        }
        known
    }

    /// Reads what the task has said. Returns it as `poe` reads it, when it is what was asked for.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let received = self.socket.as_ref()?.recv(&mut self.buffer);
        let count = match received {
            Ok(count) => count,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
                return None;
            }
            Err(_) => {
                // It would be ready again and again.
                self.socket = None;
                return None;
            }
        };
        let message = FromTask::decode(&String::from_utf8_lossy(&self.buffer[..count]));
        let Some(FromTask::Report(report)) = message else { return None };
        let number = self.asked.filter(|number| report.cause == Cause::Looked((*number).into()))?;
        self.asked = None;
        Some(self.reply(number, Some(&report)))
    }

    /// What is known. Nothing is a reply, too: `poe` asks again only who has replied.
    fn reply(&self, number: u32, report: Option<&Report>) -> Vec<u8> {
        let known = (self.pid != 0).then(|| Task::of(self.pid, report));
        let text = known.and_then(|known| serde_json::to_vec(&known).ok()).unwrap_or_default();
        let text = if text.len() > LONGEST_REPLY { &[][..] } else { &text };
        let head = Note::Reply { task: 0, number, length: text.len() }.bytes();
        [&head[..], text].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi::wire::launcher::Traffic;

    fn report(number: u64) -> Report {
        let traffic = Traffic { packets: (3, 4), bytes: (5, 6) };
        let (clauses, awaited) = (vec!["waits".to_owned()], vec![2]);
        let (cause, pid) = (Cause::Looked(number), std::process::id() as i32);
        Report { cause, pid, clauses, awaited, collectives: Vec::new(), traffic, text: String::new() }
    }

    fn shown(bytes: &[u8]) -> (Note, Task) {
        let note = Note::read(&mut &bytes[..]).expect("a note");
        (note, serde_json::from_slice(&bytes[Note::LENGTH..]).expect("a task"))
    }

    #[test]
    fn a_task_is_shown_at_once_and_then_by_what_it_says() {
        let (here, task) = UnixDatagram::pair().expect("sockets");
        let mut looks = Looks::new(Some(here));
        let nothing = |number| Note::Reply { task: 0, number, length: 0 }.bytes();
        assert_eq!(looks.look(6), nothing(6), "it has no process");
        looks.runs_as(std::process::id() as i32);
        let (note, first) = shown(&looks.look(7));
        assert!(matches!(note, Note::Reply { number: 7, .. }), "{note:?}");
        assert!(!first.replied && first.state.is_some() && first.cpu.is_some(), "{first:?}");
        let mut asked = vec![0; LONGEST];
        let count = task.recv(&mut asked).expect("it is asked");
        assert_eq!(asked[..count], *FromLauncher::Look(7).encode().as_bytes());
        // Of what it says, the reply alone is passed on, and once.
        for message in [FromTask::Ready { pid: 1 }, FromTask::Report(report(6)), FromTask::Report(report(7))]
        {
            task.send(message.encode().as_bytes()).expect("room");
        }
        assert!(looks.take().is_none() && looks.take().is_none());
        let (note, said) = shown(&looks.take().expect("the reply"));
        assert!(matches!(note, Note::Reply { number: 7, .. }), "{note:?}");
        assert!(said.replied && said.doing == ["waits"] && said.waits_for == [2] && said.bytes == (5, 6));
        task.send(FromTask::Report(report(7)).encode().as_bytes()).expect("room");
        assert!(looks.take().is_none() && looks.take().is_none(), "it is not asked any more");
        looks.runs_as(0);
        assert_eq!(looks.look(8), nothing(8), "it has ended");
    }
}
