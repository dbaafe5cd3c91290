//! The set file: a text that names the parts of a pool.

use super::header::HEADER;
use crate::failure::{Failure, Result};

/// The smallest part, in bytes.
pub const MIN_PART: u64 = 2 << 20;
/// The first line.
const SIGNATURE: &str = "PMEMPOOLSET";

/// A part of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The size of its file, in bytes.
    pub size: u64,
    /// Where the file is.
    pub path: String,
}

/// The parts of a pool, and which of them have a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// At least one.
    pub parts: Vec<Part>,
    /// Only the first part has a header.
    pub single_header: bool,
    /// No part has one.
    pub no_headers: bool,
}

impl Set {
    /// Whether the pool begins with a header.
    pub fn has_header(&self) -> bool {
        !self.no_headers
    }

    /// How many parts have a header.
    pub fn headers(&self) -> usize {
        match (self.no_headers, self.single_header) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => self.parts.len(),
        }
    }

    /// Which bytes of a part's file belong to the pool: from where, and how many. Later parts give
    /// what follows their header; sizes are rounded down to pages of the machine.
    pub fn piece(&self, part: usize, page: u64) -> (u64, u64) {
        let start = if part != 0 && part < self.headers() { HEADER as u64 } else { 0 };
        (start, self.parts[part].size / page * page - start)
    }

    /// Whether the pool can be mapped by a machine with these pages: what belongs to it begins with
    /// a page in each part.
    ///
    /// # Errors
    /// ENOTSUP: a later part has a header that is smaller than a page.
    pub fn check_pages(&self, page: u64) -> Result<()> {
        let bad = (0..self.parts.len()).find(|part| !self.piece(*part, page).0.is_multiple_of(page));
        match bad.map(|part| &self.parts[part].path) {
            None => Ok(()),
            Some(path) => Err(Failure::new(
                libc::ENOTSUP,
                format!(
                    "this machine has pages of {page} bytes, and the header of {path} has {HEADER}: a set of \
                     several parts needs OPTION SINGLEHDR or OPTION NOHDRS here"
                ),
            )),
        }
    }

    /// The size of the pool, in bytes, with the first header.
    pub fn size(&self, page: u64) -> u64 {
        (0..self.parts.len()).map(|part| self.piece(part, page).1).sum()
    }
}

/// Reads a set file.
///
/// # Errors
/// EINVAL: it is malformed, has a replica, or asks for both forms of headers. ENOTSUP: it names
/// Device DAX, by the size AUTO. The text names the line.
pub fn parse(text: &[u8]) -> Result<Set> {
    let text = str::from_utf8(text).map_err(|_| Failure::invalid("the set file is no text"))?;
    let mut lines = (1..).zip(text.lines());
    let mut set = Set { parts: Vec::new(), single_header: false, no_headers: false };
    if lines.next().map(|(_, first)| first.trim_end()) != Some(SIGNATURE) {
        return Err(Failure::invalid(format!("line 1 of the set file is not {SIGNATURE}")));
    }
    for (number, line) in lines {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            take(&mut set, line).map_err(|failure| {
                Failure::new(failure.errno, format!("line {number} of the set file: {}", failure.text))
            })?;
        }
    }
    if set.single_header && set.no_headers {
        return Err(Failure::invalid("the set file has the options SINGLEHDR and NOHDRS both"));
    }
    if set.parts.is_empty() {
        return Err(Failure::invalid("the set file names no part"));
    }
    let sizes = set.parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.size));
    if sizes.is_none_or(|sum| sum > i64::MAX.cast_unsigned()) {
        return Err(Failure::invalid("the parts of the set file are larger than any pool"));
    }
    Ok(set)
}

fn take(set: &mut Set, line: &str) -> Result<()> {
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word, rest) {
        ("OPTION", "SINGLEHDR") => set.single_header = true,
        ("OPTION", "NOHDRS") => set.no_headers = true,
        ("OPTION", other) => return Err(Failure::invalid(format!("there is no option {other:?}"))),
        ("REPLICA", _) => return Err(Failure::invalid("a replica of a pool has no replicas")),
        ("AUTO", _) => {
            return Err(Failure::new(libc::ENOTSUP, "Device DAX (the size AUTO) is not supported"));
        }
        (size, path) => {
            let size = self::size(size).ok_or_else(|| Failure::invalid(format!("{size:?} is no size")))?;
            if size < MIN_PART {
                return Err(Failure::invalid("a part is smaller than 2 MiB"));
            }
            if !path.starts_with('/') || path.contains('\0') {
                return Err(Failure::invalid("the path of a part begins with /"));
            }
            if set.parts.iter().any(|part| part.path == path) {
                return Err(Failure::invalid(format!("{path} is a part twice")));
            }
            set.parts.push(Part { size, path: path.to_owned() });
        }
    }
    Ok(())
}

