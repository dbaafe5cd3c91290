//! Puts like the one before them: same place, same task, same length, neither timed nor long.
//!
//! A program that sends many small puts sends them mostly so. All that the profiler does for such a
//! put is to count one number down, as [`super::untimed()`] does for calls that are like the last
//! timed one. It compares three registers, and jumps into the library without a return address of
//! its own, so that nothing is stored but that number. The library ends such a put with a hook, by
//! which an error, or a put that has become long, is noticed.
//!
//! A library without that hook, and other processors, have the ordinary path for all puts.

use super::buffer::{Buffer, known};
use super::repeatable::{PUT, allowed};
use super::uncount;
use super::untimed::Untimed;
use crate::calls::{Call, Class};
use libc::{c_int, c_void};
use openlapi::abi::LAPI_SUCCESS;
use std::sync::atomic::{AtomicPtr, Ordering};

type Hook = extern "C" fn(c_int) -> c_int;

static NOTE_END: Hook = note_end;

/// What the library calls `lapi_hooked_put`.
#[repr(C)]
struct HookedPut {
    hook: AtomicPtr<Hook>,
    put: *mut c_void,
}

/// After the first LAPI_Init, by which the library is known.
pub fn watch() {
    // SAFETY: the name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"lapi_hooked_put".as_ptr()) };
    // SAFETY: null, or the library's variable of this type, which it never changes.
    let hooked = unsafe { symbol.cast::<&'static HookedPut>().as_ref() };
    if let Some(hooked) = hooked {
        hooked.hook.store((&raw const NOTE_END).cast_mut(), Ordering::Release);
        PUT.store(hooked.put, Ordering::Release);
    }
}

/// At the end of each repeated put, in its thread.
extern "C" fn note_end(code: c_int) -> c_int {
    match known() {
        Some(buffer) if code != LAPI_SUCCESS || buffer.is_marked() => unlike(buffer, code),
        _ => code,
    }
}

/// Records a put that was not like the last one after all: it has failed, was long, or a
/// handler ran inside.
#[cold]
fn unlike(buffer: &'static Buffer, code: c_int) -> c_int {
    let (site, traffic) = if let Some(site) = allowed() {
        // It was counted as like the last one.
        site.rhythm.left.add(1);
        (site, site.rhythm.last())
    } else {
        // In a handler inside of it a put from the same place was timed, and this one was
        // counted before that.
        let Some((site, traffic)) = buffer.ended.get() else { return code };
        uncount(buffer, site, Class::Put, traffic);
        (site, Some(traffic))
    };
    Untimed::outermost(buffer, site, Call::LAPI_Put).ended(code == LAPI_SUCCESS, traffic);
    code
}

/// LAPI_Put: counts a repeated put and continues in the library; any other one notes its caller and
/// continues in the body.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! put_like_the_last {
    ($body:path) => {
        // rax, r10 and r11 hold nothing at the beginning of a function; esi is the target,
        // rdx the length.
        ::std::arch::naked_asm!(
            "mov r10, qword ptr [rip + lapiprof_site@GOTTPOFF]",
            "mov r11, qword ptr [rsp]",
            "mov rax, qword ptr fs:[r10 + 16]",
            "test rax, rax",
            "je 2f",
            "cmp qword ptr [rax + {place}], r11",
            "jne 2f",
            "cmp dword ptr [rax + {peer}], esi",
            "jne 2f",
            "cmp qword ptr [rax + {bytes}], rdx",
            "jne 2f",
            // In a handler inside of another call.
            "mov r11, qword ptr fs:[r10 + 8]",
            "cmp qword ptr [r11 + {long_since}], 0",
            "jne 3f",
            "mov r11, qword ptr [rax + {left}]",
            "sub r11, 1",
            "jb 3f",
            "mov qword ptr [rax + {left}], r11",
            "jmp qword ptr [rip + {put}]",
            "3:",
            "mov r11, qword ptr [rsp]",
            "2:",
            "mov qword ptr fs:[r10], r11",
            "jmp {body}",
            place = const $crate::record::repeatable::offsets::PLACE,
            peer = const $crate::record::repeatable::offsets::PEER,
            bytes = const $crate::record::repeatable::offsets::BYTES,
            long_since = const $crate::record::repeatable::offsets::LONG_SINCE,
            left = const $crate::record::repeatable::offsets::LEFT,
            put = sym $crate::record::repeatable::PUT,
            body = sym $body,
        )
    };
}
