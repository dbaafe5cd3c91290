//! Memory of the program, contiguous or in many places, and the bytes that belong there.

use crate::abi::{LAPI_GEN_IOVECTOR, LAPI_GEN_STRIDED_XFER, lapi_vec_t};
use crate::base::rng::Rng;
use crate::dgsp::vector::Vector;
use libc::{c_uint, c_ulong, c_void};
use std::cell::UnsafeCell;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

/// Memory of the program: with a margin around each place that must stay unwritten,
/// aligned by chance.
pub struct Memory {
    words: Box<[UnsafeCell<u64>]>,
    /// Where its bytes are, one after the other.
    places: Vec<Range<usize>>,
    /// The memory's length in bytes.
    pub len: usize,
    vector: Option<Arrays>,
}

/// What a lapi_vec_t of the memory points to.
struct Arrays {
    vec: lapi_vec_t,
    _addresses: Box<[*mut c_void]>,
    _lengths: Box<[c_ulong]>,
}

/// How memory is divided.
#[derive(Clone, Debug)]
pub enum Division {
    /// Not at all.
    Row(usize),
    /// Into pieces of these lengths.
    Pieces(Vec<usize>),
    /// Into `count` blocks of one length.
    Blocks { block: usize, count: usize },
}

impl Division {
    /// A division of about `len` bytes.
    pub fn draw(rng: &mut Rng, len: usize) -> Self {
        let count = 1 + rng.below(12);
        if rng.chance(0.5) {
            return Self::Blocks { block: 1 + len / count as usize, count: count as usize };
        }
        Self::Pieces((0..count).map(|_| rng.below(2 * len as u64 / count + 2) as usize).collect())
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Row(len) => *len,
            Self::Pieces(lens) => lens.iter().sum(),
            Self::Blocks { block, count } => block * count,
        }
    }
}

// SAFETY: it is the program's memory, written by the library when the program's operations demand
// it; a test reads it when they are over. The arrays of a vector are written once.
unsafe impl Sync for Memory {}
// SAFETY: any thread may read or free what the library writes to no more.
unsafe impl Send for Memory {}

const MARGIN: usize = 8;
const BLANK: u8 = 0x5a;

impl Memory {
    /// `len` contiguous bytes, blank.
    pub fn new(len: usize, rng: &mut Rng) -> Self {
        Self::divided(&Division::Row(len), rng)
    }

    /// Memory so divided, blank.
    pub fn divided(division: &Division, rng: &mut Rng) -> Self {
        let from = MARGIN + if rng.chance(0.5) { 0 } else { rng.below(8) as usize };
        let mut end = from;
        let mut place = |len, gap| {
            let start = end;
            end += len + gap;
            start..start + len
        };
        let places: Vec<_> = match division {
            Division::Row(len) => vec![place(*len, 0)],
            Division::Pieces(lens) => lens.iter().map(|&len| place(len, rng.below(20) as usize)).collect(),
            Division::Blocks { block, count } => {
                let gap = rng.below(20) as usize;
                (0..*count).map(|_| place(*block, gap)).collect()
            }
        };
        let blank = u64::from_ne_bytes([BLANK; 8]);
        let words = (end + MARGIN).div_ceil(8);
        let words = std::iter::repeat_with(|| UnsafeCell::new(blank)).take(words).collect();
        let mut memory = Self { words, places, len: division.len(), vector: None };
        memory.vector = match *division {
            Division::Row(_) => None,
            Division::Pieces(_) => Some(memory.pieces()),
            Division::Blocks { block, count } => Some(memory.blocks(block, count)),
        };
        memory
    }

    fn pieces(&self) -> Arrays {
        let addresses = self.places.iter().map(|place| self.at(place.start).cast()).collect();
        Arrays::new(
            LAPI_GEN_IOVECTOR,
            self.places.len(),
            addresses,
            self.places.iter().map(|place| place.len() as c_ulong).collect(),
        )
    }

    fn blocks(&self, block: usize, count: usize) -> Arrays {
        let stride = self.places.get(1).map_or(block, |second| second.start - self.places[0].start);
        let numbers = [block, stride].map(ptr::without_provenance_mut);
        let template = [self.ptr().cast(), numbers[0], numbers[1]];
        Arrays::new(LAPI_GEN_STRIDED_XFER, count, template.into(), Box::default())
    }