/// A number of bytes: K, M, G, T, with or without iB, count in 1024, and kB, KB, MB, GB, TB in
/// 1000.
fn size(word: &str) -> Option<u64> {
    let end = word.find(|one: char| !one.is_ascii_digit()).unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let (base, power) = match unit {
        "" | "B" => (1, 0),
        "K" | "k" | "KiB" => (1024, 1),
        "M" | "MiB" => (1024, 2),
        "G" | "GiB" => (1024, 3),
        "T" | "TiB" => (1024, 4),
        "kB" | "KB" => (1000, 1),
        "MB" => (1000, 2),
        "GB" => (1000, 3),
        "TB" => (1000, 4),
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(u64::pow(base, power))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn sizes_and_options() {
        let text = "PMEMPOOLSET\n# a comment\n\t2M /a # the first\nOPTION SINGLEHDR\n3MiB\t/with space\n5000kB /c\n4MB /d\n";
        let set = parse(text.as_bytes()).expect("a set");
        let sizes: Vec<u64> = set.parts.iter().map(|part| part.size).collect();
        assert_eq!(sizes, [2 << 20, 3 << 20, 5_000_000, 4_000_000]);
        assert_eq!(set.parts[1].path, "/with space");
        assert!(set.single_header && !set.no_headers && set.has_header());
        assert_eq!((set.headers(), set.piece(2, PAGE)), (1, (0, 5_000_000 / PAGE * PAGE)));
        for (word, bytes) in [("7", 7), ("1T", 1 << 40), ("1TB", 1_000_000_000_000), ("2GiB", 2 << 30)] {
            assert_eq!(size(word), Some(bytes), "{word}");
        }
        for word in ["", "M", "1m", "1XB", "-1", "1.5M", "99999999999T", "18446744073709551616"] {
            assert!(size(word).is_none_or(|bytes| word == "99999999999T" && bytes == 0), "{word}");
        }
    }

    #[test]
    fn the_pool_is_what_follows_the_headers_of_later_parts() {
        let set = parse(b"PMEMPOOLSET\n2M /a\n2M /b\n").expect("a set");
        assert_eq!((set.headers(), set.piece(0, PAGE)), (2, (0, 2 << 20)));
        assert_eq!(set.piece(1, PAGE), (4096, (2 << 20) - 4096));
        assert_eq!(set.size(PAGE), (4 << 20) - 4096);
        let set = parse(b"PMEMPOOLSET\n2M /a\nOPTION NOHDRS\n2M /b").expect("a set");
        assert_eq!((set.headers(), set.size(PAGE), set.has_header()), (0, 4 << 20, false));
    }

    #[test]
    fn later_parts_with_headers_need_pages_of_their_size() {
        for (options, errno) in [("", libc::ENOTSUP), ("OPTION SINGLEHDR", 0), ("OPTION NOHDRS", 0)] {
            let set = parse(format!("PMEMPOOLSET\n2M /a\n2M /b\n{options}\n").as_bytes()).expect("a set");
            assert_eq!(set.check_pages(PAGE), Ok(()));
            for page in [16384, 65536] {
                let failure = set.check_pages(page).err();
                assert_eq!(failure.as_ref().map_or(0, |failure| failure.errno), errno, "{options}");
                let text = failure.map_or(String::new(), |failure| failure.text);
                assert!(errno == 0 || text.contains("/b") && text.contains("OPTION SINGLEHDR"), "{text}");
            }
        }
        let alone = parse(b"PMEMPOOLSET\n2M /a\n").expect("a set");
        assert_eq!(alone.check_pages(65536), Ok(()));
    }

    #[test]
    fn what_is_no_set() {
        let wrong = [
            ("", libc::EINVAL, "PMEMPOOLSET"),
            ("PMEMBLKSET\n2M /a", libc::EINVAL, "PMEMPOOLSET"),
            ("PMEMPOOLSET\n", libc::EINVAL, "no part"),
            ("PMEMPOOLSET\n2M", libc::EINVAL, "line 2"),
            ("PMEMPOOLSET\n2M relative", libc::EINVAL, "line 2"),
            ("PMEMPOOLSET\n\n1M /a", libc::EINVAL, "line 3"),
            ("PMEMPOOLSET\n2M /a\n2M /a", libc::EINVAL, "twice"),
            ("PMEMPOOLSET\n2M /a\nREPLICA\n2M /b", libc::EINVAL, "replica"),
            ("PMEMPOOLSET\n2M /a\nREPLICA host set", libc::EINVAL, "replica"),
            ("PMEMPOOLSET\n2M /a\nOPTION SINGLEHDR\nOPTION NOHDRS", libc::EINVAL, "both"),
            ("PMEMPOOLSET\n2M /a\nOPTION FAST", libc::EINVAL, "FAST"),
            ("PMEMPOOLSET\n9000000T /a\n9000000T /b", libc::EINVAL, "larger"),
            ("PMEMPOOLSET\nAUTO /dev/dax0.0", libc::ENOTSUP, "DAX"),
        ];
        for (text, errno, named) in wrong {
            let failure = parse(text.as_bytes()).expect_err(text);
            assert!(failure.errno == errno && failure.text.contains(named), "{text:?}: {failure:?}");
        }
        assert_eq!(parse(b"PMEMPOOLSET\n2M /\xff").expect_err("no text").errno, libc::EINVAL);
    }
}
