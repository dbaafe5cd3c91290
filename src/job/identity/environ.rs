//! The environment with which a process was started, as `/proc` shows it.

use std::fs;

/// The environment that a process was started with.
#[derive(Clone, Debug)]
pub(super) struct Environ(Vec<u8>);

impl Environ {
    /// The environment of process `pid`; `None` when it is gone or may not be read.
    pub(super) fn of(pid: i32) -> Option<Self> {
        fs::read(format!("/proc/{pid}/environ")).ok().map(Self)
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
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
    use rustix::process::getpid;

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
        let path = std::env::var("PATH").ok();
        assert_eq!(Environ::of(pid).unwrap().get("PATH"), path);
    }
}
