//! The calls that a thread is in, for reports of what it waits for.

use crate::base::loader::object_at;
use libc::{c_int, c_void};
use std::ptr;

/// How many return addresses are kept.
pub const DEPTH: usize = 24;

/// Return addresses, the innermost first; 0 behind the last.
pub type Stack = [usize; DEPTH];

/// Those of the calling thread. It takes some microseconds, and no lock of the loader.
pub fn here() -> Stack {
    struct Walk {
        found: Stack,
        count: usize,
    }
    unsafe extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: what `here` has passed.
        let walk = unsafe { &mut *walk.cast::<Walk>() };
        let Some(place) = walk.found.get_mut(walk.count) else { return END_OF_STACK };
        // SAFETY: the unwinder's own frame.
        *place = unsafe { _Unwind_GetIP(frame) };
        walk.count += 1;
        GO_ON
    }
    let mut walk = Walk { found: [0; DEPTH], count: 0 };
    // SAFETY: the function and its argument are of the types that belong together, and live
    // during the call.
    unsafe { _Unwind_Backtrace(step, ptr::from_mut(&mut walk).cast()) };
    walk.found
}

/// The first return address that lies in none of the libraries of LAPI: the program has
/// called from there.
pub fn call_of_program(stack: &Stack) -> Option<CodeLocation> {
    let own = CodeLocation::of(here as *const () as usize)?;
    let mut places =
        stack.iter().take_while(|address| **address != 0).map(|address| CodeLocation::of(*address - 1));
    places.find_map(|place| place.filter(|place| place.base != own.base && !place.is_profiler()))
}

/// Where an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    base: usize,
    /// The file; the program itself by a name that leads to it from any folder.
    pub file: String,
    /// The address as the file has it.
    pub address: usize,
}

/// What begins and ends the mark of a place in a text, for a process that knows the lines of the
/// source.
pub const MARK: (char, char) = ('\u{2039}', '\u{203a}');

/// The mark of a place: `‹FILE+0x12›`, with the address as the file has it.
pub fn mark(file: &str, address: usize) -> String {
    format!("{}{file}+{address:#x}{}", MARK.0, MARK.1)
}

impl CodeLocation {
    /// The place of an address; `None` when no file is mapped there.
    pub fn of(address: usize) -> Option<Self> {
        let object = object_at(address)?;
        let file = match std::fs::canonicalize(&*object.file.to_string_lossy()) {
            Ok(path) if path.is_file() => path.to_string_lossy().into_owned(),
            _ => std::fs::read_link("/proc/self/exe").ok()?.to_string_lossy().into_owned(),
        };
        let base = object.base;
        Some(Self { base, file, address: if object.is_fixed() { address } else { address - base } })
    }

    fn is_profiler(&self) -> bool {
        self.file.contains("/liblapiprof.so")
    }
}

const GO_ON: c_int = 0;
const END_OF_STACK: c_int = 5;

// Of libgcc, which the standard library uses for its own backtraces.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

#[cfg(test)]
mod tests {
    use super::{CodeLocation, call_of_program, here};

    #[test]
    fn the_stack_leads_out_of_this_file() {
        let stack = here();
        let own = CodeLocation::of(here as *const () as usize).expect("this program");
        assert!(CodeLocation::of(stack[0] - 1).is_some_and(|place| place.file == own.file), "{stack:x?}");
        // The test program has no library of LAPI: its caller is the C library.
        let caller = call_of_program(&stack);
        assert!(caller.is_none_or(|place| place.file != own.file), "{stack:x?}");
        assert_eq!(CodeLocation::of(0x10), None);
    }
}
