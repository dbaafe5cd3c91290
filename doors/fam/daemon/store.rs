//! Names, rights and sizes of what outlives the daemon: one transaction for each change.

use fam::wire::{BackupFacts, ItemFacts, Piece, RegionFacts};
use fam::{Failure, FamError, Result};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::Path;

const NUMBERS: TableDefinition<&str, u128> = TableDefinition::new("numbers");
const REGIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("regions");
const ITEMS: TableDefinition<u64, &[u8]> = TableDefinition::new("items");
const BACKUPS: TableDefinition<&str, &[u8]> = TableDefinition::new("backups");

/// The file in `metadata_path`.
const FILE: &str = "openfam.redb";

/// A region, with its parts: server and part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// What is known of it.
    pub facts: RegionFacts,
    /// The parts: server and part.
    pub parts: Vec<(u64, u64)>,
}

/// An item, with its pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What is known of it, with its own rights.
    pub facts: ItemFacts,
    /// The pieces.
    pub pieces: Vec<Piece>,
}

/// A backup, with its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// What is known of it.
    pub facts: BackupFacts,
    /// The name of the file in `fam_backup_path`.
    pub file: String,
    /// SHA-256 of the content.
    pub digest: [u8; 32],
}

/// A change of one row.
pub enum Change<'a> {
    /// A region is new, or has changed.
    Region(&'a Region),
    /// A region is gone.
    NoRegion(u64),
    /// An item is new, or has changed.
    Item(&'a Item),
    /// An item is gone.
    NoItem(u64),
    /// A backup is whole.
    Backup(&'a Backup),
    /// A backup is gone.
    NoBackup(&'a str),
}

/// The store of a keeper.
pub struct Store {
    database: Database,
    /// The pool that it describes; another one with each store.
    pub pool: u128,
    /// How often a keeper has begun with this store.
    pub starts: u64,
}

fn failed(error: impl Into<redb::Error>) -> Failure {
    let error = error.into();
    let code = match &error {
        redb::Error::Io(error) if error.raw_os_error() == Some(libc::ENOSPC) => FamError::NoSpace,
        _ => FamError::Metadata,
    };
    code.because(format!("the metadata: {error}"))
}

fn bytes(row: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_allocvec(row).map_err(|error| FamError::Metadata.because(format!("the metadata: {error}")))
}

fn row<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| FamError::Metadata.because(format!("the metadata: {error}")))
}

impl Store {
    /// Opens the store of a folder, or makes it; without a folder it ends with the daemon.
    ///
    /// # Errors
    /// [`FamError::Metadata`]: it is in use by another daemon, for example. [`FamError::NoSpace`].
    pub fn open(folder: Option<&Path>) -> Result<Self> {
        let database = match folder {
            Some(folder) => Database::create(folder.join(FILE)),
            None => Database::builder().create_with_backend(InMemoryBackend::new()),
        };
        let database = database.map_err(failed)?;
        let transaction = database.begin_write().map_err(failed)?;
        let (pool, starts) = {
            let mut numbers = transaction.open_table(NUMBERS).map_err(failed)?;
            let number = |name| numbers.get(name).map(|found| found.map(|value| value.value()));
            let (pool, starts) = (number("pool").map_err(failed)?, number("starts").map_err(failed)?);
            let pool = pool.unwrap_or_else(|| u128::from_le_bytes(openlapi::base::random::random()));
            let starts = starts.unwrap_or(0) + 1;
            numbers.insert("pool", pool).map_err(failed)?;
            numbers.insert("starts", starts).map_err(failed)?;
            transaction.open_table(REGIONS).map_err(failed)?;
            transaction.open_table(ITEMS).map_err(failed)?;
            transaction.open_table(BACKUPS).map_err(failed)?;
            (pool, starts as u64)
        };
        transaction.commit().map_err(failed)?;
        Ok(Self { database, pool, starts })
    }

    /// Everything that it has.
    ///
    /// # Errors
    /// [`FamError::Metadata`].
    pub fn all(&self) -> Result<(Vec<Region>, Vec<Item>, Vec<Backup>)> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let numbered = |table: TableDefinition<u64, &[u8]>| -> Result<Vec<Vec<u8>>> {
            let table = transaction.open_table(table).map_err(failed)?;
            let rows = table.iter().map_err(failed)?;
            rows.map(|row| row.map(|(_, row)| row.value().to_vec()).map_err(failed)).collect()
        };
        let regions = numbered(REGIONS)?.iter().map(|bytes| row(bytes)).collect::<Result<_>>()?;
        let items = numbered(ITEMS)?.iter().map(|bytes| row(bytes)).collect::<Result<_>>()?;
        let table = transaction.open_table(BACKUPS).map_err(failed)?;
        let rows = table.iter().map_err(failed)?;
        let backups = rows.map(|found| row(found.map_err(failed)?.1.value())).collect::<Result<_>>()?;
        Ok((regions, items, backups))
    }

    /// Makes changes, all or none of them; they are durable when this returns.
    ///
    /// # Errors
    /// [`FamError::Metadata`], [`FamError::NoSpace`].
    pub fn change(&self, changes: &[Change<'_>]) -> Result<()> {
        let transaction = self.database.begin_write().map_err(failed)?;
        {
            let mut regions = transaction.open_table(REGIONS).map_err(failed)?;
            let mut items = transaction.open_table(ITEMS).map_err(failed)?;
            let mut backups = transaction.open_table(BACKUPS).map_err(failed)?;
            for change in changes {
                match change {
                    Change::Region(region) => {
                        regions
                            .insert(region.facts.region, bytes(region)?.as_slice())
                            .map(drop)
                            .map_err(failed)?;
                    }
                    Change::NoRegion(number) => regions.remove(number).map(drop).map_err(failed)?,
                    Change::Item(item) => {
                        items.insert(item.facts.item, bytes(item)?.as_slice()).map(drop).map_err(failed)?;
                    }
                    Change::NoItem(number) => items.remove(number).map(drop).map_err(failed)?,
                    Change::Backup(backup) => {
                        let name = backup.facts.name.as_str();
                        backups.insert(name, bytes(backup)?.as_slice()).map(drop).map_err(failed)?;
                    }
                    Change::NoBackup(name) => backups.remove(*name).map(drop).map_err(failed)?,
                }
            }
        }
        transaction.commit().map_err(failed)
    }
}
