//! What is asked of daemons, and what they answer. Sizes and offsets are bytes, and modes are the
//! nine bits of a file's rights.

use super::ticket::{SECRET, Sealed};
use serde::{Deserialize, Serialize};

/// What the sender of a [`Ask::Hello`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A program.
    Program,
    /// The keeper of the pool. Believed of the daemon's own user alone.
    Keeper,
}

/// How a region is kept: the numbers of OpenFAM's enums, of which 0 is a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// `Fam_Redundancy_Level`.
    pub redundancy: u32,
    /// `Fam_Memory_Type`: 1 volatile, 2 persistent.
    pub memory: u32,
    /// `Fam_Interleave_Enable`: 1 on, 2 off.
    pub interleave: u32,
    /// `Fam_Permission_Level`: 1 region, 2 item.
    pub permission: u32,
}

/// What is known of a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionFacts {
    /// The number, which no other region has had.
    pub region: u64,
    /// The name.
    pub name: String,
    /// The size.
    pub size: u64,
    /// The rights.
    pub mode: u32,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// How it is kept; no number is a default.
    pub attributes: Attributes,
    /// The servers of memory that it lies on.
    pub servers: Vec<u64>,
    /// Bytes of a block of its items.
    pub block: u64,
}

/// What is known of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemFacts {
    /// The region that it belongs to.
    pub region: u64,
    /// The number, which no other item has had: `offset` of a global descriptor.
    pub item: u64,
    /// The name; empty where it has none.
    pub name: String,
    /// The size.
    pub size: u64,
    /// The rights, or the region's, if these hold for all of its items.
    pub mode: u32,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// How its region is kept.
    pub attributes: Attributes,
    /// The servers of memory that it lies on.
    pub servers: Vec<u64>,
    /// Bytes of a block. Of an item in one piece, the region's.
    pub block: u64,
}

/// What is known of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFacts {
    /// The name.
    pub name: String,
    /// Bytes of the item.
    pub size: u64,
    /// The rights of the item.
    pub mode: u32,
    /// Who has made it.
    pub user: u32,
    /// The group of that user.
    pub group: u32,
    /// When it was whole, in seconds since 1970.
    pub made: u64,
}

/// A server of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The number in the pool.
    pub server: u64,
    /// Where it listens, host:port; empty: it is the daemon that was asked.
    pub address: String,
}

/// What memory a part of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartKind {
    /// Memory that ends with the daemon.
    Volatile,
    /// A file.
    Persistent,
}

