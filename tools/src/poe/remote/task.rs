//! `poe --task`: what a launcher starts for each task. It connects to `poe`, gets its order, and
//! runs the program with a supervisor of its own, so that the program has the addresses, the limits
//! and the end that it has under `poe` itself.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::thread;

use nix::poll::PollTimeout;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::gethostname;
use openlapi::wire::board::Word;
use openlapi_runtime::environment::files;

use super::super::affinity;
use super::super::bindings;
use super::super::carrier::{Carrier, Style};
use super::super::commands::Command;
use super::super::environment::Environment;
use super::super::error::{Error, say};
use super::super::inherited::Inherited;
use super::super::limits;
use super::super::notes::{LEFT_OPEN, LONGEST, Note};
use super::super::openings::Openings;
use super::super::output::{Prefix, StdoutMode};
use super::super::processes::end_descendants;
use super::super::reports;
use super::super::settings::{Flags, Settings};
use super::super::signals::Signals;
use super::super::streams;
use super::super::supervisor::{Supervisor, Work};
use super::super::waiting::await_any;
use super::link::{self, Connection, HubContact};
use super::looks::Looks;
use super::mirror::Mirror;

/// Runs one task. The status is 0 whatever the task's is: `poe` learns that over the connection,
/// and the launcher must not act on it.
pub(in super::super) fn run(inherited: Inherited) -> Result<u8, Error> {
    let host = gethostname().unwrap_or_default();
    serve(inherited)
        .map(|()| 0)
        .inspect_err(|error| say(&format!("on {}: {error}", host.to_string_lossy())))
        .or(Ok(1))
}

fn serve(inherited: Inherited) -> Result<(), Error> {
    let link: HubContact = std::env::var(link::VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::failed("--task is for the launcher that poe starts"))?;
    let number: usize = std::env::var(&link.rank_variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::failed(format!("the launcher has not set {}", link.rank_variable)))?;
    let unreachable = |missed| Error::failed(format!("task {number} cannot reach poe ({missed})"));
    let [mut control, input, output, mut error] = link.connect(number).map_err(unreachable)?;
    let order = link::read_list(&mut control).map_err(|error| Error::system("poe has gone", error))?;
    let order =
        Order::parse(order).ok_or_else(|| Error::failed("poe on the other machine is another version"))?;
    order.apply()?;

    let settings = Settings::new(Flags::default(), std::env::vars_os()).with_files(files());
    let place = LocalRank::of(&settings)?;
    let signals = Signals::take(inherited)?;
    prctl::set_child_subreaper(true)
        .map_err(|errno| Error::system("cannot become the subreaper of the task", errno))?;
    let discards =
        matches!(settings.parsed("MP_STDOUTMODE")?, Some(StdoutMode::Only(only)) if only != number);
    let (ours, theirs) = streams::of_one(&settings, discards)?;
    let verbose = settings.info_level()? > 0 && place.index == 0;
    let affinity = bindings::of(&settings, verbose, place.count, None)?;
    if settings.yes("MP_REPORT_BINDINGS")? {
        let (host, binding) =
            (gethostname().unwrap_or_default(), affinity::described(&affinity, place.count));
        let line = format!("poe: task {number} on {}: {}\n", host.to_string_lossy(), binding[place.index]);
        error.write_all(line.as_bytes()).map_err(|error| Error::system("poe has gone", error))?;
    }
    let (openings, mirror) = share(place.tasks, number)?;
    let (mut looks, reports) = reports::open(1);
    let work = Work {
        commands: std::slice::from_ref(&order.command),
        held: None,
        folder: None,
        environment: Environment::inherited(),
        streams: vec![theirs],
        reports,
        looks: true,
        affinity: affinity.get(place.index).copied().into_iter().collect(),
        inherited,
        open_files: limits::open_files_of_task(place.tasks)?,
        openings: Some(openings),
    };
    let (supervisor, (mut ours, mirror, socket)) =
        Supervisor::start(work, (ours, mirror, looks.pop().flatten()))?;
    copy(input, ours.inputs.pop().expect("it has an input"))?;
    let style = Style { prefix: Prefix::default(), ordered: false, fold: false, record: None };
    let carrier = Carrier::start(ours.sources, style, file(output), file(error))?;
    Task { supervisor, control, mirror, looks: Looks::new(socket) }.watch(&signals, carrier)
}

/// The file that the task has in common with the others, and this process's access to it.
fn share(tasks: usize, number: usize) -> Result<(Openings, Mirror), Error> {
    let failed = |error| Error::system("cannot make the file of the job", error);
    let partition = std::env::var("MP_PARTITION").unwrap_or_default();
    let mut openings = Openings::create(tasks, &partition).map_err(failed)?;
    let (file, bell) = openings.share().map_err(failed)?;
    Ok((openings, Mirror::new(file, bell, tasks, number)))
}

fn file(stream: Connection) -> File {
    File::from(OwnedFd::from(stream))
}

