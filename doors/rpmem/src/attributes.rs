//! The attributes of a pool: what its headers have of it.

use crate::bytes::{Bytes, Fields};

/// `struct rpmem_pool_attr` of librpmem.h, 104 bytes. Numbers are those of the machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Which library's pool it is.
    pub signature: [u8; 8],
    /// The version of that library's format.
    pub major: u32,
    /// Features that may be ignored.
    pub compat: u32,
    /// Features that must be known.
    pub incompat: u32,
    /// Features that must be known to write.
    pub ro_compat: u32,
    /// The pool set's identifier.
    pub poolset: [u8; 16],
    /// The identifier of this replica's first part.
    pub uuid: [u8; 16],
    /// The next replica's.
    pub next: [u8; 16],
    /// The previous replica's.
    pub prev: [u8; 16],
    /// In the place of the machine's kind.
    pub user_flags: [u8; 16],
}

const _: () = assert!(size_of::<Attributes>() == 104 && align_of::<Attributes>() == 4);

impl Attributes {
    /// Whether there are none: all bytes are zero.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Appends them, numbers as little endian.
    pub fn encode(&self, to: &mut Bytes) {
        to.raw(&self.signature);
        for number in [self.major, self.compat, self.incompat, self.ro_compat] {
            to.u32(number);
        }
        for identifier in [&self.poolset, &self.uuid, &self.next, &self.prev, &self.user_flags] {
            to.raw(identifier);
        }
    }

    /// The attributes that [`Self::encode`] has appended; `None`: too few bytes.
    pub fn decode(from: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            signature: from.array()?,
            major: from.u32()?,
            compat: from.u32()?,
            incompat: from.u32()?,
            ro_compat: from.u32()?,
            poolset: from.array()?,
            uuid: from.array()?,
            next: from.array()?,
            prev: from.array()?,
            user_flags: from.array()?,
        })
    }
}
