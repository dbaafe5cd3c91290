//! Vectors as C describes them: reading and checking (the manual's chapter 6; the man pages of
//! LAPI_Amsendv, LAPI_Putv and LAPI_Getv).

use crate::abi::{
    LAPI_ERR_ORG_EXTENT, LAPI_ERR_ORG_STRIDE, LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_ORG_VEC_LEN,
    LAPI_ERR_ORG_VEC_NULL, LAPI_ERR_ORG_VEC_TYPE, LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL,
    LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL, LAPI_ERR_TGT_EXTENT, LAPI_ERR_TGT_STRIDE, LAPI_ERR_TGT_VEC_ADDR,
    LAPI_ERR_TGT_VEC_LEN, LAPI_ERR_TGT_VEC_NULL, LAPI_ERR_TGT_VEC_TYPE, LAPI_ERR_VEC_LEN_DIFF,
    LAPI_ERR_VEC_NUM_DIFF, LAPI_ERR_VEC_TYPE_DIFF, LAPI_GEN_GENERIC, LAPI_GEN_IOVECTOR,
    LAPI_GEN_STRIDED_XFER, LONGEST, lapi_long_t, lapi_lvec_t, lapi_vec_t, lapi_vectype_t,
};
use crate::error::{Error, Result};
use libc::{c_int, c_ulong, c_void};

/// A vector in the program's memory. Its arrays are read when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    kind: lapi_vectype_t,
    count: usize,
    info: Info,
    lengths: *const c_ulong,
}

#[derive(Clone, Copy, Debug)]
enum Info {
    Pointers(*const *mut c_void),
    Longs(*const lapi_long_t),
}

/// The template of a strided vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// The address of the first block.
    pub base: u64,
    /// How long a block is, in bytes.
    pub block: u64,
    /// The distance from one block to the next, in bytes.
    pub stride: u64,
}

impl Template {
    /// Whether this many blocks have an extent of at most [`LONGEST`] bytes, and end where memory
    /// can be.
    fn is_memory(&self, count: u64) -> bool {
        let Some(extent) = self.stride.checked_mul(count).filter(|extent| *extent <= LONGEST) else {
            return false;
        };
        // A stride is not smaller than a block: the last block ends before the extent does.
        let last = extent - self.stride + self.block;
        self.base.checked_add(last).is_some()
    }
}

impl Vector {
    /// Of a lapi_vec_t; none for null.
    ///
    /// # Safety
    /// `vec` must be null or a vector whose arrays, unless null, have the entries that its type and
    /// its num_vecs say; they must stay readable while the result is used.
    pub unsafe fn of(vec: *const lapi_vec_t) -> Option<Self> {
        // SAFETY: the caller vouches for it.
        let vec = unsafe { vec.as_ref() }?;
        let info = Info::Pointers(vec.info);
        Some(Self { kind: vec.vec_type, count: vec.num_vecs as usize, info, lengths: vec.len })
    }

    /// Of a lapi_lvec_t; none for null.
    ///
    /// # Safety
    /// The conditions of [`Vector::of`] hold.
    pub unsafe fn of_long(vec: *const lapi_lvec_t) -> Option<Self> {
        // SAFETY: the caller vouches for it.
        let vec = unsafe { vec.as_ref() }?;
        let info = Info::Longs(vec.info);
        Some(Self { kind: vec.vec_type, count: vec.num_vecs as usize, info, lengths: vec.len })
    }

    /// LAPI_GEN_IOVECTOR, LAPI_GEN_STRIDED_XFER, LAPI_GEN_GENERIC, or nonsense that
    /// was not checked.
    pub fn kind(&self) -> lapi_vectype_t {
        self.kind
    }

    /// num_vecs: how many pieces, or blocks of a strided vector.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The template of a strided vector; none for others, and for one without blocks.
    pub fn template(&self) -> Option<Template> {
        (self.kind == LAPI_GEN_STRIDED_XFER && self.count != 0).then(|| Template {
            base: self.address(0),
            block: self.address(1),
            stride: self.address(2),
        })
    }

    /// The pieces of a vector that is not strided: address and length in bytes. Those of a target
    /// of 64 bits have addresses that a task of 32 bits has no pointers for.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        let count = if self.kind == LAPI_GEN_STRIDED_XFER { 0 } else { self.count };
        (0..count).map(|i| (self.address(i), self.length(i)))
    }

    fn has_arrays(&self) -> (bool, bool) {
        let info = match self.info {
            Info::Pointers(info) => !info.is_null(),
            Info::Longs(info) => !info.is_null(),
        };
        (info, !self.lengths.is_null())
    }

    fn address(&self, i: usize) -> u64 {
        // SAFETY: the maker of the vector vouches for its arrays.
        unsafe {
            match self.info {
                Info::Pointers(info) => info.add(i).read_unaligned().expose_provenance() as u64,
                Info::Longs(info) => info.add(i).read_unaligned(),
            }
        }
    }

    fn length(&self, i: usize) -> u64 {
        // SAFETY: the maker of the vector vouches for its arrays.
        unsafe { self.lengths.add(i).read_unaligned() as u64 }
    }
}

