//! Regions: create, destroy, other sizes and rights.

use super::{DISABLE, ENABLE, Keeper, LEAST_ITEM, OF_ITEM, OF_REGION, PERSISTENT, REDUNDANCIES, VOLATILE};
use super::{check_name, no_perm};
use crate::guest::Who;
use crate::log;
use crate::servers::Servers;
use crate::space::Space;
use crate::store::{Change, Region};
use fam::wire::{Answer, Ask, Attributes, PartKind, RegionFacts, WRITE};
use fam::{FamError, Result};

/// The least size of a region.
const LEAST: u64 = 1 << 20;
/// The greatest size: sums of sizes stay far from the end of the numbers.
const MOST: u64 = 1 << 56;

impl Keeper {
    pub(super) fn create(
        &mut self,
        who: Who,
        name: String,
        size: u64,
        mode: u32,
        attributes: Attributes,
    ) -> Result<Answer> {
        check_name("the region", &name)?;
        if name.is_empty() {
            return Err(FamError::Invalid.because("a region has a name"));
        }
        if self.region_names.contains_key(&name) {
            return Err(FamError::AlreadyExist.because("there is a region of this name"));
        }
        let attributes = complete(attributes)?;
        if size > MOST {
            return Err(FamError::NoSpace.because(format!("a region of {size} bytes")));
        }
        let size = size.max(LEAST).next_multiple_of(LEAST_ITEM);
        let is_persistent = attributes.memory == PERSISTENT;
        let servers = self.servers.with(is_persistent);
        if servers.is_empty() {
            let kind = if is_persistent { "persistent" } else { "volatile" };
            return Err(FamError::NotCreated.because(format!("no server has {kind} memory")));
        }
        let region = self.number();
        let kind = if is_persistent { PartKind::Persistent } else { PartKind::Volatile };
        let parts = self.make_parts(servers, size, kind)?;
        let servers = parts.iter().map(|(server, _)| *server).collect();
        let facts = RegionFacts {
            region,
            name,
            size,
            mode: mode & 0o777,
            user: who.user,
            group: who.group,
            attributes,
            servers,
            block: self.block,
        };
        let new = Region { facts, parts };
        if let Err(failure) = self.keep(is_persistent, &[Change::Region(&new)]) {
            self.remove_parts(&new.parts, is_persistent);
            return Err(failure);
        }
        let facts = new.facts.clone();
        self.know_region(new);
        Ok(Answer::Region(facts))
    }

    /// Makes the parts of a new region: on all of these servers, or, where regions do not span, on
    /// that with the fewest parts which has room. Each part with its server.
    fn make_parts(&mut self, mut servers: Vec<u64>, size: u64, kind: PartKind) -> Result<Vec<(u64, u64)>> {
        if self.is_spanning {
            let mut parts = Vec::new();
            let made = servers.iter().try_for_each(|server| {
                parts.push((*server, self.make_part(*server, size, kind)?));
                Ok(())
            });
            if let Err(failure) = made {
                self.remove_parts(&parts, kind == PartKind::Persistent);
                return Err(failure);
            }
            return Ok(parts);
        }
        servers.sort_by_key(|server| self.spaces.keys().filter(|(on, _)| on == server).count());
        let mut refused = FamError::NotCreated.because("no server");
        for server in servers {
            match self.make_part(server, size, kind) {
                Ok(part) => return Ok(vec![(server, part)]),
                Err(failure) => refused = failure,
            }
        }
        Err(refused)
    }

    fn make_part(&mut self, server: u64, size: u64, kind: PartKind) -> Result<u64> {
        let part = self.number();
        let made = self.servers.ask(server, &Ask::MakePart { part, size, kind });
        if let Err(failure) = made {
            // It may have made the part all the same.
            if kind == PartKind::Persistent && [FamError::Rpc, FamError::Timeout].contains(&failure.error) {
                self.remove_parts(&[(server, part)], true);
            }
            return Err(failure);
        }
        Ok(part)
    }

    pub(super) fn destroy(&mut self, who: Who, region: u64) -> Result<Answer> {
        let found = self.region(region)?;
        let facts = &found.facts;
        if facts.user != who.user && self.region_rights(facts, who) & WRITE == 0 {
            return Err(no_perm("the region"));
        }
        let (is_persistent, parts, name) =
            (facts.attributes.memory == PERSISTENT, found.parts.clone(), facts.name.clone());
        let members: Vec<u64> = self.members.get(&region).into_iter().flatten().copied().collect();
        let gone = members.iter().map(|item| Change::NoItem(*item));
        let leaving = parts.iter().map(|(server, part)| Change::Leaving(*server, *part));
        let gone: Vec<Change<'_>> = gone.chain([Change::NoRegion(region)]).chain(leaving).collect();
        self.keep(is_persistent, &gone)?;
        if is_persistent {
            self.leaving.extend(&parts);
        }
        self.remove_parts(&parts, is_persistent);
        members.into_iter().for_each(|item| self.forget_item(item));
        self.members.remove(&region);
        self.used.remove(&region);
        self.region_names.remove(&name);
        self.regions.remove(&region);
        Ok(Answer::Done)
    }

