//! Functions of the C library by GM's names, and a few more: man page gm_helpers(3).

use super::StatusCode;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// What each status means.
const TEXTS: &[(StatusCode, &CStr)] = &[
    (0, c"success"),
    (1, c"the operation has failed"),
    (2, c"the input buffer is too small"),
    (3, c"the output buffer is too small"),
    (4, c"it may succeed later"),
    (5, c"it is in use"),
    (6, c"the memory cannot be used"),
    (7, c"a signal has interrupted the call"),
    (8, c"an argument is not valid"),
    (9, c"there is no memory"),
    (10, c"the command is not valid"),
    (11, c"permission denied"),
    (12, c"an error of the library"),
    (13, c"gm_init was not called"),
    (14, c"the device is not supported"),
    (15, c"the target has provided no buffer in time"),
    (16, c"the target does not take it"),
    (17, c"the target's port is closed"),
    (18, c"the target's node cannot be reached"),
    (19, c"dropped after an earlier failure"),
    (20, c"the sender's port is closed"),
    (21, c"the node has no number yet"),
    (22, c"the port is still being closed"),
    (23, c"a copy of the device is in use"),
    (24, c"there is no such device"),
    (25, c"aborted"),
    (26, c"the program was compiled for another version"),
    (27, c"an error of the system"),
    (28, c"access denied"),
    (35, c"the time is over"),
    (42, c"there is no port of this number"),
];

/// The text of a status.
pub fn text(status: StatusCode) -> &'static str {
    find(status).to_str().unwrap_or_default()
}

fn find(status: StatusCode) -> &'static CStr {
    let known = TEXTS.iter().find(|(code, _)| *code == status);
    known.map_or(c"an unknown status", |(_, text)| text)
}

/// The text of a status, which must not be changed.
#[unsafe(no_mangle)]
pub extern "C" fn gm_strerror(status: StatusCode) -> *mut c_char {
    find(status).as_ptr().cast_mut()
}

/// Writes a message and the text of a status to the standard error output.
///
/// # Safety
/// A string, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_perror(message: *const c_char, status: StatusCode) {
    let message = match message.is_null() {
        true => c"gm",
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(message) },
    };
    let _ = writeln!(std::io::stderr(), "{}: {}", message.to_string_lossy(), text(status));
}

/// A function of the program that runs at the end: its address, and its argument's.
type AtEnd = (unsafe extern "C" fn(StatusCode, *mut c_void), usize);

static AT_END: Mutex<Vec<AtEnd>> = Mutex::new(Vec::new());
/// The status that gm_exit was called with.
static STATUS: AtomicU32 = AtomicU32::new(0);

extern "C" fn run_at_end() {
    loop {
        let last = AT_END.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some((function, argument)) = last else { return };
        // SAFETY: the program's function, with the argument that it has given for it.
        unsafe { function(STATUS.load(Ordering::Acquire), std::ptr::with_exposed_provenance_mut(argument)) };
    }
}

/// Has a function called when the program ends, the last one first.
#[unsafe(no_mangle)]
pub extern "C" fn gm_on_exit(
    function: Option<unsafe extern "C" fn(StatusCode, *mut c_void)>,
    argument: *mut c_void,
) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: a function that may run at exit.
        unsafe { libc::atexit(run_at_end) };
    });
    if let Some(function) = function {
        AT_END.lock().unwrap_or_else(PoisonError::into_inner).push((function, argument.expose_provenance()));
    }
}

/// Ends the program; the exit status is GM's.
#[unsafe(no_mangle)]
pub extern "C" fn gm_exit(status: StatusCode) -> ! {
    STATUS.store(status, Ordering::Release);
    std::process::exit(status as i32)
}

/// Ends the program by SIGABRT.
#[unsafe(no_mangle)]
pub extern "C" fn gm_abort() -> ! {
    std::process::abort()
}

/// A number from 0 on and less than `modulus`; 0 for 0.
#[unsafe(no_mangle)]
pub extern "C" fn gm_rand_mod(modulus: c_uint) -> c_uint {
    // Two numbers of 31 bits, so that a large modulus is no problem.
    let number = (gm_rand() as u64) << 31 | gm_rand() as u64;
    number.checked_rem(modulus.into()).unwrap_or(0) as c_uint
}

/// The least number whose power of two is at least `number`.
#[unsafe(no_mangle)]
pub extern "C" fn gm_log2_roundup(number: c_ulong) -> c_ulong {
    c_ulong::BITS.saturating_sub(number.saturating_sub(1).leading_zeros()).into()
}

/// CRC-32 as Ethernet has it.
///
/// # Safety
/// Memory of that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_crc(memory: *const c_void, length: c_ulong) -> c_ulong {
    let mut crc = u32::MAX;
    for at in 0..length as usize {
        // SAFETY: the caller's promise.
        crc ^= u32::from(unsafe { memory.cast::<u8>().add(at).read() });
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    (!crc).into()
}

/// CRC-32 of a string, without the 0 at its end.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_crc_str(string: *const c_char) -> c_ulong {
    // SAFETY: the caller's promise.
    unsafe { gm_crc(string.cast(), libc::strlen(string) as c_ulong) }
}