/// Copies standard input to the task. The process does not wait for this thread. (Not by
/// `io::copy`: splice(2) keeps the pipe locked while it waits for more input, and a task that ends
/// meanwhile waits for that lock.)
fn copy(mut from: Connection, mut to: File) -> Result<(), Error> {
    let copy = move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) if to.write_all(&buffer[..length]).is_err() => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                Ok(_) | Err(_) => {}
            }
        }
    };
    let thread = thread::Builder::new().name("poe-input".into()).spawn(copy);
    thread.map(drop).map_err(|error| Error::system("cannot start the thread that copies input", error))
}

/// What the task is to run.
pub(super) struct Order {
    folder: OsString,
    command: Command,
    /// Of the job.
    own: Vec<(OsString, OsString)>,
    /// Of `poe`.
    forwarded: Vec<(OsString, OsString)>,
}

impl Order {
    pub(super) fn parse(list: Vec<Vec<u8>>) -> Option<Self> {
        let mut list = list.into_iter().map(OsString::from_vec);
        let folder = list.next().filter(|version| version == Note::VERSION).and_then(|_| list.next())?;
        let words = list.next()?.to_str()?.parse().ok()?;
        let command: Command = list.by_ref().take(words).collect();
        let own = list.next()?.to_str()?.parse().ok()?;
        let variables = list.map(|variable| {
            let bytes = variable.as_bytes();
            let end = bytes.iter().skip(1).position(|byte| *byte == b'=')? + 1;
            Some((
                OsStr::from_bytes(&bytes[..end]).to_owned(),
                OsStr::from_bytes(&bytes[end + 1..]).to_owned(),
            ))
        });
        let mut variables = variables.collect::<Option<Vec<_>>>()?;
        let forwarded = (own <= variables.len()).then(|| variables.split_off(own))?;
        let complete = !command.is_empty() && command.len() == words;
        complete.then_some(Self { folder, command, own: variables, forwarded })
    }

    /// Takes over the folder and the variables: those of the job in any case; of those of `poe` the
    /// settings of `poe` and the library, and where to look for programs and libraries; others
    /// where this machine has none.
    fn apply(&self) -> Result<(), Error> {
        let wins = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("MP_")
                || name.starts_with("LAPI_")
                || ["PATH", "LD_LIBRARY_PATH"].contains(&&*name)
        };
        // SAFETY: this process has one thread so far.
        unsafe {
            std::env::remove_var(link::VARIABLE);
            for (name, value) in &self.forwarded {
                if wins(name) || std::env::var_os(name).is_none() {
                    std::env::set_var(name, value);
                }
            }
            for (name, value) in &self.own {
                std::env::set_var(name, value);
            }
        }
        let folder = Path::new(&self.folder);
        std::env::set_current_dir(folder).map_err(|error| Error::system(folder.display().to_string(), error))
    }
}

/// A task's place on its machine.
struct LocalRank {
    tasks: usize,
    /// Which of the machine's tasks it is.
    index: usize,
    /// How many the machine has.
    count: usize,
}

impl LocalRank {
    /// From the variables that `poe` has set.
    fn of(settings: &Settings) -> Result<Self, Error> {
        let tasks = settings.parsed("MP_PROCS")?.unwrap_or(1);
        let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
        let task = number("MP_CHILD").unwrap_or(0);
        let common = std::env::var("MP_COMMON_TASKS").unwrap_or_default();
        let others: Vec<usize> = common.split(':').skip(1).filter_map(|other| other.parse().ok()).collect();
        let index = others.iter().filter(|other| **other < task).count();
        Ok(Self { tasks, index, count: others.len() + 1 })
    }
}

/// The task while it runs.
struct Task {
    supervisor: Supervisor,
    control: Connection,
    mirror: Mirror,
    looks: Looks,
}

impl Task {
    /// Passes notes and signals until the task and its output have ended, or `poe` is gone.
    fn watch(mut self, signals: &Signals, mut output: Carrier) -> Result<(), Error> {
        let gone = |error| Error::system("the connection to poe is lost", error);
        let (mut kept, mut carried) = (true, false);
        while kept || !carried {
            let sources = [
                Some(signals.as_fd()),
                Some(self.control.as_fd()),
                Some(self.mirror.as_fd()),
                kept.then(|| self.supervisor.socket.as_fd()),
                (!carried).then(|| output.as_fd()),
                self.looks.as_fd(),
            ];
            let ready = await_any(sources, PollTimeout::NONE)
                .map_err(|errno| Error::system("waiting for the task", errno))?;
            while let Some(signal) = signals.next() {
                self.supervisor.signal(if signal == Signal::SIGTSTP { Signal::SIGSTOP } else { signal });
            }
            if ready[1] {
                // At the end of the connection the supervisor sees that of this process, and
                // ends the task.
                self.take_note().map_err(gone)?;
            }
            if ready[2] {
                self.send_news().map_err(gone)?;
            }
            if ready[3] {
                kept = self.report().map_err(gone)?;
            }
            if ready[4] {
                match output.broken() {
                    Some(task) => self.supervisor.signal_task(task, Signal::SIGPIPE),
                    None => carried = true,
                }
            }
            if ready[5]
                && let Some(reply) = self.looks.take()
            {
                self.control.write_all(&reply).map_err(gone)?;
            }
        }
        // What was written must be on its way before `poe` learns that nothing follows.
        let _ = output.finish();
        part(self.control).map_err(gone)
    }

