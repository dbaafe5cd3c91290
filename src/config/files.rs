//! Settings from files: `openlapi.conf` of a user, in `~/.config`, and of a site, in `/etc`.
//!
//! A line is `NAME=VALUE`, with a variable of the environment as its name. The environment wins
//! over the user's file, and that over the site's; an empty value means the default. `LAPI_CONFIG`
//! names other files. A process reads them once, when it first asks for a setting.
//!
//! `poe` reads the files of its own machine, and gives the tasks what it has read in
//! `LAPI_CONFIG_READ`: all of them have the same settings, on every machine. Without `poe` each
//! task reads the files of its machine.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::table::variable;
use super::{Env, nearest, value};
use crate::error::{Error, Result};

/// The file of a site.
pub const OF_SITE: &str = "/etc/openlapi.conf";
/// The file of a user, below `XDG_CONFIG_HOME` or `~/.config`.
const OF_USER: &str = "openlapi.conf";
/// Which files are read instead, by colons; this word: none.
const LIST: &str = "LAPI_CONFIG";
const NO_FILE: &str = "none";
/// What `poe` has read.
pub const READ: &str = "LAPI_CONFIG_READ";
/// A longer file is none of settings.
const LARGEST: u64 = 64 << 10;
/// What editors of other systems begin a text with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// A file with more faults is not a file of settings, either; no more than these are reported.
const MOST_FAULTS: usize = 10;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user's.
    User,
    /// The site's.
    Site,
    /// One that `LAPI_CONFIG` names.
    Named,
}

impl Owner {
    /// As `lapi_info` calls it.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user file",
            Self::Site => "site file",
            Self::Named => "file",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [Self::User, Self::Site, Self::Named].into_iter().find(|owner| owner.word() == word)
    }
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// Whose file it is.
    pub owner: Owner,
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// A setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The variable.
    pub name: String,
    /// The variable's value; empty: the default holds.
    pub value: String,
    /// Where it stands.
    pub place: FileLine,
}

/// The settings of all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Which files were looked for, and whether they were there; in the order in which they win.
    pub looked_for: Vec<(Owner, String, bool)>,
    /// The settings, those of the file that wins first.
    lines: Vec<Line>,
    /// What is wrong with the files, a sentence each that names file and line.
    pub faults: Vec<String>,
}

impl Files {
    /// The files that the environment asks for; `secure`: that of the site only.
    pub fn find(environment: &Env<'_>, secure: bool) -> Self {
        let mut files = Self::default();
        if secure {
            files.take(Owner::Site, OF_SITE);
            return files;
        }
        if let Some(read) = environment(READ) {
            files.unpack(&read);
            return files;
        }
        match value::given(environment, LIST) {
            Some(word) if word == NO_FILE => {}
            Some(list) => {
                list.split(':')
                    .filter(|path| !path.is_empty())
                    .for_each(|path| files.take(Owner::Named, path));
            }
            None => {
                let folder =
                    |name, below| environment(name).filter(|at| at.starts_with('/')).map(|at| at + below);
                if let Some(folder) = folder("XDG_CONFIG_HOME", "").or_else(|| folder("HOME", "/.config")) {
                    files.take(Owner::User, &format!("{folder}/{OF_USER}"));
                }
                files.take(Owner::Site, OF_SITE);
            }
        }
        files
    }

    /// What [`Self::pack`] has written.
    #[cfg(feature = "fuzz")]
    pub(crate) fn of_pack(text: &str) -> Self {
        let mut files = Self::default();
        files.unpack(text);
        files
    }

    /// A user's file with this text.
    #[cfg(feature = "fuzz")]
    pub(crate) fn of_text(text: &[u8]) -> Self {
        let mut files = Self::default();
        files.parse(Owner::User, "/home/user/.config/openlapi.conf", text);
        files
    }

