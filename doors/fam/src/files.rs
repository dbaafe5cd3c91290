//! OpenFAM's files of settings. Keys that have no meaning here are left, and named for messages.

mod yaml;

use crate::error::{FamError, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yaml::{Node, Table};

/// Where the files are without `OPENFAM_ROOT`.
const USUAL: &str = "/opt/OpenFAM/config";
/// Bytes of the smallest block: a number that is changed as one step lies in one.
const LEAST_BLOCK: u64 = 16;
/// Bytes of a block where the file does not say.
pub const BLOCK: u64 = 1 << 20;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// A name or a number; of IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// The address of a text, `host:port`; IPv6 in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.trim().rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let is_whole = !host.is_empty() && (bare.is_some() || !host.contains(':'));
        is_whole.then_some(())?;
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// `fam_pe_config.yaml`: what a program uses. `None` and empty: the file says nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pe {
    /// `fam_client_interface_service_address`: where the keeper listens.
    pub keeper: Option<Address>,
    /// The texts of the other keys, by key: `client_interface_type`, `provider`, `FamThreadModel`,
    /// `openfam_model`, `runtime`, `if_device`, `default_memory_type`.
    pub texts: BTreeMap<&'static str, String>,
    /// What has no meaning here.
    pub ignored: Vec<String>,
}

/// `fam_client_interface_config.yaml`: which servers there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// `memsrv_list`: servers of memory, by number.
    pub memory: BTreeMap<u64, Address>,
    /// What has no meaning here.
    pub ignored: Vec<String>,
}

/// A server of memory of `fam_memoryserver_config.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryServer {
    /// `memory_type`: whether its memory is files that are kept.
    pub is_persistent: bool,
    /// `fam_path`: the folder of its files.
    pub path: Option<PathBuf>,
    /// `rpc_interface`: where it listens.
    pub address: Option<Address>,
}

/// `fam_memoryserver_config.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryServers {
    /// `Memservers`, by number.
    pub servers: BTreeMap<u64, MemoryServer>,
    /// `fam_backup_path`: the folder of backups.
    pub backups: Option<PathBuf>,
    /// What has no meaning here.
    pub ignored: Vec<String>,
}

/// `fam_metadata_config.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `metadata_path`: the folder of the names, rights and sizes.
    pub path: Option<PathBuf>,
    /// `enable_region_spanning`: whether a region lies on several servers.
    pub is_spanning: bool,
    /// `dataitem_interleave_size`: bytes of a block.
    pub block: u64,
    /// What has no meaning here.
    pub ignored: Vec<String>,
}

const PE: &str = "fam_pe_config.yaml";
const INTERFACE: &str = "fam_client_interface_config.yaml";
const MEMORY: &str = "fam_memoryserver_config.yaml";
const METADATA: &str = "fam_metadata_config.yaml";

/// The folder of the files, and whether they must be there: it is `OPENFAM_ROOT`'s, whose value is
/// `root`.
pub fn folder(root: Option<&Path>) -> (PathBuf, bool) {
    match root.filter(|root| !root.as_os_str().is_empty()) {
        Some(root) => (root.join("config"), true),
        None => (USUAL.into(), false),
    }
}

/// Reads a file of a folder by one of the functions of this module; `None`: there is none.
///
/// # Errors
/// [`FamError::Invalid`]: it cannot be read, says what cannot be, or is missing must be there.
fn read<T>(at: &(PathBuf, bool), name: &str, parse: fn(&str) -> Result<T>) -> Result<Option<T>> {
    let path = at.0.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !at.1 => Ok(None),
        Err(error) => Err(FamError::Invalid.because(format!("{}: {error}", path.display()))),
    }
}

impl Pe {
    /// Reads the file of a folder that [`folder`] has named; `None`: there is none.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: it says what cannot be, or must be there and cannot be read.
    pub fn read(at: &(PathBuf, bool)) -> Result<Option<Self>> {
        read(at, PE, Self::parse)
    }

    /// The settings of a file's text.
    ///
    /// # Errors
    /// [`FamError::Invalid`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Table::parse(PE, text)?;
        let key = "fam_client_interface_service_address";
        let keeper = table.text(key)?.map(|text| address(&table, key, &text)).transpose()?;
        let mut texts = BTreeMap::new();
        for key in [
            "client_interface_type",
            "provider",
            "FamThreadModel",
            "openfam_model",
            "runtime",
            "if_device",
            "default_memory_type",
        ] {
            texts.extend(table.text(key)?.map(|text| (key, text)));
        }
        Ok(Self { keeper, texts, ignored: table.ignored() })
    }
}

