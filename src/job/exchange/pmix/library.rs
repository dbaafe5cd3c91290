//! What is used of libpmix: eight functions and four structures, which have had this layout since
//! its version 3.

use super::super::dynamic;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The versions of libpmix whose layout this is.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
/// The longest key, in bytes.
pub(in crate::job::exchange) const LONGEST_KEY: usize = 511;

const SUCCESS: c_int = 0;
/// A nonblocking call that was complete at once, so that its function is not called.
const OPERATION_SUCCEEDED: c_int = -157;
/// A status of our own: the value is of another kind.
const WRONG_KIND: c_int = c_int::MIN;
const ALL_RANKS: u32 = u32::MAX - 1;
const GLOBAL: u8 = 3;
const BOOL: u16 = 1;
const INT: u16 = 6;
const BYTES: u16 = 27;

/// A process, by the name of its job and its rank.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Proc {
    namespace: [u8; 256],
    rank: u32,
}

/// A value of any kind. Its own part is the longest one of the union, and more.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
union Data {
    flag: bool,
    integer: c_int,
    bytes: Bytes,
    /// The size of the union: an envar has two addresses and a character.
    room: [usize; 3],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes {
    start: *mut c_char,
    length: usize,
}

/// An attribute of a call.
#[repr(C)]
struct Info {
    key: [u8; 512],
    flags: u32,
    value: Value,
}

type OpDone = unsafe extern "C" fn(c_int, *mut c_void);
type ValueDone = unsafe extern "C" fn(c_int, *mut Value, *mut c_void);

/// The functions.
pub(super) struct Library {
    init: unsafe extern "C" fn(*mut Proc, *const Info, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence_nb: unsafe extern "C" fn(*const Proc, usize, *const Info, usize, OpDone, *mut c_void) -> c_int,
    get_nb:
        unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, ValueDone, *mut c_void) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// How a call ended that completes when another process has replied.
pub(super) enum Outcome {
    Done(Vec<u8>),
    Late,
    Failed(c_int),
}

impl Proc {
    /// A process of the same job.
    pub(super) fn with_rank(&self, rank: u32) -> Self {
        Self { rank, ..*self }
    }
}

impl Library {
    /// The library, opened at the first call.
    ///
    /// # Errors
    /// Why it cannot be used, and what to install.
    pub(super) fn get() -> Result<&'static Self, &'static String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(|| Self::open(c"libpmix.so.2")).as_ref()
    }

    fn open(file: &CStr) -> Result<Self, String> {
        let name = file.to_string_lossy();
        let library = dynamic::Library::open(file).map_err(|why| {
            let is_missing = why.contains("No such file");
            if is_missing {
                format!("{name} is not installed (Debian's libpmix2); the launcher offers PMIx")
            } else {
                format!("{name} cannot be opened: {why}")
            }
        })?;
        let missing = || format!("{name} lacks a function of PMIx");
        // SAFETY: this function has this type in every version.
        let version =
            unsafe { library.function::<unsafe extern "C" fn() -> *const c_char>(c"PMIx_Get_version") };
        // SAFETY: it returns a string that is never freed.
        let version =
            unsafe { CStr::from_ptr(version.ok_or_else(missing)?()) }.to_string_lossy().into_owned();
        if !major(&version).is_some_and(|major| VERSIONS.contains(&major)) {
            let version: String = version.chars().take(30).collect();
            return Err(format!(
                "{name} is \"{version}\"; versions {} to {} are known",
                VERSIONS.start(),
                VERSIONS.end()
            ));
        }
        // SAFETY: the functions have these types in the versions that are known.
        let functions = unsafe {
            (|| {
                Some(Self {
                    init: library.function(c"PMIx_Init")?,
                    finalize: library.function(c"PMIx_Finalize")?,
                    put: library.function(c"PMIx_Put")?,
                    commit: library.function(c"PMIx_Commit")?,
                    fence_nb: library.function(c"PMIx_Fence_nb")?,
                    get_nb: library.function(c"PMIx_Get_nb")?,
                    error_string: library.function(c"PMIx_Error_string")?,
                })
            })()
        };
        functions.ok_or_else(missing)
    }

