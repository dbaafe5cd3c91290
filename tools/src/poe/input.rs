//! Standard input of the tasks (MP_STDINMODE).

use std::fs::File;
use std::io::{Read, Write};
use std::str::FromStr;
use std::thread;

use super::error::Error;

/// Which tasks get standard input. The others read an end of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinMode {
    /// Every task gets all of it.
    All,
    /// No task.
    None,
    /// One task gets it, and reads from `poe`'s own descriptor.
    Only(usize),
}

impl FromStr for StdinMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            number => number.parse().map(Self::Only).map_err(|_| ()),
        }
    }
}

/// Copies standard input to all these pipes, in a thread of its own, until it or they end. The tasks proceed together: one
/// that does not read delays the others once its pipe is full.
pub(super) fn copy_to_all(mut pipes: Vec<File>) -> Result<(), Error> {
    let copy = move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
            pipes.retain_mut(|pipe| pipe.write_all(&buffer[..length]).is_ok());
            if pipes.is_empty() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("poe-input".into()).spawn(copy);
    thread.map(drop).map_err(|error| Error::system("cannot start the thread that copies input", error))
}
