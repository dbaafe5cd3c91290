//! Whether an argument is a procedure.
//!
//! Fortran passes the address of a procedure, and of a variable, alike. Procedures lie in the
//! executable segments of the program and its libraries; variables never do, and constants only
//! where the linker was asked to save space: there they are known by their values, which no code
//! has. An internal procedure that uses variables of its host is called through a few instructions
//! which the compiler writes onto the stack: they are known by how they look.

use crate::by_name::ByName;
use crate::trampoline::is_trampoline;
use libc::{c_int, c_void, dl_phdr_info, size_t};
use std::{mem, slice};

/// Whether code lies at this address.
///
/// # Safety
/// The address is 0, or that of a procedure or of a variable.
pub unsafe fn is_procedure(address: *const c_void) -> bool {
    // SAFETY: not null, so there is something that can be read.
    !address.is_null()
        && unsafe { if is_in_code(address) { !is_index(address) } else { is_trampoline(address.cast()) } }
}

/// No index of LAPI_ADDR_SET is as great, and no function's first instructions are so
/// small a number.
const ABOVE_INDICES: usize = 1 << 16;

/// Whether what lies in an executable segment is an index of LAPI_ADDR_SET.
///
/// # Safety
/// The address is that of a procedure or of an integer of address size.
unsafe fn is_index(address: *const c_void) -> bool {
    // SAFETY: either can be read.
    unsafe { address.cast::<usize>().read_unaligned() < ABOVE_INDICES }
}

fn is_in_code(address: *const c_void) -> bool {
    if !is_in_an_object(address) {
        return false;
    }
    let mut search = Search { address: address.addr(), executable: false };
    // SAFETY: the function below gets what it is declared for, and the search outlives the walk.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.executable
}

/// glibc's `_dl_find_object`: fills in what is known of the object at an address, in no more words
/// than these; 0 when there is one.
type FindObject = unsafe extern "C" fn(*const c_void, *mut [u64; 16]) -> c_int;

/// Whether the address is one of the program's or of a library's, and not of the heap or of a
/// stack. It is asked first, for it takes no lock and walks over nothing. Before glibc 2.35 this
/// cannot be found out, and the result is always yes.
fn is_in_an_object(address: *const c_void) -> bool {
    static FIND: ByName = ByName::new(c"_dl_find_object");
    unsafe extern "C" fn perhaps(_: *const c_void, _: *mut [u64; 16]) -> c_int {
        0
    }
    let own: FindObject = perhaps;
    let mut object = [0; 16];
    // SAFETY: the function has this type, and any address may be asked for.
    unsafe {
        let find = mem::transmute::<*const c_void, FindObject>(FIND.address(own as *const c_void));
        find(address, &mut object) == 0
    }
}

/// What the walk over the objects looks for, and what it has found.
struct Search {
    address: usize,
    executable: bool,
}

/// Looks at one object; anything but 0 ends the walk.
unsafe extern "C" fn look(object: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
    // SAFETY: as dl_iterate_phdr promises, and the search that was given to it.
    let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
    // SAFETY: the program headers of a loaded object.
    let segments = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let place = segments.iter().find(|segment| {
        let start = (object.dlpi_addr as usize).wrapping_add(segment.p_vaddr as usize);
        segment.p_type == libc::PT_LOAD && search.address.wrapping_sub(start) < segment.p_memsz as usize
    });
    search.executable = place.is_some_and(|segment| segment.p_flags & libc::PF_X != 0);
    place.is_some().into()
}
