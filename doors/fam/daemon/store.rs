//! Names, rights and sizes of what outlives the daemon: one transaction for each change.

use fam::wire::{BackupFacts, ItemFacts, Piece, RegionFacts};
use fam::{Failure, FamError, Result};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const NUMBERS: TableDefinition<&str, u128> = TableDefinition::new("numbers");
const REGIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("regions");
const ITEMS: TableDefinition<u64, &[u8]> = TableDefinition::new("items");
const BACKUPS: TableDefinition<&str, &[u8]> = TableDefinition::new("backups");
/// By part.
const LEAVING: TableDefinition<u64, &[u8]> = TableDefinition::new("leaving");

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
    /// A part is to be removed, and its server is not there: server and part.
    Leaving(u64, u64),
    /// A part is removed: its number.
    Left(u64),
}

/// The store of a keeper.
pub struct Store {
    /// `None`: the disk has failed, and a database that has seen that does nothing any more. It is
    /// opened again for the next change.
    database: Option<Database>,
    /// `None`: the store ends with the daemon.
    folder: Option<PathBuf>,
    /// What a change that has failed has found: the disk may have it all the same.
    before: Vec<Row>,
    /// The pool that it describes; another one with each store.
    pub pool: u128,
    /// The last number of a region or an item that the keepers before may have given.
    pub last: u64,
}

/// A row with its content; `None`: there is none.
enum Row {
    Region(u64, Option<Vec<u8>>),
    Item(u64, Option<Vec<u8>>),
    Backup(String, Option<Vec<u8>>),
    Leaving(u64, Option<Vec<u8>>),
}

impl Row {
    fn of(change: &Change<'_>) -> Result<Self> {
        Ok(match change {
            Change::Region(region) => Self::Region(region.facts.region, Some(bytes(region)?)),
            Change::NoRegion(number) => Self::Region(*number, None),
            Change::Item(item) => Self::Item(item.facts.item, Some(bytes(item)?)),
            Change::NoItem(number) => Self::Item(*number, None),
            Change::Backup(backup) => Self::Backup(backup.facts.name.clone(), Some(bytes(backup)?)),
            Change::NoBackup(name) => Self::Backup((*name).to_owned(), None),
            Change::Leaving(server, part) => Self::Leaving(*part, Some(bytes(server)?)),
            Change::Left(part) => Self::Leaving(*part, None),
        })
    }
}

fn failed(error: impl Into<redb::Error>) -> Failure {
    let error = error.into();
    let code = match &error {
        redb::Error::Io(error)
            if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) =>
        {
            FamError::NoSpace
        }
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
        let database = database(folder)?;
        let transaction = database.begin_write().map_err(failed)?;
        let (pool, starts) = {
            let mut numbers = transaction.open_table(NUMBERS).map_err(failed)?;
            let number = |name| numbers.get(name).map(|found| found.map(|value| value.value()));
            let (pool, starts) = (number("pool").map_err(failed)?, number("starts").map_err(failed)?);
            let pool = pool.unwrap_or_else(|| u128::from_le_bytes(openlapi::base::random::random()));
            let starts = start(starts.unwrap_or(0));
            numbers.insert("pool", pool).map_err(failed)?;
            numbers.insert("starts", starts).map_err(failed)?;
            transaction.open_table(REGIONS).map_err(failed)?;
            transaction.open_table(ITEMS).map_err(failed)?;
            transaction.open_table(BACKUPS).map_err(failed)?;
            transaction.open_table(LEAVING).map_err(failed)?;
            (pool, starts as u64)
        };
        transaction.commit().map_err(failed)?;
        // In memory nothing is known of keepers before.
        let any = || u64::from_le_bytes(openlapi::base::random::random()) >> 1;
        let last = folder.map_or_else(any, |_| starts << 32);
        let folder = folder.map(Path::to_owned);
        Ok(Self { database: Some(database), folder, before: Vec::new(), pool, last })
    }

    /// Everything that it has.
    ///
    /// # Errors
    /// [`FamError::Metadata`].
    pub fn all(&mut self) -> Result<(Vec<Region>, Vec<Item>, Vec<Backup>)> {
        let transaction = self.ready()?.begin_read().map_err(failed)?;
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

    /// The parts that are to be removed: server and part.
    ///
    /// # Errors
    /// [`FamError::Metadata`].
    pub fn leaving(&mut self) -> Result<BTreeSet<(u64, u64)>> {
        let transaction = self.ready()?.begin_read().map_err(failed)?;
        let table = transaction.open_table(LEAVING).map_err(failed)?;
        let rows = table.iter().map_err(failed)?;
        let pair = |found: std::result::Result<_, redb::StorageError>| {
            let (part, server): (redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>) =
                found.map_err(failed)?;
            Ok((row(server.value())?, part.value()))
        };
        rows.map(pair).collect()
    }

    /// Makes changes, all or none of them; they are durable when this returns. After a failure of
    /// the disk the next call opens the database again.
    ///
    /// # Errors
    /// [`FamError::Metadata`], [`FamError::NoSpace`].
    pub fn change(&mut self, changes: &[Change<'_>]) -> Result<()> {
        let rows: Vec<Row> = changes.iter().map(Row::of).collect::<Result<_>>()?;
        let mut before = Vec::new();
        let outcome = write(self.ready()?, &rows, &mut before);
        self.unless_failed(outcome, before)
    }

    /// The database, opened again if it was given up, as it was before the change that has failed.
    fn ready(&mut self) -> Result<&Database> {
        if self.database.is_none() {
            let again = database(self.folder.as_deref())?;
            let before = std::mem::take(&mut self.before);
            let outcome = write(&again, &before, &mut Vec::new());
            self.database = Some(again);
            self.unless_failed(outcome, before)?;
        }
        self.database.as_ref().ok_or_else(|| FamError::Metadata.because("the metadata: they are closed"))
    }

    /// Gives up the database after a failure; before the next change these rows are written.
    fn unless_failed(&mut self, outcome: RedbResult, before: Vec<Row>) -> Result<()> {
        // One in memory has no disk, and would be lost.
        if outcome.is_err() && self.folder.is_some() {
            (self.database, self.before) = (None, before);
        }
        outcome.map_err(failed)
    }
}

/// The number of a start: greater than that of the one before, also where the store is new, or of
/// an earlier day. Descriptors of before must name nothing.
fn start(before: u128) -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // A clock that is wrong for once leaves room for starts.
    u128::from(now.min(3 << 30)).max(before + 1)
}

