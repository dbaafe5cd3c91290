//! What the loader has mapped.

use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

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

/// What is mapped at an address; `None` when no file is. Takes no lock after [`prepare`] where the
/// C library can do without (glibc since 2.35), and allocates nothing. Without the lock the object
/// must not be unloaded meanwhile.
pub fn object_at(address: usize) -> Option<Object> {
    let find = FIND.load(Ordering::Relaxed);
    if find.is_null() {
        return object_under_lock(address);
    }
    // SAFETY: the C library's function, which has this type and writes to the structure alone. What
    // it finds is mapped and described by the loader.
    unsafe {
        let find = mem::transmute::<*mut c_void, FindObject>(find);
        let mut found: Found = mem::zeroed();
        if find(address as *const c_void, &mut found) != 0 {
            return None;
        }
        let object = &*found.object;
        // The program has no name there.
        let file = if *object.name == 0 { program_invocation_name } else { object.name };
        let section = Dynamic { base: object.base, first: object.dynamic };
        let (function, function_at) = section.function(address).unwrap_or((ptr::null(), 0));
        Some(Object { base: found.begin as usize, file: CStr::from_ptr(file), function, function_at })
    }
}

/// Finds out how to look at an address without the loader's lock. Another thread may hold that lock
/// for as long as a constructor waits, so this is called before there are threads of ours, which
/// must not wait for it.
pub fn prepare() {
    // SAFETY: a name that ends with a zero.
    FIND.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Ordering::Relaxed);
}

/// The C library's `_dl_find_object`; null: it has none, or it was not looked for.
///
/// Relaxed is enough: the function was there before the library was loaded.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// What `_dl_find_object` fills in.
#[repr(C)]
struct Found {
    flags: u64,
    begin: *const c_void,
    end: *const c_void,
    object: *const Mapped,
    /// More for unwinders, which differs among processors.
    rest: [u64; 16],
}

/// The public part of the loader's own description of an object.
#[repr(C)]
struct Mapped {
    base: usize,
    name: *const c_char,
    dynamic: *const [usize; 2],
}

unsafe extern "C" {
    /// By which name the program was started.
    static program_invocation_name: *const c_char;
}

fn object_under_lock(address: usize) -> Option<Object> {
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
const HASH: usize = 4;
const NAMES: usize = 5;
const SYMBOLS: usize = 6;
const GNU_HASH: usize = 0x6fff_fef5;

#[cfg(target_pointer_width = "64")]
type Symbol = libc::Elf64_Sym;
#[cfg(target_pointer_width = "32")]
type Symbol = libc::Elf32_Sym;

/// # Safety
/// `object` describes a mapped object.
unsafe fn needs(object: &libc::dl_phdr_info, prefix: &CStr) -> bool {
    // SAFETY: the loader has mapped the headers and the dynamic section; a needed name is an offset
    // into the names.
    unsafe {
        let headers = slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
            return false;
        };
        let base = object.dlpi_addr as usize;
        let section = Dynamic { base, first: (base + dynamic.p_vaddr as usize) as *const [usize; 2] };
        let Some(names) = section.address(NAMES) else { return false };
        section
            .entries()
            .filter(|entry| entry[0] == NEEDED)
            .map(|entry| CStr::from_ptr((names + entry[1]) as *const _))
            .any(|name| name.to_bytes().starts_with(prefix.to_bytes()))
    }
}

/// The dynamic section of a mapped object.
struct Dynamic {
    /// What is added to the addresses of its file.
    base: usize,
    first: *const [usize; 2],
}

impl Dynamic {
    fn entries(&self) -> impl Iterator<Item = [usize; 2]> {
        // SAFETY: it is mapped, and an entry with the tag 0 ends it.
        (0..).map(|index| unsafe { *self.first.add(index) }).take_while(|entry| entry[0] != END)
    }

    /// The address that an entry has.
    fn address(&self, tag: usize) -> Option<usize> {
        let [_, value] = self.entries().find(|entry| entry[0] == tag)?;
        // Some loaders leave the offset in the file there.
        Some(if value < self.base { self.base.wrapping_add(value) } else { value })
    }

