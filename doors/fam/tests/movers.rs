//! The threads of a daemon that move bytes of items: what one of them waits for holds up no other.

mod client;

use client::{Client, Host, VOLATILE, have_joined};
use fam::FamError;
use fam::wire::{Ask, Message, decode_answer};
use openlapi_tests::eventually;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
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
        /// Also when `wait` fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
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
