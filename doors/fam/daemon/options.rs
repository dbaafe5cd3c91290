//! The command line, and OpenFAM's files.

use fam::files::{Address, Interface, MemoryServers, Metadata, Pe, folder};
use fam::{FamError, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the daemon is called.
pub const USAGE: &str = "\
usage: openfamd [--config FOLDER] [--server ID] [--torn]
  --config FOLDER  where OpenFAM's files are (default: $OPENFAM_ROOT/config, /opt/OpenFAM/config)
  --server ID      has the memory of this entry of memsrv_list alone; without it the daemon keeps
                   the metadata, too, and has the memory of the first entry
  --torn           lists ranges of persistent items that were not written as a whole, and ends
  --help, --version
";

/// Where the daemon of a program without settings listens.
const KEEPER: (&str, u16) = ("127.0.0.1", 8787);
/// How often persistent memory is written to the disk.
const SYNC: Duration = Duration::from_secs(5);

/// What is wanted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder of the files.
    pub config: Option<PathBuf>,
    /// The server of memory.
    pub server: Option<u64>,
    /// List torn ranges.
    pub torn: bool,
    /// Print how the daemon is called.
    pub help: bool,
    /// Print the version.
    pub version: bool,
}

/// Reads the command line.
///
/// # Errors
/// [`FamError::Invalid`].
pub fn parse(words: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| FamError::Invalid.because(format!("{word} needs a value")));
        match word.as_str() {
            "--config" => options.config = Some(value()?.into()),
            "--server" => {
                let number = value()?.parse();
                options.server =
                    Some(number.map_err(|_| FamError::Invalid.because("--server: a number is needed"))?);
            }
            "--torn" => options.torn = true,
            "--help" | "-h" => options.help = true,
            "--version" | "-V" => options.version = true,
            _ => return Err(FamError::Invalid.because(format!("{word} is no option"))),
        }
    }
    Ok(options)
}

/// What the daemon does.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where it listens.
    pub listens: Address,
    /// The number of its memory in the pool.
    pub server: u64,
    /// The folder of persistent memory; `None`: its memory is volatile.
    pub folder: Option<PathBuf>,
    /// As a keeper.
    pub keeper: Option<KeeperPlan>,
    /// How often persistent memory is written to the disk.
    pub sync: Duration,
    /// What has no meaning here, for messages.
    pub ignored: Vec<String>,
}

/// What a keeper does.
#[derive(Debug, PartialEq, Eq)]
pub struct KeeperPlan {
    /// The other servers of memory.
    pub others: BTreeMap<u64, Address>,
    /// The folder of the metadata.
    pub metadata: Option<PathBuf>,
    /// The folder of backups.
    pub backups: Option<PathBuf>,
    /// Bytes of a block.
    pub block: u64,
    /// Whether a region lies on several servers.
    pub is_spanning: bool,
}

