//! What is known of regions and items, as the shim has it.

use crate::wire::{Attributes, ItemFacts, MOST_SERVERS, RegionFacts};

/// Bytes of a name with the 0 at its end: names have at most 40.
const NAME: usize = 48;

/// `struct olfam_facts` of `shim/abi.h`.
#[repr(C)]
pub struct Facts {
    region: u64,
    offset: u64,
    size: u64,
    interleave: u64,
    perm: u32,
    uid: u32,
    gid: u32,
    redundancy: u32,
    memory: u32,
    interleaved: u32,
    level: u32,
    servers: u32,
    ids: [u64; MOST_SERVERS],
    name: [u8; NAME],
}

impl Facts {
    fn new(
        (region, offset, size): (u64, u64, u64),
        (perm, uid, gid): (u32, u32, u32),
        attributes: Attributes,
        (servers, block): (&[u64], u64),
        text: &str,
    ) -> Self {
        let mut ids = [0; MOST_SERVERS];
        let count = servers.len().min(MOST_SERVERS);
        ids[..count].copy_from_slice(&servers[..count]);
        let mut name = [0; NAME];
        let length = text.len().min(NAME - 1);
        name[..length].copy_from_slice(&text.as_bytes()[..length]);
        let Attributes { redundancy, memory, interleave: interleaved, permission: level } = attributes;
        let interleave = if count > 1 { block } else { 0 };
        let servers = count as u32;
        Self {
            region,
            offset,
            size,
            interleave,
            perm,
            uid,
            gid,
            redundancy,
            memory,
            interleaved,
            level,
            servers,
            ids,
            name,
        }
    }
}

impl From<&RegionFacts> for Facts {
    fn from(facts: &RegionFacts) -> Self {
        let RegionFacts { region, name, size, mode, user, group, attributes, servers, block } = facts;
        Self::new((*region, 0, *size), (*mode, *user, *group), *attributes, (servers, *block), name)
    }
}

impl From<&ItemFacts> for Facts {
    fn from(facts: &ItemFacts) -> Self {
        let ItemFacts { region, item, name, size, mode, user, group, attributes, servers, block } = facts;
        Self::new((*region, *item, *size), (*mode, *user, *group), *attributes, (servers, *block), name)
    }
}
