//! Limits of the control groups that this process is in (cgroups(7)), of both versions.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the kernel shows them.
const ROOT: &str = "/sys/fs/cgroup";
/// A limit of memory from here on is none: version 1 has no word for that.
const NO_LIMIT: u64 = 1 << 60;

/// How many processes and threads there may be.
pub fn processes() -> Option<u64> {
    limit(&folders(Path::new(ROOT), &groups(), "pids"), "pids.max")
}

/// How many bytes of memory they may use.
pub fn memory() -> Option<u64> {
    let folders = folders(Path::new(ROOT), &groups(), "memory");
    limit(&folders, "memory.max").or_else(|| limit(&folders, "memory.limit_in_bytes"))
}

/// The file that counts the processes of the group which the kernel has ended because there was no
/// memory left for them. Where it has just ended one there may be none to open a file with.
pub struct EndsForMemory(File);

impl EndsForMemory {
    /// Opens the file, and reads it once: what the kernel needs for that it keeps.
    pub fn open() -> Option<Self> {
        let folder = folders(Path::new(ROOT), &groups(), "memory").into_iter().next()?;
        ["memory.events", "memory.oom_control"].iter().find_map(|file| {
            let opened = Self(File::open(folder.join(file)).ok()?);
            opened.count().map(|_| opened)
        })
    }

    /// How many there were so far.
    pub fn count(&self) -> Option<u64> {
        let mut text = [0; 1024];
        let len = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }
}

fn groups() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// The folders of the group that has this controller, and of those around it, from the inside out.
/// `groups`: what /proc has.
fn folders(root: &Path, groups: &str, controller: &str) -> Vec<PathBuf> {
    let group = |line: &str| -> Option<(PathBuf, PathBuf)> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let path = PathBuf::from(path.trim_start_matches('/'));
        if controllers.split(',').any(|name| name == controller) {
            return Some((root.join(controllers), path));
        }
        // Version 2, alone: beside version 1 it has no controllers.
        controllers.is_empty().then(|| (root.to_owned(), path))
    };
    let found: Vec<_> = groups.lines().filter_map(group).collect();
    let named = found.iter().find(|(top, _)| top != root).or(found.first());
    let Some((top, path)) = named else { return Vec::new() };
    let inside_out = path.ancestors().map(|path| top.join(path));
    // Of a container the path may be that of the host, and is not there.
    inside_out.filter(|folder| folder.is_dir()).collect()
}

/// The lowest of their limits.
fn limit(folders: &[PathBuf], file: &str) -> Option<u64> {
    let limits = folders.iter().filter_map(|folder| {
        fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write;

    fn memory_file() -> File {
        memfd_create("control-group", MemfdFlags::CLOEXEC).expect("a file in memory").into()
    }

    fn write(file: &Path, text: &str) {
        let folder = file.parent().expect("a folder");
        fs::create_dir_all(folder).and_then(|()| fs::write(file, text)).expect("it can be written");
    }

    #[test]
    fn ends_for_want_of_memory_are_counted_in_both_versions() {
        for text in ["oom 3\noom_kill 2\noom_group_kill 1\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"]
        {
            let mut file = memory_file();
            file.write_all(text.as_bytes()).expect("it can be written");
            let ends = EndsForMemory(file);
            assert_eq!((ends.count(), ends.count()), (Some(2), Some(2)), "{text}");
        }
        assert_eq!(EndsForMemory(memory_file()).count(), None);
    }

    #[test]
    fn the_lowest_limit_of_the_groups_around_holds() {
        let root = std::env::temp_dir().join(format!("control-group-{}", std::process::id()));
        write(&root.join("pids/a/b/pids.max"), "max\n");
        write(&root.join("pids/a/pids.max"), "70\n");
        write(&root.join("pids/pids.max"), "100\n");
        write(&root.join("cpu,memory/a/memory.limit_in_bytes"), "9223372036854771712\n");
        let first = "9:name=systemd:/\n8:pids:/a/b\n4:cpu,memory:/a\n0::/\n";
        assert_eq!(limit(&folders(&root, first, "pids"), "pids.max"), Some(70));
        let memory = folders(&root, first, "memory");
        assert_eq!(memory, [root.join("cpu,memory/a"), root.join("cpu,memory/")]);
        assert_eq!(limit(&memory, "memory.limit_in_bytes"), None);
        write(&root.join("user/job/pids.max"), "9\n");
        assert_eq!(limit(&folders(&root, "0::/user/job/lost\n", "pids"), "pids.max"), Some(9));
        assert!(folders(&root, "", "pids").is_empty());
        fs::remove_dir_all(root).expect("it is ours");
    }
}