type RedbResult<T = ()> = std::result::Result<T, redb::Error>;

/// Opens the database of a folder, or makes it.
fn database(folder: Option<&Path>) -> Result<Database> {
    let database = match folder {
        Some(folder) => Database::create(folder.join(FILE)),
        None => Database::builder().create_with_backend(InMemoryBackend::new()),
    };
    database.map_err(failed)
}

/// Writes rows as one transaction, and adds what they were to `before`.
fn write(database: &Database, rows: &[Row], before: &mut Vec<Row>) -> RedbResult {
    let transaction = database.begin_write()?;
    {
        let mut regions = transaction.open_table(REGIONS)?;
        let mut items = transaction.open_table(ITEMS)?;
        let mut backups = transaction.open_table(BACKUPS)?;
        let mut leaving = transaction.open_table(LEAVING)?;
        for row in rows {
            before.push(match row {
                Row::Region(number, row) => Row::Region(*number, set(&mut regions, *number, row.as_deref())?),
                Row::Item(number, row) => Row::Item(*number, set(&mut items, *number, row.as_deref())?),
                Row::Leaving(part, row) => Row::Leaving(*part, set(&mut leaving, *part, row.as_deref())?),
                Row::Backup(name, row) => {
                    Row::Backup(name.clone(), set(&mut backups, name.as_str(), row.as_deref())?)
                }
            });
        }
    }
    Ok(transaction.commit()?)
}

/// Gives a key its row, and returns the one that it had.
fn set<'k, K: redb::Key + 'static>(
    table: &mut redb::Table<'_, K, &[u8]>,
    key: K::SelfType<'k>,
    row: Option<&[u8]>,
) -> RedbResult<Option<Vec<u8>>> {
    let old = match row {
        Some(row) => table.insert(key, row)?,
        None => table.remove(key)?,
    };
    Ok(old.map(|old| old.value().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fam::wire::Attributes;

    fn region(number: u64) -> Region {
        let facts = RegionFacts {
            region: number,
            name: format!("r{number}"),
            size: 1 << 20,
            mode: 0o600,
            user: 1,
            group: 1,
            attributes: Attributes { redundancy: 1, memory: 2, interleave: 1, permission: 1 },
            servers: vec![0],
            block: 4096,
        };
        Region { facts, parts: vec![(0, number + 100)] }
    }

    #[test]
    fn a_change_that_the_disk_has_in_spite_of_its_failure_is_taken_back() {
        let folder = std::env::temp_dir().join(format!("openfam-store-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut store = Store::open(Some(&folder)).expect("a store");
        let [one, two, three] = [1, 2, 3].map(region);
        let changed = Region { parts: Vec::new(), ..one.clone() };
        assert!(store.last >> 32 > 1 << 30, "a new store has the numbers of the one before");
        store.change(&[Change::Region(&one), Change::Region(&three)]).expect("regions");
        // Its last step says that it has failed.
        let rows = [Change::Region(&changed), Change::Region(&two), Change::NoRegion(3)];
        let rows = rows.each_ref().map(|change| Row::of(change).expect("a row"));
        let mut before = Vec::new();
        write(store.ready().expect("a database"), &rows, &mut before).expect("a change");
        let error = std::io::Error::from_raw_os_error(libc::ENOSPC);
        let failure = store.unless_failed(Err(redb::Error::Io(error)), before).expect_err("it has failed");
        assert_eq!(failure.error, FamError::NoSpace);
        let four = region(4);
        store.change(&[Change::Region(&four)]).expect("the database, opened again");
        let expected = vec![one, three, four];
        assert_eq!(store.all().expect("what it has").0, expected);
        let last = store.last;
        drop(store);
        let mut again = Store::open(Some(&folder)).expect("the store");
        assert_eq!(again.all().expect("what it has").0, expected);
        assert!(again.last > last, "a number may be given twice");
        drop(again);
        std::fs::remove_dir_all(&folder).expect("the end of the folder");
    }
}