/// What is asked of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// First in each session: who asks. On one host, user and group are the kernel's, and these are
    /// not regarded. Answer: [`Answer::Hello`].
    Hello {
        /// [`super::VERSION`].
        version: u32,
        /// What asks.
        role: Role,
        /// The user's number.
        user: u32,
        /// The group's number.
        group: u32,
    },

    // Of the keeper.
    /// A new region. Answer: [`Answer::Region`].
    CreateRegion {
        /// The name.
        name: String,
        /// The size.
        size: u64,
        /// The rights.
        mode: u32,
        /// How it is kept; 0 is the default.
        attributes: Attributes,
    },
    /// The region ends, and all of its items. Answer: [`Answer::Done`].
    DestroyRegion {
        /// The region.
        region: u64,
    },
    /// The region has another size. Answer: [`Answer::Done`].
    ResizeRegion {
        /// The region.
        region: u64,
        /// The size.
        size: u64,
    },
    /// The region of a name. Answer: [`Answer::Region`].
    LookupRegion {
        /// The name.
        name: String,
    },
    /// The rights of a region change. Answer: [`Answer::Done`].
    RegionRights {
        /// The region.
        region: u64,
        /// The rights.
        mode: u32,
    },
    /// What is known of a region. Answer: [`Answer::Region`].
    StatRegion {
        /// The region.
        region: u64,
    },
    /// A new item, all zeros. Answer: [`Answer::Item`].
    Allocate {
        /// The region.
        region: u64,
        /// The name; empty: it has none.
        name: String,
        /// The size.
        size: u64,
        /// The rights.
        mode: u32,
    },
    /// The item ends. Answer: [`Answer::Done`].
    Deallocate {
        /// The region.
        region: u64,
        /// The item.
        item: u64,
    },
    /// The item of a name. Answer: [`Answer::Item`].
    Lookup {
        /// The name of the region.
        region: String,
        /// The name of the item.
        item: String,
    },
    /// The rights of an item change. Answer: [`Answer::Done`].
    ItemRights {
        /// The region.
        region: u64,
        /// The item.
        item: u64,
        /// The rights.
        mode: u32,
    },
    /// What is known of an item. Answer: [`Answer::Item`].
    StatItem {
        /// The region.
        region: u64,
        /// The item.
        item: u64,
    },
    /// The ticket of an item, with the rights of today. Answer: [`Answer::Ticket`].
    Ticket {
        /// The region.
        region: u64,
        /// The item.
        item: u64,
    },
    /// Bytes of an item are copied into another one, or to another place of it. Answer, at the end:
    /// [`Answer::Done`].
    Copy {
        /// The ticket of the item that is read.
        from: Sealed,
        /// Where in it.
        from_offset: u64,
        /// The ticket of the item that is written.
        to: Sealed,
        /// Where in it.
        to_offset: u64,
        /// How many.
        length: u64,
    },
    /// A backup of an item. Answer, at the end: [`Answer::Done`].
    Backup {
        /// The region.
        region: u64,
        /// The item, which the user may read.
        item: u64,
        /// The name of the backup.
        name: String,
    },
    /// A backup is written into an item, which is at least as large. Answer, at the end:
    /// [`Answer::Done`].
    Restore {
        /// The name of the backup.
        name: String,
        /// The ticket of the item.
        to: Sealed,
    },
    /// What is known of a backup. Answer: [`Answer::Backup`].
    StatBackup {
        /// The name.
        name: String,
    },
    /// A backup is removed. Answer, at the end: [`Answer::Done`].
    DeleteBackup {
        /// The name.
        name: String,
    },
    /// Backups of a name, or all that the user may read if it is empty or `*`. Answer:
    /// [`Answer::Backups`].
    ListBackups {
        /// The name.
        name: String,
    },

    // Of a server of memory.
    /// The piece of a ticket on this server gets a number in this session. Answer:
    /// [`Answer::Opened`]; [`FamError::Metadata`](crate::FamError): a server has joined since the
    /// ticket was sealed, or it is of an earlier keeper.
    Open {
        /// The ticket.
        ticket: Sealed,
    },
    /// The number is used no more. Answer: [`Answer::Done`].
    Close {
        /// The number.
        number: u32,
    },
    /// Where the piece of a number can be mapped by a process of the daemon's user on its host.
    /// Answer: [`Answer::Mapped`].
    Map {
        /// The number.
        number: u32,
    },

    // Of a server of memory, by the keeper.
    /// The keeper begins: tickets have a new secret, and volatile parts that it does not name end.
    /// Answer: [`Answer::Joined`].
    Join {
        /// The pool.
        pool: u128,
        /// The secret of its tickets.
        secret: [u8; SECRET],
        /// The parts that the keeper knows on this server.
        parts: Vec<u64>,
    },
    /// A new part, all zeros. Answer: [`Answer::Done`].
    MakePart {
        /// The number, which no other part has had.
        part: u64,
        /// The size.
        size: u64,
        /// What memory it is.
        kind: PartKind,
    },
    /// The part has another size. Answer: [`Answer::Done`].
    ResizePart {
        /// The part.
        part: u64,
        /// The size.
        size: u64,
        /// A part that is longer stays so.
        grows_only: bool,
    },
    /// The part ends, and all numbers of its items. Answer: [`Answer::Done`]. A persistent one
    /// without a file is [`FamError::NotFound`](crate::FamError).
    RemovePart {
        /// The part.
        part: u64,
    },
    /// A range of a part becomes zeros: a new item lies there. Answer: [`Answer::Done`].
    Clear {
        /// The part.
        part: u64,
        /// Where.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// All numbers of an item end; the answer comes when nothing uses its memory any more. Answer:
    /// [`Answer::Done`].
    Withdraw {
        /// The item.
        item: u64,
    },

    // Of the keeper.
    /// A ticket with the rights that it has gets a seal of today. Answer: [`Answer::Ticket`];
    /// [`FamError::Metadata`](crate::FamError): it is of an earlier keeper.
    Seal {
        /// The ticket.
        ticket: Sealed,
    },
}

/// What a daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Success.
    Done,
    /// The session is the asker's.
    Hello {
        /// The daemon's [`super::VERSION`].
        version: u32,
        /// The user that the daemon takes the asker for.
        user: u32,
        /// The user's group.
        group: u32,
        /// The servers of memory, by a keeper; of another daemon itself alone.
        servers: Vec<Server>,
    },
    /// What is known of a region.
    Region(RegionFacts),
    /// What is known of an item.
    Item(ItemFacts),
    /// A ticket, and what is known of its item.
    Ticket {
        /// The ticket.
        ticket: Sealed,
        /// The item.
        facts: ItemFacts,
    },
    /// The number of a ticket's item in this session.
    Opened {
        /// The number.
        number: u32,
    },
    /// Where a piece can be mapped.
    Mapped {
        /// The daemon's process.
        process: u32,
        /// The descriptor of the part's file there.
        descriptor: i32,
        /// Where the piece begins in the file.
        offset: u64,
        /// The length.
        length: u64,
        /// [`super::READ`] and [`super::WRITE`].
        rights: u8,
    },
    /// What is known of a backup.
    Backup(BackupFacts),
    /// What is known of backups.
    Backups(Vec<BackupFacts>),
    /// The server has joined the pool.
    Joined {
        /// Which of the keeper's parts it has.
        parts: Vec<u64>,
        /// Whether it has volatile memory.
        has_volatile: bool,
        /// Whether it has persistent memory.
        has_persistent: bool,
    },
}
