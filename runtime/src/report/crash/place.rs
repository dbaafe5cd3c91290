//! Places in programs and libraries, as the loader knows them.

use super::line::Line;
use crate::report::lines::Named;
use openlapi::base::loader::object_at;
use std::fmt::{self, Write as _};
use std::ptr;

/// What the loader knows of an address: its file, and the function there.
pub(super) struct Symbol {
    address: usize,
    pub(super) file: *const libc::c_char,
    pub(super) is_library: bool,
    /// The address as the file has it.
    pub(super) in_file: usize,
    function: *const libc::c_char,
    offset: usize,
}

impl Symbol {
    pub(super) fn of(address: usize) -> Self {
        let Some(found) = object_at(address) else {
            return Self {
                address,
                file: ptr::null(),
                is_library: true,
                in_file: address,
                function: ptr::null(),
                offset: 0,
            };
        };
        let (fixed, file) = (found.is_fixed(), found.file.as_ptr());
        // SAFETY: both texts end with a zero.
        let is_library = !fixed && !unsafe { libc::strstr(file, c".so".as_ptr()) }.is_null();
        Self {
            address,
            file,
            is_library,
            in_file: if fixed { address } else { address - found.base },
            function: found.function,
            offset: address.wrapping_sub(found.function_at),
        }
    }

    pub(super) fn write(&self, line: &mut Line, number: usize, named: Named<'_>) -> fmt::Result {
        write!(line, "  #{number} {:#x}", self.address)?;
        if !self.function.is_null() {
            write!(line, " in ")?;
            line.text(self.function);
            write!(line, "+{:#x}", self.offset)?;
        } else if !named.function.is_empty() {
            write!(line, " in {}", named.function)?;
        }
        if !named.line.is_empty() {
            write!(line, " at {}", named.line)?;
        }
        if self.file.is_null() {
            return Ok(());
        }
        write!(line, " (")?;
        line.text(self.file);
        write!(line, "+{:#x})", self.in_file)
    }
}
