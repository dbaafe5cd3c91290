//! Random bytes for secrets and nonces, from the kernel.

/// Random bytes that cannot be guessed.
pub(super) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: the bytes are writable.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => filled += got,
            // An interrupted call is repeated. Every kernel since 3.17 has this call.
            Err(_) => assert!(
                rustix::io::Errno::from_io_error(&std::io::Error::last_os_error())
                    == Some(rustix::io::Errno::INTR),
                "the kernel has no random numbers"
            ),
        }
    }
    bytes
}