/// Checks the vector of an active message.
///
/// # Errors
/// LAPI_ERR_ORG_VEC_NULL, LAPI_ERR_ORG_VEC_TYPE, LAPI_ERR_ORG_VEC_ADDR,
/// LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL, LAPI_ERR_ORG_STRIDE, LAPI_ERR_ORG_EXTENT,
/// LAPI_ERR_ORG_VEC_LEN; the first in this order.
pub fn check_origin(org: Option<&Vector>) -> Result<()> {
    let org = ORIGIN.present(org)?;
    ORIGIN.kind(org, LAPI_GEN_GENERIC)?;
    ORIGIN.content(org)
}

/// Checks the vector that a vector header handler has returned for a message of a vector of the
/// type `kind` with `count` pieces. Whether each piece is as long as the origin's is not checked:
/// what has no place is dropped.
///
/// # Errors
/// LAPI_ERR_TGT_VEC_NULL, LAPI_ERR_TGT_VEC_TYPE, LAPI_ERR_VEC_TYPE_DIFF, LAPI_ERR_VEC_NUM_DIFF (not
/// for LAPI_GEN_GENERIC), LAPI_ERR_TGT_VEC_ADDR, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL,
/// LAPI_ERR_TGT_STRIDE, LAPI_ERR_TGT_EXTENT, LAPI_ERR_TGT_VEC_LEN; the first in this order.
pub fn check_target(tgt: Option<&Vector>, kind: lapi_vectype_t, count: usize) -> Result<()> {
    let tgt = TARGET.present(tgt)?;
    TARGET.kind(tgt, LAPI_GEN_GENERIC)?;
    same_kind(kind, tgt.kind)?;
    if kind != LAPI_GEN_GENERIC {
        same_count(count, tgt.count)?;
    }
    TARGET.content(tgt)
}

/// Checks the two vectors of LAPI_Putv or LAPI_Getv.
///
/// # Errors
/// In this order, of the origin before the target: null (LAPI_ERR_ORG_VEC_NULL,
/// LAPI_ERR_TGT_VEC_NULL), types that are not allowed (…_VEC_TYPE), that differ
/// (LAPI_ERR_VEC_TYPE_DIFF), counts that differ (LAPI_ERR_VEC_NUM_DIFF), null addresses
/// (…_VEC_ADDR, LAPI_ERR_STRIDE_…_VEC_ADDR_NULL), strides smaller than blocks (…_STRIDE), extents
/// (…_EXTENT) and sums of lengths (…_VEC_LEN) beyond [`LONGEST`], extents (…_EXTENT) and pieces
/// (…_VEC_ADDR) that end beyond all memory, lengths or block sizes that differ
/// (LAPI_ERR_VEC_LEN_DIFF).
pub fn check_pair(org: Option<&Vector>, tgt: Option<&Vector>) -> Result<()> {
    let (org, tgt) = (ORIGIN.present(org)?, TARGET.present(tgt)?);
    ORIGIN.kind(org, LAPI_GEN_STRIDED_XFER)?;
    TARGET.kind(tgt, LAPI_GEN_STRIDED_XFER)?;
    same_kind(org.kind, tgt.kind)?;
    same_count(org.count, tgt.count)?;
    for check in [Side::addresses, Side::strides, Side::extents, Side::lengths] {
        check(&ORIGIN, org)?;
        check(&TARGET, tgt)?;
    }
    let differ = |a: u64, b: u64, what: &str| {
        Err(Error::new(LAPI_ERR_VEC_LEN_DIFF, format!("{what}: {a} at the origin, {b} at the target")))
    };
    if let (Some(from), Some(to)) = (org.template(), tgt.template())
        && from.block != to.block
    {
        return differ(from.block, to.block, "block size");
    }
    for (i, (from, to)) in org.pieces().zip(tgt.pieces()).enumerate() {
        if from.1 != to.1 {
            return differ(from.1, to.1, &format!("len[{i}]"));
        }
    }
    Ok(())
}

fn same_kind(org: lapi_vectype_t, tgt: lapi_vectype_t) -> Result<()> {
    if org != tgt {
        return Err(Error::new(LAPI_ERR_VEC_TYPE_DIFF, format!("{org} at the origin, {tgt} at the target")));
    }
    Ok(())
}

