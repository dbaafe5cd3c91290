//! The library: opened once, when it is first needed, and its calls by name.

use crate::place::placed;
use crate::report;
use openlapi::abi::*;
use std::env;
use std::ffi::{CStr, CString, OsStr, c_int, c_longlong, c_uint, c_ulong, c_void};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The library's name for the dynamic linker.
const SONAME: &CStr = c"liblapi_r.so.1";
/// Names another file. Not `LAPI_...`, because those are the library's own.
const VARIABLE: &str = "OPENLAPI_LIBRARY";

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $call:ident $small:ident $large:ident ($($argument:ident: $type:ty as $passed:ident),* $(,)?);)*) => {
        /// The calls of the library, by their names in C.
        #[allow(non_snake_case, reason = "C's names")]
        #[allow(dead_code, reason = "the table has all calls")]
        pub struct Library {
            $($(#[doc = $doc])* pub $call: unsafe extern "C" fn($($argument: $type),*) -> c_int,)*
        }

        impl Library {
            /// Finds every call. A profiler that is preloaded comes before the library, and
            /// learns from which line of Python it is called.
            fn find() -> Result<Self, String> {
                Ok(Self {
                    $($call: {
                        let name = concat!(stringify!($call), "\0");
                        let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a name with its end");
                        // SAFETY: the name is a C string.
                        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
                        if at.is_null() {
                            return Err(format!("{} has no {}: it is another library", SONAME.to_string_lossy(), stringify!($call)));
                        }
                        let at = placed(name, at);
                        // SAFETY: LAPI's function of this name has these arguments
                        // (include/lapi.h).
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument: $type),*) -> c_int>(at)
                        }
                    },)*
                })
            }
        }
    };
}

openlapi::for_each_call!(functions);

/// The library, opened by the first call of this.
pub fn library() -> Result<&'static Library, String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        open()?;
        report::watch();
        Library::find()
    });
    library.as_ref().map_err(Clone::clone)
}

/// The file from which it was opened.
pub fn path() -> Result<PathBuf, String> {
    let at = library()?.LAPI_Init as *const c_void;
    // SAFETY: a zeroed structure is a valid one; the call fills it in, and its name lives as long
    // as the library.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(at, &raw mut about) == 0 || about.dli_fname.is_null() {
            return Err("the library is not known by its file".to_owned());
        }
        let name = PathBuf::from(OsStr::from_bytes(CStr::from_ptr(about.dli_fname).to_bytes()));
        Ok(name.canonicalize().unwrap_or(name))
    }
}

/// Opens the library for the whole process, and keeps it.
fn open() -> Result<(), String> {
    if let Some(file) = env::var_os(VARIABLE) {
        return load(&file).map_err(|why| format!("{VARIABLE}: {why}"));
    }
    // The same file as any other code of this process that uses LAPI has.
    let Err(mut tried) = load(OsStr::from_bytes(SONAME.to_bytes())) else { return Ok(()) };
    for file in beside_poe() {
        match load(file.as_os_str()) {
            Ok(()) => return Ok(()),
            Err(why) => {
                let _ = write!(tried, "; {why}");
            }
        }
    }
    Err(format!(
        "LAPI's library was not found ({tried}). Install OpenLAPI and put its bin folder on the PATH, or set LD_LIBRARY_PATH, or \
         set {VARIABLE} to the file"
    ))
}

/// The libraries of the installations whose `poe` is on the PATH.
fn beside_poe() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| folder.join("poe").is_file());
    let libraries = folders.filter_map(|folder| Some(folder.parent()?.join("lib").join("liblapi_r.so.1")));
    libraries.filter(|file| file.is_file()).collect()
}

fn load(file: &OsStr) -> Result<(), String> {
    let Ok(name) = CString::new(file.as_bytes()) else { return Err("a name with a zero byte".to_owned()) };
    // SAFETY: the name is a C string. The library does nothing when it is loaded; it is never
    // unloaded. Its names are visible to the whole process, because a preloaded profiler looks
    // for them there.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !library.is_null() {
        return Ok(());
    }
    // SAFETY: after a failure it returns a C string, or null.
    let why = unsafe {
        let text = libc::dlerror();
        if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
    };
    Err(why.into_owned())
}