    /// A status with its name.
    pub(super) fn describe(&self, status: c_int) -> String {
        // SAFETY: it returns a string that is never freed, for any number.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return format!("status {status}");
        }
        // SAFETY: it is a string that is never freed, and not null.
        let text: String = unsafe { CStr::from_ptr(text) }.to_string_lossy().chars().take(50).collect();
        format!("{text} ({status})")
    }

    /// Initialises PMIx in this process, or counts one more user of it. Returns who
    /// this process is.
    pub(super) fn init(&self) -> Result<Proc, c_int> {
        let mut me = Proc { namespace: [0; 256], rank: 0 };
        // SAFETY: there is a place for the result, and no attribute.
        check(unsafe { (self.init)(&mut me, std::ptr::null(), 0) })?;
        Ok(me)
    }

    /// The counterpart of [`Self::init`].
    pub(super) fn finalize(&self) {
        // SAFETY: no attribute; an error at the end of the process changes nothing.
        let _ = unsafe { (self.finalize)(std::ptr::null(), 0) };
    }

    /// Gives a value of this process a name.
    pub(super) fn put(&self, key: &str, value: &[u8]) -> Result<(), c_int> {
        let key = CString::new(key).map_err(|_| WRONG_KIND)?;
        // PMIx copies the bytes, and does not write them.
        let bytes = Bytes { start: value.as_ptr().cast_mut().cast(), length: value.len() };
        let mut value = Value { kind: BYTES, data: Data { room: [0; 3] } };
        value.data.bytes = bytes;
        // SAFETY: the key and the value are what PMIx expects, and valid during the call.
        check(unsafe { (self.put)(GLOBAL, key.as_ptr(), &mut value) })
    }

    /// Gives the server what was put.
    pub(super) fn commit(&self) -> Result<(), c_int> {
        // SAFETY: it has no arguments.
        check(unsafe { (self.commit)() })
    }

    /// Waits for all processes of the job, and for their values.
    pub(super) fn fence(&self, me: &Proc, timeout: Duration) -> Outcome {
        let infos = vec![Info::flag("pmix.collect")];
        let (call, ended) = Call::new(me.with_rank(ALL_RANKS), None, infos);
        let call = Box::into_raw(call);
        // SAFETY: process and attributes stay in the call until PMIx calls the function.
        let status = unsafe {
            (self.fence_nb)(
                &(*call).process,
                1,
                (*call).infos.as_ptr(),
                (*call).infos.len(),
                op_done,
                call.cast(),
            )
        };
        finish(status, call, &ended, timeout)
    }

    /// A value of a process.
    pub(super) fn get_value(&self, process: &Proc, key: &str, timeout: Duration) -> Outcome {
        let Ok(key) = CString::new(key) else { return Outcome::Failed(WRONG_KIND) };
        // After a fence the server has every value: it must not wait for one that does not exist.
        let infos = vec![Info::flag("pmix.immediate"), Info::seconds("pmix.timeout", timeout)];
        let (call, ended) = Call::new(*process, Some(key), infos);
        let call = Box::into_raw(call);
        // SAFETY: process, key and attributes stay in the call until PMIx calls the function.
        let status = unsafe {
            let key = (*call).key.as_ref().map_or(std::ptr::null(), |key| key.as_ptr());
            let infos = &(*call).infos;
            (self.get_nb)(&(*call).process, key, infos.as_ptr(), infos.len(), value_done, call.cast())
        };
        finish(status, call, &ended, timeout)
    }
}

fn check(status: c_int) -> Result<(), c_int> {
    if status == SUCCESS { Ok(()) } else { Err(status) }
}

