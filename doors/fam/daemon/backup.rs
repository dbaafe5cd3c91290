//! The threads that move bytes of items: to other items, to backups and back.

use crate::log;
use crate::memory::Memory;
use crate::opened::Opened;
use crate::parts::sync_folder;
use crate::servers::{PATIENCE, Remote};
use crate::store::Backup;
use crate::work::{Asker, Ready, Work};
use fam::files::Address;
use fam::wire::{Answer, Ask, BackupFacts, Message, Sealed, Segment, Ticket};
use fam::{FamError, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The name of the file of a backup of a pool.
pub fn file_name(pool: u128, number: &str) -> String {
    format!("backup-{pool:032x}-{number}")
}

/// The name of the file before it is whole.
fn unfinished(file: &str) -> String {
    format!("unfinished-{file}")
}

/// Removes files of backups of this pool that were never whole. One that was, and that the metadata
/// do not know, stays: they may be of an earlier day.
pub fn forget_others(folder: Option<&Path>, pool: u128, known: &HashSet<&str>) {
    let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let whole = file_name(pool, "");
        if name.starts_with(&unfinished(&whole)) {
            let _ = std::fs::remove_file(entry.path());
        } else if name.starts_with(&whole) && !known.contains(name.as_str()) {
            log::line(&format!("{} is no backup that is known, and stays as it is", entry.path().display()));
        }
    }
}

/// Bytes that are moved at a time.
const CHUNK: u64 = 1 << 20;

/// How many reads or writes of other servers are under way at a time.
const WINDOW: usize = 64;

/// What is to be moved.
pub enum Job {
    /// A range of an item to another one.
    Copy {
        /// What is read, and where.
        from: (Ticket, u64),
        /// What is written, and where.
        to: (Ticket, u64),
        /// Bytes.
        length: u64,
    },
    /// An item to a new file.
    Backup {
        /// What is read.
        from: Ticket,
        /// What is known of the backup.
        facts: BackupFacts,
        /// The name of the file.
        file: String,
    },
    /// A file to an item.
    Restore {
        /// What is read.
        backup: Backup,
        /// What is written.
        to: Ticket,
    },
    /// A file is removed.
    Delete {
        /// The name of the file.
        file: String,
        /// What is answered then.
        answer: Result<Answer>,
    },
}

/// A job, and whom to answer.
pub struct Order {
    /// The job.
    pub job: Job,
    /// Whom to answer.
    pub asker: Asker,
}

/// How many threads there are: a backup of a large item is not to hold up all copies, and a copy
/// between servers mostly waits for them. The order of copies is the program's business: a fence
/// waits for those before it.
pub const MOVERS: usize = 4;

/// The state of a thread.
pub struct Mover {
    memory: Arc<Memory>,
    remotes: BTreeMap<u64, Remote>,
    folder: Option<PathBuf>,
    work: mpsc::Sender<Work>,
    /// Items of a job that is over.
    used: Vec<Open>,
}

impl Mover {
    /// One with this daemon's memory, other servers, and the folder of backups.
    pub fn new(
        memory: Arc<Memory>,
        others: &BTreeMap<u64, Address>,
        folder: Option<PathBuf>,
        work: mpsc::Sender<Work>,
    ) -> Self {
        let remotes = others.iter().map(|(server, address)| (*server, Remote::new(address.clone())));
        Self { memory, remotes: remotes.collect(), folder, work, used: Vec::new() }
    }

    /// Does jobs, one after the other, of those that all threads have.
    pub fn run(mut self, orders: &Mutex<mpsc::Receiver<Order>>) {
        let next = || orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok(Order { job, asker }) = next() {
            let is_over = asker.guest.is_doomed.load(Ordering::SeqCst);
            let ready = match job {
                // Nobody waits for it any more.
                Job::Copy { .. } | Job::Restore { .. } if is_over => Ready::Done(Ok(Answer::Done)),
                Job::Backup { facts, .. } if is_over => {
                    Ready::Backup(facts.name, Err(FamError::Rpc.because("its program is gone")))
                }
                Job::Copy { from, to, length } => Ready::Done(self.copy(from, to, length)),
                Job::Backup { from, facts, file } => {
                    let name = facts.name.clone();
                    Ready::Backup(name, self.backup(&from, facts, file))
                }
                Job::Restore { backup, to } => Ready::Done(self.restore(&backup, &to)),
                Job::Delete { file, answer } => Ready::Done(self.delete(&file).and(answer)),
            };
            if self.work.send(Work::Moved(ready, asker)).is_err() {
                return;
            }
            // The program has its answer, and does not wait for this.
            let used = std::mem::take(&mut self.used);
            self.close(used);
        }
    }