/// Writes memory to the standard output, 16 bytes a line.
///
/// # Safety
/// Memory of that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_hex_dump(memory: *const c_void, length: c_ulong) {
    let bytes = match length {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(memory.cast::<u8>(), length as usize) },
    };
    let mut lines = String::new();
    for (line, bytes) in (0..).step_by(16).zip(bytes.chunks(16)) {
        let hex: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        let shown =
            |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
        let text: String = bytes.iter().map(shown).collect();
        lines += &format!("{line:08x} {hex:48}  {text}\n");
    }
    // SAFETY: the C library's buffer keeps the order with the program's own output; the lines have
    // no 0.
    unsafe { libc::printf(c"%.*s".as_ptr(), lines.len() as c_int, lines.as_ptr()) };
}

/// `struct gm_mutex`.
pub struct GmMutex(libc::pthread_mutex_t);

/// A lock that is free. Without memory the process ends, as everywhere in this library.
#[unsafe(no_mangle)]
pub extern "C" fn gm_create_mutex() -> *mut GmMutex {
    Box::into_raw(Box::new(GmMutex(libc::PTHREAD_MUTEX_INITIALIZER)))
}

/// Frees a lock.
///
/// # Safety
/// A lock that is free and not used any more; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_destroy_mutex(mutex: *mut GmMutex) {
    if !mutex.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            libc::pthread_mutex_destroy(&raw mut (*mutex).0);
            drop(Box::from_raw(mutex));
        }
    }
}

/// Takes a lock.
///
/// # Safety
/// A lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_mutex_enter(mutex: *mut GmMutex) {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_mutex_lock(&raw mut (*mutex).0) };
}

/// Releases a lock.
///
/// # Safety
/// A lock that the thread has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_mutex_exit(mutex: *mut GmMutex) {
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_mutex_unlock(&raw mut (*mutex).0) };
}

/// A random number, from 0 to 2147483647.
#[unsafe(no_mangle)]
pub extern "C" fn gm_rand() -> c_int {
    // SAFETY: it has no condition.
    unsafe { libc::rand() }
}

/// Begins gm_rand's numbers again.
#[unsafe(no_mangle)]
pub extern "C" fn gm_srand(seed: c_uint) {
    // SAFETY: it has no condition.
    unsafe { libc::srand(seed) };
}

/// Sleeps for that many seconds; returns how many are left after a signal.
#[unsafe(no_mangle)]
pub extern "C" fn gm_sleep(seconds: c_uint) -> c_uint {
    // SAFETY: it has no condition.
    unsafe { libc::sleep(seconds) }
}

/// This process.
#[unsafe(no_mangle)]
pub extern "C" fn gm_getpid() -> c_int {
    std::process::id() as c_int
}

/// Whether a character can be printed.
#[unsafe(no_mangle)]
pub extern "C" fn gm_isprint(character: c_int) -> c_int {
    // SAFETY: characters out of the range of a byte have no entry in the C library's table.
    if (-1..256).contains(&character) { unsafe { libc::isprint(character) } } else { 0 }
}

/// As malloc.
#[unsafe(no_mangle)]
pub extern "C" fn gm_malloc(length: c_ulong) -> *mut c_void {
    // SAFETY: it has no condition.
    unsafe { libc::malloc(length as usize) }
}

/// As calloc.
#[unsafe(no_mangle)]
pub extern "C" fn gm_calloc(count: c_ulong, length: c_ulong) -> *mut c_void {
    // SAFETY: it has no condition.
    unsafe { libc::calloc(count as usize, length as usize) }
}

/// As free.
///
/// # Safety
/// Memory of gm_malloc, gm_calloc or gm_strdup; or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_free(memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) };
}

/// As bzero.
///
/// # Safety
/// Memory of that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_bzero(memory: *mut c_void, length: c_ulong) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::write_bytes(memory.cast::<u8>(), 0, length as usize) };
}

/// As bcopy: the pieces may overlap.
///
/// # Safety
/// Memory of that many bytes, twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_bcopy(from: *const c_void, to: *mut c_void, length: c_ulong) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), length as usize) };
}

/// As memset.
///
/// # Safety
/// Memory of that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_memset(memory: *mut c_void, value: c_int, length: c_ulong) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { libc::memset(memory, value, length as usize) }
}

/// As memcmp.
///
/// # Safety
/// Memory of that many bytes, twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_memcmp(one: *const c_void, other: *const c_void, length: c_ulong) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::memcmp(one, other, length as usize) }
}

/// As strlen.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strlen(string: *const c_char) -> c_ulong {
    // SAFETY: the caller's promise.
    unsafe { libc::strlen(string) as c_ulong }
}

/// As strcmp.
///
/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strcmp(one: *const c_char, other: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::strcmp(one, other) }
}

/// A length as the strn functions of the C library have it; less than 0 is 0.
fn limit(length: c_int) -> usize {
    usize::try_from(length).unwrap_or(0)
}

/// As strncmp.
///
/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strncmp(one: *const c_char, other: *const c_char, length: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::strncmp(one, other, limit(length)) }
}

/// As strncasecmp.
///
/// # Safety
/// Strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strncasecmp(one: *const c_char, other: *const c_char, length: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::strncasecmp(one, other, limit(length)) }
}

/// As strncpy.
///
/// # Safety
/// A string, and memory of that many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strncpy(to: *mut c_char, from: *const c_char, length: c_int) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { libc::strncpy(to, from, limit(length)) }
}

/// As strdup.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_strdup(string: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { libc::strdup(string) }
}
