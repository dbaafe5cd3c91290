//! Circles among the modules of one folder.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Which modules of one folder use which.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// One circle of each folder that has any.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let modules: BTreeSet<&[String]> = sources.iter().map(|source| &*source.module).collect();
    let mut folders: BTreeMap<String, Uses> = BTreeMap::new();
    for source in sources {
        for path in source.paths().iter().filter(|path| path.names[0] == "crate") {
            let (own, used) = (&source.module, &path.names[1..]);
            let common = own.iter().zip(used).take_while(|(own, used)| own == used).count();
            let apart = common < own.len() && common < used.len();
            if !apart || !modules.contains(&used[..=common]) {
                continue;
            }
            let (user, used) = (own[..=common].join("::"), used[..=common].join("::"));
            folders.entry(own[..common].join("::")).or_default().entry(user).or_default().insert(used);
        }
    }
    folders.iter().filter_map(|(folder, uses)| Some(describe(folder, &circle(uses)?))).collect()
}

/// Modules that remain after repeatedly removing those that use none are in a circle or lead to
/// one; following the first use of each reaches the circle.
fn circle(uses: &Uses) -> Option<Vec<&str>> {
    let mut left: BTreeSet<&str> = uses.keys().map(String::as_str).collect();
    while let Some(free) =
        left.iter().copied().find(|user| uses[*user].iter().all(|used| !left.contains(&**used)))
    {
        left.remove(free);
    }
    let mut way = vec![*left.first()?];
    loop {
        let last = way[way.len() - 1];
        let next = uses[last].iter().map(String::as_str).find(|used| left.contains(used))?;
        if let Some(at) = way.iter().position(|before| *before == next) {
            way.drain(..at);
            way.push(next);
            return Some(way);
        }
        way.push(next);
    }
}

fn describe(folder: &str, circle: &[&str]) -> String {
    let names: Vec<_> = circle.iter().map(|module| module.rsplit("::").next().unwrap_or(module)).collect();
    let folder = if folder.is_empty() { "the crate" } else { folder };
    format!("{folder}: {}", names.join(" -> "))
}
