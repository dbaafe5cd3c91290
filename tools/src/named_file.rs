//! Files that a user names: lists of hosts, commands, results. Any file can be named, also one
//! without an end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The longest file that is read, in bytes: no list that a person or a script writes is longer.
pub const LONGEST: u64 = 4 << 20;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of the file. It may be a pipe or a device, too.
///
/// # Errors
/// The system's; `FileTooLarge`: there is more than [`LONGEST`]; `InvalidData`: it is not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    read_from(File::open(path)?)
}

/// What can be read until the end, without the mark of the byte order that some editors begin with.
///
/// # Errors
/// The errors of [`read`].
pub fn read_from(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let why = format!("longer than {} MiB, which no list of this kind is", LONGEST >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    let text = String::from_utf8(bytes);
    let mut text = text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "not a text (UTF-8)"))?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read(Path::new("/dev/zero")).expect_err("it has no end");
        assert_eq!(error.to_string(), "longer than 4 MiB, which no list of this kind is");
        assert_eq!(read(Path::new("/dev/null")).expect("it is empty"), "");
        let whole = vec![b'x'; LONGEST as usize];
        assert_eq!(read_from(&whole[..]).expect("it is not longer").len(), whole.len());
        assert_eq!(read_from("\u{feff}host1\n".as_bytes()).expect("a text"), "host1\n");
        assert_eq!(read_from(&[0xff][..]).expect_err("no text").to_string(), "not a text (UTF-8)");
    }
}
