//! The daemon's log: a file, or syslog.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only what fails.
    Error = libc::LOG_ERR as isize,
    /// And what may be wrong.
    Warning = libc::LOG_WARNING as isize,
    /// And what a user should know.
    Notice = libc::LOG_NOTICE as isize,
    /// And what happens.
    Info = libc::LOG_INFO as isize,
    /// And each step.
    Debug = libc::LOG_DEBUG as isize,
}

impl Level {
    /// The level of this name in the configuration.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "err" => Self::Error,
            "warn" => Self::Warning,
            "notice" => Self::Notice,
            "info" => Self::Info,
            "debug" => Self::Debug,
            _ => return None,
        })
    }
}

struct Log {
    level: Level,
    /// `None`: syslog.
    file: Option<File>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Opens the log: this file, or syslog. Where the file cannot be written, there is none.
pub fn open(level: Level, path: Option<&str>) {
    let file = path.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose();
    if let Ok(file) = file {
        let _ = LOG.set(Log { level, file });
    }
}

/// Something has failed.
pub fn error(text: &str) {
    write(Level::Error, text);
}

/// Something that a user should know.
pub fn notice(text: &str) {
    write(Level::Notice, text);
}

/// Something happens.
pub fn info(text: &str) {
    write(Level::Info, text);
}

fn write(level: Level, text: &str) {
    let Some(log) = LOG.get().filter(|log| level <= log.level) else { return };
    match &log.file {
        Some(file) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let line =
                format!("{}.{:03} [{}] {text}\n", now.as_secs(), now.subsec_millis(), std::process::id());
            let mut file = file;
            let _ = Write::write_all(&mut file, line.as_bytes());
        }
        None => {
            let Ok(text) = CString::new(text) else { return };
            // SAFETY: a format with one text, and that text.
            unsafe { libc::syslog(libc::LOG_DAEMON | level as i32, c"rpmemd: %s".as_ptr(), text.as_ptr()) };
        }
    }
}
