//! The part files of a pool: opened, locked, and given their headers.

use crate::log;
use rpmem::disk::{HEADER, Header, Part, Place, Set};
use rpmem::wire::is_below;
use rpmem::{Attributes, Failure, Result};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
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
    /// The pool is being created, until [`Self::keep`].
    is_new: bool,
    /// The files that were made for it.
    fresh: Vec<PathBuf>,
}

/// Reads the set file of this name below the folder. Returns its path, too.
///
/// # Errors
/// ENOENT, EACCES and others: the system's. EINVAL, ENOTSUP: it is malformed.
pub fn read_set(folder: &Path, name: &str) -> Result<(PathBuf, Set)> {
    if !is_below(name) {
        return Err(Failure::invalid(format!("set {name:?} is no path below {}", folder.display())));
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
        let mut files = Self { set, parts: Vec::new(), is_new: false, fresh: Vec::new() };
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
    /// follows, what was made is removed again, and the others have no header.
    ///
    /// # Errors
    /// EEXIST: a part belongs to a pool. EBUSY, EINVAL, ENOTSUP: as of [`Self::open`]. Others: the
    /// system's.
    pub fn create(set: Set) -> Result<Self> {
        let mut files = Self { set, parts: Vec::new(), is_new: true, fresh: Vec::new() };
        for at in 0..files.set.parts.len() {
            let part = files.set.parts[at].clone();
            let (file, is_fresh) = open_or_make(&part.path)?;
            if is_fresh {
                files.fresh.push(part.path.clone().into());
            } else {
                check_unused(&file, &part)?;
            }
            let allocated = allocate(&file, part.size);
            // A file that was made is locked until it is removed again, where something fails; one
            // that was there, and gets no space, stays as it is.
            if is_fresh || allocated.is_ok() {
                files.parts.push(file);
            }
            allocated.map_err(Failure::system(&part.path))?;
        }
        Ok(files)
    }

    /// What was made stays, and is durable when this returns.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(&mut self) -> Result<()> {
        for (part, file) in self.set.parts.iter().zip(&self.parts) {
            file.sync_all().map_err(Failure::system(&part.path))?;
        }
        sync_folders(self.fresh.iter().map(PathBuf::as_path))?;
        self.is_new = false;
        self.fresh.clear();
        Ok(())
    }

    /// The headers of the parts that have one, verified. Where a daemon was killed while it changed
    /// the attributes, the parts that it has not come to get those of the first.
    ///
    /// # Errors
    /// EINVAL: one is damaged, or they do not belong together. The system's.
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
        let single = self.set.single_header;
        if let Some(at) = headers.iter().position(|header| header.is_single() != single) {
            return Err(self.foreign(at));
        }
        let whole = self.changed(&headers, headers.first().map(|first| first.attributes).unwrap_or_default());
        let Some(at) = (0..count).find(|at| !headers[*at].belongs_as(&whole[*at])) else {
            return Ok(headers);
        };
        if !self.were_being_changed(&headers, at) {
            return Err(self.foreign(at));
        }
        log::notice(&format!("the headers of {} get the attributes of the first", self.set.parts[at].path));
        self.write_headers(&whole)?;
        Ok(whole)
    }

    fn foreign(&self, at: usize) -> Failure {
        let path = &self.set.parts[at].path;
        Failure::invalid(format!("{path} is the part of another pool, or in another place"))
    }

    /// Whether the headers from this one on are as they were before [`Self::write_headers`] of
    /// other attributes was stopped there. A pool that was closed in order since then is none of
    /// these: such a header has come from somewhere else.
    fn were_being_changed(&self, headers: &[Header], at: usize) -> bool {
        let Some(last) = headers.last() else { return false };
        let is_open = |header: &Header| !header.has_state() || header.is_dirty;
        // What the last part has for the next one in the ring, which is the first.
        let uuid = last.place.next_part;
        let before = self.changed(headers, Attributes { uuid, ..last.attributes });
        let are_as_before = (at..headers.len()).all(|at| headers[at].belongs_as(&before[at]));
        headers[0].devices == [0; 2] && headers.iter().all(is_open) && are_as_before
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
        if let Some(first) = uuids.first_mut() {
            *first = attributes.uuid;
        }
        let is_dirty = headers.first().is_some_and(|first| first.is_dirty);
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
        if self.is_new {
            for part in &self.parts {
                let _ = part.write_all_at(&[0; HEADER], 0);
            }
        }
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

/// Makes durable that these files were made or removed.
///
/// # Errors
/// The system's.
pub fn sync_folders<'a>(files: impl Iterator<Item = &'a Path>) -> Result<()> {
    let folders: BTreeSet<&Path> = files.filter_map(Path::parent).collect();
    for folder in folders {
        File::open(folder).and_then(|open| open.sync_all()).map_err(Failure::system(folder.display()))?;
    }
    Ok(())
}

