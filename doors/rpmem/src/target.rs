//! The host of a pool: `[user@]host[:port]`.

use crate::failure::{Failure, Result};

/// A host, in the form that ssh takes.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// `[user@]host`, without brackets.
    pub place: String,
    /// The port of ssh.
    pub port: Option<u16>,
    /// The host is an address of IPv6.
    pub is_v6: bool,
}

impl Target {
    /// Reads a target. An address of IPv6 stands in brackets where a port follows.
    ///
    /// # Errors
    /// EINVAL: there is no host, or the port is none.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| Failure::invalid(format!("target {text:?}: {why}"));
        let (user, rest) = text.rsplit_once('@').map_or((None, text), |(user, rest)| (Some(user), rest));
        let (host, port, is_v6) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("a bracket is open"))?;
                let port = match rest {
                    "" => None,
                    _ => Some(rest.strip_prefix(':').ok_or_else(|| wrong("no port follows the bracket"))?),
                };
                (host, port, true)
            }
            None => match rest.split_once(':') {
                Some((_, more)) if more.contains(':') => (rest, None, true),
                Some((host, port)) => (host, Some(port), false),
                None => (rest, None, false),
            },
        };
        if host.is_empty() || user == Some("") {
            return Err(wrong("a host or a user is empty"));
        }
        // ssh would take it as an option.
        if text.starts_with('-') || host.starts_with('-') {
            return Err(wrong("no name begins with -"));
        }
        let number = |port: &str| port.parse().ok().filter(|port| *port != 0);
        let port = port.map(|port| number(port).ok_or_else(|| wrong("the port is no number"))).transpose()?;
        let place = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
        Ok(Self { place, port, is_v6 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_users_and_ports() {
        for (text, place, port, is_v6) in [
            ("host", "host", None, false),
            ("user@host", "user@host", None, false),
            ("host:22", "host", Some(22), false),
            ("me@[fe80::1]:2222", "me@fe80::1", Some(2222), true),
            ("[::1]", "::1", None, true),
            ("::1", "::1", None, true),
            ("10.0.0.1:1", "10.0.0.1", Some(1), false),
        ] {
            let target = Target { place: place.to_owned(), port, is_v6 };
            assert_eq!(Target::parse(text), Ok(target), "{text}");
        }
        for text in [
            "",
            "user@",
            "@host",
            ":22",
            "host:",
            "host:x",
            "host:0",
            "host:70000",
            "[::1",
            "[::1]22",
            "[]:1",
            "-oProxy",
        ] {
            assert_eq!(Target::parse(text).expect_err(text).errno, libc::EINVAL, "{text}");
        }
    }
}
