//! What the calls move that move data.

use super::arguments::*;
use super::sizes;
use crate::record::Traffic;

macro_rules! moves {
    ($($name:ident: |$arguments:ident| $bytes:expr;)*) => {
        $(
            impl $name {
                /// # Safety
                ///
                /// As the man page of the call.
                #[inline(always)]
                pub unsafe fn traffic(&self) -> Option<Traffic> {
                    let $arguments = self;
                    Some(Traffic { peer: $arguments.tgt, bytes: $bytes })
                }
            }
        )*
    };
}

moves! {
    LAPI_Put: |put| put.len;
    LAPI_Get: |get| get.len;
    LAPI_Amsend: |message| u64::from(message.uhdr_len).saturating_add(message.udata_len);
    LAPI_Rmw: |rmw| 4;
    LAPI_Rmw64: |rmw| 8;
    // SAFETY: the program's argument, for a call that reads it likewise.
    LAPI_Putv: |put| unsafe { sizes::of(put.org_vec) };
    // SAFETY: the argument of a call that reads it likewise.
    LAPI_Getv: |get| unsafe { sizes::of(get.org_vec) };
    // SAFETY: the argument of a call that reads it likewise.
    LAPI_Amsendv: |message| u64::from(message.uhdr_len).saturating_add(unsafe { sizes::of(message.org_vec) });
}