    /// The value of a variable, in the environment or else here.
    pub fn beside<'a>(&'a self, environment: &'a Env<'a>) -> impl Fn(&str) -> Option<String> + 'a {
        |name| environment(name).or_else(|| Some(self.for_library(name)?.value.clone()))
    }

    /// The setting of a variable, for the library and the tools; `None`: no file has it.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// The setting of a variable of the library that a file may have.
    pub fn for_library(&self, name: &str) -> Option<&Line> {
        variable(name).filter(|variable| !variable.only_in_environment())?;
        self.line(name)
    }

    /// All settings that count, in the order of their files.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| self.line(&line.name).is_some_and(|first| first.place == line.place))
    }

    /// Refuses a value that counts and that its variable does not take.
    ///
    /// # Errors
    /// The code of the variable; the detail names file, line, variable and values.
    pub fn check(&self, environment: &Env<'_>) -> Result<()> {
        self.lines()
            .filter(|line| environment(&line.name).is_none())
            .filter_map(|line| self.for_library(&line.name))
            .try_for_each(Line::check)
    }

    /// Text for [`READ`]: what the tasks of a job get.
    pub fn pack(&self) -> String {
        let mut text = String::new();
        let mut file = None;
        for Line { name, value, place } in self.lines() {
            if file.replace((place.owner, &place.path)) != Some((place.owner, &place.path)) {
                let _ = writeln!(text, "{}\t{}", place.owner.word(), place.path);
            }
            let _ = writeln!(text, "{}\t{name}={value}", place.line);
        }
        text
    }

    /// Reads what [`Self::pack`] has written.
    fn unpack(&mut self, text: &str) {
        let mut file = None;
        for (first, rest) in text.lines().filter_map(|line| line.split_once('\t')) {
            if let Some(owner) = Owner::of_word(first) {
                self.looked_for.push((owner, rest.to_owned(), true));
                file = Some((owner, rest));
            } else if let (Some((owner, path)), Ok(line), Some((name, value))) =
                (file, first.parse(), rest.split_once('='))
            {
                let place = FileLine { owner, path: path.to_owned(), line };
                self.lines.push(Line { name: name.to_owned(), value: value.to_owned(), place });
            }
        }
    }

    /// Reads a file. One that must not be there may be absent.
    fn take(&mut self, owner: Owner, path: &str) {
        let text = read(Path::new(path));
        let is_there = !matches!(text, Ok(None));
        self.looked_for.push((owner, path.to_owned(), is_there));
        match text {
            Ok(Some(text)) => self.parse(owner, path, &text),
            Ok(None) if owner == Owner::Named => self.faults.push(format!("{path}: there is no such file")),
            Ok(None) => {}
            Err(why) => self.faults.push(format!("{path}: {why}; it has no effect")),
        }
    }

    fn parse(&mut self, owner: Owner, path: &str, text: &[u8]) {
        let start = self.lines.len();
        let mut faults = 0;
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        for (at, text) in text.split(|byte| *byte == b'\n').enumerate() {
            let place = FileLine { owner, path: path.to_owned(), line: at + 1 };
            let text = String::from_utf8_lossy(text);
            let fault = match split(&text) {
                // A comment may be in any encoding.
                Ok(None) => continue,
                // It would stand for another value.
                Ok(Some(_)) if matches!(text, Cow::Owned(_)) => Some("not UTF-8".to_owned()),
                Ok(Some((name, value))) => {
                    let line = Line { name: name.to_owned(), value: value.to_owned(), place: place.clone() };
                    let fault = foreign(name);
                    match self.lines[start..].iter_mut().find(|line| line.name == name) {
                        _ if fault.is_some() => fault,
                        Some(before) => {
                            let before = std::mem::replace(before, line);
                            Some(format!(
                                "{name} stands in line {} too, which has no effect",
                                before.place.line
                            ))
                        }
                        None => {
                            self.lines.push(line);
                            None
                        }
                    }
                }
                Err(why) => Some(why.to_owned()),
            };
            let Some(fault) = fault else { continue };
            faults += 1;
            if faults > MOST_FAULTS {
                self.faults.push(format!("{place}: this and what follows is not read: too much is wrong"));
                return;
            }
            self.faults.push(format!("{place}: {fault}"));
        }
    }
}

impl Line {
    /// Refuses a value that its variable does not take.
    pub(super) fn check(&self) -> Result<()> {
        let Some(variable) = variable(&self.name) else { return Ok(()) };
        value::check(variable, &|_| Some(self.value.clone()))
            .map_err(|error| Error { detail: format!("{}: {}", self.place, error.detail), ..error })
    }
}

/// The content of a file; `None`: it is not there.
fn read(path: &Path) -> std::result::Result<Option<Vec<u8>>, String> {
    // A pipe or a device is not waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    Ok(Some(bytes))
}

/// Name and value of a line; `None`: it has none.
fn split(line: &str) -> std::result::Result<Option<(&str, &str)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = line.split_once('=').ok_or("not NAME=VALUE")?;
    let (name, rest) = (name.trim_end(), rest.trim_start());
    let Some(quote) = rest.chars().next().filter(|first| ['"', '\''].contains(first)) else {
        let end = [" #", "\t#"].iter().filter_map(|start| rest.find(start)).min().unwrap_or(rest.len());
        let value = if rest.starts_with('#') { "" } else { &rest[..end] };
        return Ok(Some((name, value.trim_end())));
    };
    let (value, after) = rest[1..].split_once(quote).ok_or("the quotation mark has no end")?;
    let after = after.trim_start();
    if after.is_empty() || after.starts_with('#') {
        Ok(Some((name, value)))
    } else {
        Err("text follows the quotation mark")
    }
}

/// What is wrong with a name. Those that begin with MP_ are of a family of which LAPI is
/// only one member.
fn foreign(name: &str) -> Option<String> {
    match variable(name) {
        // How many tasks, for poe.
        Some(known) if known.only_in_environment() && name != "MP_PROCS" => {
            Some(format!("{name} has an effect in the environment only"))
        }
        None if !name.starts_with("MP_") => {
            let hint = nearest(name).map(|known| format!("; did you mean {known}?")).unwrap_or_default();
            Some(format!("{name} is not a variable of LAPI{hint}"))
        }
        _ => None,
    }
}
