//! The machines of a job: only this one.

use std::io::Write as _;
use std::net::{ToSocketAddrs, UdpSocket};

use super::error::Error;
use super::settings::Settings;

/// Refuses a host file that names another machine, and writes the file that MP_SAVEHOSTFILE names.
pub(super) fn check(settings: &Settings) -> Result<(), Error> {
    let mine = nix::unistd::gethostname()
        .map_err(|error| Error::system("cannot find the name of this machine", error))?;
    let mine = mine.to_string_lossy();
    // "NULL" is the old way to say that there is none.
    let file = settings.text("MP_HOSTFILE")?.filter(|file| !file.eq_ignore_ascii_case("null"));
    if let Some(file) = file {
        let text = std::fs::read_to_string(file).map_err(|error| Error::system(file, error))?;
        if let Some(other) = named(&text).find(|host| !is_this(host, &mine)) {
            return Err(Error::asked(format!(
                "{file} names the host {other}, but this is {mine}; jobs on several machines are not supported yet"
            )));
        }
    }
    if let Some(file) = settings.text("MP_SAVEHOSTFILE")? {
        std::fs::File::create(file)
            .and_then(|mut saved| writeln!(saved, "{mine}"))
            .map_err(|error| Error::system(file, error))?;
    }
    Ok(())
}

/// The hosts of a host file: the first word of each line; lines that begin with !, * or # are comments.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|host| !host.starts_with(['!', '*', '#']))
}

/// Whether a host is the one we run on: by its name, or because one of its addresses can be bound here.
fn is_this(host: &str, mine: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    if host.eq_ignore_ascii_case("localhost") || host.eq_ignore_ascii_case(mine) {
        return true;
    }
    if !(host.contains('.') && mine.contains('.')) && short(host) == short(mine) {
        return true;
    }
    (host, 0)
        .to_socket_addrs()
        .is_ok_and(|addresses| addresses.into_iter().any(|address| UdpSocket::bind(address).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_file_has_a_host_a_line() {
        let text = "! comment\n* comment\n# comment\n\none\n  two extra words\nthree\n";
        assert_eq!(named(text).collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn this_host_has_several_names() {
        for name in ["localhost", "here", "HERE", "here.example.org", "127.0.0.1", "::1"] {
            assert!(is_this(name, "here"), "{name}");
        }
        assert!(is_this("here", "here.example.org"));
        // An address of the range that is reserved for documents.
        assert!(!is_this("192.0.2.1", "here"));
        assert!(!is_this("here.example.com", "here.example.org"));
    }
}
