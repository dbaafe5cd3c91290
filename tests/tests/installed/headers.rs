//! The installed headers, each alone, in each standard, by each installed compiler. (`capi/tests`
//! compiles those of the source tree, and compares layouts.)

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{is_there, output, stage};

const C: &[&str] = &["c99", "c11", "c17", "gnu99", "gnu17"];
const CXX: &[&str] = &["c++11", "c++17", "gnu++17"];

#[test]
fn every_installed_header_compiles_alone() {
    let include = stage().join("include");
    let headers = headers(&include);
    assert!(headers.iter().any(|header| header == "lapi.h"), "{headers:?}");
    for (c, cxx) in [("gcc", "g++"), ("clang", "clang++")] {
        for (compiler, language, standards) in [(c, "c", C), (cxx, "c++", CXX)] {
            if !is_there(compiler) {
                continue;
            }
            for (header, standard) in
                headers.iter().flat_map(|header| standards.iter().map(move |standard| (header, standard)))
            {
                output(
                    Command::new(compiler)
                        .args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", language])
                        .arg(format!("-std={standard}"))
                        // Warnings about the header are shown as for a user's own header, not
                        // hidden as for a system header.
                        .arg("-I")
                        .arg(&include)
                        .args(["-include", header, "/dev/null"]),
                );
            }
        }
    }
}

/// The names of all headers below a folder, as a program includes them.
fn headers(include: &PathBuf) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![include.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder of the headers") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "h")
                // The Fortran header is not C.
                && path.file_name().is_some_and(|name| name != "lapif.h")
            {
                found.push(path.strip_prefix(include).expect("it is below").display().to_string());
            }
        }
    }
    found.sort();
    found
}