    /// The memory as a vector, if it is divided.
    pub fn vector(&self) -> Option<Vector> {
        // SAFETY: the arrays live as long as the memory, and the user of the vector keeps that.
        self.vector.as_ref().and_then(|arrays| unsafe { Vector::of(&arrays.vec) })
    }

    /// What a vector header handler returns.
    pub fn vector_ptr(&self) -> Option<*mut c_void> {
        self.vector.as_ref().map(|arrays| ptr::from_ref(&arrays.vec).cast_mut().cast())
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.words.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset)
    }

    /// The first byte.
    pub fn ptr(&self) -> *mut u8 {
        self.at(self.places[0].start)
    }

    fn all(&self) -> &[u8] {
        // SAFETY: the words belong to this value, and nothing writes to them while a
        // test reads them.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8) }
    }

    /// The places, and what belongs there.
    fn wanted(&self, number: usize) -> impl Iterator<Item = (&Range<usize>, &'static [u8])> {
        let mut rest = bytes_of(number, self.len);
        self.places.iter().map(move |place| {
            let (here, after) = rest.split_at(place.len());
            rest = after;
            (place, here)
        })
    }

    /// Writes the bytes that belong to a number.
    pub fn fill(&self, number: usize) {
        for (place, bytes) in self.wanted(number) {
            // SAFETY: the place has `bytes.len()` bytes; the program does not fill what an
            // operation is using.
            unsafe { self.at(place.start).copy_from(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Fills the memory after a first word that holds the number.
    pub fn fill_header(&self, number: usize) {
        self.fill(number);
        // SAFETY: a header has at least 8 contiguous bytes.
        unsafe { self.ptr().copy_from(number.to_ne_bytes().as_ptr(), 8) };
    }

    /// Whether these bytes are here.
    pub fn holds(&self, number: usize) -> bool {
        self.wanted(number).all(|(place, bytes)| &self.all()[place.clone()] == bytes)
    }

    /// Whether nothing was written.
    pub fn untouched(&self) -> bool {
        is_blank(self.all())
    }

    /// Whether nothing was written beside its places.
    pub fn whole(&self) -> bool {
        let starts = self.places.iter().map(|place| place.start).chain([self.words.len() * 8]);
        let ends = std::iter::once(0).chain(self.places.iter().map(|place| place.end));
        let mut gaps = ends.zip(starts);
        gaps.all(|(from, to)| is_blank(&self.all()[from..to]))
    }

    /// The number at its beginning.
    pub fn number(&self, wide: bool) -> u64 {
        let mut bytes = [0; 8];
        let len = if wide { 8 } else { 4 };
        let from = self.places[0].start;
        bytes[..len].copy_from_slice(&self.all()[from..from + len]);
        u64::from_ne_bytes(bytes)
    }
}

impl Arrays {
    fn new(
        kind: c_uint,
        count: usize,
        mut addresses: Box<[*mut c_void]>,
        mut lengths: Box<[c_ulong]>,
    ) -> Self {
        let vec = lapi_vec_t {
            vec_type: kind,
            num_vecs: count as c_uint,
            info: addresses.as_mut_ptr(),
            len: if lengths.is_empty() { ptr::null_mut() } else { lengths.as_mut_ptr() },
        };
        Self { vec, _addresses: addresses, _lengths: lengths }
    }
}

/// Whether all of these bytes are blank. Simulations look after each step: pieces are
/// compared, not bytes.
fn is_blank(bytes: &[u8]) -> bool {
    static PIECE: [u8; 4096] = [BLANK; 4096];
    bytes.chunks(PIECE.len()).all(|piece| *piece == PIECE[..piece.len()])
}

/// The bytes that belong to a number: a piece of a long row without a pattern.
pub fn bytes_of(number: usize, len: usize) -> &'static [u8] {
    const LONGEST: usize = 5 << 20;
    static ROW: OnceLock<Vec<u8>> = OnceLock::new();
    let row = ROW.get_or_init(|| {
        let mut rng = Rng::new(0x0072_6f77);
        (0..LONGEST / 8 + 4096).flat_map(|_| rng.next_u64().to_ne_bytes()).collect()
    });
    let from = number * 89 % (4096 * 8);
    &row[from..from + len]
}
