//! The memory that this daemon serves: its parts, and which items are open in which sessions.

use crate::log;
use crate::marks::Label;
use crate::opened::Opened;
use crate::parts::{self, Part};
use fam::wire::{Answer, PartKind, SECRET, Sealed};
use fam::{FamError, Result};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long an operation may go on in an item that is withdrawn before its session ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// The memory of one server.
pub struct Memory {
    /// The server's number in the pool.
    pub server: u64,
    /// The folder of persistent parts, where it has them; else its memory is volatile.
    folder: Option<PathBuf>,
    /// Other daemons keep away from the folder while this is open.
    _held: Option<File>,
    state: Mutex<State>,
    /// Called when a session has to be looked at.
    bell: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    pool: u128,
    /// `None`: no keeper has joined.
    secret: Option<[u8; SECRET]>,
    parts: HashMap<u64, Arc<Part>>,
    opened: HashMap<u64, Vec<Weak<Opened>>>,
    /// Items that were withdrawn since the secret was drawn: their tickets are not valid any more.
    gone: HashSet<u64>,
    /// Files of parts that belong to no region here, which the log has named.
    named: HashSet<PathBuf>,
}

impl State {
    /// Volatile parts together are not larger than the machine's memory, when this one has this
    /// size.
    fn check_volatile(&self, part: u64, size: u64) -> Result<()> {
        let others = self.parts.iter().filter(|(number, _)| **number != part).map(|(_, part)| part.size());
        let all = others.fold(size, u64::saturating_add);
        let machine = rustix::system::sysinfo();
        let most = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
        if all > most {
            let why = format!("{all} bytes in all, and the machine has {most} bytes of memory");
            return Err(FamError::NoSpace.because(why));
        }
        Ok(())
    }
}