impl Interface {
    /// Reads the file of a folder, as [`Pe::read`] does.
    ///
    /// # Errors
    /// Those of [`Pe::read`].
    pub fn read(at: &(PathBuf, bool)) -> Result<Option<Self>> {
        read(at, INTERFACE, Self::parse)
    }

    /// The settings of a file's text.
    ///
    /// # Errors
    /// [`FamError::Invalid`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Table::parse(INTERFACE, text)?;
        let key = "memsrv_list";
        let mut memory = BTreeMap::new();
        for entry in table.texts(key)? {
            let parts = entry.split_once(':').and_then(|(id, rest)| Some((id.trim().parse().ok()?, rest)));
            let (id, rest) = parts.ok_or_else(|| table.wrong(key, "has an entry that is no id:host:port"))?;
            if memory.insert(id, address(&table, key, rest)?).is_some() {
                return Err(table.wrong(key, "has a server twice"));
            }
        }
        if memory.len() > crate::wire::MOST_SERVERS {
            return Err(table.wrong(key, "has more than 256 servers"));
        }
        // One daemon keeps the metadata: the one that clients find.
        table.take("metadata_list");
        Ok(Self { memory, ignored: table.ignored() })
    }
}

impl MemoryServers {
    /// Reads the file of a folder, as [`Pe::read`] does.
    ///
    /// # Errors
    /// Those of [`Pe::read`].
    pub fn read(at: &(PathBuf, bool)) -> Result<Option<Self>> {
        read(at, MEMORY, Self::parse)
    }

    /// The settings of a file's text.
    ///
    /// # Errors
    /// [`FamError::Invalid`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Table::parse(MEMORY, text)?;
        let backups = table.text("fam_backup_path")?.map(PathBuf::from);
        let key = "Memservers";
        let listed = match table.take(key) {
            None => Vec::new(),
            Some(Node::Table(all)) => all,
            Some(_) => return Err(table.wrong(key, "is no table")),
        };
        let (mut servers, mut ignored) = (BTreeMap::new(), Vec::new());
        for (id, node) in listed {
            let number = id.parse().map_err(|_| table.wrong(key, "has a key that is no number"))?;
            let mut one = table.within(&id, node)?;
            let is_persistent = match one.text("memory_type")?.as_deref() {
                None | Some("volatile") => false,
                Some("persistent") => true,
                Some(_) => return Err(one.wrong("memory_type", "is neither volatile nor persistent")),
            };
            let path = one.text("fam_path")?.map(PathBuf::from);
            let address =
                one.text("rpc_interface")?.map(|text| address(&one, "rpc_interface", &text)).transpose()?;
            ignored.extend(one.ignored());
            servers.insert(number, MemoryServer { is_persistent, path, address });
        }
        ignored.extend(table.ignored());
        Ok(Self { servers, backups, ignored })
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self { path: None, is_spanning: true, block: BLOCK, ignored: Vec::new() }
    }
}

impl Metadata {
    /// Reads the file of a folder, as [`Pe::read`] does.
    ///
    /// # Errors
    /// Those of [`Pe::read`]; [`FamError::NotPwrTwo`].
    pub fn read(at: &(PathBuf, bool)) -> Result<Option<Self>> {
        read(at, METADATA, Self::parse)
    }

    /// The settings of a file's text.
    ///
    /// # Errors
    /// [`FamError::Invalid`]; [`FamError::NotPwrTwo`]: the size of a block is no power of two.
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Table::parse(METADATA, text)?;
        let path = table.text("metadata_path")?.map(PathBuf::from);
        let key = "enable_region_spanning";
        let is_spanning = match table.text(key)?.map(|text| text.to_ascii_lowercase()).as_deref() {
            None | Some("true" | "yes" | "1" | "enable") => true,
            Some("false" | "no" | "0" | "disable") => false,
            Some(_) => return Err(table.wrong(key, "is neither true nor false")),
        };
        let key = "dataitem_interleave_size";
        let block = match table.text(key)? {
            None => BLOCK,
            Some(text) => text.parse().map_err(|_| table.wrong(key, "is no number"))?,
        };
        if !u64::is_power_of_two(block) {
            let why = format!("{METADATA}: {key} {block} is no power of two");
            return Err(FamError::NotPwrTwo.because(why));
        }
        if block < LEAST_BLOCK {
            return Err(table.wrong(key, "is less than 16, and numbers of 128 bits do not fit"));
        }
        Ok(Self { path, is_spanning, block, ignored: table.ignored() })
    }
}

