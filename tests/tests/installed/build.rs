//! The installed tree alone is enough to build and run programs: with the wrappers, with
//! pkg-config, with CMake. The samples are copied elsewhere first, so that the build cannot use
//! the source tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Installation, is_there, output, workspace};

/// An installation without DESTDIR, as in a user's own folder, and a folder to work in.
struct Here {
    installation: Installation,
    work: PathBuf,
}

impl Here {
    fn new(name: &str) -> Self {
        let installation = Installation::in_place(name);
        let work = installation.root.join("work");
        fs::create_dir_all(&work).expect("the folder can be made");
        installation.make("install");
        Self { installation, work }
    }

    fn prefix(&self) -> &Path {
        Path::new(&self.installation.prefix)
    }

    /// A command that finds this installation first, and has no other variables. It has a deadline.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("timeout");
        command.arg("120").arg(program.as_ref()).env_clear().current_dir(&self.work);
        command.env("PATH", format!("{}/bin:/usr/local/bin:/usr/bin:/bin", self.prefix().display()));
        command.env("PKG_CONFIG_PATH", self.prefix().join("lib/pkgconfig"));
        command.env("HOME", &self.work);
        command
    }

    /// Copies a folder of the samples.
    fn copy(&self, name: &str) -> PathBuf {
        let to = self.work.join(name);
        fs::create_dir_all(&to).expect("the folder can be made");
        for entry in fs::read_dir(workspace().join("samples").join(name)).expect("the samples") {
            let path = entry.expect("the samples").path();
            fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("it can be copied");
        }
        to
    }
}

#[test]
fn every_folder_of_samples_builds_and_runs() {
    let here = Here::new("samples");
    let mut folders = 0;
    for entry in fs::read_dir(workspace().join("samples")).expect("the samples") {
        let path = entry.expect("the samples").path();
        if !path.join("Makefile").exists() {
            continue;
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        // Fortran is tested where its compiler is required.
        let is_fortran = |file: PathBuf| {
            file.extension()
                .is_some_and(|extension| extension.to_ascii_lowercase().to_string_lossy().starts_with('f'))
        };
        if fs::read_dir(&path).expect("the samples").any(|file| is_fortran(file.expect("the samples").path()))
        {
            continue;
        }
        folders += 1;
        let copy = here.copy(name);
        let ran = output(here.command("make").arg("-s").arg("run").current_dir(&copy));
        assert!(ran.contains("task 0"), "samples/{name}:\n{ran}");
    }
    assert!(folders >= 7, "only {folders} folders of samples");
}

#[test]
fn pkg_config_is_enough() {
    if !is_there("pkg-config") {
        return;
    }
    let here = Here::new("pkg-config");
    let sample = here.copy("lapi_api");
    let version = output(here.command("pkg-config").args(["--modversion", "lapi_r"]));
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
    let flags = output(here.command("pkg-config").args(["--cflags", "--libs", "lapi_r"]));
    let compile = format!("cc -no-pie Put.c -o Put {}", flags.trim());
    output(here.command("sh").current_dir(&sample).args(["-c", &compile]));
    let ran = output(here.command("poe").current_dir(&sample).args(["./Put", "-procs", "2"]));
    assert!(ran.contains("the board is as it was put"), "{ran}");
}

#[test]
fn cmake_is_enough() {
    if !is_there("cmake") {
        return;
    }
    let here = Here::new("cmake");
    let sample = here.copy("lapi_api");
    let lists = "cmake_minimum_required(VERSION 3.13)\n\
        project(sample C CXX)\n\
        find_package(lapi 0.1 REQUIRED)\n\
        add_executable(put Put.c)\n\
        target_link_libraries(put PRIVATE LAPI::lapi_r)\n\
        file(WRITE ${CMAKE_BINARY_DIR}/plus.cpp \"#include <lapi.h>\\nint main() { return LAPI_SUCCESS; }\\n\")\n\
        add_executable(plus ${CMAKE_BINARY_DIR}/plus.cpp)\n\
        target_link_libraries(plus LAPI::lapi_r)\n\
        message(STATUS \"version ${lapi_VERSION}, poe ${LAPI_POE}\")\n";
    fs::write(sample.join("CMakeLists.txt"), lists).expect("the file can be written");
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", here.prefix().display());
    let said = output(here.command("cmake").current_dir(&sample).args(["-S", ".", "-B", "build", &prefix]));
    let poe = here.prefix().join("bin/poe").display().to_string();
    assert!(said.contains(&format!("version {}, poe {poe}", env!("CARGO_PKG_VERSION"))), "{said}");
    output(here.command("cmake").current_dir(&sample).args(["--build", "build"]));
    let elf = fs::read(sample.join("build/put")).expect("it was built");
    // e_type of the ELF header: 2 is an executable at fixed addresses, as all tasks must have them.
    assert_eq!(elf[16..18], [2, 0]);
    let ran = output(here.command("poe").current_dir(&sample).args(["build/put", "-procs", "2"]));
    assert!(ran.contains("the board is as it was put"), "{ran}");
    output(&mut here.command(sample.join("build/plus")));
    // A version that does not exist yet is refused.
    fs::write(sample.join("CMakeLists.txt"), lists.replace("lapi 0.1", "lapi 99"))
        .expect("it can be written");
    let refused = here
        .command("cmake")
        .current_dir(&sample)
        .args(["-S", ".", "-B", "build99", &prefix])
        .output()
        .expect("cmake runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("99"), "{said}");
}
