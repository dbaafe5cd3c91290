//! How the code looks by which a compiler calls an internal procedure that uses variables of its
//! host: a few instructions on the stack, which load the address of the procedure and that of the
//! host's variables, and jump.

/// What each kind of processor has, by its name as Rust has it, byte by byte in hexadecimal digits;
/// `??` is any byte.
const FORMS: [(&str, &str); 7] = [
    // A landing place or none; the address of the procedure into r11, in 8 or 4 bytes, that of
    // the variables into r10, a jump to r11. gcc and LLVM write it.
    ("x86_64", "f3 0f 1e fa 49 bb ?? ?? ?? ?? ?? ?? ?? ?? 49 ba ?? ?? ?? ?? ?? ?? ?? ?? 49 ff e3"),
    ("x86_64", "f3 0f 1e fa 41 bb ?? ?? ?? ?? 49 ba ?? ?? ?? ?? ?? ?? ?? ?? 49 ff e3"),
    ("x86_64", "49 bb ?? ?? ?? ?? ?? ?? ?? ?? 49 ba ?? ?? ?? ?? ?? ?? ?? ?? 49 ff e3"),
    ("x86_64", "41 bb ?? ?? ?? ?? 49 ba ?? ?? ?? ?? ?? ?? ?? ?? 49 ff e3"),
    // A landing place or none; x17 and x18 from behind the code, a jump to x17: gcc.
    ("aarch64", "5f 24 03 d5 b1 00 00 58 d2 00 00 58 20 02 1f d6"),
    ("aarch64", "91 00 00 58 b2 00 00 58 20 02 1f d6"),
    // r11 and r12 from behind the code, at which r12 points; a jump to what r12 is then: gcc, in
    // the byte order of Linux.
    ("powerpc64", "18 00 6c e9 10 00 8c e9 a6 03 89 7d 20 04 80 4e"),
];

/// Whether such code begins at the address.
///
/// # Safety
/// A byte can be read there; more are read only as long as all before looked right.
pub unsafe fn is_trampoline(start: *const u8) -> bool {
    let mut here = FORMS.iter().filter(|(machine, _)| *machine == std::env::consts::ARCH);
    // SAFETY: the caller's promise.
    here.any(|(_, form)| unsafe { looks_like(start, form) })
}

/// # Safety
/// The conditions of [`is_trampoline`] hold.
unsafe fn looks_like(start: *const u8, form: &str) -> bool {
    form.split(' ').enumerate().all(|(at, byte)| match u8::from_str_radix(byte, 16) {
        // SAFETY: `all` stops at the first byte that differs, so all before this one looked right.
        Ok(byte) => unsafe { start.wrapping_add(at).read() == byte },
        Err(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::{FORMS, looks_like};

    /// Code as the compilers write it, with addresses in it, is found by its processor's forms, and
    /// by no other; cut off by one instruction it would read on.
    #[test]
    fn code_of_each_processor_is_known_by_its_form() {
        for (machine, form) in FORMS {
            let code: Vec<u8> =
                form.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap_or(0x5a)).collect();
            // SAFETY: as many bytes as the form has.
            assert!(unsafe { looks_like(code.as_ptr(), form) }, "{machine}");
            for at in (0..code.len()).filter(|at| form.split(' ').nth(*at) != Some("??")) {
                let mut other = code.clone();
                other[at] ^= 1;
                // SAFETY: as many bytes as the form has.
                assert!(!unsafe { looks_like(other.as_ptr(), form) }, "{machine}, byte {at}");
            }
        }
    }

    /// What is not code is left at the first byte: that is all a CHARACTER variable may have.
    #[test]
    fn a_variable_of_one_byte_is_read_no_further() {
        let page = 65_536;
        // SAFETY: a new mapping, whose second half may not be touched.
        let end = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(std::ptr::null_mut(), 2 * page, rights, kind, -1, 0).cast::<u8>();
            assert_eq!(libc::mprotect(base.add(page).cast(), page, libc::PROT_NONE), 0);
            base.add(page - 1)
        };
        for value in 0..=u8::MAX {
            if FORMS.iter().any(|(_, form)| form.starts_with(&format!("{value:02x}"))) {
                continue;
            }
            // SAFETY: the byte can be written and read.
            unsafe {
                end.write(value);
                assert!(FORMS.iter().all(|(_, form)| !looks_like(end, form)));
            }
        }
    }
}