    fn folder(&self) -> Result<&Path> {
        let none = || FamError::BackupNotCreated.because("there is no fam_backup_path");
        self.folder.as_deref().ok_or_else(none)
    }

    fn copy(
        &mut self,
        (from, from_offset): (Ticket, u64),
        (to, to_offset): (Ticket, u64),
        length: u64,
    ) -> Result<Answer> {
        // A range that overlaps itself is copied from its end, where that is needed.
        let backwards = from.item == to.item && to_offset > from_offset;
        let (mut from, mut to) = (Open::new(from), Open::new(to));
        let mut moved = 0;
        let mut outcome = Ok(Answer::Done);
        while moved < length && outcome.is_ok() {
            let now = CHUNK.min(length - moved);
            let at = if backwards { length - moved - now } else { moved };
            let bytes = self.read(&mut from, from_offset + at, now);
            outcome =
                bytes.and_then(|bytes| self.write(&mut to, to_offset + at, &bytes)).map(|()| Answer::Done);
            moved += now;
        }
        self.used.extend([from, to]);
        outcome
    }

    fn backup(&mut self, from: &Ticket, facts: BackupFacts, file: String) -> Result<Backup> {
        let folder = self.folder()?.to_owned();
        let (path, last) = (folder.join(unfinished(&file)), folder.join(&file));
        let failed = |error: std::io::Error| {
            let code = if error.raw_os_error() == Some(libc::ENOSPC) {
                FamError::NoSpace
            } else {
                FamError::BackupNotCreated
            };
            code.because(format!("the backup {}: {error}", last.display()))
        };
        let mut from = Open::new(from.clone());
        let made = (|| {
            // What is in it, the rights of the item keep from others.
            let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let (mut to, mut digest, mut at) = (new.map_err(failed)?, Sha256::new(), 0);
            while at < facts.size {
                let bytes = self.read(&mut from, at, CHUNK.min(facts.size - at))?;
                to.write_all(&bytes).map_err(failed)?;
                digest.update(&bytes);
                at += bytes.len() as u64;
            }
            to.sync_all().map_err(failed)?;
            std::fs::rename(&path, &last).map_err(failed)?;
            sync_folder(&folder)?;
            let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            Ok(Backup { facts: BackupFacts { made, ..facts }, file, digest: digest.finalize().into() })
        })();
        if made.is_err() {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(&last);
        }
        self.used.push(from);
        made
    }

    fn restore(&mut self, backup: &Backup, to: &Ticket) -> Result<Answer> {
        let path = self.folder()?.join(&backup.file);
        let failed = |error: std::io::Error| {
            FamError::BackupInfoNotFound.because(format!("the backup {}: {error}", path.display()))
        };
        // It is read twice: nothing of a damaged one is written.
        let mut from = File::open(&path).map_err(failed)?;
        let mut digest = Sha256::new();
        std::io::copy(&mut from, &mut digest).map_err(failed)?;
        if <[u8; 32]>::from(digest.finalize()) != backup.digest {
            return Err(FamError::BackupInfoNotFound.because(format!("{} is damaged", path.display())));
        }
        from.rewind().map_err(failed)?;
        let (mut to, mut at) = (Open::new(to.clone()), 0);
        let mut bytes = vec![0; CHUNK as usize];
        let mut outcome = Ok(Answer::Done);
        while at < backup.facts.size && outcome.is_ok() {
            let now = CHUNK.min(backup.facts.size - at) as usize;
            let read = from.read_exact(&mut bytes[..now]).map_err(failed);
            outcome = read.and_then(|()| self.write(&mut to, at, &bytes[..now])).map(|()| Answer::Done);
            at += now as u64;
        }
        self.used.push(to);
        outcome
    }

    fn delete(&mut self, file: &str) -> Result<Answer> {
        let folder = self.folder()?;
        // What is missing is gone.
        let _ = std::fs::remove_file(folder.join(file));
        Ok(Answer::Done)
    }

