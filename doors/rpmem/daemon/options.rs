//! The command line.

use rpmem::{Failure, Result};

/// What `--help` prints.
pub const USAGE: &str = "\
usage: rpmemd [OPTION]...
  -c, --config FILE        read this file instead of /etc/rpmemd/rpmemd.conf and ~/.rpmemd.conf
  -r, --remove SET         remove the pool of a set file
  -f, --force              with --remove: also one that is damaged
  -s, --pool-set           with --remove: and the set file
  -t, --nthreads N         threads that serve the client
      --log-file FILE, --log-level LEVEL, --use-syslog, --poolset-dir FOLDER,
      --persist-apm, --persist-general
                           as in the configuration file
  -V, --version
  -h, --help
rpmemd is started by librpmem over ssh; see rpmemd(1).
";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The configuration file.
    pub config: Option<String>,
    /// The set whose pool is removed.
    pub remove: Option<String>,
    /// Also one that is damaged.
    pub force: bool,
    /// And the set file.
    pub pool_set: bool,
    /// How many threads serve.
    pub threads: Option<usize>,
    /// Keys of the configuration, and their values.
    pub settings: Vec<(String, String)>,
    /// `--version`.
    pub version: bool,
    /// `--help`.
    pub help: bool,
}

/// Keys of the configuration with a value,
const VALUES: &[&str] = &["log-file", "log-level", "poolset-dir"];
/// and those that are yes when they stand alone.
const FLAGS: &[&str] = &["persist-apm", "persist-general", "use-syslog"];

/// Reads a command line, without the program's name.
///
/// # Errors
/// EINVAL.
pub fn parse(words: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, joined) = match word.strip_prefix("--").and_then(|long| long.split_once('=')) {
            Some((name, value)) => (format!("--{name}"), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        let mut value = || {
            let next = joined.clone().or_else(|| words.next().cloned());
            next.ok_or_else(|| Failure::invalid(format!("{name} needs a value")))
        };
        match name.as_str() {
            "-c" | "--config" => options.config = Some(value()?),
            "-r" | "--remove" => options.remove = Some(value()?),
            "-t" | "--nthreads" => {
                let number = value()?;
                let threads = number.parse().ok().filter(|threads| (1..=1024).contains(threads));
                let wrong = || Failure::invalid(format!("{name}: {number} is no number from 1 to 1024"));
                options.threads = Some(threads.ok_or_else(wrong)?);
            }
            "-f" | "--force" if joined.is_none() => options.force = true,
            "-s" | "--pool-set" if joined.is_none() => options.pool_set = true,
            "-V" | "--version" if joined.is_none() => options.version = true,
            "-h" | "--help" if joined.is_none() => options.help = true,
            _ => {
                let key = name.strip_prefix("--").unwrap_or_default();
                let value = match () {
                    () if VALUES.contains(&key) => value()?,
                    () if FLAGS.contains(&key) => joined.clone().unwrap_or_else(|| "yes".to_owned()),
                    () => return Err(Failure::invalid(format!("there is no option {word}"))),
                };
                options.settings.push((key.to_owned(), value));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Options> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn short_and_long() {
        let long =
            of("--config=/c --remove a.set --force --pool-set --nthreads 4 --log-level=debug --persist-apm");
        let short = of("-c /c -r a.set -f -s -t 4 --log-level debug --persist-apm=yes");
        assert_eq!(long, short);
        let options = long.expect("options");
        assert_eq!((options.threads, options.remove.as_deref()), (Some(4), Some("a.set")));
        let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(options.settings, [setting("log-level", "debug"), setting("persist-apm", "yes")]);
        for line in ["-x", "set", "-c", "--nthreads", "-t 0", "-t x", "--force=yes", "--unknown=1"] {
            assert_eq!(of(line).expect_err(line).errno, libc::EINVAL);
        }
    }
}
