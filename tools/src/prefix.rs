//! The installation to which the running program belongs.

use std::io;
use std::path::{Path, PathBuf};

/// The folder below `lib` in which Debian's packages have the libraries of this kind of machine.
const OF_THE_MACHINE: &str = if cfg!(target_arch = "x86_64") {
    "x86_64-linux-gnu"
} else if cfg!(target_arch = "aarch64") {
    "aarch64-linux-gnu"
} else {
    "powerpc64le-linux-gnu"
};

/// The prefix: the folder above that of the program.
///
/// # Errors
/// The system does not say where the program is.
pub fn prefix() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned())
}

/// Where the library of this name is installed, or where it would be.
///
/// # Errors
/// As [`prefix`].
pub fn library(name: &str) -> io::Result<PathBuf> {
    Ok(library_below(&prefix()?, name))
}

fn library_below(prefix: &Path, name: &str) -> PathBuf {
    let lib = prefix.join("lib");
    let of_the_machine = lib.join(OF_THE_MACHINE).join(name);
    if of_the_machine.is_file() { of_the_machine } else { lib.join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_either_folder() {
        let prefix = std::env::temp_dir().join(format!("lapi-prefix-{}", std::process::id()));
        let debian = prefix.join("lib").join(OF_THE_MACHINE);
        std::fs::create_dir_all(&debian).expect("a folder");
        let plain = prefix.join("lib/liblapi_r.so.1");
        assert_eq!(library_below(&prefix, "liblapi_r.so.1"), plain, "where it would be");
        std::fs::write(&plain, "").expect("a file");
        assert_eq!(library_below(&prefix, "liblapi_r.so.1"), plain);
        std::fs::write(debian.join("liblapi_r.so.1"), "").expect("a file");
        assert_eq!(library_below(&prefix, "liblapi_r.so.1"), debian.join("liblapi_r.so.1"));
        std::fs::remove_dir_all(&prefix).expect("the folder is there");
    }

    #[test]
    fn the_folder_is_that_of_the_compiler() {
        let machine = std::process::Command::new("cc").arg("-print-multiarch").output().expect("a compiler");
        let machine = String::from_utf8_lossy(&machine.stdout);
        // Compilers of other systems than Debian name none.
        assert!(["", OF_THE_MACHINE].contains(&machine.trim()), "{machine}");
    }
}
