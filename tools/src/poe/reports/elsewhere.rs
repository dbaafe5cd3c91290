//! The tasks of a job on several machines, for those who look on. `poe --task`, which starts a task
//! there, replies twice when it is asked: at once with the state of the task's process, and with
//! what the task does when that has replied itself (`remote::looks`).

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::super::error::Error;
use super::super::notes::{Arrived, Exchange, Note};
use super::state::Task;

/// All tasks of the job.
pub(in super::super) struct Elsewhere {
    /// To the thread that passes notes on; `None`: it has ended.
    hub: Option<Exchange<UnixStream>>,
    /// The host of each task.
    hosts: Vec<String>,
}

impl Elsewhere {
    /// Tasks on these hosts, asked over this socket.
    pub(in super::super) fn new(hub: UnixStream, hosts: &[String]) -> Result<Self, Error> {
        hub.set_nonblocking(true)
            .map_err(|error| Error::system("cannot make the socket of those who look on", error))?;
        Ok(Self { hub: Some(Exchange::new(hub)), hosts: hosts.to_vec() })
    }

    /// Readable when something was replied.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.hub.as_ref().map(AsFd::as_fd)
    }

    /// The host of a task.
    pub(super) fn host(&self, task: usize) -> Option<String> {
        self.hosts.get(task).cloned()
    }

    /// Asks all tasks.
    pub(super) fn ask(&mut self, number: u32) {
        if let Some(hub) = &mut self.hub {
            // One that is gone is seen when it is read.
            let _ = hub.send(Note::Look { number });
        }
    }

    /// What has come, of tasks, in reply to the look of this number.
    pub(super) fn take(&mut self, asked: Option<u32>) -> Vec<(usize, Task)> {
        let mut found = Vec::new();
        let Some(hub) = &mut self.hub else { return found };
        let mut gone = hub.read().is_err();
        loop {
            match hub.next() {
                Ok(Some(Arrived::Reply { task, number, bytes }))
                    if Some(number) == asked && task < self.hosts.len() =>
                {
                    // Nothing: the task has no process.
                    found.extend(serde_json::from_slice(&bytes).ok().map(|known| (task, known)));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    gone = true;
                    break;
                }
            }
        }
        if gone {
            // It would be ready again and again.
            self.hub = None;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_task_is_what_it_has_replied_to_this_look() {
        let (here, mut hub) = UnixStream::pair().expect("sockets");
        let mut elsewhere = Elsewhere::new(here, &["one".to_owned(), "two".to_owned()]).expect("a socket");
        elsewhere.ask(3);
        assert_eq!(Note::read(&mut hub).expect("a note"), Note::Look { number: 3 });
        let mut says = |task, number, text: &[u8]| {
            Note::Reply { task, number, length: text.len() }.write(&mut hub).expect("it is read");
            hub.write_all(text).expect("it is read");
        };
        let replied = Task { pid: 77, replied: true, waits_for: vec![0], ..Task::default() };
        let text = serde_json::to_vec(&replied).expect("JSON");
        // Late, of no task, broken, and of a task without a process.
        for (task, number, text) in [(1, 2, &*text), (2, 3, &text), (1, 3, b"{\"task\":"), (1, 3, b"")] {
            says(task, number, text);
        }
        assert!(elsewhere.take(Some(3)).is_empty());
        says(1, 3, &text);
        assert!(elsewhere.take(None).is_empty(), "no viewer waits");
        let state = Task { pid: 70, state: Some('T'), ..Task::default() };
        says(1, 3, &serde_json::to_vec(&state).expect("JSON"));
        says(0, 3, &text);
        let found = elsewhere.take(Some(3));
        let facts = |(task, known): &(usize, Task)| (*task, known.pid, known.state, known.replied);
        assert_eq!(
            found.iter().map(facts).collect::<Vec<_>>(),
            [(1, 70, Some('T'), false), (0, 77, None, true)]
        );
        assert_eq!((elsewhere.host(1).as_deref(), elsewhere.host(2)), (Some("two"), None));
        drop(hub);
        assert!(elsewhere.take(Some(3)).is_empty());
        assert!(elsewhere.as_fd().is_none(), "the hub has ended");
    }
}
