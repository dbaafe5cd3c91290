//! The corpora of the fuzz targets, without a fuzzer: every decoder gets each of its inputs, and
//! changes of them.
//!
//! Inputs with the name of a seed come from our own encoders. When one of these changes,
//! `UPDATE_CORPORA=1` writes them again.

use openlapi::base::rng::Rng;
use openlapi::fuzz::Target;
use openlapi_tests::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

/// How many changes of each input are tried.
const CHANGES: u64 = 200;
/// The longest input.
const LONGEST: usize = 4096;

fn targets() -> Vec<Target> {
    let [core, tools] = [openlapi::fuzz::TARGETS, openlapi_tools::poe::fuzz::TARGETS];
    let doors = [
        openlapi_session::fuzz::TARGETS,
        openlapi_netio3::fuzz::TARGETS,
        rpmem::fuzz::TARGETS,
        gm::fuzz::TARGETS,
        fam::fuzz::TARGETS,
    ]
    .concat();
    [core, tools, openlapi_prof::fuzz::TARGETS, &doors[..]].concat()
}

fn folder() -> PathBuf {
    workspace().join("fuzz/corpus")
}

/// The inputs of a target, by name.
fn corpus(target: &Target) -> BTreeMap<String, Vec<u8>> {
    let folder = folder().join(target.name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = files.map(|file| file.expect("it can be read").path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, fs::read(&path).expect("it can be read"))
        })
        .collect()
}

fn feed(target: &Target, what: &str, input: &[u8]) -> bool {
    catch_unwind(|| (target.feed)(input)).unwrap_or_else(|_| panic!("{}, {what}: {input:?}", target.name))
}

#[test]
fn each_target_has_a_corpus_and_accepts_its_seeds() {
    let targets = targets();
    let names: BTreeSet<String> = targets.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), targets.len(), "two targets have one name");
    for target in &targets {
        let folder = folder().join(target.name);
        let update = std::env::var_os("UPDATE_CORPORA").is_some();
        for (name, seed) in (target.seeds)() {
            if update {
                fs::create_dir_all(&folder).expect("the folder can be made");
                fs::write(folder.join(&name), &seed).expect("it can be written");
            }
            let found = fs::read(folder.join(&name)).unwrap_or_default();
            assert!(found == seed, "{}/{name} is not what is encoded now: UPDATE_CORPORA=1", target.name);
            assert!(feed(target, &name, &seed), "{}: {name} is not accepted", target.name);
        }
    }
    let folders = fs::read_dir(folder()).expect("there are corpora");
    let found: BTreeSet<String> =
        folders.map(|folder| folder.expect("a folder").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, names, "the folders of fuzz/corpus, and the targets");
}

#[test]
fn whatever_is_changed_in_the_corpora() {
    for target in targets() {
        let corpus: Vec<_> = corpus(&target).into_iter().collect();
        for (at, (name, input)) in corpus.iter().enumerate() {
            feed(&target, name, input);
            for change in 0..CHANGES {
                let mut rng = Rng::stream(at as u64, change);
                let other = &corpus[rng.below(corpus.len() as u64) as usize].1;
                let mut input = input.clone();
                for _ in 0..=rng.below(4) {
                    alter(&mut rng, &mut input, other);
                }
                input.truncate(LONGEST);
                feed(&target, &format!("{name}, change {change}"), &input);
            }
        }
    }
}

/// Changes an input somewhere.
fn alter(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8]) {
    let at = rng.below(input.len() as u64 + 1) as usize;
    let end = (at + rng.below(9) as usize).min(input.len());
    match rng.below(7) {
        0 => drop(input.drain(at..end)),
        1 => input.insert(at, rng.next_u64() as u8),
        2 => {
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
        }
        // The end of another input.
        3 => {
            input.truncate(at);
            input.extend_from_slice(&other[at.min(other.len())..]);
        }
        4 => input[at..end].fill([0, 0x7f, 0x80, 0xff][rng.below(4) as usize]),
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
    }
}
