//! Bytes that a program owns, and how they are copied.

use std::alloc::Layout;
use std::sync::atomic::{AtomicU8, Ordering};

/// No memory of this task ends behind this address. Tests have less memory than 64-bit addresses
/// can name, as tasks of 32 bits have.
pub const MEMORY_END: u64 = if cfg!(test) && usize::BITS == 64 { 1 << 56 } else { usize::MAX as u64 };

/// Whether this task can have `len` bytes from an address on; no bytes can be anywhere.
#[inline]
pub fn is_memory(at: u64, len: u64) -> bool {
    len == 0 || at.checked_add(len).and_then(|end| MEMORY_END.checked_sub(end)).is_some()
}

/// Whether a pointer of this task can hold an address. One of 64 bits always can: then nothing is
/// compared.
#[inline(always)]
pub const fn fits_pointer(at: u64) -> bool {
    MEMORY_END.checked_sub(at).is_some()
}

/// Some bytes of memory that the program owns and may be writing to while we read:
/// never a Rust slice.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The first byte. May be null when `len` is 0.
    pub ptr: *const u8,
    /// How many bytes.
    pub len: usize,
}

impl Piece {
    /// No bytes at all.
    pub const EMPTY: Self = Self { ptr: std::ptr::null(), len: 0 };

    /// The bytes of a slice. The slice must outlive the use of the piece.
    pub fn of(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes from `from` on, at most `len` of them.
    pub fn part(self, from: usize, len: usize) -> Self {
        debug_assert!(from + len <= self.len);
        Self { ptr: self.ptr.wrapping_add(from), len }
    }

    /// Reads a byte of each page. A system call that gets an address without memory, or a page that
    /// is closed, fails in the middle of what it does; an access by the processor is a fault, which
    /// names the address, and which the program may repair in its handler.
    ///
    /// # Safety
    /// The bytes must be readable, unless the program is to get the fault.
    pub unsafe fn touch(self) {
        let end = self.ptr.wrapping_add(self.len);
        let mut at = self.ptr;
        while at < end {
            // SAFETY: the caller's promise.
            unsafe { at.read_volatile() };
            at = at.wrapping_add(PAGE - at.addr() % PAGE);
        }
    }

    /// Touches bytes that are to be written ([`Self::touch`]): each byte keeps its value.
    ///
    /// # Safety
    /// The bytes must be writable, unless the program is to get the fault.
    pub unsafe fn touch_to_write(self) {
        let end = self.ptr.wrapping_add(self.len);
        let mut at = self.ptr;
        while at < end {
            // SAFETY: the caller's promise. The processor writes the byte whether it
            // is equal or not.
            let byte = unsafe { AtomicU8::from_ptr(at.cast_mut()) };
            let value = byte.load(Ordering::Relaxed);
            let _ = byte.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
            at = at.wrapping_add(PAGE - at.addr() % PAGE);
        }
    }
}

/// The smallest page of the processor.
const PAGE: usize = 4096;

/// Something whose bytes are not contiguous, and that can copy any range of them into
/// contiguous memory.
pub trait Gather {
    /// Packs the bytes `from..from + len` into `out`.
    ///
    /// # Safety
    /// The bytes must be readable, and `out` writable for `len` bytes.
    unsafe fn gather(&self, from: u64, len: usize, out: *mut u8);
}

/// Bytes of the program, contiguous or not.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Contiguous.
    Piece(Piece),
    /// Not contiguous.
    Gathered {
        /// What locates them.
        by: &'a dyn Gather,
        /// The first one.
        from: u64,
        /// How many.
        len: usize,
    },
}

impl Source<'_> {
    /// No bytes at all.
    pub const EMPTY: Self = Self::Piece(Piece::EMPTY);

    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Piece(piece) => piece.len,
            Self::Gathered { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes to `to`.
    ///
    /// # Safety
    /// The bytes must be readable, and `to` writable for as many.
    #[inline]
    pub unsafe fn copy_to(&self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Piece(piece) => copy(*piece, to),
                Self::Gathered { by, from, len } => by.gather(*from, *len, to),
            }
        }
    }
}

impl From<Piece> for Source<'_> {
    fn from(piece: Piece) -> Self {
        Self::Piece(piece)
    }
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// `len` rounded up to a multiple of 8.
pub const fn pad8(len: usize) -> usize {
    (len + 7) & !7
}

/// Copies a piece to `to`.
///
/// # Safety
/// The piece must be readable and `to` writable for its length. They may overlap: a program that
/// puts a region onto itself gets an undefined content by the manual, but nothing else may happen.
#[inline]
pub unsafe fn copy(piece: Piece, to: *mut u8) {
    match piece.len {
        0 => {}
        // The most frequent length, without the call of a function.
        // SAFETY: the caller vouches for both regions.
        8 => unsafe { to.cast::<u64>().write_unaligned(piece.ptr.cast::<u64>().read_unaligned()) },
        // SAFETY: as above; `copy` allows overlap.
        len => unsafe { std::ptr::copy(piece.ptr, to, len) },
    }
}

/// Copies few bytes to `to`, a multiple of 8: whole words are copied here, which takes fewer
/// instructions than a call does.
///
/// # Safety
/// The piece must be readable and `to` writable for its length.
#[inline]
pub unsafe fn copy_few(piece: Piece, to: *mut u8) {
    const WORD: usize = size_of::<u64>();
    debug_assert!(to.addr().is_multiple_of(WORD));
    if piece.len == WORD {
        // The most frequent length, without a loop.
        // SAFETY: the caller vouches for both regions.
        return unsafe { to.cast::<u64>().write(piece.ptr.cast::<u64>().read_unaligned()) };
    }
    if !piece.len.is_multiple_of(WORD) {
        // SAFETY: the caller's promise.
        return unsafe { copy(piece, to) };
    }
    let mut at = 0;
    while at < piece.len {
        // SAFETY: the word is inside of both regions. Volatile, or the compiler makes a
        // call of the loop.
        unsafe {
            to.add(at).cast::<u64>().write_volatile(piece.ptr.add(at).cast::<u64>().read_unaligned());
        }
        at += WORD;
    }
}

/// `words` words of zero; the system allocates their memory as they are written. `None` when
/// memory is exhausted.
pub fn zeroed(words: usize) -> Option<Box<[u64]>> {
    let layout = Layout::array::<u64>(words).ok()?;
    if words == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout is not empty.
    let first = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<u64>();
    if first.is_null() {
        return None;
    }
    // SAFETY: the global allocator has given this memory, with the layout of `words` words, and
    // zeros are valid words.
    Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, words)) })
}

/// A contiguous copy of bytes that starts at a multiple of 8.
///
/// # Safety
/// The bytes must be readable.
pub unsafe fn aligned<'a>(bytes: impl Into<Source<'a>>) -> Box<[u64]> {
    let bytes = bytes.into();
    let mut words = vec![0u64; bytes.len().div_ceil(8)].into_boxed_slice();
    // SAFETY: the words have room for the bytes, for which the caller vouches.
    unsafe { bytes.copy_to(words.as_mut_ptr().cast()) };
    words
}
