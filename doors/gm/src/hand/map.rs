//! LAPI_GM_MAP: a file that names the nodes, one a line: number, host, address.

use openlapi_runtime::environment::process_env;
use openlapi_session::usual_key_file;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The most nodes of a map.
const MOST: u32 = 4096;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `unix:PATH`
    Unix(PathBuf),
    /// `tcp:HOST:PORT`, with numbers for the host
    Tcp(SocketAddr),
}

/// A line of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The host's name.
    pub host: String,
    /// Where it listens.
    pub address: Address,
}

/// All nodes, and which of them this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The nodes, from node 1 on.
    pub nodes: Vec<Node>,
    /// The place of this process among them.
    pub own: u32,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(at) => write!(f, "tcp:{at}"),
        }
    }
}

impl Map {
    /// The map in this file, for the process that LAPI_GM_NODE names, or whose host has one line.
    ///
    /// # Errors
    /// A sentence that names the file and the line, or the variable.
    pub fn read_here(path: &str) -> Result<Self, String> {
        let host = rustix::system::uname();
        let host = &host.nodename().to_string_lossy();
        let text = fs::read_to_string(path).map_err(|error| format!("LAPI_GM_MAP: {path}: {error}"))?;
        let nodes = parse(&text).map_err(|fault| format!("LAPI_GM_MAP: {path}: {fault}"))?;
        let own = own(&nodes, host, process_env("LAPI_GM_NODE").as_deref())?;
        Ok(Self { nodes, own })
    }
}

/// The file of the key with which processes on several hosts prove themselves to each other.
pub fn key_path() -> PathBuf {
    let given = process_env("LAPI_GM_KEY").filter(|path| !path.is_empty());
    given.map_or_else(usual_key_file, PathBuf::from)
}

/// The place of this process.
fn own(nodes: &[Node], host: &str, number: Option<&str>) -> Result<u32, String> {
    if let Some(number) = number.filter(|number| !number.is_empty()) {
        let found = number.parse().ok().filter(|number| (1..=nodes.len()).contains(number));
        let wrong = || format!("LAPI_GM_NODE is \"{number}\"; the map has the nodes 1 to {}", nodes.len());
        return found.map(|number: usize| number as u32 - 1).ok_or_else(wrong);
    }
    let of_host: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].host == host).collect();
    match of_host[..] {
        [one] => Ok(one as u32),
        _ => Err(format!(
            "LAPI_GM_NODE is not set, and {} lines of LAPI_GM_MAP name this host, {host}",
            of_host.len()
        )),
    }
}

/// The nodes of a map; `#` begins a comment.
pub fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut found = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
        let wrong = |why: &str| Err(format!("line {line}: {why}"));
        let [number, host, address] = words[..] else {
            if words.is_empty() {
                continue;
            }
            return wrong("a line has a number, a host and an address");
        };
        let number = number.parse().ok().filter(|number| (1..=MOST).contains(number));
        let Some(number) = number else { return wrong("nodes have numbers from 1 to 4096") };
        let address = match address.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Address::Unix(path.into()),
            Some(("tcp", at)) => match at.parse() {
                Ok(at) => Address::Tcp(at),
                Err(_) => return wrong("a TCP address is tcp:NUMBERS:PORT"),
            },
            _ => return wrong("an address begins with unix: or tcp:"),
        };
        if found.insert(number, Node { host: host.to_owned(), address }).is_some() {
            return wrong("the node has a line already");
        }
    }
    let last = found.keys().last().copied().unwrap_or(0);
    match found.len() as u32 == last && last != 0 {
        true => Ok(found.into_values().collect()),
        false => {
            Err(format!("the nodes are numbered from 1 on without a gap; {} lines, last {last}", found.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_or_its_fault_named() {
        let map = "# nodes\n2 beta tcp:10.0.0.2:77 # there\n\n1 alpha unix:/tmp/x\n3 beta tcp:[::1]:5\n";
        let nodes = parse(map).expect("a map");
        assert_eq!(nodes[0], Node { host: "alpha".into(), address: Address::Unix("/tmp/x".into()) });
        assert_eq!(nodes[1].address.to_string(), "tcp:10.0.0.2:77");
        assert_eq!(nodes[2].address.to_string(), "tcp:[::1]:5");
        assert_eq!(own(&nodes, "alpha", None), Ok(0));
        assert_eq!(own(&nodes, "x", Some("3")), Ok(2));
        assert!(own(&nodes, "beta", None).expect_err("two").contains("2 lines"));
        assert!(own(&nodes, "alpha", Some("4")).expect_err("none").contains("LAPI_GM_NODE is \"4\""));
        for (wrong, why) in [
            ("", "0 lines"),
            ("1 alpha", "line 1: a line has"),
            ("0 a unix:x", "numbers from 1"),
            ("1 a unix:", "begins with"),
            ("1 a tcp:host:5", "tcp:NUMBERS:PORT"),
            ("1 a unix:x\n1 b unix:y", "line 2: the node has"),
            ("2 a unix:x", "without a gap"),
        ] {
            assert!(parse(wrong).expect_err("a fault").contains(why), "{wrong}");
        }
    }
}
