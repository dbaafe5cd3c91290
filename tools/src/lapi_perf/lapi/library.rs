//! The library that is measured: opened as the loader opens it for a program, and called by the
//! names that programs call.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Object, RTLD_GLOBAL, RTLD_NOW};
use nix::libc::{c_int, c_longlong, c_uint, c_ulong, c_void};
use openlapi::abi::*;

use crate::lapi_perf::error::{Failure, Result};
use crate::prefix;

/// Declares a function pointer for each call of LAPI.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $call:ident $capitals:ident
        ($($argument:ident: $type:ty as $kind:ident),* $(,)?);)*) => {
        /// The calls.
        // The table has all of them, and not all are measured.
        #[allow(dead_code)]
        pub(super) struct Functions {
            $(pub(super) $call: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Functions {
            fn find(process: &Object) -> std::result::Result<Self, libloading::Error> {
                Ok(Self { $(
                    // SAFETY: the type is the one by which the call is exported, from
                    // the same table.
                    $call: *unsafe { process.get(concat!(stringify!($name), "\0").as_bytes())? },
                )* })
            }
        }
    };
}

openlapi::for_each_call!(functions);

/// The library, open until the process ends.
pub(super) struct Library {
    pub(super) calls: Functions,
    /// The file.
    pub(super) path: PathBuf,
}

impl Library {
    /// Opens the library that the user has named, or the installed one. Its names are looked up in
    /// the whole process, so that a profiler that was loaded before it (LD_PRELOAD) gets the calls,
    /// as it does in a program that is linked with the library.
    pub(super) fn open(named: Option<&Path>) -> Result<Self> {
        let path = named.map_or_else(installed, Path::to_owned);
        // SAFETY: the library's initialisers may run at any time, and this one has none
        // that matter here.
        let object = unsafe { Object::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
        let hint = if named.is_some() { "--library" } else { "the library that is measured" };
        let object = object.map_err(|why| Failure::failed(format!("{hint}: {}: {why}", path.display())))?;
        // It stays open: its threads may run until the process ends.
        std::mem::forget(object);
        let calls = Functions::find(&Object::this())
            .map_err(|why| Failure::failed(format!("{} is no LAPI library: {why}", path.display())))?;
        Ok(Self { calls, path: path.canonicalize().unwrap_or(path) })
    }
}

/// The library that was installed together with this program; else the one that the loader finds.
fn installed() -> PathBuf {
    const NAME: &str = "liblapi_r.so.1";
    prefix::library(NAME).ok().filter(|path| path.exists()).unwrap_or_else(|| NAME.into())
}
