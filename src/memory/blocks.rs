//! Moves one block of bytes between memory and a packed buffer, by loads and stores whose width is
//! known to the type.

/// Copies blocks of one length. The length is known to the type or kept in it.
pub(crate) trait Mover: Copy {
    /// The length, if the type knows it; usize::MAX if there is no limit to it.
    const LEN: usize = 0;
    /// Whether several blocks that are two lengths apart can be moved at once.
    const PAIRED: bool = Self::LEN == 4 || Self::LEN == 8;

    /// # Safety
    /// `from` must be readable and `to` writable for the length.
    unsafe fn copy(self, from: *const u8, to: *mut u8);

    /// From memory to the packed buffer if `GATHER`, else back.
    ///
    /// # Safety
    /// Both must be accessible for the length.
    #[inline(always)]
    unsafe fn between<const GATHER: bool>(self, memory: *mut u8, packed: *mut u8) {
        // SAFETY: the caller vouches for both sides.
        unsafe { if GATHER { self.copy(memory, packed) } else { self.copy(packed, memory) } }
    }
}

/// Exactly `N` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<const N: usize>;

/// From `N` to 2 `N` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Two<const N: usize>(pub(crate) usize);

/// Any number of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Any(pub(crate) usize);

impl<const N: usize> Mover for Fixed<N> {
    const LEN: usize = N;

    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for N bytes on both sides.
        unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
    }
}

impl<const N: usize> Mover for Two<N> {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        let second = self.0 - N;
        // SAFETY: the caller vouches for N bytes and more on both sides; the second half
        // ends with them.
        unsafe {
            let a = from.cast::<[u8; N]>().read_unaligned();
            let b = from.add(second).cast::<[u8; N]>().read_unaligned();
            to.cast::<[u8; N]>().write_unaligned(a);
            to.add(second).cast::<[u8; N]>().write_unaligned(b);
        }
    }
}

impl Mover for Any {
    const LEN: usize = usize::MAX;

    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for the length on both sides; they may overlap.
        unsafe { std::ptr::copy(from, to, self.0) }
    }
}