    pub(super) fn resize(&mut self, who: Who, region: u64, size: u64) -> Result<Answer> {
        let found = self.region(region)?;
        if self.region_rights(&found.facts, who) & WRITE == 0 {
            return Err(no_perm("the region"));
        }
        let size = size.clamp(LEAST, MOST + 1).next_multiple_of(LEAST_ITEM);
        let full = || FamError::NoSpace.because(format!("the region cannot have {size} bytes"));
        if size > MOST || self.used.get(&region).is_some_and(|used| *used > size) {
            return Err(full());
        }
        let mut changed = found.clone();
        let mut spaces = Vec::new();
        for key in &changed.parts {
            let mut space = self.spaces.get(key).cloned().unwrap_or_else(|| Space::new(found.facts.size));
            if !space.resize(size) {
                return Err(full());
            }
            spaces.push((*key, space));
        }
        let old = std::mem::replace(&mut changed.facts.size, size);
        let is_persistent = changed.facts.attributes.memory == PERSISTENT;
        if size < old {
            // Nothing lies beyond the new size: a part that stays longer does no harm.
            self.keep(is_persistent, &[Change::Region(&changed)])?;
            if let Err(failure) = resize(&mut self.servers, &changed.parts, size) {
                log::line(&failure.text);
            }
        } else {
            let resized = resize(&mut self.servers, &changed.parts, size)
                .and_then(|()| self.keep(is_persistent, &[Change::Region(&changed)]));
            if let Err(failure) = resized {
                // Some have the new size.
                if let Err(failure) = resize(&mut self.servers, &changed.parts, old) {
                    log::line(&failure.text);
                }
                return Err(failure);
            }
        }
        self.spaces.extend(spaces);
        self.regions.insert(region, changed);
        Ok(Answer::Done)
    }

    /// Makes a part anew that its server has lost, if it is volatile: the server has restarted.
    /// Items with a piece in it end. One that cannot be made is tried again when a server joins.
    pub(super) fn renew(&mut self, server: u64, part: u64) {
        let of_part = |region: &&Region| region.parts.contains(&(server, part));
        let Some(region) = self.regions.values().find(of_part) else { return };
        if region.facts.attributes.memory == PERSISTENT {
            return;
        }
        let (number, size) = (region.facts.region, region.facts.size);
        let members = self.members.get(&number).into_iter().flatten();
        let ended: Vec<u64> = members
            .filter(|item| {
                let pieces = self.items.get(item).into_iter().flat_map(|item| &item.pieces);
                pieces.into_iter().any(|piece| (piece.server, piece.part) == (server, part))
            })
            .copied()
            .collect();
        ended.into_iter().for_each(|item| self.end_item(item));
        self.spaces.insert((server, part), Space::new(size));
        let make = Ask::MakePart { part, size, kind: PartKind::Volatile };
        if let Err(failure) = self.servers.ask(server, &make) {
            log::line(&failure.text);
        }
    }

    pub(super) fn stat_region(&self, who: Who, region: u64) -> Result<Answer> {
        let facts = &self.region(region)?.facts;
        if facts.user != who.user && self.region_rights(facts, who) == 0 {
            return Err(no_perm("the region"));
        }
        Ok(Answer::Region(facts.clone()))
    }

    pub(super) fn set_region_rights(&mut self, who: Who, region: u64, mode: u32) -> Result<Answer> {
        let mut changed = self.region(region)?.clone();
        if changed.facts.user != who.user {
            return Err(no_perm("the region"));
        }
        changed.facts.mode = mode & 0o777;
        self.keep(changed.facts.attributes.memory == PERSISTENT, &[Change::Region(&changed)])?;
        self.regions.insert(region, changed);
        Ok(Answer::Done)
    }
}

fn resize(servers: &mut Servers, parts: &[(u64, u64)], size: u64) -> Result<()> {
    parts.iter().try_for_each(|(server, part)| {
        servers.ask(*server, &Ask::ResizePart { part: *part, size, grows_only: false }).map(drop)
    })
}

/// The attributes with a number for each default.
fn complete(attributes: Attributes) -> Result<Attributes> {
    let Attributes { redundancy, memory, interleave, permission } = attributes;
    if redundancy > REDUNDANCIES || memory > PERSISTENT || interleave > DISABLE || permission > OF_ITEM {
        return Err(FamError::Invalid.because("an attribute of the region has no such value"));
    }
    let or = |value: u32, default: u32| if value == 0 { default } else { value };
    Ok(Attributes {
        redundancy: or(redundancy, 1),
        memory: or(memory, VOLATILE),
        interleave: or(interleave, ENABLE),
        permission: or(permission, OF_REGION),
    })
}