/// Reads the files.
///
/// # Errors
/// [`FamError::Invalid`], [`FamError::NotPwrTwo`].
pub fn plan(options: &Options, env: &dyn Fn(&str) -> Option<String>) -> Result<Plan> {
    let at = match &options.config {
        Some(config) => (config.clone(), true),
        None => folder(env("OPENFAM_ROOT").as_deref().map(Path::new)),
    };
    let pe = Pe::read(&at)?.unwrap_or_default();
    let interface = Interface::read(&at)?.unwrap_or_default();
    let memory = MemoryServers::read(&at)?.unwrap_or_default();
    let metadata = Metadata::read(&at)?.unwrap_or_default();
    let first = interface.memory.keys().next().copied().unwrap_or(0);
    let server = options.server.unwrap_or(first);
    let entry = memory.servers.get(&server);
    let persistent = entry.filter(|entry| entry.is_persistent);
    let folder = match persistent.map(|entry| entry.path.clone()) {
        None => None,
        Some(Some(path)) => Some(path),
        Some(None) => {
            let why = format!("server {server} has memory_type persistent, and no fam_path");
            return Err(FamError::Invalid.because(why));
        }
    };
    let is_kept = memory.servers.values().any(|entry| entry.is_persistent);
    if is_kept && options.server.is_none() && metadata.path.is_none() {
        let why = "persistent memory needs metadata_path: names and rights would end with the daemon";
        return Err(FamError::Invalid.because(why));
    }
    if memory.backups.is_some() && options.server.is_none() && metadata.path.is_none() {
        let why = "fam_backup_path needs metadata_path: names of backups would end with the daemon, and not \
                   their files";
        return Err(FamError::Invalid.because(why));
    }
    let keeper_at = || Address { host: KEEPER.0.to_owned(), port: KEEPER.1 };
    let listens = match options.server {
        None => pe.keeper.unwrap_or_else(keeper_at),
        Some(server) => {
            let listed = interface.memory.get(&server).cloned();
            let own = listed.or_else(|| entry.and_then(|entry| entry.address.clone()));
            own.ok_or_else(|| FamError::Invalid.because(format!("server {server} is not in memsrv_list")))?
        }
    };
    let keeper = options.server.is_none().then(|| KeeperPlan {
        others: interface.memory.into_iter().filter(|(number, _)| *number != server).collect(),
        metadata: metadata.path,
        backups: memory.backups,
        block: metadata.block,
        is_spanning: metadata.is_spanning,
    });
    let sync = match env("LAPI_FAM_SYNC").map(|text| text.parse::<u32>()) {
        None => SYNC,
        Some(Ok(seconds)) if seconds != 0 => Duration::from_secs(seconds.into()),
        Some(_) => return Err(FamError::Invalid.because("LAPI_FAM_SYNC: whole seconds, at least 1")),
    };
    let ignored = [pe.ignored, interface.ignored, memory.ignored, metadata.ignored].concat();
    Ok(Plan { listens, server, folder, keeper, sync, ignored })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn words_are_options_or_refused() {
        assert_eq!(parse(&[]).expect("nothing"), Options::default());
        let all = parse(&words("--config /a --server 3 --torn")).expect("options");
        assert_eq!((all.config, all.server, all.torn), (Some("/a".into()), Some(3), true));
        for wrong in ["--config", "--server x", "--other", "a"] {
            assert_eq!(parse(&words(wrong)).expect_err("it is wrong").error, FamError::Invalid, "{wrong}");
        }
    }

    #[test]
    fn files_say_who_has_what() {
        let folder = std::env::temp_dir().join(format!("openfamd-plan-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
        write("fam_pe_config.yaml", "fam_client_interface_service_address: node1:9000\n");
        write("fam_client_interface_config.yaml", "memsrv_list: [2:node1:9001, 5:node2:9002]\n");
        write(
            "fam_memoryserver_config.yaml",
            "Memservers:\n 2:\n  memory_type: persistent\n  fam_path: /var/fam\n 5:\n  memory_type: volatile\n",
        );
        write("fam_metadata_config.yaml", "metadata_path: /var/meta\n");
        let none = |_: &str| None;
        let with = |server| Options { config: Some(folder.clone()), server, ..Options::default() };
        let keeper = plan(&with(None), &none).expect("a plan");
        assert_eq!((keeper.listens.to_string(), keeper.server), ("node1:9000".to_owned(), 2));
        assert_eq!(keeper.folder.as_deref(), Some(Path::new("/var/fam")));
        let others = keeper.keeper.expect("a keeper").others;
        assert_eq!(others.into_keys().collect::<Vec<u64>>(), [5]);
        let server = plan(&with(Some(5)), &none).expect("a plan");
        assert_eq!(
            (server.listens.to_string(), server.folder, server.keeper),
            ("node2:9002".to_owned(), None, None)
        );
        assert_eq!(plan(&with(Some(7)), &none).expect_err("no such server").error, FamError::Invalid);
        let zero = |name: &str| (name == "LAPI_FAM_SYNC").then(|| "0".to_owned());
        assert_eq!(plan(&with(None), &zero).expect_err("never").error, FamError::Invalid);
        write("fam_metadata_config.yaml", "");
        assert!(plan(&with(None), &none).expect_err("no metadata").text.contains("metadata_path"));
        write("fam_memoryserver_config.yaml", "fam_backup_path: /var/backup\n");
        let refused = plan(&with(None), &none).expect_err("no metadata").text;
        assert!(refused.contains("fam_backup_path needs metadata_path"), "{refused}");
        assert_eq!(plan(&with(Some(5)), &none).expect("a plan").keeper, None);
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
