//! libfabric's C interface.
//!
//! [`bindings`] has the types and constants, made by bindgen from the headers of libfabric 1.17 and
//! committed, so that a build needs neither these headers nor libclang; a test makes them again and
//! compares. [`Library`] has the functions: the shared object is opened when it is first used. Most
//! of libfabric's calls are inline functions of its headers that call through a table of an object;
//! they are in [`calls`].
//!
//! The functions are found with the versions that the headers of 1.17 belong to. libfabric 2.x has
//! these too, and gives them the structures of that version.

/// Types and constants, as bindgen makes them.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]
#[rustfmt::skip]
pub mod bindings;
pub mod calls;

use bindings::{fi_info, fid_fabric};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The version of the interface that the bindings describe.
pub const API_VERSION: u32 = version(1, 17);

/// What is opened.
const FILE: &str = "libfabric.so.1";

/// FI_VERSION of the headers.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The functions that libfabric exports.
pub struct Library {
    get_info: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const fi_info,
        *mut *mut fi_info,
    ) -> c_int,
    free_info: unsafe extern "C" fn(*mut fi_info),
    dup_info: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    open_fabric:
        unsafe extern "C" fn(*mut bindings::fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
    tostr: unsafe extern "C" fn(*const c_void, bindings::fi_type) -> *mut c_char,
}

impl Library {
    /// The library, which is opened by the first call and stays open.
    ///
    /// # Errors
    /// It is not installed, or is too old: a sentence that names what to install.
    pub fn get() -> Result<&'static Self, &'static str> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(Self::open).as_ref().map_err(String::as_str)
    }

    #[expect(
        clippy::missing_transmute_annotations,
        reason = "the type of each field says what its symbol is"
    )]
    fn open() -> Result<Self, String> {
        // SAFETY: libfabric's constructors have no conditions.
        let file = unsafe { libloading::Library::new(FILE) }
            .map_err(|_| format!("cannot open {FILE}: please install libfabric (Debian: libfabric1)"))?;
        let symbols = Symbols { handle: libloading::os::unix::Library::from(file).into_raw() };
        // SAFETY: the types are those of the declarations in the headers of the versions named.
        let library = unsafe {
            Self {
                get_info: std::mem::transmute::<*mut c_void, _>(symbols.find(c"fi_getinfo", c"FABRIC_1.3")?),
                free_info: std::mem::transmute::<*mut c_void, _>(
                    symbols.find(c"fi_freeinfo", c"FABRIC_1.3")?,
                ),
                dup_info: std::mem::transmute::<*mut c_void, _>(symbols.find(c"fi_dupinfo", c"FABRIC_1.3")?),
                open_fabric: std::mem::transmute::<*mut c_void, _>(
                    symbols.find(c"fi_fabric", c"FABRIC_1.1")?,
                ),
                strerror: std::mem::transmute::<*mut c_void, _>(symbols.find(c"fi_strerror", c"FABRIC_1.0")?),
                version: std::mem::transmute::<*mut c_void, _>(symbols.find(c"fi_version", c"FABRIC_1.0")?),
                tostr: std::mem::transmute::<*mut c_void, _>(symbols.find(c"fi_tostr", c"FABRIC_1.0")?),
            }
        };
        Ok(library)
    }

    /// fi_getinfo. A return code below 0 is an error.
    ///
    /// # Safety
    /// `node` and `service` null or strings of C, `hints` null or valid, `info` writable.
    pub unsafe fn get_info(
        &self,
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { (self.get_info)(version, node, service, flags, hints, info) }
    }

    /// fi_freeinfo: the whole list.
    ///
    /// # Safety
    /// `info` is of [`Self::get_info`], [`Self::dup_info`] or [`Self::alloc_info`], and
    /// is freed once.
    pub unsafe fn free_info(&self, info: *mut fi_info) {
        // SAFETY: the caller's promise.
        unsafe { (self.free_info)(info) }
    }

    /// fi_dupinfo: a copy of one element of a list; null without memory.
    ///
    /// # Safety
    /// `info` is valid.
    pub unsafe fn dup_info(&self, info: *const fi_info) -> *mut fi_info {
        // SAFETY: the caller's promise.
        unsafe { (self.dup_info)(info) }
    }

    /// fi_allocinfo: one element with empty attributes; null without memory.
    pub fn alloc_info(&self) -> *mut fi_info {
        // SAFETY: a null pointer asks for an empty element.
        unsafe { (self.dup_info)(std::ptr::null()) }
    }

    /// fi_fabric. A return code below 0 is an error.
    ///
    /// # Safety
    /// `attributes` are those of an element that the library returned, `fabric` is writable.
    pub unsafe fn open_fabric(
        &self,
        attributes: *mut bindings::fi_fabric_attr,
        fabric: *mut *mut fid_fabric,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { (self.open_fabric)(attributes, fabric, std::ptr::null_mut()) }
    }

    /// The text of an error number, which is above 0.
    pub fn strerror(&self, number: c_int) -> String {
        // SAFETY: libfabric returns a constant string for each number.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        text.to_string_lossy().into_owned()
    }

    /// The version of the library that runs: see [`version`].
    pub fn version(&self) -> u32 {
        // SAFETY: without conditions.
        unsafe { (self.version)() }
    }

    /// The version of the interface to ask for: the older one of the library's and ours.
    pub fn api_version(&self) -> u32 {
        self.version().min(API_VERSION)
    }

    /// A value of libfabric as text, such as the bits of `FI_TYPE_CAPS`.
    ///
    /// # Safety
    /// `data` is of the type that `kind` names.
    pub unsafe fn tostr(&self, data: *const c_void, kind: bindings::fi_type) -> String {
        // SAFETY: the caller's promise; the string is libfabric's own, for this thread, until
        // the next call.
        unsafe { CStr::from_ptr((self.tostr)(data, kind)) }.to_string_lossy().into_owned()
    }
}

struct Symbols {
    handle: *mut c_void,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

impl Symbols {
    /// The function with this version; where the file has no versions, the one with this name.
    fn find(&self, name: &CStr, version: &CStr) -> Result<*mut c_void, String> {
        // SAFETY: the handle is open, the strings are C's.
        let found = unsafe {
            let exact = dlvsym(self.handle, name.as_ptr(), version.as_ptr());
            if exact.is_null() { dlsym(self.handle, name.as_ptr()) } else { exact }
        };
        if found.is_null() {
            let name = name.to_string_lossy();
            return Err(format!("{FILE} has no {name}: please install libfabric 1.17 or later"));
        }
        Ok(found)
    }
}
