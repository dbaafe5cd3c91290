//! The threads of a daemon that move bytes of items: what one of them waits for holds up no other.

mod client;

use client::{Client, Host, VOLATILE, have_joined};
use fam::FamError;
use fam::meeting::socket_name;
use fam::wire::{Answer, Ask, Message, VERSION, decode, decode_answer, encode_answer};
use openlapi_session::{Listener, Session, Settings};
use openlapi_tests::eventually;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How many threads of a daemon move bytes, as daemon/backup.rs has it.
const MOVERS: usize = 4;

/// A backup that is a pipe: a thread that restores it waits until a writer has come and gone.
struct Pipe(PathBuf);

impl Pipe {
    /// In the place of the only backup of the host.
    fn new(host: &Host) -> Self {
        let folder = host.path("backup");
        let path = folder.join(client::names(&folder).pop().expect("a file"));
        fs::remove_file(&path).expect("a file");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        Self(path)
    }

    /// Ends all that wait, also those that have not come so far, without a byte, while `wait` runs.
    fn ended<T>(&self, wait: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = Over(&is_over);
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let nonblocking = libc::O_NONBLOCK;
                    drop(fs::OpenOptions::new().write(true).custom_flags(nonblocking).open(&self.0));
                    thread::sleep(Duration::from_millis(10));
                }
            });
            wait()
        })
    }
}

/// Ends what runs beside a test, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Copies 4096 bytes.
fn copy(from: &client::Item, to: &client::Item) -> Ask {
    Ask::Copy { from: from.ticket.clone(), from_offset: 0, to: to.ticket.clone(), to_offset: 0, length: 4096 }
}

/// A region with two items, of which the first one is full of ones and has a backup that is a pipe;
/// and what restores it.
fn with_a_pipe(host: &Host, client: &mut Client) -> (u64, [client::Item; 2], Pipe, Ask) {
    let region = client.region("r", 1 << 20, 0o600, VOLATILE);
    let (from, to) = (client.item(region, "from", 4096), client.item(region, "to", 4096));
    client.put(&from, 0, &[1; 4096]).expect("a put");
    client.ask(&Ask::Backup { region, item: from.item, name: "b".to_owned() }).expect("a backup");
    let restore = Ask::Restore { name: "b".to_owned(), to: from.ticket.clone() };
    (region, [from, to], Pipe::new(host), restore)
}

#[test]
fn a_backup_that_takes_long_holds_up_no_copy() {
    let host = Host::new("long", 1, false);
    let _keeper = host.keeper();
    let mut client = Client::open(&host);
    let (_, [from, to], pipe, restore) = with_a_pipe(&host, &mut client);
    let restored = client.ask_for(&restore);
    let copied = client.ask_for(&copy(&from, &to));
    let reply = |client: &mut Client| client.reply().expect("an open session").0;
    assert_eq!(reply(&mut client), Message::Answer { number: copied });
    assert!(client.get(&to, 0, 4096).expect("a get") == [1; 4096]);
    assert_eq!(pipe.ended(|| reply(&mut client)), Message::Answer { number: restored });
}

/// The threads that move bytes read a backup that is a pipe, while the item ends that the next copy
/// is to write, another item gets its place, and a server joins.
#[test]
fn a_copy_that_has_waited_does_not_write_what_has_taken_the_items_place() {
    let host = Host::new("waited", 2, false);
    let _keeper = host.keeper();
    let mut client = Client::open(&host);
    let (region, [from, to], pipe, restore) = with_a_pipe(&host, &mut client);
    let mut asked: Vec<_> =
        (0..MOVERS).map(|_| (client.ask_for(&restore), FamError::BackupInfoNotFound)).collect();
    asked.push((client.ask_for(&copy(&from, &to)), FamError::NotFound));
    client.ask(&Ask::Deallocate { region, item: to.item }).expect("an end");
    let next = client.item(region, "next", 4096);
    let pieces = |item: &client::Item| item.ticket.read().expect("a ticket").pieces;
    assert_eq!(pieces(&next), pieces(&to), "another place");
    let _server = host.server(1);
    assert!(eventually(|| have_joined(&host)), "the server has not joined");
    let replies: Vec<_> =
        pipe.ended(|| (0..=MOVERS).map(|_| client.reply().expect("an open session")).collect());
    for (number, error) in asked {
        let reply = replies.iter().find(|(message, _)| *message == Message::Answer { number });
        let (_, body) = reply.expect("an answer to each");
        assert_eq!(decode_answer(body).expect_err("it fails").error, error);
    }
    assert!(client.get(&next, 0, 4096).expect("a get") == [0; 4096], "another item's bytes");
}

/// What a server of these tests does to the messages that are under way.
#[derive(Clone, Copy)]
enum Fault {
    /// Serves them together, the last one first.
    Reorders,
    /// Refuses the first one, and serves the others later, the last one first.
    Refuses,
    /// Ends the session.
    Ends,
}

/// How many messages are under way to that server, which has every other block of an item.
const UNDER_WAY: usize = 20;
/// How many bytes a copy has then.
const LENGTH: u64 = 2 * UNDER_WAY as u64 * 4096;

/// Server 1 of a host, in this process. It serves all, but the first messages of this kind.
struct FaultyServer {
    is_faulty: fn(&Message) -> bool,
    fault: Fault,
    /// Whether they have come.
    has_come: AtomicBool,
}

impl FaultyServer {
    /// Serves the sessions of a listener until `is_over`.
    fn run(&self, mut listener: Listener, is_over: &AtomicBool) {
        thread::scope(|scope| {
            while !is_over.load(Ordering::SeqCst) {
                let soon = Some(Instant::now() + Duration::from_millis(10));
                if let Ok(Some(session)) = listener.accept(soon) {
                    scope.spawn(move || self.serve(&session, is_over));
                }
            }
        });
    }

