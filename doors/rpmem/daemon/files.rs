//! The part files of a pool: opened, locked, and given their headers.

use rpmem::disk::{HEADER, Header, Place, Set};
use rpmem::{Attributes, Failure, Result};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The daemon of a client that was killed may take so long to see that, and to close the pool.
const LAST_DAEMON: Duration = Duration::from_secs(1);
/// Between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(10);

/// A set, and its part files, each of which this process has locked.
pub struct Files {
    /// The set.
    pub set: Set,
    /// One for each part.
    pub parts: Vec<File>,
    /// Those that were made here, until [`Self::keep`].
    fresh: Vec<PathBuf>,
}

/// Reads the set file of this name below the folder. Returns its path, too.
///
/// # Errors
/// ENOENT, EACCES and others: the system's. EINVAL, ENOTSUP: it is malformed.
pub fn read_set(folder: &Path, name: &str) -> Result<(PathBuf, Set)> {
    if name.is_empty() || name.starts_with('/') {
        return Err(Failure::invalid(format!("set {name:?} is not relative to {}", folder.display())));
    }
    let path = folder.join(name);
    let text = fs::read(&path).map_err(Failure::system(path.display()))?;
    let set = rpmem::disk::parse(&text)
        .map_err(|failure| Failure::new(failure.errno, format!("{}: {failure}", path.display())))?;
    Ok((path, set))
}

impl Files {
    /// Opens the part files of a pool that exists.
    ///
    /// # Errors
    /// ENOENT: one is missing. EBUSY: one is in use. EINVAL: one is too short. ENOTSUP: one is a
    /// folder or a device.
    pub fn open(set: Set) -> Result<Self> {
        let mut files = Self { set, parts: Vec::new(), fresh: Vec::new() };
        for at in 0..files.set.parts.len() {
            let part = &files.set.parts[at];
            let file = open(&part.path)?.ok_or_else(|| missing(&part.path))?;
            let length = file.metadata().map_err(Failure::system(&part.path))?.len();
            if length < part.size {
                let text = format!("{} has {length} bytes, and the set says {}", part.path, part.size);
                return Err(Failure::invalid(text));
            }
            files.parts.push(file);
        }
        Ok(files)
    }

    /// Makes the part files of a new pool, or takes those that are empty. Unless [`Self::keep`]
    /// follows, what was made is removed again.
    ///
    /// # Errors
    /// EEXIST: a part is in use. EBUSY, EINVAL, ENOTSUP: as of [`Self::open`]. Others: the
    /// system's.
    pub fn create(set: Set) -> Result<Self> {
        let mut files = Self { set, parts: Vec::new(), fresh: Vec::new() };
        for at in 0..files.set.parts.len() {
            let part = files.set.parts[at].clone();
            let file = match open(&part.path)? {
                Some(file) => file,
                None => {
                    let file = make(&part.path)?;
                    files.fresh.push(part.path.clone().into());
                    file
                }
            };
            let length = file.metadata().map_err(Failure::system(&part.path))?.len();
            match length {
                0 => allocate(&file, part.size).map_err(Failure::system(&part.path))?,
                _ if length < part.size => {
                    let text = format!("{} has {length} bytes, and the set says {}", part.path, part.size);
                    return Err(Failure::invalid(text));
                }
                _ => {
                    let mut first = [0; HEADER];
                    file.read_exact_at(&mut first, 0).map_err(Failure::system(&part.path))?;
                    if first.iter().any(|byte| *byte != 0) {
                        let text = format!("{} is the part of a pool already", part.path);
                        return Err(Failure::new(libc::EEXIST, text));
                    }
                }
            }
            files.parts.push(file);
        }
        Ok(files)
    }

    /// What was made stays.
    pub fn keep(&mut self) {
        self.fresh.clear();
    }