    /// Takes in a note of `poe`.
    fn take_note(&mut self) -> io::Result<()> {
        match Note::read(&mut self.control)? {
            Note::Changes { length } => {
                let mut changes = vec![0; length.min(LONGEST)];
                self.control.read_exact(&mut changes)?;
                self.mirror.apply(&changes)
            }
            Note::Look { number } => self.control.write_all(&self.looks.look(number)),
            // It asks for replies, and gives none.
            Note::Reply { .. } => Err(io::ErrorKind::InvalidData.into()),
            note => note.write(&mut self.supervisor.socket).or(Ok(())),
        }
    }

    /// Sends `poe` what the task has written into the file of the job.
    fn send_news(&mut self) -> io::Result<()> {
        let news = self.mirror.news()?;
        if news.is_empty() {
            return Ok(());
        }
        Note::Changes { length: news.len() }.write(&mut self.control)?;
        self.control.write_all(&news)
    }

    /// Sends `poe` that the task's process has ended: tasks that wait for its card must not
    /// wait for ever.
    fn send_end(&mut self) -> io::Result<()> {
        self.mirror.set(Word::Ended, 1)?;
        self.send_news()
    }

    /// Passes a note of the supervisor on; `false` when it was the last.
    fn report(&mut self) -> io::Result<bool> {
        match Note::read(&mut self.supervisor.socket) {
            Ok(Note::Done) => {
                let _ = waitpid(self.supervisor.pid, None);
                Ok(false)
            }
            Ok(note) => {
                match note {
                    Note::Started { pid, .. } => self.looks.runs_as(pid),
                    Note::Exited { .. } | Note::Killed { .. } => {
                        self.looks.runs_as(0);
                        self.send_end()?;
                    }
                    _ => {}
                }
                let note = match note {
                    Note::Exited { task, status } if self.mirror.is_open()? => {
                        Note::Exited { task, status: status | LEFT_OPEN }
                    }
                    other => other,
                };
                note.write(&mut self.control).map(|()| true)
            }
            Err(_) => {
                // The kernel has ended its task, and what that left is now below us.
                end_descendants();
                self.send_end()?;
                Note::Killed { task: 0, signal: Signal::SIGKILL as i32 }
                    .write(&mut self.control)
                    .map(|()| false)
            }
        }
    }
}

/// Says that nothing follows, and waits until `poe` has closed the connection: a note of it may be
/// on its way, and a connection that is closed with something unread loses what it still sends.
fn part(mut control: Connection) -> io::Result<()> {
    Note::Done.write(&mut control)?;
    let _ = io::copy(&mut control, &mut io::sink());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::set_socket_recv_buffer_size;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    /// More than `poe`'s socket takes is on its way to it, and a note of it to the task.
    #[test]
    fn what_a_task_says_last_is_not_lost_as_it_closes_the_connection() {
        const LENGTH: usize = 1 << 14;
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        set_socket_recv_buffer_size(&listener, LENGTH / 4).expect("it is a socket");
        let address = listener.local_addr().expect("it is bound");
        let mut task = TcpStream::connect(address).expect("it listens");
        let mut poe = listener.accept().expect("it has connected").0;
        poe.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        Note::Signal { signal: 1 }.write(&mut poe).expect("it is connected");
        let parting = thread::spawn(move || task.write_all(&[0; LENGTH]).and_then(|()| part(task)));
        // The task has come to its end, if it does not wait.
        thread::sleep(Duration::from_millis(100));
        poe.read_exact(&mut [1; LENGTH]).expect("what was sent");
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Done);
        drop(poe);
        parting.join().expect("nothing fails").expect("poe was there");
    }

    fn list(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = Order::parse(list(&[Note::VERSION, "/dir", "2", "./a", "x=1", "1", "A=b=c", "EMPTY="]))
            .expect("it is right");
        assert_eq!((order.folder, order.command), ("/dir".into(), vec!["./a".into(), "x=1".into()]));
        assert_eq!(order.own, [("A".into(), "b=c".into())]);
        assert_eq!(order.forwarded, [("EMPTY".into(), "".into())]);
        for wrong in [
            &[][..],
            &["/dir"],
            &["/dir", "0"],
            &["/dir", "2", "./a"],
            &["/dir", "1", "./a"],
            &["/dir", "1", "./a", "0", "novalue"],
            &["/dir", "1", "./a", "2", "A=b"],
        ] {
            assert!(Order::parse(list(&[&[Note::VERSION], wrong].concat())).is_none(), "{wrong:?}");
        }
        // Of another version, and of the first, which does not say it.
        for version in [&["other"][..], &[]] {
            let order = [version, &["/dir", "1", "./a", "0"]].concat();
            assert!(Order::parse(list(&order)).is_none(), "{order:?}");
        }
    }
}