impl Memory {
    /// The memory of a server, without a part.
    ///
    /// # Errors
    /// [`FamError::Memory`]: another daemon uses the folder.
    pub fn new(server: u64, folder: Option<PathBuf>, bell: Box<dyn Fn() + Send + Sync>) -> Result<Self> {
        let held = folder.as_deref().map(parts::hold).transpose()?;
        Ok(Self { server, folder, _held: held, state: Mutex::default(), bell })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A keeper begins: volatile parts that it does not know end, and persistent ones that it knows
    /// are opened. The file of another one stays as it is, since only the keeper's word that a part
    /// is to be removed can be no mistake: numbers of servers may have changed, or folders, or the
    /// metadata may be of an earlier day.
    ///
    /// # Errors
    /// None today: a part that cannot be opened is missing in the answer.
    pub fn join(&self, pool: u128, secret: [u8; SECRET], known: &[u64]) -> Result<Answer> {
        let all: HashSet<u64> = known.iter().copied().collect();
        let gone: Vec<u64> = {
            let state = self.state();
            let is_other = state.pool != pool;
            let unknown = state.parts.keys().filter(|part| is_other || !all.contains(part));
            unknown.copied().collect()
        };
        for part in gone {
            // Sessions may keep volatile memory mapped, which no program reaches any more.
            self.end_part(part, self.folder.is_none())?;
        }
        let mut state = self.state();
        (state.pool, state.secret) = (pool, Some(secret));
        state.gone.clear();
        if let Some(folder) = &self.folder {
            for (part, path) in parts::files(folder, pool) {
                if state.parts.contains_key(&part) {
                    continue;
                }
                if !all.contains(&part) {
                    if state.named.insert(path.clone()) {
                        log::line(&format!(
                            "{} belongs to no region on server {}, and stays as it is: another server's, \
                             of metadata of a later day, or left by a daemon that died",
                            path.display(),
                            self.server
                        ));
                    }
                    continue;
                }
                match Part::open(Label { pool, part }, folder) {
                    Ok((opened, torn)) => {
                        torn.into_iter().for_each(|range| opened.log_torn(range));
                        state.parts.insert(part, Arc::new(opened));
                    }
                    Err(failure) => log::line(&failure.text),
                }
            }
        }
        let parts = known.iter().copied().filter(|part| state.parts.contains_key(part)).collect();
        let has_persistent = self.folder.is_some();
        Ok(Answer::Joined { parts, has_volatile: !has_persistent, has_persistent })
    }

    /// Makes a part.
    ///
    /// # Errors
    /// Those of [`Part::make`]; [`FamError::AlreadyExist`], [`FamError::NotCreated`].
    pub fn make_part(&self, part: u64, size: u64, kind: PartKind) -> Result<Answer> {
        if (kind == PartKind::Persistent) != self.folder.is_some() {
            return Err(FamError::NotCreated.because("the server has no such memory"));
        }
        let mut state = self.state();
        if state.parts.contains_key(&part) {
            return Err(FamError::AlreadyExist.because(format!("part {part}")));
        }
        if kind == PartKind::Volatile {
            state.check_volatile(part, size)?;
        }
        let label = Label { pool: state.pool, part };
        let made = Part::make(label, size, kind, self.folder.as_deref())?;
        state.parts.insert(part, Arc::new(made));
        Ok(Answer::Done)
    }

    /// Gives a part another size. Nothing lies beyond it, as the keeper knows; where it does not,
    /// the part only grows.
    ///
    /// # Errors
    /// Those of [`Part::make`]; [`FamError::NotFound`].
    pub fn resize_part(&self, part: u64, size: u64, grows_only: bool) -> Result<Answer> {
        let mut state = self.state();
        if self.folder.is_none() {
            state.check_volatile(part, size)?;
        }
        let old = state.parts.get(&part).ok_or_else(|| no_part(part))?;
        if grows_only && size <= old.size() {
            return Ok(Answer::Done);
        }
        let new = old.resized(size)?;
        state.parts.insert(part, Arc::new(new));
        Ok(Answer::Done)
    }

    /// Removes a part, with its file. All of its items are withdrawn before.
    ///
    /// # Errors
    /// [`FamError::Timeout`]: an operation does not end. [`FamError::NotFound`]: a persistent part
    /// has no file here: it may be in another folder, or on another server.
    pub fn remove_part(&self, part: u64) -> Result<Answer> {
        self.end_part(part, true)?;
        Ok(Answer::Done)
    }

    fn end_part(&self, part: u64, removes: bool) -> Result<()> {
        let items: Vec<u64> = {
            let state = self.state();
            let is_of_part = |one: &Weak<Opened>| one.upgrade().is_some_and(|one| one.part.number == part);
            let items = state.opened.iter().filter(|(_, all)| all.iter().any(is_of_part));
            items.map(|(item, _)| *item).collect()
        };
        let ended = self.withdraw_all(&items);
        let mut state = self.state();
        state.opened.retain(|_, all| all.iter().any(|one| one.strong_count() != 0));
        ended?;
        let (open, label) = (state.parts.remove(&part), Label { pool: state.pool, part });
        drop(state);
        match (open, &self.folder) {
            (Some(part), _) if removes => part.remove(),
            (None, Some(folder)) if removes => parts::remove(label, folder),
            _ => Ok(()),
        }
    }

    /// Clears a range of a part, for a new item. What is open there is an item whose withdrawal
    /// has not come, as when the keeper died before it: it is withdrawn now.
    ///
    /// # Errors
    /// Those of [`Part::clear`] and [`Self::withdraw`]; [`FamError::NotFound`],
    /// [`FamError::OutOfRange`].
    pub fn clear(&self, part: u64, offset: u64, length: u64) -> Result<Answer> {
        let number = part;
        let beyond = || FamError::OutOfRange.because("a range beyond the part");
        let end = offset.checked_add(length).ok_or_else(beyond)?;
        let lies_there = |one: &Opened| {
            let (begin, end) = (one.offset.max(offset), (one.offset + one.length).min(end));
            one.part.number == number && begin < end
        };
        let (part, left) = {
            let state = self.state();
            let part = state.parts.get(&number).cloned().ok_or_else(|| no_part(number))?;
            let is_left =
                |all: &Vec<Weak<Opened>>| all.iter().filter_map(Weak::upgrade).any(|one| lies_there(&one));
            let left = state.opened.iter().filter(|(_, all)| is_left(all)).map(|(item, _)| *item);
            (part, left.collect::<Vec<u64>>())
        };
        self.withdraw_all(&left)?;
        part.clear(offset, length)?;
        Ok(Answer::Done)
    }

    /// Withdraws an item: returns when nothing uses its memory any more. A session with an
    /// operation that does not end is ended.
    ///
    /// # Errors
    /// [`FamError::Timeout`]: the thread for data does not end it either.
    pub fn withdraw(&self, item: u64) -> Result<Answer> {
        self.withdraw_all(&[item]).map(|()| Answer::Done)
    }

    /// Withdraws items, and waits for all of them together.
    fn withdraw_all(&self, items: &[u64]) -> Result<()> {
        let mut all: Vec<Arc<Opened>> = {
            let mut state = self.state();
            state.gone.extend(items);
            let opened = items.iter().filter_map(|item| state.opened.remove(item)).flatten();
            opened.filter_map(|one| one.upgrade()).collect()
        };
        all.iter().for_each(|one| one.withdraw());
        let since = Instant::now();
        loop {
            all.retain(|one| one.is_in_use());
            let Some(last) = all.last() else { return Ok(()) };
            if since.elapsed() > 20 * PATIENCE {
                return Err(FamError::Timeout.because(format!("item {} is in use", last.item)));
            }
            if since.elapsed() > PATIENCE {
                for busy in all.iter().filter(|one| !one.is_doomed.swap(true, Ordering::SeqCst)) {
                    let item = busy.item;
                    log::line(&format!("an operation in item {item} does not end: its session is ended"));
                    (self.bell)();
                }
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Opens the piece of a ticket that lies here, for a session of this user.
    ///
    /// # Errors
    /// [`FamError::Metadata`]: the ticket is of an earlier keeper, or none.
    /// [`FamError::NoPerm`]: it is another user's. [`FamError::NotFound`]: there is no such memory.
    /// [`FamError::Rpc`]: no keeper has joined.
    pub fn open(&self, ticket: &Sealed, user: u32, is_doomed: &Arc<AtomicBool>) -> Result<Arc<Opened>> {
        let mut state = self.state();
        let secret = state.secret.ok_or_else(|| FamError::Rpc.because("the server has no keeper yet"))?;
        let ticket = ticket.open(&secret);
        let ticket = ticket.ok_or_else(|| FamError::Metadata.because("the ticket is not valid any more"))?;
        if ticket.user != user {
            return Err(FamError::NoPerm.because("the ticket is another user's"));
        }
        if state.gone.contains(&ticket.item) {
            return Err(FamError::NotFound.because("the item is gone"));
        }
        let piece = ticket.pieces.iter().find(|piece| piece.server == self.server);
        let piece = piece.ok_or_else(|| FamError::NotFound.because("no piece of the item is here"))?;
        let part = state.parts.get(&piece.part).cloned().ok_or_else(|| no_part(piece.part))?;
        if piece.offset + piece.length > part.size() {
            return Err(FamError::NotFound.because("the item is beyond its part"));
        }
        let place = (piece.offset, piece.length);
        let opened = Arc::new(Opened::new((ticket.item, ticket.rights), part, place, is_doomed.clone()));
        let all = state.opened.entry(ticket.item).or_default();
        all.retain(|one| one.strong_count() != 0);
        all.push(Arc::downgrade(&opened));
        Ok(opened)
    }

    /// Makes all persistent parts durable.
    pub fn sync(&self) {
        let parts: Vec<Arc<Part>> = self.state().parts.values().cloned().collect();
        for part in parts {
            if let Err(failure) = part.sync() {
                log::line(&failure.text);
            }
        }
    }
}

fn no_part(part: u64) -> fam::Failure {
    FamError::NotFound.because(format!("part {part} is not here: a server of memory has restarted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fam::wire::{READ, WRITE};

    /// A memory with one volatile part, and the part.
    fn with_a_part() -> (Memory, Arc<Part>) {
        let memory = Memory::new(0, None, Box::new(|| ())).expect("a memory");
        memory.join(1, [7; SECRET], &[]).expect("a keeper");
        memory.make_part(1, 1 << 20, PartKind::Volatile).expect("a part");
        let part = memory.state().parts[&1].clone();
        (memory, part)
    }

    /// An item of 4096 bytes in that part, which a session has opened.
    fn open_item(memory: &Memory, part: &Arc<Part>, item: u64, offset: u64) -> Arc<Opened> {
        let one = Opened::new((item, READ | WRITE), part.clone(), (offset, 4096), Arc::default());
        let one = Arc::new(one);
        memory.state().opened.entry(item).or_default().push(Arc::downgrade(&one));
        one
    }

    #[test]
    fn a_range_that_is_used_again_is_no_earlier_items_any_more() {
        let (memory, part) = with_a_part();
        let [first, second] =
            [(9, 0), (10, 4096)].map(|(item, offset)| open_item(&memory, &part, item, offset));
        // The keeper died before it withdrew item 9, and knows nothing of it.
        memory.clear(1, 0, 100).expect("a range");
        assert_eq!(first.put(0, &[1]), Err(FamError::NotFound));
        assert_eq!(second.put(0, &[1]), Ok(()));
    }

    #[test]
    fn volatile_memory_of_an_earlier_keeper_is_empty_however_many_have_it_mapped() {
        let (memory, part) = with_a_part();
        let item = open_item(&memory, &part, 9, 0);
        item.put(0, &[1; 100]).expect("a put");
        let pool = memory.join(2, [7; SECRET], &[]).expect("a keeper of another pool");
        assert_eq!(pool, Answer::Joined { parts: Vec::new(), has_volatile: true, has_persistent: false });
        assert_eq!(item.put(0, &[1]), Err(FamError::NotFound));
        // SAFETY: a byte of the part's mapping, which nothing writes.
        assert_eq!(unsafe { part.at(5).read_volatile() }, 0, "the memory is still there");
    }

    #[test]
    fn a_part_waits_for_all_of_its_items_together() {
        let (memory, part) = with_a_part();
        let items: Vec<_> = (0..64).map(|item| open_item(&memory, &part, item, item * 4096)).collect();
        let under_way: Vec<_> = items.iter().map(|one| one.begin_put(0, 8).expect("within")).collect();
        std::thread::scope(|scope| {
            // Sessions end when all are to end: were one waited for alone, it would go on.
            scope.spawn(|| {
                while !items.iter().all(|one| one.is_doomed.load(Ordering::SeqCst)) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                drop(under_way);
            });
            let removed = memory.remove_part(1);
            items.iter().for_each(|one| one.is_doomed.store(true, Ordering::SeqCst));
            assert_eq!(removed.expect("the end of the part"), Answer::Done);
        });
    }

    #[test]
    fn a_part_whose_file_stays_is_not_removed() {
        let name = format!("openfamd-stays-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let memory = Memory::new(0, Some(folder.clone()), Box::new(|| ())).expect("a memory");
        memory.join(1, [7; SECRET], &[]).expect("a keeper");
        memory.make_part(1, 1 << 20, PartKind::Persistent).expect("a part");
        let (_, path) = parts::files(&folder, 1).pop().expect("a file");
        // A folder in its place cannot be removed as a file is.
        std::fs::remove_file(&path).and_then(|()| std::fs::create_dir(&path)).expect("a folder");
        for _ in 0..2 {
            assert_eq!(memory.remove_part(1).expect_err("it is there").error, FamError::Memory);
        }
        std::fs::remove_dir(&path).expect("the folder");
        assert_eq!(memory.remove_part(1).expect_err("it is gone").error, FamError::NotFound);
        drop(memory);
        std::fs::remove_dir_all(&folder).expect("the end of the folder");
    }

    #[test]
    fn a_range_that_no_part_has_ends_no_item() {
        let memory = Memory::new(0, None, Box::new(|| ())).expect("a memory");
        memory.join(1, [7; SECRET], &[]).expect("a keeper");
        memory.make_part(1, 1 << 16, PartKind::Volatile).expect("a part");
        let part = memory.state().parts[&1].clone();
        let item = Arc::new(Opened::new((9, READ | WRITE), part, (1 << 15, 4096), Arc::default()));
        memory.state().opened.entry(9).or_default().push(Arc::downgrade(&item));
        for (offset, length) in [(u64::MAX - 10, 1 << 15), (1 << 15, u64::MAX), (u64::MAX, u64::MAX)] {
            let refused = memory.clear(1, offset, length).expect_err("beyond all numbers");
            assert_eq!(refused.error, FamError::OutOfRange);
        }
        assert_eq!(item.put(0, &[1]), Ok(()));
    }
}