/// The file of a part, locked; `None`: there is none.
///
/// # Errors
/// EBUSY: it is in use. ENOTSUP: it is a folder or a device. The system's.
pub fn open(path: &str) -> Result<Option<File>> {
    loop {
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(Failure::system(path))?,
        };
        if !metadata.is_file() {
            let kind = if metadata.file_type().is_char_device() { "a device" } else { "no file" };
            return Err(Failure::new(libc::ENOTSUP, format!("{path} is {kind}; parts are files")));
        }
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Failure::system(path))?,
        };
        if lock(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// The file of a part, locked, and whether it was made here.
fn open_or_make(path: &str) -> Result<(File, bool)> {
    let until = Instant::now() + LAST_DAEMON;
    loop {
        if let Some(file) = open(path)? {
            return Ok((file, false));
        }
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o666).open(path) {
            Ok(file) => {
                if lock(&file, path)? {
                    return Ok((file, true));
                }
            }
            // Another daemon has made it meanwhile; or it is a link to nothing, which stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Instant::now() < until => {
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(Failure::system(path)(error)),
        }
    }
}

/// Locks a file; `false`: the path has another one since, or none. Who removes a part has its lock.
fn lock(file: &File, path: &str) -> Result<bool> {
    let until = Instant::now() + LAST_DAEMON;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let locked = file.metadata().map_err(Failure::system(path))?;
                let identity = |of: &Metadata| (of.dev(), of.ino());
                return Ok(fs::metadata(path).is_ok_and(|found| identity(&found) == identity(&locked)));
            }
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(busy(path)),
            Err(error) => return Err(Failure::system(path)(error.into())),
        }
    }
}

