//! The kinds of arguments. Each is the address that Fortran passes; `c` makes of it what C gets.
//!
//! What lives at the origin is the variable itself, what lives at the target is an integer
//! that holds an address. LAPI_ADDR_NULL and an address of 0 (`%VAL(0)`) both mean that
//! there is nothing.

use crate::{common, handler};
use libc::{c_int, c_uint, c_void};
use openlapi::abi::{LAPI_GEN_GENERIC, lapi_long_t, lapi_vec_t};
use std::marker::PhantomData;
use std::ptr;

/// What C gets for an argument.
pub trait Argument {
    /// The type of C's parameter.
    type C;

    /// C's argument.
    ///
    /// # Safety
    /// The address is 0, or that of a variable of the right type.
    unsafe fn c(self) -> Self::C;
}

/// A number.
#[repr(transparent)]
pub struct Value<T>(*const T);

impl<T: Copy + Default> Argument for Value<T> {
    type C = T;

    unsafe fn c(self) -> T {
        // SAFETY: not null, so the program's variable.
        if self.0.is_null() { T::default() } else { unsafe { self.0.read_unaligned() } }
    }
}

/// Something of this task: the variable itself. C gets its address, a `T`.
#[repr(transparent)]
pub struct Here<T>(T);

impl<T> Argument for Here<*mut T> {
    type C = *mut T;

    unsafe fn c(self) -> *mut T {
        common::or_null(self.0)
    }
}

/// Something of the target: a variable that holds its address there, a `T`.
#[repr(transparent)]
pub struct There<T>(*const T);

impl<T> Argument for There<*mut T> {
    type C = *mut T;

    unsafe fn c(self) -> *mut T {
        // SAFETY: not null, so the program's variable.
        if self.0.is_null() { ptr::null_mut() } else { unsafe { self.0.read_unaligned() } }
    }
}

/// A procedure, or a variable that holds an address or an index of LAPI_ADDR_SET. C gets an
/// address, or a number that is as wide as the addresses of any task.
#[repr(transparent)]
pub struct Handler<T>(*mut c_void, PhantomData<T>);

impl<T> Handler<T> {
    /// # Safety
    /// The conditions of [`Argument::c`] hold.
    unsafe fn address(self) -> *mut c_void {
        // SAFETY: what the caller of this owes is what each of the two owes.
        unsafe { if handler::is_procedure(self.0) { self.0 } else { There(self.0.cast()).c() } }
    }
}

impl Argument for Handler<*mut c_void> {
    type C = *mut c_void;

    unsafe fn c(self) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { self.address() }
    }
}

impl Argument for Handler<lapi_long_t> {
    type C = lapi_long_t;

    unsafe fn c(self) -> lapi_long_t {
        // SAFETY: the caller's promise.
        unsafe { self.address() as usize as lapi_long_t }
    }
}

/// The target's vector in LAPI_PUTV and LAPI_GETV: TYPE(LAPI_VEC_T), or, as the man pages have it,
/// an integer that holds the address of one. Either way it lies in this task.
#[repr(transparent)]
pub struct Vector<T>(T);

/// The first page is never mapped: no address of 32 bits is as small as this.
const LEAST_ADDRESS: c_uint = 4096;

/// Whether four bytes are the type of a vector, and not the first half of a vector's address. What
/// is no type, so that the call is to refuse it, may be either: an address is a multiple of 4.
fn is_type(first: c_uint) -> bool {
    let whole = cfg!(target_pointer_width = "32");
    first <= LAPI_GEN_GENERIC || first < LEAST_ADDRESS && (whole || !first.is_multiple_of(4))
}

impl Argument for Vector<*mut lapi_vec_t> {
    type C = *mut lapi_vec_t;

    unsafe fn c(self) -> *mut lapi_vec_t {
        let given = common::or_null(self.0);
        if given.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: both begin with four bytes, the type of the vector or a part of an address.
        let first = unsafe { given.cast::<c_uint>().read_unaligned() };
        // SAFETY: an integer that holds an address.
        if is_type(first) { given } else { unsafe { There(given.cast()).c() } }
    }
}

/// `ierror`, the last argument of every call.
#[repr(transparent)]
pub struct Code(*mut c_int);

impl Code {
    /// Stores the call's return code for the program.
    ///
    /// # Safety
    /// The address is 0, or that of an INTEGER.
    pub unsafe fn set(self, code: c_int) {
        let place = common::or_null(self.0);
        if !place.is_null() {
            // SAFETY: the program's variable.
            unsafe { place.write_unaligned(code) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(given: *const u64) -> usize {
        // SAFETY: each of these is as long as an address, and nothing else is read.
        unsafe { Vector(given.cast_mut().cast::<lapi_vec_t>()).c() }.addr()
    }

    #[test]
    fn a_vector_is_told_from_its_address() {
        // Types 0 to 2, and some that are none, with numbers of pieces behind them.
        for vector in [0, 3 << 32, 5 << 32 | 1, 0x7f12 << 32 | 2, 7 << 32 | 3, 7 << 32 | 99] {
            let vector = u64::to_le(vector);
            assert_eq!(taken(&vector), (&raw const vector).addr(), "{vector:#x}");
        }
        assert_eq!(taken(ptr::null()), 0);
    }

    /// Where a vector lies is chance: a page begins a multiple of 4 GiB from address 0, too.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn addresses_just_behind_a_multiple_of_4_gib_are_addresses() {
        for address in [0x7f12_0000_0010, 0x7f12_0000_0ff8, 0x7f12_0000_1000, 0x7f12_ffff_fff8] {
            assert_eq!(taken(&u64::to_le(address)), address as usize, "{address:#x}");
        }
    }
}