/// The first number of "OpenPMIx 4.2.2, repo revision: ...".
fn major(version: &str) -> Option<u32> {
    let start = version.find(|character: char| character.is_ascii_digit())?;
    version[start..].split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

type End = Result<Vec<u8>, c_int>;

/// What a call of PMIx refers to until its function is called.
struct Call {
    process: Proc,
    key: Option<CString>,
    infos: Vec<Info>,
    end: Sender<End>,
}

impl Call {
    fn new(process: Proc, key: Option<CString>, infos: Vec<Info>) -> (Box<Self>, Receiver<End>) {
        let (end, ended) = channel();
        (Box::new(Self { process, key, infos, end }), ended)
    }
}

/// Waits for the end of a call that has returned `status`.
fn finish(status: c_int, call: *mut Call, ended: &Receiver<End>, timeout: Duration) -> Outcome {
    if status != SUCCESS {
        // SAFETY: the call was not begun, or is over: PMIx does not call the function, and
        // forgets the call.
        drop(unsafe { Box::from_raw(call) });
        return if status == OPERATION_SUCCEEDED {
            Outcome::Done(Vec::new())
        } else {
            Outcome::Failed(status)
        };
    }
    // The call belongs to its function, which may run later.
    match ended.recv_timeout(timeout) {
        Ok(Ok(value)) => Outcome::Done(value),
        Ok(Err(status)) => Outcome::Failed(status),
        Err(_) => Outcome::Late,
    }
}

/// PMIx calls it in its own thread, once, when a fence is over.
unsafe extern "C" fn op_done(status: c_int, data: *mut c_void) {
    // SAFETY: the call that was passed with this function.
    let call = unsafe { Box::from_raw(data.cast::<Call>()) };
    // The one that waits may have gone.
    let _ = call.end.send(check(status).map(|()| Vec::new()));
}

/// PMIx calls it in its own thread, once, with a value that it frees afterwards.
unsafe extern "C" fn value_done(status: c_int, value: *mut Value, data: *mut c_void) {
    // SAFETY: the call that was passed with this function.
    let call = unsafe { Box::from_raw(data.cast::<Call>()) };
    let end = match check(status) {
        Err(status) => Err(status),
        // SAFETY: a value of this kind has an address and a length, and is valid during
        // this function.
        Ok(()) => unsafe {
            match value.as_ref() {
                Some(Value { kind: BYTES, data: Data { bytes } }) if bytes.length == 0 => Ok(Vec::new()),
                Some(Value { kind: BYTES, data: Data { bytes } }) if !bytes.start.is_null() => {
                    Ok(std::slice::from_raw_parts(bytes.start.cast::<u8>(), bytes.length).to_vec())
                }
                _ => Err(WRONG_KIND),
            }
        },
    };
    let _ = call.end.send(end);
}

impl Info {
    fn new(name: &str, value: Value) -> Self {
        let mut key = [0; 512];
        key[..name.len()].copy_from_slice(name.as_bytes());
        Self { key, flags: 0, value }
    }

    fn flag(name: &str) -> Self {
        let mut data = Data { room: [0; 3] };
        data.flag = true;
        Self::new(name, Value { kind: BOOL, data })
    }

    fn seconds(name: &str, time: Duration) -> Self {
        let mut data = Data { room: [0; 3] };
        data.integer = c_int::try_from(time.as_secs()).unwrap_or(c_int::MAX);
        Self::new(name, Value { kind: INT, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout() {
        assert_eq!((size_of::<Proc>(), align_of::<Proc>()), (260, 4));
        #[cfg(target_pointer_width = "64")]
        assert_eq!((size_of::<Value>(), size_of::<Info>()), (32, 552));
    }

    #[test]
    fn versions() {
        assert_eq!(major("OpenPMIx 4.2.2, repo revision: v4.2.2"), Some(4));
        assert_eq!(major("OpenPMIx 10.0.0a1"), Some(10));
        assert_eq!(major("PMIx"), None);
    }

    #[test]
    fn a_library_that_is_missing_is_named_with_its_package() {
        let why = Library::open(c"libpmix-of-no-system.so.2").map(drop).unwrap_err();
        assert!(why.contains("libpmix-of-no-system.so.2") && why.contains("Debian's libpmix2"), "{why}");
        let why = Library::open(c"libm.so.6").map(drop).unwrap_err();
        assert!(why.contains("libm.so.6 lacks"), "{why}");
    }
}