/// Whether a file that exists may become a part: it is empty, or long enough and without a header.
///
/// # Errors
/// EINVAL: it is too short. EEXIST: it belongs to a pool. The system's.
fn check_unused(file: &File, part: &Part) -> Result<()> {
    let length = file.metadata().map_err(Failure::system(&part.path))?.len();
    if length == 0 {
        return Ok(());
    }
    if length < part.size {
        let text = format!("{} has {length} bytes, and the set says {}", part.path, part.size);
        return Err(Failure::invalid(text));
    }
    let mut first = [0; HEADER];
    file.read_exact_at(&mut first, 0).map_err(Failure::system(&part.path))?;
    if first.iter().any(|byte| *byte != 0) {
        let text = format!("{} is the part of a pool already", part.path);
        return Err(Failure::new(libc::EEXIST, text));
    }
    Ok(())
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
        Err(Errno::OPNOTSUPP) if file.metadata()?.len() < size => file.set_len(size),
        Err(Errno::OPNOTSUPP) => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The features of a pool that keeps its shutdown state.
    const STATE: u32 = 4;

    /// A folder of a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("openlapi-rpmemd-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }

        /// A set of parts with these names.
        fn set(&self, names: &[&str]) -> Set {
            let parts = names.iter().map(|name| format!("2M {}\n", self.path(name)));
            let text = format!("PMEMPOOLSET\n{}", parts.collect::<String>());
            rpmem::disk::parse(text.as_bytes()).expect("a set")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn attributes(signature: [u8; 8], uuid: u8) -> Attributes {
        let user_flags = [5; 16];
        Attributes { signature, uuid: [uuid; 16], incompat: STATE, user_flags, ..Attributes::default() }
    }

    fn open_headers(files: &Files, attributes: Attributes) -> Vec<Header> {
        let new = files.new_headers(attributes).into_iter();
        new.map(|header| Header { is_dirty: true, ..header }).collect()
    }

    /// Headers come to the first part first.
    #[test]
    fn a_change_of_the_attributes_that_was_stopped_is_completed() {
        let folder = Folder::new("stopped");
        let mut files = Files::create(folder.set(&["a", "b", "c"])).expect("parts");
        let before = open_headers(&files, attributes(*b"BEFORE\0\0", 1));
        files.keep().expect("durable");
        for (uuid, done) in [1, 2].into_iter().flat_map(|uuid| (0..=3).map(move |done| (uuid, done))) {
            let after = files.changed(&before, attributes(*b"AFTER\0\0\0", uuid));
            files.write_headers(&before).expect("headers");
            files.write_headers(&after[..done]).expect("headers");
            for _ in 0..2 {
                let found = files.headers().expect("a whole pool");
                let expected = if done == 0 { &before } else { &after };
                assert!((0..3).all(|at| found[at].belongs_as(&expected[at])), "{uuid}, {done}: {found:?}");
                assert!(found.iter().all(|header| header.is_dirty));
            }
        }
    }

    #[test]
    fn a_part_that_does_not_belong_to_the_others_is_no_part_of_a_change() {
        let folder = Folder::new("foreign");
        let mut files = Files::create(folder.set(&["a", "b", "c"])).expect("parts");
        let before = open_headers(&files, attributes(*b"BEFORE\0\0", 1));
        let after = files.changed(&before, attributes(*b"AFTER\0\0\0", 2));
        let other = open_headers(&files, attributes(*b"BEFORE\0\0", 1));
        files.keep().expect("durable");
        let closed = |header: Header| Header { is_dirty: false, ..header };
        for wrong in [
            // Of another pool, in the middle of a change, and after it.
            [after[0], other[1], before[2]],
            [after[0], before[1], other[2]],
            [after[0], after[1], other[2]],
            // Not in the order in which headers are written.
            [before[0], after[1], before[2]],
            [after[0], before[1], after[2]],
            [after[0], before[2], before[1]],
            // The pool was closed after the change, or before it.
            [closed(after[0]), closed(before[1]), closed(before[2])],
            [after[0], closed(before[1]), before[2]],
        ] {
            files.write_headers(&wrong).expect("headers");
            let failure = files.headers().expect_err("a foreign part");
            assert!(failure.errno == libc::EINVAL && failure.text.contains("another pool"), "{wrong:?}");
        }
    }

    /// Nothing is left of it but what was there before, as it was.
    #[test]
    fn what_a_pool_that_is_not_created_leaves() {
        let folder = Folder::new("leaves");
        let create = |set: Set| Files::create(set).err().map(|failure| failure.errno);
        let is_free = |name: &str| File::open(folder.path(name)).is_ok_and(|file| file.try_lock().is_ok());
        // No folder.
        assert_eq!(create(folder.set(&["new", "absent/new"])), Some(libc::ENOENT));
        assert!(!folder.0.join("new").exists());
        // No space: more than any file may have.
        let mut set = folder.set(&["new", "large"]);
        set.parts[1].size = i64::MAX as u64;
        assert!(create(set.clone()).is_some());
        assert!(!folder.0.join("new").exists() && !folder.0.join("large").exists());
        File::create(folder.path("large")).expect("a file");
        assert!(create(set).is_some());
        assert!(!folder.0.join("new").exists() && is_free("large"));
        assert_eq!(fs::read(folder.path("large")).expect("a file"), []);
        // A part that another process has.
        let set = folder.set(&["new", "held", "later"]);
        fs::write(folder.path("held"), "its contents").expect("a file");
        let held = File::open(folder.path("held")).expect("a file");
        held.lock().expect("a lock");
        assert_eq!(create(set.clone()), Some(libc::EBUSY));
        assert_eq!(fs::read(folder.path("held")).expect("a file"), b"its contents");
        assert!(!folder.0.join("new").exists() && !folder.0.join("later").exists());
        drop(held);
        assert_eq!(create(set), Some(libc::EINVAL), "it is too short");
        assert!(folder.0.join("held").exists() && !folder.0.join("new").exists() && is_free("held"));
    }

    #[test]
    fn a_pool_that_is_not_created_leaves_no_header() {
        let folder = Folder::new("files");
        let set = folder.set(&["old", "new"]);
        let path = |name: &str| folder.path(name);
        File::create(path("old")).expect("a file");
        let attributes = Attributes { signature: *b"EXAMPLE\0", ..Attributes::default() };
        for is_kept in [false, true] {
            let mut files = Files::create(set.clone()).expect("parts");
            files.write_headers(&files.new_headers(attributes)).expect("headers");
            if is_kept {
                files.keep().expect("durable");
            }
            drop(files);
            let old = fs::read(path("old")).expect("a part");
            assert_eq!(old.iter().any(|byte| *byte != 0), is_kept);
            assert_eq!(Path::new(&path("new")).exists(), is_kept);
        }
        let again = Files::create(set).err().map(|failure| failure.errno);
        assert_eq!(again, Some(libc::EEXIST));
        assert!(Path::new(&path("new")).exists());
    }
}
