//! What the tasks have sent over their sockets, and which of them have ended. Used by the thread
//! that makes reports and by the one that reaps tasks.

use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use openlapi::wire::launcher::{Ended, FromLauncher, FromTask, How, LONGEST, Report, Stage};

/// All tasks of a job.
pub(super) struct Board {
    sockets: Vec<Option<UnixDatagram>>,
    tasks: Mutex<Tasks>,
}

struct Tasks {
    list: Vec<Task>,
    /// Reports that were not taken yet.
    reports: VecDeque<(usize, Report)>,
    buffer: Vec<u8>,
}

#[derive(Clone)]
struct Task {
    /// 0: not started, or ended.
    pid: i32,
    stage: Stage,
    /// A LAPI_Init has succeeded in it at some time.
    was_ready: bool,
    ended: Option<How>,
    /// The task uses LAPI, and has not been sent the present list of ended tasks.
    stale: bool,
}

impl Board {
    pub(super) fn new(sockets: Vec<Option<UnixDatagram>>) -> Self {
        for socket in sockets.iter().flatten() {
            let _ = socket.set_nonblocking(true);
        }
        let task = Task { pid: 0, stage: Stage::Never, was_ready: false, ended: None, stale: false };
        let list = vec![task; sockets.len()];
        let tasks = Tasks { list, reports: VecDeque::new(), buffer: vec![0; LONGEST + 1] };
        Self { sockets, tasks: Mutex::new(tasks) }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // A panic of the other thread leaves nothing half done here.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sockets that exist, each with its task.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (usize, &UnixDatagram)> {
        self.sockets.iter().enumerate().filter_map(|(task, socket)| Some((task, socket.as_ref()?)))
    }

    pub(super) fn started(&self, task: usize, pid: i32) {
        self.tasks().list[task].pid = pid;
    }

    /// The process of each task; 0 where there is none.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.tasks().list.iter().map(|task| task.pid).collect()
    }

    /// Which tasks have ended. Of those without a process the others have not begun.
    pub(super) fn have_ended(&self) -> Vec<bool> {
        self.tasks().list.iter().map(|task| task.ended.is_some()).collect()
    }

    /// A task has ended. Returns the state of its use of LAPI; `None` when no task of the job
    /// has used LAPI.
    pub(super) fn ended(&self, task: usize, how: How) -> Option<Stage> {
        let mut tasks = self.tasks();
        // What it sent before it ended counts.
        while self.receive(&mut tasks, task) {}
        tasks.list[task].pid = 0;
        tasks.list[task].ended = Some(how);
        tasks.list.iter_mut().for_each(Task::note_change);
        let used = tasks.list.iter().any(|task| task.stage != Stage::Never);
        used.then_some(tasks.list[task].stage)
    }

    /// Receives what a task has sent.
    pub(super) fn read(&self, task: usize) {
        let mut tasks = self.tasks();
        // A task sends a message or two; one that never stops must not keep the thread here.
        for _ in 0..8 {
            if !self.receive(&mut tasks, task) {
                break;
            }
        }
    }

    fn receive(&self, tasks: &mut Tasks, task: usize) -> bool {
        let Tasks { list, reports, buffer } = tasks;
        let Some(Ok(count)) = self.sockets[task].as_ref().map(|socket| socket.recv(buffer)) else {
            return false;
        };
        let Some(message) = FromTask::decode(&String::from_utf8_lossy(&buffer[..count])) else { return true };
        let count = list.len();
        let it = &mut list[task];
        match message {
            // A LAPI program may belong to another job: one that another launcher has started
            // inside this task.
            FromTask::Enter { task: number, tasks, .. }
                if (number as usize, tasks as usize) == (task, count) =>
            {
                it.stage = Stage::Enter;
                it.note_change();
            }
            FromTask::Enter { .. } => {}
            FromTask::Ready { .. } if it.uses_lapi() => {
                it.stage = Stage::Ready;
                it.was_ready = true;
            }
            FromTask::Leave { .. } if it.uses_lapi() => {
                it.stage = if it.stage == Stage::Ready { Stage::Left } else { Stage::Failed };
            }
            FromTask::Ready { .. } | FromTask::Leave { .. } => {}
            FromTask::Report(report) => reports.push_back((task, report)),
        }
        true
    }

    /// The next report that has arrived.
    pub(super) fn next_report(&self) -> Option<(usize, Report)> {
        self.tasks().reports.pop_front()
    }

    /// Whether a task waits for the list of ended tasks.
    pub(super) fn has_news(&self) -> bool {
        let tasks = self.tasks();
        tasks.list.iter().any(|task| task.stale) && tasks.list.iter().any(|task| task.ended.is_some())
    }

    /// Sends the list of ended tasks to those that use LAPI. A task without room for it gets it
    /// the next time.
    pub(super) fn publish(&self) {
        let mut tasks = self.tasks();
        let ended = (0..).zip(&tasks.list).filter_map(|(number, task)| Some((number, task.reported()?)));
        let messages: Vec<String> =
            FromLauncher::ended(ended.collect()).iter().map(FromLauncher::encode).collect();
        for (task, socket) in tasks.list.iter_mut().zip(&self.sockets).filter(|(task, _)| task.stale) {
            let sent = socket.as_ref().map(|socket| {
                messages.iter().try_for_each(|message| socket.send(message.as_bytes()).map(drop))
            });
            task.stale =
                matches!(sent, Some(Err(error)) if error.raw_os_error() == Some(Errno::EAGAIN as i32));
        }
    }
}