    /// Tells servers that nothing more of these items is needed: they give up their numbers.
    fn close(&mut self, used: Vec<Open>) {
        let mut asked = Vec::new();
        for place in used.into_iter().flat_map(|open| open.places.into_values()) {
            // A session that is over has no numbers.
            if let Place::There(there) = place
                && let Ok(remote) = self.remote(there)
                && let Ok(number) = remote.post_question(&Ask::Close { number: there.number })
            {
                asked.push((there, number));
            }
        }
        let until = Instant::now() + PATIENCE;
        for (there, number) in asked {
            let _ = self.remote(there).and_then(|remote| remote.answer(number, until));
        }
    }

    /// Reads a range of an item.
    fn read(&mut self, from: &mut Open, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut all = vec![0; length as usize];
        let segments: Vec<Segment> = from.ticket.segments(offset, length).collect();
        from.open(self, &segments)?;
        let mut under_way = VecDeque::new();
        let mut outcome = self.read_segments(from, &segments, &mut all, &mut under_way);
        let until = Instant::now() + PATIENCE;
        // Whatever has failed: a server that still sends an item keeps it from being deallocated.
        for next in under_way {
            outcome = outcome.and(self.take_read(next, until, &mut all));
        }
        outcome.map(|()| all)
    }

    /// Reads, or asks for the bytes; `under_way` is what has not come at the end.
    fn read_segments(
        &mut self,
        from: &Open,
        segments: &[Segment],
        all: &mut [u8],
        under_way: &mut VecDeque<(There, u64, Range<usize>)>,
    ) -> Result<()> {
        let mut end = 0;
        for &Segment { piece, offset, length } in segments {
            let range = end..end + length as usize;
            end = range.end;
            match &from.places[&piece] {
                Place::Here(opened) => {
                    let reading = opened.begin_get(offset, length).map_err(refused)?;
                    let to = &mut all[range][..reading.length];
                    // SAFETY: the range that `reading` keeps, into the vector.
                    unsafe { std::ptr::copy_nonoverlapping(reading.at, to.as_mut_ptr(), to.len()) };
                }
                Place::There(there) => {
                    if under_way.len() == WINDOW
                        && let Some(first) = under_way.pop_front()
                    {
                        self.take_read(first, Instant::now() + PATIENCE, all)?;
                    }
                    let remote = self.remote(*there)?;
                    let number = remote.next();
                    remote.post(&Message::Get { number, item: there.number, offset, length }, &[])?;
                    under_way.push_back((*there, number, range));
                }
            }
        }
        Ok(())
    }

    /// Waits for what was asked of a server, until then at most.
    fn take_read(
        &mut self,
        (there, number, range): (There, u64, Range<usize>),
        until: Instant,
        all: &mut [u8],
    ) -> Result<()> {
        match self.reply((there, number), until)? {
            Some(data) if data.len() == range.len() => {
                all[range].copy_from_slice(&data);
                Ok(())
            }
            _ => Err(something_else()),
        }
    }

    /// Writes a range of an item.
    fn write(&mut self, to: &mut Open, offset: u64, data: &[u8]) -> Result<()> {
        let segments: Vec<Segment> = to.ticket.segments(offset, data.len() as u64).collect();
        to.open(self, &segments)?;
        let mut under_way = VecDeque::new();
        let mut outcome = self.write_segments(to, &segments, data, &mut under_way);
        let until = Instant::now() + PATIENCE;
        // Whatever has failed: in a session that goes on nothing lands after the program's answer.
        for next in under_way {
            outcome = outcome.and(self.take_written(next, until));
        }
        outcome
    }

    /// Writes, or sends; `under_way` is what is not known to have landed at the end.
    fn write_segments(
        &mut self,
        to: &Open,
        segments: &[Segment],
        mut data: &[u8],
        under_way: &mut VecDeque<(There, u64)>,
    ) -> Result<()> {
        for &Segment { piece, offset, length } in segments {
            let (now, rest) = data.split_at(length as usize);
            data = rest;
            match &to.places[&piece] {
                Place::Here(opened) => opened.put(offset, now).map_err(refused)?,
                Place::There(there) => {
                    if under_way.len() == WINDOW
                        && let Some(first) = under_way.pop_front()
                    {
                        self.take_written(first, Instant::now() + PATIENCE)?;
                    }
                    let remote = self.remote(*there)?;
                    let number = remote.next();
                    remote.post(&Message::Put { number, item: there.number, offset }, now)?;
                    under_way.push_back((*there, number));
                }
            }
        }
        Ok(())
    }

