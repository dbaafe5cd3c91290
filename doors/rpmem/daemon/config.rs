//! The configuration: `key = value` in files, and options of the command line.

use crate::log::Level;
use rpmem::{Failure, Result};

/// What the configuration says.
#[derive(Debug, PartialEq, Eq)]
pub struct Config {
    home: String,
    /// Where the log goes without `use_syslog`.
    pub log_file: String,
    /// Where the set files are.
    pub poolset_dir: String,
    /// The client may rely on caches being bypassed.
    pub persist_apm: bool,
    /// The daemon flushes.
    pub persist_general: bool,
    /// The log goes to syslog.
    pub use_syslog: bool,
    /// What is written to the log.
    pub log_level: Level,
}

impl Config {
    /// The defaults of a user with this home folder.
    pub fn new(home: &str) -> Self {
        Self {
            home: home.to_owned(),
            log_file: "/var/log/rpmemd.log".to_owned(),
            poolset_dir: home.to_owned(),
            persist_apm: false,
            persist_general: true,
            use_syslog: true,
            log_level: Level::Error,
        }
    }

    /// Takes the lines of a file.
    ///
    /// # Errors
    /// EINVAL, with file and line.
    pub fn read(&mut self, path: &str, text: &str) -> Result<()> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            self.set(key.trim(), value.trim())
                .map_err(|failure| Failure::invalid(format!("{path}, line {number}: {failure}")))?;
        }
        Ok(())
    }

    /// Takes one setting.
    ///
    /// # Errors
    /// EINVAL: there is no such key, or no such value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let path = || match value.replace("$HOME", &self.home) {
            path if path.is_empty() => Err(Failure::invalid(format!("{key} needs a value"))),
            path => Ok(path),
        };
        let choice = || match value {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(Failure::invalid(format!("{key}: {value:?} is neither yes nor no"))),
        };
        match key {
            "log-file" => self.log_file = path()?,
            "poolset-dir" => self.poolset_dir = path()?,
            "persist-apm" => self.persist_apm = choice()?,
            "persist-general" => self.persist_general = choice()?,
            "use-syslog" => self.use_syslog = choice()?,
            "log-level" => {
                let level = Level::of(value);
                self.log_level =
                    level.ok_or_else(|| Failure::invalid(format!("{value:?} is no log-level")))?;
            }
            _ => return Err(Failure::invalid(format!("there is no key {key:?}"))),
        }
        Ok(())
    }

    /// Whether the settings go together.
    ///
    /// # Errors
    /// EINVAL.
    pub fn check(&self) -> Result<()> {
        if !self.persist_apm && !self.persist_general {
            return Err(Failure::invalid("persist-apm and persist-general are both no"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        let mut config = Config::new("/home/me");
        assert!(config.use_syslog && config.persist_general && !config.persist_apm);
        let text = "# comment\npoolset-dir = $HOME/sets # here\nlog-level=debug\n\nuse-syslog = no\n persist-apm=yes\nlog-file = /tmp/a b";
        config.read("f", text).expect("a configuration");
        assert_eq!((&*config.poolset_dir, &*config.log_file), ("/home/me/sets", "/tmp/a b"));
        assert!(!config.use_syslog && config.persist_apm && config.log_level == Level::Debug);
        for line in ["", "x = y", "use-syslog = maybe", "log-level = loud", "poolset-dir =", "persist-apm"] {
            let failed = config.read("f", &format!("\n{line}\n"));
            assert_eq!(failed.is_ok(), line.is_empty(), "{line}");
            assert!(
                failed.is_ok_and(|()| true)
                    || config.read("f", line).is_err_and(|failure| failure.text.contains("line 1"))
            );
        }
        config.read("f", "persist-general = no").expect("one is left");
        config.check().expect("one is left");
        config.set("persist-apm", "no").expect("a key");
        assert_eq!(config.check().map_err(|failure| failure.errno), Err(libc::EINVAL));
    }
}
