//! Places in programs and libraries, as the loader knows them.

use super::line::Line;
use crate::report::lines::Named;
use libc::c_void;
use std::fmt::{self, Write as _};
use std::mem;
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
        // SAFETY: the structure lives during the call; the texts are the loader's, and stay.
        let found = unsafe {
            let mut found: libc::Dl_info = mem::zeroed();
            (libc::dladdr(address as *const c_void, &mut found) != 0).then_some(found)
        };
        let Some(found) = found else {
            return Self {
                address,
                file: ptr::null(),
                is_library: true,
                in_file: address,
                function: ptr::null(),
                offset: 0,
            };
        };
        let base = found.dli_fbase as usize;
        // In the header of an ELF file, which is mapped there: whether it has fixed addresses, and
        // so is a program.
        // SAFETY: the loader says that the file is mapped from there on.
        let fixed = unsafe { (found.dli_fbase as *const u8).add(16).cast::<u16>().read_unaligned() } == 2;
        // SAFETY: the text is the loader's.
        let is_library = !fixed && !unsafe { libc::strstr(found.dli_fname, c".so".as_ptr()) }.is_null();
        Self {
            address,
            file: found.dli_fname,
            is_library,
            in_file: if fixed { address } else { address - base },
            function: found.dli_sname,
            offset: address.wrapping_sub(found.dli_saddr as usize),
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
