//! Start and end of a process's part, options, the other PEs, and contexts.

use super::{code, context, give, name, text};
use crate::client::options::{NAMES, Texts, Value};
use crate::client::{Client, Context};
use crate::error::{FamError, Result};
use libc::{c_char, c_int, c_void, malloc};
use std::ffi::CString;

/// `Fam_Options` of `fam.h`.
#[repr(C)]
pub struct RawOptions {
    /// The members that are texts, in their order.
    texts: [*const c_char; 12],
    buffer: *const c_void,
    buffer_size: u64,
}

/// Begins; see fam_initialize(3).
///
/// # Safety
/// The pointers are NULL or valid, texts end by 0, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_initialize(
    group: *const c_char,
    options: *const RawOptions,
    out: *mut *mut Context,
) -> c_int {
    let open = || {
        // SAFETY: the caller's promise.
        unsafe {
            name(group, "the group's name")?;
            let (texts, buffer) = match options.as_ref() {
                Some(raw) => (texts(raw)?, (raw.buffer.addr(), raw.buffer_size)),
                None => (Texts::default(), (0, 0)),
            };
            Ok(Box::into_raw(Box::new(Context::first(Client::open(texts, buffer)?))))
        }
    };
    // SAFETY: the caller's place.
    unsafe { give(open(), out) }
}

/// # Safety
/// The texts are NULL, or end by 0.
unsafe fn texts(raw: &RawOptions) -> Result<Texts> {
    let names = [
        "defaultRegionName",
        "cisServer",
        "grpcPort",
        "libfabricProvider",
        "famThreadModel",
        "cisInterfaceType",
        "openFamModel",
        "famContextModel",
        "numConsumer",
        "runtime",
        "fam_default_memory_type",
        "if_device",
    ];
    let mut all: [String; 12] = Default::default();
    for ((into, given), what) in all.iter_mut().zip(raw.texts).zip(names) {
        // SAFETY: the caller's promise.
        *into = unsafe { text(given, what)? }.unwrap_or_default().to_owned();
    }
    let [
        region,
        server,
        port,
        provider,
        threads,
        interface,
        model,
        contexts,
        consumers,
        runtime,
        memory,
        device,
    ] = all;
    Ok(Texts {
        region,
        server,
        port,
        provider,
        threads,
        interface,
        model,
        contexts,
        consumers,
        runtime,
        memory,
        device,
    })
}

/// Whether a context is the first one, and not for data alone.
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_control(of: *mut Context) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.and_then(Context::control).map(drop))
}

/// Ends; see fam_finalize(3). The context is freed in any case.
///
/// # Safety
/// The context is the first one of fam_initialize, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_finalize(finalized: *mut Context, _group: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let ended = unsafe { context(finalized) }.and_then(Context::quiet);
    // SAFETY: the caller's promise.
    unsafe { olfam_context_free(finalized) };
    code(ended)
}

/// Ends the job; see fam_abort(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_abort(of: *mut Context, status: c_int) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.and_then(Context::control).map(|client| client.pes().abort(status)))
}

/// Waits for all PEs; see fam_barrier_all(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_barrier(of: *mut Context) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.and_then(Context::control).and_then(|client| client.pes().barrier()))
}

/// The names of options, and NULL behind them; see fam_list_options(3). NULL: no memory.
#[unsafe(no_mangle)]
pub extern "C" fn olfam_list_options() -> *mut *const c_char {
    let pointers = (NAMES.len() + 1) * size_of::<*const c_char>();
    let bytes: usize = NAMES.iter().map(|name| name.len() + 1).sum();
    // SAFETY: a size.
    let all = unsafe { malloc(pointers + bytes) }.cast::<*const c_char>();
    if all.is_null() {
        return all;
    }
    // SAFETY: room for the pointers, and for the texts behind them.
    unsafe {
        let mut at = all.cast::<u8>().add(pointers);
        for (index, name) in NAMES.iter().enumerate() {
            all.add(index).write(at.cast());
            at.copy_from_nonoverlapping(name.as_ptr(), name.len());
            at.add(name.len()).write(0);
            at = at.add(name.len() + 1);
        }
        all.add(NAMES.len()).write(std::ptr::null());
    }
    all
}

/// The value of an option; see fam_get_option(3).
///
/// # Safety
/// The context was made by this library, the name is NULL or ends by 0, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_option(
    of: *mut Context,
    option: *const c_char,
    out: *mut *mut c_void,
) -> c_int {
    let value = || {
        // SAFETY: the caller's promise.
        let (context, option) = unsafe { (context(of)?, name(option, "the option's name")?) };
        match context.control()?.option(&option)? {
            Value::Number(number) => kept(&number.to_ne_bytes()),
            Value::Size(size) => kept(&size.to_ne_bytes()),
            Value::Text(text) => kept(CString::new(text).unwrap_or_default().as_bytes_with_nul()),
        }
    };
    // SAFETY: the caller's place.
    unsafe { give(value(), out) }
}

/// Bytes in memory that the program frees.
///
/// # Errors
/// [`FamError::Resource`]: there is none.
pub(super) fn kept(bytes: &[u8]) -> Result<*mut c_void> {
    // SAFETY: a size.
    let at = unsafe { malloc(bytes.len()) };
    if at.is_null() {
        return Err(FamError::Resource.because("no memory"));
    }
    // SAFETY: as many bytes were allocated.
    unsafe { at.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(at)
}

/// Opens a context; see fam_context_open(3).
///
/// # Safety
/// The context was made by this library, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_context_open(of: *mut Context, out: *mut *mut Context) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let opened = context(of).and_then(Context::open);
        give(opened.map(|context| Box::into_raw(Box::new(context))), out)
    }
}

/// Fails where a context may not close another one, which stays then; see fam_context_close(3).
///
/// # Safety
/// The contexts were made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_may_close(of: *mut Context, closed: *mut Context) -> c_int {
    let look = || {
        // SAFETY: the caller's promise.
        let (context, closed) = unsafe { (context(of)?, context(closed)?) };
        context.control()?;
        if closed.control().is_ok() {
            return Err(
                FamError::Invalid.because("fam_context_close: the context is none of fam_context_open")
            );
        }
        Ok(())
    };
    code(look())
}

/// Frees a context; operations that are under way end first.
///
/// # Safety
/// The context is NULL, or was made by this library and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_context_free(freed: *mut Context) {
    if !freed.is_null() {
        // SAFETY: the caller's promise.
        let context = unsafe { Box::from_raw(freed) };
        if context.is_of_parent() {
            // A child of fork leaves all as it is: its parent goes on with it.
            std::mem::forget(context);
        } else {
            let _ = context.quiet();
        }
    }
}

/// Waits for operations that change memory; see fam_fence(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_fence(of: *mut Context) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.map(Context::fence))
}

/// Waits for all operations; see fam_quiet(3).
///
/// # Safety
/// The context was made by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_quiet(of: *mut Context) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { context(of) }.and_then(Context::quiet))
}

/// How many operations are not complete; see fam_progress(3).
///
/// # Safety
/// The context was made by this library, and `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olfam_progress(of: *mut Context, out: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { give(context(of).map(Context::progress), out) }
}
