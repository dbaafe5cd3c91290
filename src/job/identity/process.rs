//! What `/proc` shows of a process.

use std::fs;

/// The environment that a process was started with.
#[derive(Clone, Debug)]
pub(super) struct Environ(Vec<u8>);

/// What `/proc/PID/stat` contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    /// In clock ticks since the machine started.
    pub(super) start: u64,
}

impl Environ {
    /// The environment of process `pid`; `None` when it is gone or may not be read.
    pub(super) fn of(pid: i32) -> Option<Self> {
        fs::read(format!("/proc/{pid}/environ")).ok().map(Self)
    }

    /// The environment of this process, as it was before the program changed anything.
    pub(super) fn of_this_process() -> Option<Self> {
        fs::read("/proc/self/environ").ok().map(Self)
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }
}

impl Stat {
    /// The state of process `pid`; `None` when it is gone.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field, the program's name in parentheses, may hold anything, parentheses and
    /// blanks included.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { parent, start })
    }
}

#[cfg(test)]
impl From<Vec<u8>> for Environ {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, getppid};

    #[test]
    fn stat_with_a_nasty_name() {
        let text = "42 (a) b (c) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11";
        assert_eq!(Stat::parse(text), Some(Stat { parent: 17, start: 987_654 }));
        assert_eq!(Stat::parse("42 (short) S 17"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn environ_by_name() {
        let environ = Environ::from(b"AB=1\0A=2\0EMPTY=\0A=3\0TAIL=x=y".to_vec());
        assert_eq!(environ.get("A").as_deref(), Some("2"));
        assert_eq!(environ.get("EMPTY").as_deref(), Some(""));
        assert_eq!(environ.get("TAIL").as_deref(), Some("x=y"));
        assert_eq!(environ.get("B"), None);
    }

    #[test]
    fn this_process() {
        let pid = getpid().as_raw_pid();
        let own = Stat::of(pid).unwrap();
        assert_eq!(own.parent, getppid().unwrap().as_raw_pid());
        assert!(own.start > 0);
        let path = std::env::var("PATH").ok();
        assert_eq!(Environ::of(pid).unwrap().get("PATH"), path);
        assert_eq!(Environ::of_this_process().unwrap().get("PATH"), path);
    }
}
