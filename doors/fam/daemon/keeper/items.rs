//! Items: allocate, deallocate, look up, and rights.

use super::{ENABLE, Keeper, LEAST_ITEM, OF_REGION, PERSISTENT, check_name, no_perm};
use crate::guest::Who;
use crate::log;
use crate::store::{Change, Item, Region};
use fam::wire::{Answer, Ask, ItemFacts, Piece, RegionFacts, Ticket, WRITE};
use fam::{FamError, Result};

impl Keeper {
    pub(super) fn allocate(
        &mut self,
        who: Who,
        region: u64,
        name: String,
        size: u64,
        mode: u32,
    ) -> Result<Answer> {
        check_name("the item", &name)?;
        let found = self.region(region)?.clone();
        if self.region_rights(&found.facts, who) & WRITE == 0 {
            return Err(no_perm("the region"));
        }
        if !name.is_empty() && self.item_names.contains_key(&(region, name.clone())) {
            return Err(FamError::AlreadyExist.because("there is an item of this name"));
        }
        let size = size.max(LEAST_ITEM);
        let used = self.used.get(&region).copied().unwrap_or(0);
        if size > found.facts.size - used.min(found.facts.size) {
            return Err(FamError::NoSpace.because(format!("{size} bytes in a region with {used} in use")));
        }
        let item = self.number();
        let pieces = self.place(&found, item, size)?;
        let RegionFacts { attributes, block, .. } = found.facts;
        let new = Item {
            facts: ItemFacts {
                region,
                item,
                name,
                size,
                mode: mode & 0o777,
                user: who.user,
                group: who.group,
                attributes,
                servers: pieces.iter().map(|piece| piece.server).collect(),
                block,
            },
            pieces,
        };
        let cleared = new.pieces.iter().try_for_each(|piece| {
            let Piece { part, offset, length, .. } = *piece;
            self.servers.ask(piece.server, &Ask::Clear { part, offset, length }).map(drop)
        });
        let kept = cleared.and_then(|()| self.keep(attributes.memory == PERSISTENT, &[Change::Item(&new)]));
        if let Err(failure) = kept {
            self.give_back(&new.pieces);
            return Err(failure);
        }
        let facts = self.facts(&new, who)?.0;
        self.know_item(new);
        Ok(Answer::Item(facts))
    }

    /// Finds room for the pieces of an item.
    fn place(&mut self, region: &Region, item: u64, size: u64) -> Result<Vec<Piece>> {
        let (count, block) = (region.parts.len(), region.facts.block);
        let is_spread = region.facts.attributes.interleave == ENABLE && size > block && count > 1;
        let lengths = match is_spread {
            true => Ticket::lengths(size, block, count.min(size.div_ceil(block) as usize)),
            false => vec![size],
        };
        let first = (item % count as u64) as usize;
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, length) in lengths.into_iter().enumerate() {
            let (server, part) = region.parts[(first + at) % count];
            let space = self.spaces.get_mut(&(server, part));
            let Some(offset) = space.and_then(|space| space.place(length)) else {
                self.give_back(&pieces);
                return Err(FamError::NoSpace.because(format!("no {length} bytes are free at one place")));
            };
            pieces.push(Piece { server, part, offset, length });
        }
        Ok(pieces)
    }

    pub(super) fn deallocate(&mut self, who: Who, region: u64, item: u64) -> Result<Answer> {
        let found = self.item(region, item)?;
        let (facts, rights) = self.facts(found, who)?;
        if facts.user != who.user && rights & WRITE == 0 {
            return Err(no_perm("the item"));
        }
        self.keep(facts.attributes.memory == PERSISTENT, &[Change::NoItem(item)])?;
        self.end_item(item);
        Ok(Answer::Done)
    }

    /// Forgets an item, and gives its memory back.
    pub(super) fn end_item(&mut self, item: u64) {
        let pieces = self.items.get(&item).map(|found| found.pieces.clone()).unwrap_or_default();
        self.forget_item(item);
        // Memory is used again only when nothing reaches it any more.
        for piece in pieces {
            match self.servers.ask(piece.server, &Ask::Withdraw { item }) {
                Ok(_) => self.give_back(&[piece]),
                Err(failure) => log::line(&format!("space of item {item} is lost: {failure}")),
            }
        }
    }

    pub(super) fn lookup(&self, who: Who, region: &str, item: String) -> Result<Answer> {
        let none = || FamError::NotFound.because("there is no such item");
        let region = self.region_names.get(region).copied();
        let region = region.ok_or_else(|| FamError::NotFound.because("there is no such region"))?;
        let number = self.item_names.get(&(region, item)).copied().ok_or_else(none)?;
        self.stat_item(who, region, number)
    }

    pub(super) fn stat_item(&self, who: Who, region: u64, item: u64) -> Result<Answer> {
        self.visible(self.item(region, item)?, who).map(|(facts, _)| Answer::Item(facts))
    }

    pub(super) fn set_item_rights(&mut self, who: Who, region: u64, item: u64, mode: u32) -> Result<Answer> {
        let mut changed = self.item(region, item)?.clone();
        if changed.facts.user != who.user {
            return Err(no_perm("the item"));
        }
        if changed.facts.attributes.permission == OF_REGION {
            return Err(FamError::NoPerm.because("the rights of the region hold for all of its items"));
        }
        changed.facts.mode = mode & 0o777;
        self.keep(changed.facts.attributes.memory == PERSISTENT, &[Change::Item(&changed)])?;
        self.items.insert(item, changed);
        Ok(Answer::Done)
    }
}