fn address(table: &Table, key: &str, text: &str) -> Result<Address> {
    Address::parse(text).ok_or_else(|| table.wrong(key, "has no host:port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_installation_are_read_as_they_are() {
        let pe = Pe::parse(
            "# of a program\nfam_client_interface_service_address: 127.0.0.1:8787\n\
             client_interface_type: rpc\nprovider: sockets\nFamThreadModel: single\nlibfabric_port: 7500\n\
             if_device:\n",
        )
        .expect("a file");
        assert_eq!(pe.keeper, Some(Address { host: "127.0.0.1".to_owned(), port: 8787 }));
        assert_eq!(pe.texts["provider"], "sockets");
        assert_eq!((pe.texts.len(), pe.ignored), (3, vec![format!("{PE}: libfabric_port")]));

        for list in ["[0:127.0.0.1:8789,1:node2:8790]", "\n - 0:127.0.0.1:8789\n - 1:node2:8790"] {
            let text = format!("---\nmetadata_list: [0:127.0.0.1:8788]\nmemsrv_list: {list}\n");
            let interface = Interface::parse(&text).expect("a file");
            assert_eq!(interface.memory.len(), 2);
            assert_eq!(interface.memory[&1].to_string(), "node2:8790");
        }
        let memory = MemoryServers::parse(
            "Memservers:\n  0:\n    memory_type: volatile\n    fam_path: /dev/shm/vol\n    \
             rpc_interface: 127.0.0.1:8789\n    libfabric_port: 7500\n  3:\n    memory_type: persistent\n    \
             fam_path: /var/fam\nfam_backup_path: /var/backup\n",
        )
        .expect("a file");
        assert!(memory.servers[&3].is_persistent && !memory.servers[&0].is_persistent);
        assert_eq!(memory.servers[&3].path.as_deref(), Some(Path::new("/var/fam")));
        assert_eq!(memory.backups.as_deref(), Some(Path::new("/var/backup")));
        let metadata = Metadata::parse(
            "metadata_path: /var/meta\nenable_region_spanning: false\ndataitem_interleave_size: 4096\n",
        )
        .expect("a file");
        assert_eq!((metadata.is_spanning, metadata.block), (false, 4096));
        for empty in ["", "# nothing\n\n", "---\n"] {
            assert_eq!(Metadata::parse(empty).expect("a file"), Metadata::default());
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_file_and_key() {
        let wrong: [(Result<()>, &str); 9] = [
            (Pe::parse("fam_client_interface_service_address: here\n").map(drop), "host:port"),
            (Pe::parse("provider: [a, b]\n").map(drop), "provider is no text"),
            (Pe::parse("a: [\n").map(drop), PE),
            (Interface::parse("memsrv_list: [0]\n").map(drop), "id:host:port"),
            (Interface::parse("memsrv_list: [0:a:1, 0:b:2]\n").map(drop), "twice"),
            (MemoryServers::parse("Memservers:\n  0:\n    memory_type: both\n").map(drop), "memory_type"),
            (MemoryServers::parse("Memservers: 5\n").map(drop), "Memservers is no table"),
            (Metadata::parse("dataitem_interleave_size: many\n").map(drop), "no number"),
            (Metadata::parse("dataitem_interleave_size: 8\n").map(drop), "less than 16"),
        ];
        for (result, part) in wrong {
            let failure = result.expect_err(part);
            assert!(failure.error == FamError::Invalid && failure.text.contains(part), "{}", failure.text);
        }
        for size in [0, 3000] {
            let text = format!("dataitem_interleave_size: {size}\n");
            assert_eq!(Metadata::parse(&text).expect_err("no power").error, FamError::NotPwrTwo);
        }
    }

    #[test]
    fn addresses_of_every_family_are_read_and_written() {
        for (text, host, port) in
            [("a:1", "a", 1), ("[::1]:8787", "::1", 8787), ("10.0.0.1:2", "10.0.0.1", 2)]
        {
            let address = Address::parse(text).expect("an address");
            assert_eq!(
                (address.host.as_str(), address.port, address.to_string()),
                (host, port, text.to_owned())
            );
        }
        for wrong in ["", "a", ":1", "a:", "::1:5", "a:70000", "[]:1"] {
            assert_eq!(Address::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_may_be_missing_in_the_usual_folder_alone() {
        let nowhere = PathBuf::from("/nowhere/at/all");
        assert_eq!(Pe::read(&(nowhere.clone(), false)).expect("nothing"), None);
        assert_eq!(Pe::read(&(nowhere, true)).expect_err("it must be there").error, FamError::Invalid);
        assert_eq!(folder(Some(Path::new("/a"))), (PathBuf::from("/a/config"), true));
        assert_eq!(folder(None), (PathBuf::from(USUAL), false));
    }
}
