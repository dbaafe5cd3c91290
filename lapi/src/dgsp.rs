//! Data gather/scatter programs: layouts of data that messages are gathered from and scattered to.

use crate::port::Port;
use bytemuck::Pod;
use libc::{c_int, c_long, c_ulong};
use openlapi::abi::*;
use openlapi::api::dgsp;
use openlapi::error::{Error, Result};
use openlapi_runtime::environment::verifies_dgsp;
use std::fmt;
use std::mem::offset_of;
use std::sync::Arc;

/// A data gather/scatter program: which bytes of an item move, and in which order.
///
/// Messages are gathered from one layout ([`Port::send_gathered`]) and scattered to another
/// ([`Arrival::scatter`](crate::Arrival::scatter)); [`Port::pack`] and [`Port::unpack`] do the same
/// within this task. Items follow each other at the distance of the extent. The places of all bytes
/// are known when the program is built, so that each use is checked against the memory it is given.
/// A clone is the same program.
///
/// ```
/// use lapi::{Context, Dgsp};
///
/// // A column of a matrix with 3 columns of f64: its items are the rows.
/// let context = Context::open()?;
/// let column = Dgsp::builder().copy(8, 8).build(24)?;
/// let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let packed = context.pack(&column, 2, &matrix)?;
/// assert_eq!(packed, [2f64.to_ne_bytes(), 5f64.to_ne_bytes()].concat());
/// # lapi::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Dgsp(Arc<Registered>);

struct Registered {
    /// The handle of the core's registry, an address.
    handle: usize,
    size: usize,
    extent: usize,
    end: usize,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // What still uses the program holds it in the core.
        let _ = dgsp::REGISTRY.unreserve(self.handle as lapi_dg_handle_t);
    }
}

impl Dgsp {
    /// An empty program.
    pub fn builder() -> DgspBuilder {
        DgspBuilder::default()
    }

    /// The bytes that one item has in a message.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// The distance in bytes from one item to the next.
    pub fn extent(&self) -> usize {
        self.0.extent
    }

    /// How many bytes of memory `items` items reach over, from the beginning of the first to the
    /// last byte that moves. `None`: more than memory has.
    pub fn span(&self, items: usize) -> Option<usize> {
        match items {
            0 => Some(0),
            _ => (items - 1).checked_mul(self.0.extent)?.checked_add(self.0.end),
        }
    }

    pub(crate) fn handle(&self) -> lapi_dg_handle_t {
        self.0.handle as lapi_dg_handle_t
    }

    /// Whether `bytes` bytes of a message fit into memory of `room` bytes.
    pub(crate) fn check_bytes(&self, bytes: usize, room: usize) -> Result<()> {
        let items = match self.0.size {
            0 if bytes == 0 => 0,
            0 => {
                return Err(Error::new(
                    LAPI_ERR_DGSP_OTHER,
                    format!("{bytes} bytes for a program that moves none"),
                ));
            }
            size => bytes.div_ceil(size),
        };
        self.check_items(items, room)
    }

    /// Whether `items` items fit into memory of `room` bytes.
    pub(crate) fn check_items(&self, items: usize, room: usize) -> Result<()> {
        match self.span(items) {
            Some(span) if span <= room => Ok(()),
            _ => Err(no_room(format!(
                "{items} items of {} bytes, {} bytes apart, in memory of {room} bytes",
                self.0.end, self.0.extent
            ))),
        }
    }

    /// The bytes of a message of `items` items.
    pub(crate) fn message_bytes(&self, items: usize) -> Result<usize> {
        let bytes = items.checked_mul(self.0.size).filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| no_room(format!("{items} items of {} bytes", self.0.size)))
    }
}

impl fmt::Debug for Dgsp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dgsp")
            .field("size", &self.size())
            .field("extent", &self.extent())
            .finish_non_exhaustive()
    }
}

/// Makes a [`Dgsp`]: its instructions move bytes in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub struct DgspBuilder {
    list: Vec<Instruction>,
    /// How deep repeats nest.
    depth: usize,
}

/// The deepest nesting; programs are read by recursion.
const DEEPEST: usize = 100;