    /// The headers of the parts that have one, verified.
    ///
    /// # Errors
    /// EINVAL: one is damaged, or they do not belong together.
    pub fn headers(&self) -> Result<Vec<Header>> {
        let count = self.set.headers();
        let mut headers = Vec::with_capacity(count);
        for (part, file) in self.set.parts.iter().zip(&self.parts).take(count) {
            let mut bytes = [0; HEADER];
            file.read_exact_at(&mut bytes, 0).map_err(Failure::system(&part.path))?;
            let header = Header::decode(&bytes)
                .map_err(|failure| Failure::new(failure.errno, format!("{}: {failure}", part.path)))?;
            headers.push(header);
        }
        for (at, header) in headers.iter().enumerate() {
            let next = &headers[(at + 1) % count];
            let ring = header.place.next_part == next.place.uuid && next.place.prev_part == header.place.uuid;
            let common = Attributes { uuid: [0; 16], ..header.attributes };
            let same = common == Attributes { uuid: [0; 16], ..headers[0].attributes };
            if !ring || !same || header.is_single() != self.set.single_header {
                let path = &self.set.parts[at].path;
                return Err(Failure::invalid(format!(
                    "{path} is the part of another pool, or in another place"
                )));
            }
        }
        Ok(headers)
    }

    /// New headers for these attributes.
    pub fn new_headers(&self, attributes: Attributes) -> Vec<Header> {
        let count = self.set.headers();
        let mut uuids = vec![attributes.uuid];
        uuids.extend((1..count).map(|_| random()));
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        (0..count).map(|at| header(attributes, &uuids, at, created)).collect()
    }

    /// Headers as these, with other attributes.
    pub fn changed(&self, headers: &[Header], attributes: Attributes) -> Vec<Header> {
        let mut uuids: Vec<[u8; 16]> = headers.iter().map(|header| header.place.uuid).collect();
        uuids[0] = attributes.uuid;
        let is_dirty = headers[0].is_dirty;
        let new = (0..headers.len()).map(|at| header(attributes, &uuids, at, headers[at].created));
        new.map(|header| Header { is_dirty, ..header }).collect()
    }

    /// Writes headers, which are durable when this returns.
    ///
    /// # Errors
    /// The system's.
    pub fn write_headers(&self, headers: &[Header]) -> Result<()> {
        for (header, (part, file)) in headers.iter().zip(self.set.parts.iter().zip(&self.parts)) {
            let bytes = header.encode(self.set.single_header);
            file.write_all_at(&bytes, 0)
                .and_then(|()| file.sync_data())
                .map_err(Failure::system(&part.path))?;
        }
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.fresh {
            let _ = fs::remove_file(path);
        }
    }
}

fn header(attributes: Attributes, uuids: &[[u8; 16]], at: usize, created: u64) -> Header {
    let count = uuids.len();
    let place = Place {
        uuid: uuids[at],
        prev_part: uuids[(at + count - 1) % count],
        next_part: uuids[(at + 1) % count],
    };
    Header { attributes, place, created, is_dirty: false, devices: [0; 2] }
}

/// The file of a part, locked; `None`: there is none.
fn open(path: &str) -> Result<Option<File>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(Failure::system(path))?,
    };
    if !metadata.is_file() {
        let kind = if metadata.file_type().is_char_device() { "a device" } else { "no file" };
        return Err(Failure::new(libc::ENOTSUP, format!("{path} is {kind}; parts are files")));
    }
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(Failure::system(path))?;
    lock(&file, path)?;
    Ok(Some(file))
}

fn make(path: &str) -> Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o666).open(path);
    let file = file.map_err(|error| match error.kind() {
        // Another daemon makes it.
        io::ErrorKind::AlreadyExists => busy(path),
        _ => Failure::system(path)(error),
    })?;
    lock(&file, path)?;
    Ok(file)
}

fn lock(file: &File, path: &str) -> Result<()> {
    let until = Instant::now() + LAST_DAEMON;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(busy(path)),
            Err(error) => return Err(Failure::system(path)(error.into())),
        }
    }
}

fn busy(path: &str) -> Failure {
    Failure::new(libc::EBUSY, format!("{path} is in use"))
}

fn missing(path: &str) -> Failure {
    Failure::new(libc::ENOENT, format!("{path} is missing"))
}

/// Gives a file its size, with space on the medium where the file system can say so.
fn allocate(file: &File, size: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, size) {
        Err(Errno::OPNOTSUPP) => file.set_len(size),
        done => done.map_err(io::Error::from),
    }
}

/// A random identifier, marked as one.
fn random() -> [u8; 16] {
    let mut uuid = [0; 16];
    // 16 bytes come whole, and fail on no system that has come so far.
    let _ = rustix::rand::getrandom(&mut uuid, rustix::rand::GetRandomFlags::empty());
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
