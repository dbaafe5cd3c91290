//! Standard input of the tasks (MP_STDINMODE).

use std::fs::File;
use std::io::{Read, Write};
use std::str::FromStr;
use std::thread;

/// Who gets standard input. The others read an end of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinMode {
    /// Every task gets all of it.
    All,
    /// Nobody.
    None,
    /// One task gets it, and reads from `poe`'s own descriptor: nothing stands between.
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

/// Copies standard input to all these pipes, in a thread of its own, until it or they end. The tasks proceed
/// together: one that does not read holds the others back once its pipe is full.
pub(super) fn copy_to_all(mut pipes: Vec<File>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
            pipes.retain_mut(|pipe| pipe.write_all(&buffer[..length]).is_ok());
            if pipes.is_empty() {
                break;
            }
        }
    });
}