#[derive(Clone, Debug)]
enum Instruction {
    Copy { offset: usize, len: usize },
    Blocks(Vec<(usize, usize)>),
    Repeat { times: usize, offset: isize, stride: isize, body: Vec<Instruction> },
}

impl DgspBuilder {
    /// Moves `len` bytes from byte `offset` of the item on (COPY).
    #[must_use]
    pub fn copy(mut self, offset: usize, len: usize) -> Self {
        self.list.push(Instruction::Copy { offset, len });
        self
    }

    /// Moves blocks, each of which is an offset and a length in bytes (MCOPY).
    #[must_use]
    pub fn blocks(mut self, blocks: &[(usize, usize)]) -> Self {
        self.list.push(Instruction::Blocks(blocks.to_vec()));
        self
    }

    /// Runs what `body` adds to an empty program `times` times: first with its offsets counted from
    /// byte `offset` on, then each time from `stride` bytes further on (GOSUB). A negative stride
    /// goes backwards. Repeats nest up to 100 deep.
    #[must_use]
    pub fn repeat(
        mut self,
        times: usize,
        offset: isize,
        stride: isize,
        body: impl FnOnce(DgspBuilder) -> DgspBuilder,
    ) -> Self {
        let body = body(Self::default());
        self.depth = self.depth.max(body.depth + 1);
        // Of a program that is too deep nothing is kept but that.
        if body.depth < DEEPEST {
            self.list.push(Instruction::Repeat { times, offset, stride, body: body.list });
        }
        self
    }

    /// Registers the program (LAPI_REGISTER_DGSP). `extent`: the distance in bytes from one item to
    /// the next, for uses of several items.
    ///
    /// # Errors
    /// `LAPI_ERR_DGSP_OTHER`: an item has bytes before its beginning, or farther from it than
    /// memory has. `LAPI_ERR_DGSP_STACK`, `LAPI_ERR_MEMORY_EXHAUSTED`: the program is too
    /// deep, or too long.
    pub fn build(self, extent: usize) -> Result<Dgsp> {
        if self.depth > DEEPEST {
            let detail = format!("repeats nest {} deep; at most {DEEPEST}", self.depth);
            return Err(Error::new(LAPI_ERR_DGSP_STACK, detail));
        }
        let Measure { size, low, high, depth } = measure(&self.list)?;
        if low < 0 || extent as i128 > FAR {
            let detail =
                format!("an item has the bytes {low} to {high}, and the next one begins at {extent}");
            return Err(Error::new(LAPI_ERR_DGSP_OTHER, detail));
        }
        let mut code = Code(Vec::new());
        code.routine(&self.list)?;
        let descriptor = lapi_dgsp_descr_t {
            code: code.0.as_mut_ptr(),
            code_size: c_int::try_from(code.0.len()).map_err(|_| too_long())?,
            depth,
            density: LAPI_DGSM_SPARSE,
            size: size as c_long,
            extent: extent as c_long,
            lext: low as c_long,
            rext: high as c_long,
            atom_size: 0,
        };
        // SAFETY: the descriptor and its code live during the call, which copies them.
        let handle = unsafe { dgsp::register(None, &raw const descriptor, verifies_dgsp())? };
        Ok(Dgsp(Arc::new(Registered {
            handle: handle as usize,
            size: size as usize,
            extent,
            end: high as usize,
        })))
    }
}

/// What a list of instructions moves.
#[derive(Clone, Copy, Default)]
struct Measure {
    size: i128,
    /// The first byte and the one behind the last; both 0 when nothing moves.
    low: i128,
    high: i128,
    depth: c_int,
}

/// The largest distance and size in memory.
const FAR: i128 = isize::MAX as i128;

