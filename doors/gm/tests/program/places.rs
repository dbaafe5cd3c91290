//! Processes that a test starts by hand: their map, and their places.
#![allow(dead_code, reason = "not every test starts processes by hand")]

use openlapi_tests::Job;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder for a map and its sockets, whose names must be short.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, by the name of a test.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gm-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A map of that many nodes.
    pub fn map(&self, nodes: usize) -> PathBuf {
        let line = |node| format!("{node} host{node} unix:{}/{node}\n", self.0.display());
        let map = self.0.join("map");
        fs::write(&map, (1..=nodes).map(line).collect::<String>()).expect("a file");
        map
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process of a map.
pub fn node(program: &Path, map: &Path, node: usize) -> Job {
    let job = Job::direct(program).without_launchers();
    job.env("LAPI_GM_MAP", map).env("LAPI_GM_NODE", node.to_string())
}