impl Task {
    fn uses_lapi(&self) -> bool {
        matches!(self.stage, Stage::Enter | Stage::Ready)
    }

    fn note_change(&mut self) {
        self.stale = self.ended.is_none() && self.uses_lapi();
    }

    /// What the others learn of its end. A task that has been ready once stays a member of the job,
    /// whatever became of a later program in it.
    fn reported(&self) -> Option<Ended> {
        let stage = match self.stage {
            Stage::Enter | Stage::Failed if self.was_ready => Stage::Ready,
            stage => stage,
        };
        Some(Ended { stage, how: self.ended? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(tasks: usize) -> (Board, Vec<UnixDatagram>) {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (0..tasks).map(|_| UnixDatagram::pair().expect("sockets")).unzip();
        theirs.iter().for_each(|socket| socket.set_nonblocking(true).expect("a socket"));
        (Board::new(ours.into_iter().map(Some).collect()), theirs)
    }

    fn send(socket: &UnixDatagram, message: &FromTask) {
        socket.send(message.encode().as_bytes()).expect("room");
    }

    fn received(socket: &UnixDatagram) -> Option<FromLauncher> {
        let mut bytes = vec![0; LONGEST];
        let count = socket.recv(&mut bytes).ok()?;
        FromLauncher::decode(&String::from_utf8_lossy(&bytes[..count]))
    }

    #[test]
    fn the_end_of_a_task_that_never_used_lapi_reaches_those_that_do() {
        let (board, tasks) = board(3);
        assert_eq!(board.ended(2, How::Exit(0)), None, "no task uses LAPI yet");
        send(&tasks[0], &FromTask::Enter { pid: 1, task: 0, tasks: 3 });
        board.read(0);
        assert!(board.has_news());
        assert_eq!(board.ended(1, How::Exit(1)), Some(Stage::Never));
        board.publish();
        let never = |status| Ended { stage: Stage::Never, how: How::Exit(status) };
        assert_eq!(
            received(&tasks[0]),
            Some(FromLauncher::Ended(0..u32::MAX, vec![(1, never(1)), (2, never(0))]))
        );
        assert!(!board.has_news() && received(&tasks[1]).is_none());
    }

    #[test]
    fn what_a_task_sent_before_its_end_counts() {
        let (board, tasks) = board(2);
        for (message, stage) in [
            (FromTask::Enter { pid: 1, task: 0, tasks: 2 }, Stage::Enter),
            (FromTask::Ready { pid: 1 }, Stage::Ready),
            (FromTask::Leave { pid: 1 }, Stage::Left),
            (FromTask::Enter { pid: 2, task: 0, tasks: 2 }, Stage::Enter),
            (FromTask::Leave { pid: 2 }, Stage::Failed),
        ] {
            send(&tasks[0], &message);
            assert_eq!(board.ended(0, How::Exit(0)), Some(stage));
        }
        // It has been a member of the job.
        send(&tasks[1], &FromTask::Enter { pid: 3, task: 1, tasks: 2 });
        board.read(1);
        board.publish();
        let ended = Ended { stage: Stage::Ready, how: How::Exit(0) };
        assert_eq!(received(&tasks[1]), Some(FromLauncher::Ended(0..u32::MAX, vec![(0, ended)])));
    }

    #[test]
    fn the_tasks_of_another_job_are_not_ours() {
        let (board, tasks) = board(2);
        send(&tasks[0], &FromTask::Enter { pid: 1, task: 0, tasks: 4 });
        send(&tasks[0], &FromTask::Ready { pid: 1 });
        assert_eq!(board.ended(1, How::Exit(0)), None);
        board.read(0);
        assert!(!board.has_news());
    }

    #[test]
    fn a_task_without_room_gets_the_list_later() {
        let (board, tasks) = board(2);
        send(&tasks[0], &FromTask::Enter { pid: 1, task: 0, tasks: 2 });
        board.read(0);
        while board.sockets[0].as_ref().is_some_and(|socket| socket.send(b"full").is_ok()) {}
        board.ended(1, How::Signal(9));
        board.publish();
        assert!(board.has_news());
        while tasks[0].recv(&mut [0; 8]).is_ok() {}
        board.publish();
        let ended = Ended { stage: Stage::Never, how: How::Signal(9) };
        assert_eq!(received(&tasks[0]), Some(FromLauncher::Ended(0..u32::MAX, vec![(1, ended)])));
        assert!(!board.has_news());
    }
}