fn measure(list: &[Instruction]) -> Result<Measure> {
    let mut sum = Measure { depth: 1, ..Measure::default() };
    let mut add = |size: i128, low: i128, high: i128| {
        if size == 0 {
            return Ok(());
        }
        (sum.low, sum.high) =
            if sum.size == 0 { (low, high) } else { (sum.low.min(low), sum.high.max(high)) };
        sum.size = sum.size.saturating_add(size);
        if sum.size > FAR || sum.low < -FAR || sum.high > FAR {
            return Err(out_of_reach());
        }
        Ok(())
    };
    let mut depth = 1;
    for instruction in list {
        match instruction {
            Instruction::Copy { offset, len } => {
                add(*len as i128, *offset as i128, *offset as i128 + *len as i128)?
            }
            Instruction::Blocks(blocks) => {
                for (offset, len) in blocks {
                    add(*len as i128, *offset as i128, *offset as i128 + *len as i128)?;
                }
            }
            Instruction::Repeat { times, offset, stride, body } => {
                let body = measure(body)?;
                depth = depth.max(body.depth + 1);
                if *times > 0 && body.size > 0 {
                    let times = *times as i128;
                    let first = *offset as i128;
                    let last = first.saturating_add((*stride as i128).saturating_mul(times - 1));
                    let size = body.size.saturating_mul(times);
                    let (low, high) = (first.min(last), first.max(last));
                    // Where a repetition begins must be in reach too, not only what it moves.
                    if low < -FAR || high > FAR {
                        return Err(out_of_reach());
                    }
                    add(size, low + body.low, high + body.high)?;
                }
            }
        }
    }
    sum.depth = depth;
    Ok(sum)
}

fn out_of_reach() -> Error {
    Error::new(LAPI_ERR_DGSP_OTHER, "the program moves bytes farther away than memory has any")
}

/// The code of a program: ints, in which the fields of an instruction have the places
/// that C gives them.
struct Code(Vec<c_int>);

impl Code {
    /// A routine, and behind it those that it calls.
    fn routine(&mut self, list: &[Instruction]) -> Result<()> {
        let start = self.0.len();
        let mut calls = Vec::new();
        for instruction in list {
            match instruction {
                Instruction::Copy { offset, len } => {
                    let at = self.begin(LAPI_DGSM_COPY, LAPI_DGSM_COPY_SIZE as usize);
                    self.long(at, offset_of!(lapi_dgsm_copy_t, bytes), *len as c_long);
                    self.long(at, offset_of!(lapi_dgsm_copy_t, offset), *offset as c_long);
                }
                Instruction::Blocks(blocks) => self.blocks(blocks)?,
                Instruction::Repeat { times, offset, stride, body } => {
                    let at = self.begin(LAPI_DGSM_GOSUB, LAPI_DGSM_GOSUB_SIZE as usize);
                    self.int(at, offset_of!(lapi_dgsm_gosub_t, ret_loc), LAPI_DGSM_GOSUB_SIZE as c_int);
                    let reps = c_long::try_from(*times).map_err(|_| too_long())?;
                    self.long(at, offset_of!(lapi_dgsm_gosub_t, reps), reps);
                    self.long(at, offset_of!(lapi_dgsm_gosub_t, offset), *offset as c_long);
                    self.long(at, offset_of!(lapi_dgsm_gosub_t, stride), *stride as c_long);
                    calls.push((at, body));
                }
            }
        }
        let end = self.begin(LAPI_DGSM_ITERATE, LAPI_DGSM_ITERATE_SIZE as usize);
        self.int(end, offset_of!(lapi_dgsm_iterate_t, iter_loc), distance(end, start)?);
        for (at, body) in calls {
            let to = distance(at, self.0.len())?;
            self.int(at, offset_of!(lapi_dgsm_gosub_t, to_loc), to);
            self.routine(body)?;
        }
        Ok(())
    }

    fn blocks(&mut self, blocks: &[(usize, usize)]) -> Result<()> {
        let one = LAPI_DGSM_BLOCK_SIZE as usize;
        let head = LAPI_DGSM_MCOPY_SIZE as usize - one;
        let at = self.begin(LAPI_DGSM_MCOPY, head + blocks.len() * one);
        let count = c_int::try_from(blocks.len()).map_err(|_| too_long())?;
        self.int(at, offset_of!(lapi_dgsm_mcopy_t, count), count);
        let first = offset_of!(lapi_dgsm_mcopy_t, block);
        for (number, (offset, len)) in blocks.iter().enumerate() {
            let block = first + number * size_of::<lapi_dgsm_block_t>();
            self.long(at, block + offset_of!(lapi_dgsm_block_t, block_disp), *offset as c_long);
            self.long(at, block + offset_of!(lapi_dgsm_block_t, block_len), *len as c_long);
        }
        Ok(())
    }

