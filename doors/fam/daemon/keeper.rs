//! The keeper: names, rights, sizes and places of regions and items. It is one thread's.

mod items;
mod moves;
mod regions;

use crate::backup::Job;
use crate::guest::Who;
use crate::log;
use crate::rights::rights;
use crate::servers::{News, Servers};
use crate::space::Space;
use crate::store::{Backup, Change, Item, Region, Store};
use fam::wire::{Answer, Ask, ItemFacts, LONGEST_NAME, Piece, READ, RegionFacts, Sealed, Ticket};
use fam::{Failure, FamError, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long a keeper that begins waits for the other servers of memory, all of them together. One
/// that is later joins when it is there.
const START: Duration = Duration::from_secs(5);
/// The least size of an item; that of a region is a multiple of it.
const LEAST_ITEM: u64 = 128;

/// Values of the attributes: the redundancy is at most this, then memory, interleaving and rights.
const REDUNDANCIES: u32 = 3;
const VOLATILE: u32 = 1;
const PERSISTENT: u32 = 2;
const ENABLE: u32 = 1;
const DISABLE: u32 = 2;
const OF_REGION: u32 = 1;
const OF_ITEM: u32 = 2;

/// What follows from something that was asked.
pub enum Outcome {
    /// The answer.
    Now(Result<Answer>),
    /// Bytes have to be moved first.
    Later(Job),
}

impl From<Result<Answer>> for Outcome {
    fn from(answer: Result<Answer>) -> Self {
        Self::Now(answer)
    }
}

/// What a keeper knows.
pub struct Keeper {
    store: Store,
    servers: Servers,
    regions: BTreeMap<u64, Region>,
    region_names: HashMap<String, u64>,
    /// The items of each region.
    members: HashMap<u64, BTreeSet<u64>>,
    /// Bytes of the items of each region.
    used: HashMap<u64, u64>,
    items: HashMap<u64, Item>,
    item_names: HashMap<(u64, String), u64>,
    /// By server and part.
    spaces: HashMap<(u64, u64), Space>,
    /// Parts that are to be removed when their server is there: server and part.
    leaving: BTreeSet<(u64, u64)>,
    backups: BTreeMap<String, Backup>,
    /// Names of backups that are being made.
    coming: BTreeSet<String>,
    last: u64,
    block: u64,
    is_spanning: bool,
}

impl Keeper {
    /// A keeper with what its store has.
    ///
    /// # Errors
    /// [`FamError::Metadata`].
    pub fn new(mut store: Store, servers: Servers, (block, is_spanning): (u64, bool)) -> Result<Self> {
        let (regions, items, backups) = store.all()?;
        let leaving = store.leaving()?;
        let last = store.last;
        let mut keeper = Self {
            store,
            servers,
            regions: BTreeMap::new(),
            region_names: HashMap::new(),
            members: HashMap::new(),
            used: HashMap::new(),
            items: HashMap::new(),
            item_names: HashMap::new(),
            spaces: HashMap::new(),
            leaving,
            backups: backups.into_iter().map(|backup| (backup.facts.name.clone(), backup)).collect(),
            coming: BTreeSet::new(),
            last,
            block,
            is_spanning,
        };
        regions.into_iter().for_each(|region| keeper.know_region(region));
        for item in items {
            for piece in &item.pieces {
                let space = keeper.spaces.get_mut(&(piece.server, piece.part));
                if !space.is_some_and(|space| space.take(piece.offset, piece.length)) {
                    let why = format!("the metadata: item {} has no room", item.facts.item);
                    return Err(FamError::Metadata.because(why));
                }
            }
            keeper.know_item(item);
        }
        // Programs that begin with the daemon find all servers that are there.
        keeper.look(Instant::now());
        keeper.look(Instant::now() + START);
        Ok(keeper)
    }

    /// Looks after the servers of memory, and waits until then at most for those that are being
    /// connected to.
    pub fn look(&mut self, until: Instant) {
        let (regions, leaving) = (&self.regions, &self.leaving);
        let known = |server: u64| {
            let parts = regions.values().flat_map(|region| region.parts.iter()).chain(leaving);
            parts.filter(|(on, _)| *on == server).map(|(_, part)| *part).collect()
        };
        let News { joined, lost } = self.servers.look(until, known);
        if joined.is_empty() {
            return;
        }
        for (server, part) in lost {
            if !self.leaving.contains(&(server, part)) {
                log::line(&format!("server {server} has lost part {part}"));
                self.renew(server, part);
            }
        }
        let leaving = self.leaving.iter().filter(|(server, _)| joined.contains(server));
        let leaving: Vec<(u64, u64)> = leaving.copied().collect();
        self.remove_parts(&leaving, true);
        // A daemon may have died between a change of a size here and there.
        let persistent = self.regions.values().filter(|region| region.facts.attributes.memory == PERSISTENT);
        let parts: Vec<(u64, u64, u64)> = persistent
            .flat_map(|region| region.parts.iter().map(|(server, part)| (*server, *part, region.facts.size)))
            .filter(|(server, ..)| joined.contains(server))
            .collect();
        for (server, part, size) in parts {
            // One that is longer may be of a later day than the metadata.
            let grow = Ask::ResizePart { part, size, grows_only: true };
            if let Err(failure) = self.servers.ask(server, &grow) {
                log::line(&failure.text);
            }
        }
    }

    /// The pool.
    pub fn pool(&self) -> u128 {
        self.store.pool
    }

    /// The files of all backups.
    pub fn backup_files(&self) -> HashSet<&str> {
        self.backups.values().map(|backup| backup.file.as_str()).collect()
    }

    /// The servers of memory.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    fn know_region(&mut self, region: Region) {
        for (server, part) in &region.parts {
            self.spaces.insert((*server, *part), Space::new(region.facts.size));
        }
        self.region_names.insert(region.facts.name.clone(), region.facts.region);
        self.members.entry(region.facts.region).or_default();
        self.regions.insert(region.facts.region, region);
    }

    fn know_item(&mut self, item: Item) {
        let (region, number) = (item.facts.region, item.facts.item);
        if !item.facts.name.is_empty() {
            self.item_names.insert((region, item.facts.name.clone()), number);
        }
        self.members.entry(region).or_default().insert(number);
        *self.used.entry(region).or_default() += item.facts.size;
        self.items.insert(number, item);
    }

    fn forget_item(&mut self, number: u64) {
        let Some(item) = self.items.remove(&number) else { return };
        self.item_names.remove(&(item.facts.region, item.facts.name));
        if let Some(members) = self.members.get_mut(&item.facts.region) {
            members.remove(&number);
        }
        if let Some(used) = self.used.get_mut(&item.facts.region) {
            *used -= item.facts.size;
        }
    }

    fn give_back(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            if let Some(space) = self.spaces.get_mut(&(piece.server, piece.part)) {
                space.free(piece.offset, piece.length);
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn region(&self, number: u64) -> Result<&Region> {
        self.regions.get(&number).ok_or_else(|| FamError::NotFound.because("there is no such region"))
    }

    fn item(&self, region: u64, number: u64) -> Result<&Item> {
        let item = self.items.get(&number).filter(|item| item.facts.region == region);
        item.ok_or_else(|| FamError::NotFound.because("there is no such item"))
    }

    fn region_rights(&self, facts: &RegionFacts, who: Who) -> u8 {
        rights(facts.mode, (facts.user, facts.group), who)
    }

    /// What is known of an item, with the rights that hold for it, and what a user may do to it.
    fn facts(&self, item: &Item, who: Who) -> Result<(ItemFacts, u8)> {
        let mut facts = item.facts.clone();
        let region = &self.region(facts.region)?.facts;
        let mut owner = (facts.user, facts.group);
        if facts.attributes.permission == OF_REGION {
            facts.mode = region.mode;
            owner = (region.user, region.group);
        }
        let rights = rights(facts.mode, owner, who);
        Ok((facts, rights))
    }

    /// What a user may do to an item that may know it.
    fn visible(&self, item: &Item, who: Who) -> Result<(ItemFacts, u8)> {
        let (facts, rights) = self.facts(item, who)?;
        if rights == 0 && facts.user != who.user {
            return Err(no_perm("the item"));
        }
        Ok((facts, rights))
    }

    /// Does what a user asks.
    pub fn ask(&mut self, who: Who, ask: Ask) -> Outcome {
        match ask {
            Ask::CreateRegion { name, size, mode, attributes } => {
                self.create(who, name, size, mode, attributes).into()
            }
            Ask::DestroyRegion { region } => self.destroy(who, region).into(),
            Ask::ResizeRegion { region, size } => self.resize(who, region, size).into(),
            Ask::LookupRegion { name } => {
                let found = self.region_names.get(&name).copied();
                let found = found.ok_or_else(|| FamError::NotFound.because("there is no such region"));
                found.and_then(|region| self.stat_region(who, region)).into()
            }
            Ask::StatRegion { region } => self.stat_region(who, region).into(),
            Ask::RegionRights { region, mode } => self.set_region_rights(who, region, mode).into(),
            Ask::Allocate { region, name, size, mode } => self.allocate(who, region, name, size, mode).into(),
            Ask::Deallocate { region, item } => self.deallocate(who, region, item).into(),
            Ask::Lookup { region, item } => self.lookup(who, &region, item).into(),
            Ask::StatItem { region, item } => self.stat_item(who, region, item).into(),
            Ask::ItemRights { region, item, mode } => self.set_item_rights(who, region, item, mode).into(),
            Ask::Ticket { region, item } => self.ticket(who, region, item).into(),
            Ask::Seal { ticket } => self.seal_anew(who, &ticket).into(),
            Ask::Copy { from, from_offset, to, to_offset, length } => {
                later(self.copy(who, (&from, from_offset), (&to, to_offset), length))
            }
            Ask::Backup { region, item, name } => later(self.backup(who, region, item, name)),
            Ask::Restore { name, to } => later(self.restore(who, &name, &to)),
            Ask::StatBackup { name } => {
                self.backup_of(who, &name, READ).map(|backup| Answer::Backup(backup.facts.clone())).into()
            }
            Ask::DeleteBackup { name } => later(self.delete_backup(who, &name)),
            Ask::ListBackups { name } => self.list_backups(who, &name).into(),
            _ => Outcome::Now(Err(FamError::InvalidOp.because("it is not asked of a keeper"))),
        }
    }

    /// Makes changes durable that must be.
    fn keep(&mut self, is_persistent: bool, changes: &[Change<'_>]) -> Result<()> {
        if is_persistent { self.store.change(changes) } else { Ok(()) }
    }

    /// Removes parts. Persistent ones of a server that is not there, or has no file of them, are
    /// removed when it joins and has; others end with their server's daemon, or when they are
    /// unknown to it as it joins.
    fn remove_parts(&mut self, parts: &[(u64, u64)], is_persistent: bool) {
        let (mut changes, mut leaving) = (Vec::new(), self.leaving.clone());
        for (server, part) in parts {
            self.spaces.remove(&(*server, *part));
            match self.servers.ask(*server, &Ask::RemovePart { part: *part }) {
                Ok(_) if leaving.remove(&(*server, *part)) => changes.push(Change::Left(*part)),
                Ok(_) => {}
                Err(failure) => {
                    // One that has lost a part has been logged as it joined.
                    if failure.error != FamError::NotFound {
                        log::line(&failure.text);
                    }
                    if is_persistent && leaving.insert((*server, *part)) {
                        changes.push(Change::Leaving(*server, *part));
                    }
                }
            }
        }
        self.leaving = leaving;
        if !changes.is_empty()
            && let Err(failure) = self.store.change(&changes)
        {
            log::line(&failure.text);
        }
    }

    fn ticket(&self, who: Who, region: u64, number: u64) -> Result<Answer> {
        let item = self.item(region, number)?;
        let (facts, rights) = self.facts(item, who)?;
        if rights == 0 {
            return Err(no_perm("the item"));
        }
        let ticket = self.ticket_of(item, who.user, rights);
        Ok(Answer::Ticket { ticket: Sealed::new(&ticket, &self.servers.secret()), facts })
    }

    /// A ticket of before with a seal of now.
    ///
    /// # Errors
    /// [`FamError::NotFound`]: the item is gone.
    pub fn sealed(&self, ticket: &Ticket) -> Result<Sealed> {
        if !self.items.contains_key(&ticket.item) {
            return Err(FamError::NotFound.because("the item is gone"));
        }
        Ok(Sealed::new(ticket, &self.servers.secret()))
    }

    fn ticket_of(&self, item: &Item, user: u32, rights: u8) -> Ticket {
        let size = item.facts.size;
        let block = if item.pieces.len() == 1 { size } else { item.facts.block };
        Ticket { item: item.facts.item, user, rights, size, block, pieces: item.pieces.clone() }
    }
}

fn later(job: Result<Job>) -> Outcome {
    match job {
        Ok(job) => Outcome::Later(job),
        Err(failure) => Outcome::Now(Err(failure)),
    }
}

fn no_perm(what: &str) -> Failure {
    FamError::NoPerm.because(format!("{what} is another user's, who has not granted this"))
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if name.chars().count() > LONGEST_NAME {
        return Err(FamError::NameTooLong
            .because(format!("the name of {what} has more than {LONGEST_NAME} characters")));
    }
    Ok(())
}