fn same_count(org: usize, tgt: usize) -> Result<()> {
    if org != tgt {
        return Err(Error::new(LAPI_ERR_VEC_NUM_DIFF, format!("{org} at the origin, {tgt} at the target")));
    }
    Ok(())
}

/// The codes of one side.
struct Side {
    null: c_int,
    kind: c_int,
    address: c_int,
    base: c_int,
    stride: c_int,
    extent: c_int,
    length: c_int,
}

const ORIGIN: Side = Side {
    null: LAPI_ERR_ORG_VEC_NULL,
    kind: LAPI_ERR_ORG_VEC_TYPE,
    address: LAPI_ERR_ORG_VEC_ADDR,
    base: LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL,
    stride: LAPI_ERR_ORG_STRIDE,
    extent: LAPI_ERR_ORG_EXTENT,
    length: LAPI_ERR_ORG_VEC_LEN,
};

const TARGET: Side = Side {
    null: LAPI_ERR_TGT_VEC_NULL,
    kind: LAPI_ERR_TGT_VEC_TYPE,
    address: LAPI_ERR_TGT_VEC_ADDR,
    base: LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL,
    stride: LAPI_ERR_TGT_STRIDE,
    extent: LAPI_ERR_TGT_EXTENT,
    length: LAPI_ERR_TGT_VEC_LEN,
};

impl Side {
    fn present<'a>(&self, vector: Option<&'a Vector>) -> Result<&'a Vector> {
        vector.ok_or_else(|| self.null.into())
    }

    /// Types are numbered so that LAPI_GEN_GENERIC, which is not always allowed, comes last.
    fn kind(&self, vector: &Vector, last: lapi_vectype_t) -> Result<()> {
        const { assert!(LAPI_GEN_IOVECTOR < LAPI_GEN_STRIDED_XFER && LAPI_GEN_STRIDED_XFER < LAPI_GEN_GENERIC) };
        if vector.kind > last {
            return Err(Error::new(self.kind, format!("type {}", vector.kind)));
        }
        Ok(())
    }

    fn content(&self, vector: &Vector) -> Result<()> {
        self.addresses(vector)?;
        self.strides(vector)?;
        self.extents(vector)?;
        self.lengths(vector)
    }

    /// Without pieces there is nothing to look at, and the arrays may be missing.
    fn addresses(&self, vector: &Vector) -> Result<()> {
        if vector.count == 0 {
            return Ok(());
        }
        let strided = vector.kind == LAPI_GEN_STRIDED_XFER;
        let (info, lengths) = vector.has_arrays();
        if !info {
            return Err(Error::new(if strided { self.base } else { self.address }, "info is null"));
        }
        if !strided && !lengths {
            return Err(Error::new(self.length, "len is null"));
        }
        if vector.template().is_some_and(|template| template.base == 0) {
            return Err(self.base.into());
        }
        match vector.pieces().position(|(address, len)| address == 0 && len != 0) {
            Some(i) => Err(Error::new(self.address, format!("info[{i}]"))),
            None => Ok(()),
        }
    }

    fn strides(&self, vector: &Vector) -> Result<()> {
        match vector.template() {
            Some(Template { block, stride, .. }) if stride < block => {
                Err(Error::new(self.stride, format!("stride {stride}, block {block}")))
            }
            _ => Ok(()),
        }
    }

    fn extents(&self, vector: &Vector) -> Result<()> {
        match vector.template() {
            Some(template) if !template.is_memory(vector.count as u64) => {
                let Template { base, stride, .. } = template;
                let detail = format!("{} blocks from {base:#x} on, {stride} bytes apart", vector.count);
                Err(Error::new(self.extent, detail))
            }
            _ => Ok(()),
        }
    }

    fn lengths(&self, vector: &Vector) -> Result<()> {
        // Of a strided vector the extent, which has been checked, is at least the sum.
        let sum = vector.pieces().try_fold(0u64, |sum, (_, len)| sum.checked_add(len));
        if too_long(sum) {
            let detail =
                format!("at most {LONGEST} bytes in all; was an array of 4-byte INTEGERs passed for len?");
            return Err(Error::new(self.length, detail));
        }
        match vector.pieces().position(|(address, len)| address.checked_add(len).is_none()) {
            Some(i) => Err(Error::new(self.address, format!("info[{i}] with len[{i}] is beyond all memory"))),
            None => Ok(()),
        }
    }
}

fn too_long(bytes: Option<u64>) -> bool {
    bytes.is_none_or(|bytes| bytes > LONGEST)
}