    /// The name of the function around an address, and where it begins, as dladdr finds them.
    fn function(&self, address: usize) -> Option<(*const c_char, usize)> {
        const NO_TYPE: u8 = 0;
        const FUNCTION: u8 = 2;
        const CHOSEN_AT_RUN_TIME: u8 = 10;
        const ELSEWHERE: u16 = 0;
        const ABSOLUTE: u16 = 0xfff1;
        let names = self.address(NAMES)?;
        let first = self.address(SYMBOLS)? as *const Symbol;
        let (mut name, mut begin) = (None, 0);
        for index in self.symbols()? {
            // SAFETY: one of the object's symbols, which are mapped.
            let symbol = unsafe { &*first.add(index) };
            let at = self.base.wrapping_add(symbol.st_value as usize);
            let is_function = matches!(symbol.st_info & 15, NO_TYPE | FUNCTION | CHOSEN_AT_RUN_TIME);
            // A program at fixed addresses has a place of its own for a function of a library whose
            // address it takes: a symbol that is defined elsewhere, with a value.
            let inside = match symbol.st_shndx {
                ELSEWHERE => symbol.st_value != 0 && at == address,
                ABSOLUTE => false,
                _ => at == address || (at < address && address - at < symbol.st_size as usize),
            };
            if is_function && inside && begin < at {
                (name, begin) = (Some(names + symbol.st_name as usize), at);
            }
        }
        name.map(|name| (name as *const c_char, begin))
    }

    /// The numbers of the symbols that others can find: the tables by which they do also say how
    /// many there are.
    fn symbols(&self) -> Option<Range<usize>> {
        if let Some(table) = self.address(GNU_HASH) {
            let table = table as *const u32;
            // SAFETY: the table begins with four numbers. Words of a filter follow, then the first
            // symbol of each bucket, then a number for each symbol, odd for a bucket's last one.
            unsafe {
                let [buckets, first, filter, _] = *table.cast::<[u32; 4]>();
                let buckets_at = table.add(4 + filter as usize * (size_of::<usize>() / size_of::<u32>()));
                let chains = buckets_at.add(buckets as usize);
                let mut last = *slice::from_raw_parts(buckets_at, buckets as usize).iter().max()?;
                if last < first {
                    return None;
                }
                while *chains.add((last - first) as usize) & 1 == 0 {
                    last += 1;
                }
                return Some(first as usize..last as usize + 1);
            }
        }
        let table = self.address(HASH)? as *const u32;
        // SAFETY: the second number of the table is that of the symbols.
        Some(1..unsafe { *table.add(1) } as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_program_names_what_it_is_linked_with() {
        // SAFETY: getauxval only returns a number.
        let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as u64;
        assert_eq!(program_linked_with(c"libc.so"), headers);
        assert_eq!(program_linked_with(c"libnothing"), 0);
    }

    #[test]
    fn what_is_found_without_the_lock_is_what_the_loader_says() {
        prepare();
        if FIND.load(Ordering::Relaxed).is_null() {
            let why = "the C library is older than 2.35";
            return drop(writeln!(std::io::stderr(), "\nSKIPPED: what is found without the lock: {why}"));
        }
        let own = what_is_found_without_the_lock_is_what_the_loader_says as *const () as usize;
        let text = |name: *const c_char| {
            // SAFETY: null, or a text of the loader.
            (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
        };
        let mut named = 0;
        for function in [libc::malloc as *const () as usize, libc::qsort as *const () as usize, own, 0x10] {
            for address in [function, function + 3] {
                let (one, other) = (object_at(address), object_under_lock(address));
                assert_eq!(one.is_some(), other.is_some(), "{address:#x}");
                let (Some(one), Some(other)) = (one, other) else { continue };
                assert_eq!((one.base, one.file), (other.base, other.file));
                assert_eq!(text(one.function), text(other.function));
                assert_eq!(one.function_at, other.function_at);
                named += usize::from(!one.function.is_null());
            }
        }
        assert!(named >= 4, "{named}");
    }
}
