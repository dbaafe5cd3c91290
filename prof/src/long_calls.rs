//! Which calls have turned out to be long that were begun without a reading of the clock: the
//! library says so ([`openlapi::base::long_calls`]).

use crate::record;
use openlapi::base::long_calls::Hook;
use std::sync::atomic::{AtomicPtr, Ordering};

static NOTE: Hook = note;

/// After the first LAPI_Init, by which the library is known.
pub fn watch() {
    // SAFETY: the name is a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"lapi_long_call_hook".as_ptr()) };
    // SAFETY: null, or the library's variable of this type, which it never changes.
    let hook = unsafe { symbol.cast::<&'static AtomicPtr<Hook>>().as_ref() };
    if let Some(hook) = hook {
        hook.store((&raw const NOTE).cast_mut(), Ordering::Release);
        record::waits_are_noted();
    }
}

extern "C" fn note(ticks: u64) {
    if let Some(buffer) = record::known()
        && buffer.long_since.get() == 0
    {
        buffer.long_since.set(ticks);
    }
}
