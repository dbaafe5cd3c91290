//! What the environment says. It is read when the library is loaded.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::wire::MOST_LANES;

/// The library's part of the environment.
pub struct Environment {
    /// The program that reaches other hosts (RPMEM_SSH).
    pub ssh: OsString,
    /// What starts the daemon there, one command or several (RPMEM_CMD).
    commands: Vec<String>,
    /// RPMEM_MAX_NLANES, or what the protocol allows.
    pub most_lanes: u32,
    /// RPMEM_LOG_LEVEL, from 0 (nothing) to 4.
    pub log_level: u32,
    /// RPMEM_LOG_FILE.
    pub log_file: Option<OsString>,
}

static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
/// How many connections have been opened.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// The environment as it was when the library was loaded.
pub fn environment() -> &'static Environment {
    ENVIRONMENT.get_or_init(|| Environment::of(|name| std::env::var_os(name)))
}

/// Read by the loader before any program's code calls the library.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn read() {
        environment();
    }
    read
};

impl Environment {
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let number = |name: &str| text(name).and_then(|value| value.trim().parse::<u32>().ok());
        let commands = text("RPMEM_CMD").unwrap_or_default();
        let mut commands: Vec<String> =
            commands.split('|').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect();
        if commands.is_empty() {
            commands.push("rpmemd".to_owned());
        }
        Self {
            ssh: variable("RPMEM_SSH").filter(|name| !name.as_bytes().is_empty()).unwrap_or("ssh".into()),
            commands,
            most_lanes: number("RPMEM_MAX_NLANES")
                .filter(|most| *most != 0)
                .map_or(MOST_LANES, |most| most.min(MOST_LANES)),
            log_level: number("RPMEM_LOG_LEVEL").unwrap_or(0).min(4),
            log_file: variable("RPMEM_LOG_FILE").filter(|name| !name.as_bytes().is_empty()),
        }
    }

    /// The command of the next connection: several take turns.
    pub fn command(&self) -> &str {
        &self.commands[OPENED.fetch_add(1, Ordering::Relaxed) % self.commands.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Environment {
        Environment::of(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn what_is_not_set_has_a_default() {
        for variables in [&[][..], &[("RPMEM_SSH", ""), ("RPMEM_CMD", " | "), ("RPMEM_MAX_NLANES", "0")]] {
            let found = of(variables);
            assert_eq!((found.ssh.to_str(), found.most_lanes, found.log_level), (Some("ssh"), 1024, 0));
            assert_eq!((found.commands.len(), found.command()), (1, "rpmemd"));
        }
    }

    #[test]
    fn commands_take_turns() {
        let found =
            of(&[("RPMEM_CMD", "one -c a|two | three"), ("RPMEM_MAX_NLANES", "7"), ("RPMEM_LOG_LEVEL", "9")]);
        assert_eq!(found.commands, ["one -c a", "two", "three"]);
        assert_eq!((found.most_lanes, found.log_level), (7, 4));
        // Other tests open no connection.
        let first = found.command().to_owned();
        assert!(found.command() != first && found.command() != first && found.command() == first);
    }
}
