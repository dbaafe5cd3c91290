//! What the loader has mapped.

use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::mem;
use std::slice;

/// The code at this address must not be unmapped while a signal may lead to it: a program that
/// closes the library (dlclose) keeps it.
pub fn stay_loaded(code: usize) {
    if let Some(object) = object_at(code) {
        // Null in a program that has the library built in, which stays anyway.
        // SAFETY: a name of the loader's own, which is only read.
        unsafe {
            libc::dlopen(object.file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
        };
    }
}

/// What the loader knows of an address.
pub struct Object {
    /// Where the file begins that is mapped there.
    pub base: usize,
    /// The file's name, which stays as long as the file is mapped.
    pub file: &'static CStr,
    /// The name of the function there; null: none is known.
    pub function: *const c_char,
    /// Where the function begins.
    pub function_at: usize,
}

/// What is mapped at an address; `None` when no file is. Takes the loader's lock and allocates
/// nothing.
pub fn object_at(address: usize) -> Option<Object> {
    // SAFETY: the structure lives during the call; the texts are the loader's.
    unsafe {
        let mut found: libc::Dl_info = mem::zeroed();
        let known = libc::dladdr(address as *const c_void, &mut found) != 0 && !found.dli_fname.is_null();
        known.then(|| Object {
            base: found.dli_fbase as usize,
            file: CStr::from_ptr(found.dli_fname),
            function: found.dli_sname,
            function_at: found.dli_saddr as usize,
        })
    }
}

impl Object {
    /// Whether the file has fixed addresses, and so is a program.
    pub fn is_fixed(&self) -> bool {
        // SAFETY: the header of an ELF file is mapped where the loader says that the file begins.
        unsafe { (self.base as *const u8).add(16).cast::<u16>().read_unaligned() == 2 }
    }
}

/// The address of the program's own headers, if the program itself names a library whose file
/// begins with `prefix` as needed; otherwise 0: an interpreter that has opened the library later,
/// or a program with the library built in.
pub(crate) fn program_linked_with(prefix: &CStr) -> u64 {
    struct Search<'a> {
        prefix: &'a CStr,
        headers: u64,
    }

    /// The first object is the program.
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, during this call; `search` is
        // the one below.
        unsafe {
            let (object, search) = (&*object, &mut *search.cast::<Search<'_>>());
            if needs(object, search.prefix) {
                search.headers = object.dlpi_phdr as u64;
            }
        }
        1
    }

    let mut search = Search { prefix, headers: 0 };
    // SAFETY: it calls `visit` with what it is given, before it returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.headers
}

/// Entries of an object's dynamic section: a tag and a value, of which those with these tags
/// are used here.
const END: usize = 0;
const NEEDED: usize = 1;
const NAMES: usize = 5;

/// # Safety
/// `object` describes a mapped object.
unsafe fn needs(object: &libc::dl_phdr_info, prefix: &CStr) -> bool {
    // SAFETY: the loader has mapped the headers and the dynamic section, which an entry with the
    // tag 0 ends; a needed name is an offset into the names.
    unsafe {
        let headers = slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
            return false;
        };
        let base = object.dlpi_addr as usize;
        let first = (base + dynamic.p_vaddr as usize) as *const [usize; 2];
        let entries = || (0..).map(|index| *first.add(index)).take_while(|entry| entry[0] != END);
        let Some([_, names]) = entries().find(|entry| entry[0] == NAMES) else { return false };
        // Some loaders leave the offset in the file there.
        let names = if names < base { base + names } else { names };
        entries()
            .filter(|entry| entry[0] == NEEDED)
            .map(|entry| CStr::from_ptr((names + entry[1]) as *const _))
            .any(|name| name.to_bytes().starts_with(prefix.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_names_what_it_is_linked_with() {
        // SAFETY: getauxval only returns a number.
        let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as u64;
        assert_eq!(program_linked_with(c"libc.so"), headers);
        assert_eq!(program_linked_with(c"libnothing"), 0);
    }
}