    /// Waits until a server has written what was sent, until then at most.
    fn take_written(&mut self, sent: (There, u64), until: Instant) -> Result<()> {
        self.reply(sent, until)?.map_or(Ok(()), |_| Err(something_else()))
    }

    /// The data of a reply, until then at most; `None`: it is done, and has none.
    fn reply(&mut self, (there, number): (There, u64), until: Instant) -> Result<Option<Vec<u8>>> {
        match self.remote(there)?.reply(number, until)? {
            (Message::Data { .. }, data) => Ok(Some(data)),
            (Message::Done { code: 0, .. }, _) => Ok(None),
            (Message::Done { code, .. }, _) => Err(refused(FamError::of(code))),
            _ => Err(something_else()),
        }
    }

    /// A ticket with a seal of now, as the keeper gives it: the item may be gone since the job was
    /// asked for, and a server that has joined since then does not know that.
    fn sealed(&self, ticket: &Ticket) -> Result<Sealed> {
        let over = || FamError::Rpc.because("the daemon ends");
        let (give, sealed) = mpsc::channel();
        self.work.send(Work::Seal(ticket.clone(), give)).map_err(|_| over())?;
        sealed.recv().map_err(|_| over())?
    }

    /// Another server, with or without a session.
    fn server(&mut self, server: u64) -> Result<&mut Remote> {
        let none = || FamError::Rpc.because(format!("server {server} is not in memsrv_list any more"));
        self.remotes.get_mut(&server).ok_or_else(none)
    }

    /// The session in which a number was given.
    fn remote(&mut self, There { server, serial, .. }: There) -> Result<&mut Remote> {
        let remote = self.remotes.get_mut(&server).filter(|remote| remote.serial == serial);
        remote.ok_or_else(|| FamError::Rpc.because(format!("server {server} was lost")))
    }
}

fn refused(error: FamError) -> fam::Failure {
    error.because("a server of memory refuses")
}

fn something_else() -> fam::Failure {
    FamError::Rpc.because("a server of memory replies something else")
}

/// Where a piece is reached.
enum Place {
    Here(Arc<Opened>),
    There(There),
}

/// A piece of another server.
#[derive(Clone, Copy)]
struct There {
    server: u64,
    /// The session that knows its number.
    serial: u64,
    number: u32,
}

/// An item with the pieces that were opened for a job.
struct Open {
    ticket: Ticket,
    places: HashMap<usize, Place>,
}

impl Open {
    fn new(ticket: Ticket) -> Self {
        Self { ticket, places: HashMap::new() }
    }

    /// Opens the pieces of these segments, at all servers at the same time.
    fn open(&mut self, mover: &mut Mover, segments: &[Segment]) -> Result<()> {
        let pieces: BTreeSet<usize> = segments.iter().map(|segment| segment.piece).collect();
        let new = pieces.into_iter().filter(|piece| !self.places.contains_key(piece));
        let new: Vec<_> = new.map(|piece| (piece, self.ticket.pieces[piece].server)).collect();
        let (here, there): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|(_, server)| *server == mover.memory.server);
        // A session takes its time to begin, and the seal is to be new after that.
        for (_, server) in &there {
            mover.server(*server)?.ensure()?;
        }
        if here.is_empty() && there.is_empty() {
            return Ok(());
        }
        let sealed = mover.sealed(&self.ticket)?;
        for (piece, _) in here {
            let given_up = Arc::new(AtomicBool::new(false));
            let opened = mover.memory.open(&sealed, self.ticket.user, &given_up)?;
            self.places.insert(piece, Place::Here(opened));
        }
        let mut asked = Vec::new();
        let mut outcome = there.into_iter().try_for_each(|(piece, server)| {
            let remote = mover.server(server)?;
            let question = remote.post_question(&Ask::Open { ticket: sealed.clone() })?;
            asked.push((piece, There { server, serial: remote.serial, number: 0 }, question));
            Ok(())
        });
        let until = Instant::now() + PATIENCE;
        // All answers, whatever has failed: what a server has opened is to be closed.
        for (piece, there, question) in asked {
            let answer = mover.remote(there).and_then(|remote| remote.answer(question, until));
            outcome = outcome.and(answer.and_then(|answer| match answer {
                Answer::Opened { number } => {
                    self.places.insert(piece, Place::There(There { number, ..there }));
                    Ok(())
                }
                _ => Err(something_else()),
            }));
        }
        outcome
    }
}