    /// Refuses a message, and sees that nothing follows before the others have replies.
    fn refuse(&self, session: &Session, asked: &Message) {
        let refused = Message::Done { number: asked.number(), code: FamError::NoPerm.code() };
        session.post(&refused.encode(), &[]).expect("an open session");
        let soon = Some(Instant::now() + Duration::from_millis(200));
        let next = session.receive(soon).expect("an open session");
        assert!(next.is_none(), "the copy has ended before what was under way");
    }

    fn serve(&self, session: &Session, is_over: &AtomicBool) {
        let mut held = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let soon = Some(Instant::now() + Duration::from_millis(10));
            let Ok(message) = session.receive(soon) else { return };
            let Some(message) = message else { continue };
            let asked = Message::decode(&message.header).expect("a message");
            if !(self.is_faulty)(&asked) || self.has_come.load(Ordering::SeqCst) {
                reply(session, &asked, &message.data);
                continue;
            }
            held.push(asked);
            if held.len() < UNDER_WAY {
                continue;
            }
            self.has_come.store(true, Ordering::SeqCst);
            match self.fault {
                Fault::Reorders => {}
                Fault::Refuses => self.refuse(session, &held.remove(0)),
                Fault::Ends => return,
            }
            held.drain(..).rev().for_each(|asked| reply(session, &asked, &[]));
        }
    }
}

/// What that server says each of its bytes is.
fn value(offset: u64) -> u8 {
    1 + (offset / 4096) as u8
}

/// What that server replies.
fn reply(session: &Session, asked: &Message, body: &[u8]) {
    let number = asked.number();
    let (header, data) = match asked {
        Message::Ask { .. } => {
            let answer = match decode(body).expect("a question") {
                Ask::Hello { user, group, .. } => {
                    Answer::Hello { version: VERSION, user, group, servers: Vec::new() }
                }
                Ask::Join { parts, .. } => {
                    Answer::Joined { parts, has_volatile: true, has_persistent: false }
                }
                Ask::Open { .. } => Answer::Opened { number: number as u32 },
                _ => Answer::Done,
            };
            (Message::Answer { number }, encode_answer(&Ok(answer)))
        }
        Message::Get { offset, length, .. } => {
            (Message::Data { number }, (*offset..offset + length).map(value).collect())
        }
        _ => (Message::Done { number, code: 0 }, Vec::new()),
    };
    // The test may be over.
    let _ = session.post(&header.encode(), &data);
}

/// A copy with many messages under way to a server fails so, or does not, and others after it do
/// not. What it copies from that server, the other one has at the end.
fn copies_by(name: &str, is_faulty: fn(&Message) -> bool, fault: Fault, outcome: Result<(), FamError>) {
    let host = Host::new(name, 2, false);
    let socket = socket_name(host.server_address(1).port);
    let listener = Listener::unix_of_any_user(&socket, &Settings::default()).expect("a listener");
    let server = FaultyServer { is_faulty, fault, has_come: AtomicBool::new(false) };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| server.run(listener, &is_over));
        let _keeper = host.keeper();
        assert!(eventually(|| have_joined(&host)), "the server has not joined");
        let mut client = Client::open(&host);
        let region = client.region("r", 1 << 20, 0o600, VOLATILE);
        let [from, to] = ["from", "to"].map(|name| client.item(region, name, LENGTH + 4096));
        let [source, target] = [&from, &to].map(|item| item.ticket.read().expect("a ticket"));
        // A block of that server is not written to where it is.
        let at = if source.pieces[0].server == target.pieces[0].server { 4096 } else { 0 };
        let (from, to_offset) = (from.ticket, at);
        let copy = Ask::Copy { from, from_offset: 0, to: to.ticket.clone(), to_offset, length: LENGTH };
        let copied = client.ask(&copy).map(drop).map_err(|failure| failure.error);
        assert_eq!(copied, outcome, "{name}");
        assert!(server.has_come.load(Ordering::SeqCst), "{name}");
        for _ in 0..=MOVERS {
            client.ask(&copy).expect("a copy");
        }
        let read = source.segments(0, LENGTH).zip(target.segments(at, LENGTH));
        let mut read = read.filter(|(_, to)| target.pieces[to.piece].server == 0).peekable();
        assert!(read.peek().is_some());
        for (from, segment) in read {
            assert_eq!(source.pieces[from.piece].server, 1, "{name}");
            let bytes = client.get(&to, segment.offset, segment.length).expect("a get");
            assert!(bytes.into_iter().eq((from.offset..from.offset + from.length).map(value)), "{name}");
        }
    });
}

const IS_GET: fn(&Message) -> bool = |message| matches!(message, Message::Get { .. });
const IS_PUT: fn(&Message) -> bool = |message| matches!(message, Message::Put { .. });

#[test]
fn a_copy_takes_replies_in_any_order() {
    copies_by("gets", IS_GET, Fault::Reorders, Ok(()));
    copies_by("puts", IS_PUT, Fault::Reorders, Ok(()));
}

#[test]
fn a_copy_that_a_server_refuses_ends_when_nothing_is_under_way() {
    copies_by("get", IS_GET, Fault::Refuses, Err(FamError::NoPerm));
    copies_by("put", IS_PUT, Fault::Refuses, Err(FamError::NoPerm));
}

#[test]
fn a_copy_fails_whose_server_ends_with_messages_under_way() {
    copies_by("get-ends", IS_GET, Fault::Ends, Err(FamError::Rpc));
    copies_by("put-ends", IS_PUT, Fault::Ends, Err(FamError::Rpc));
}