    /// Appends an instruction of `ints` ints; returns its index.
    fn begin(&mut self, opcode: lapi_dgsm_opcode_t, ints: usize) -> usize {
        let at = self.0.len();
        self.0.resize(at + ints, 0);
        self.0[at] = opcode as c_int;
        at
    }

    /// Sets the int at byte `offset` of the instruction at `at`.
    fn int(&mut self, at: usize, offset: usize, value: c_int) {
        self.0[at + offset / size_of::<c_int>()] = value;
    }

    fn long(&mut self, at: usize, offset: usize, value: c_long) {
        for (number, bytes) in value.to_ne_bytes().chunks_exact(size_of::<c_int>()).enumerate() {
            self.int(
                at,
                offset + number * size_of::<c_int>(),
                c_int::from_ne_bytes(bytes.try_into().expect("an int")),
            );
        }
    }
}

fn distance(from: usize, to: usize) -> Result<c_int> {
    c_int::try_from(to as i64 - from as i64).map_err(|_| too_long())
}

fn too_long() -> Error {
    Error::new(LAPI_ERR_MEMORY_EXHAUSTED, "the program has more instructions than an int counts")
}

fn no_room(detail: String) -> Error {
    Error::new(LAPI_ERR_OFFSET_LEN, detail)
}

impl Port {
    /// The bytes of `items` items in `from`, one after the other (LAPI_DGSP_PACK).
    ///
    /// # Errors
    /// `LAPI_ERR_OFFSET_LEN`: the items are not within `from`. `LAPI_ERR_MEMORY_EXHAUSTED`: there
    /// is no memory for the bytes. `LAPI_ERR_HNDL_INVALID`.
    pub fn pack<T: Pod>(&self, layout: &Dgsp, items: usize, from: &[T]) -> Result<Vec<u8>> {
        drop(self.enter()?);
        layout.check_items(items, size_of_val(from))?;
        let bytes = layout.message_bytes(items)?;
        let mut packed = Vec::new();
        packed.try_reserve_exact(bytes).map_err(|_| {
            Error::new(LAPI_ERR_MEMORY_EXHAUSTED, format!("{bytes} bytes of {items} packed items"))
        })?;
        packed.resize(bytes, 0);
        let mut request = lapi_pack_dgsp_t {
            Util_type: LAPI_DGSP_PACK,
            dgsp: layout.handle(),
            in_buf: from.as_ptr().cast_mut().cast(),
            bytes: packed.len() as c_ulong,
            out_buf: packed.as_mut_ptr().cast(),
            out_size: packed.len() as c_ulong,
            position: 0,
            in_usr_func: LAPI_NORMAL_CALL,
            status: 0,
        };
        // SAFETY: what the program describes is within `from`, and the buffer has room
        // for all of it.
        unsafe { dgsp::pack(&mut request)? };
        Ok(packed)
    }

    /// Puts bytes, as [`Self::pack`] has made them, to the places of the items in `into`
    /// (LAPI_DGSP_UNPACK). The last item may be a part.
    ///
    /// # Errors
    /// `LAPI_ERR_OFFSET_LEN`: the items are not within `into`; nothing is written then.
    /// `LAPI_ERR_HNDL_INVALID`.
    pub fn unpack<T: Pod>(&self, layout: &Dgsp, packed: &[u8], into: &mut [T]) -> Result<()> {
        drop(self.enter()?);
        layout.check_bytes(packed.len(), size_of_val(into))?;
        let mut request = lapi_unpack_dgsp_t {
            Util_type: LAPI_DGSP_UNPACK,
            dgsp: layout.handle(),
            in_buf: packed.as_ptr().cast_mut().cast(),
            in_size: packed.len() as c_ulong,
            out_buf: into.as_mut_ptr().cast(),
            bytes: packed.len() as c_ulong,
            position: 0,
            in_usr_func: LAPI_NORMAL_CALL,
            status: 0,
        };
        // SAFETY: what the program describes is within `into`, where any bytes are a `T`; the
        // program has no CONTROL.
        unsafe { dgsp::unpack(self.context(), &mut request) }
    }
}
