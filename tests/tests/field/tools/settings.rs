//! Files of settings: of a user, of a site, and those that LAPI_CONFIG names.

use std::fs;
use std::path::{Path, PathBuf};

use openlapi_tests::{Hosts, Job, Launcher, build_dir, compile, copy_program, skipped, stage};
use serde_json::Value;

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = build_dir().join(format!("tests/settings-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn write(path: &Path, text: &str) -> String {
    fs::write(path, text).expect("a file");
    path.to_str().expect("a name").to_owned()
}

fn info() -> Job {
    Job::direct(stage().join("bin/lapi_info")).env_remove("SLURM_JOB_ID")
}

fn poe_info(procs: usize) -> Job {
    Job::new(stage().join("bin/lapi_info")).procs(procs)
}

fn variable(report: &Value, name: &str) -> Value {
    let list = report["variables"].as_array().expect("a list");
    list.iter().find(|variable| variable["name"] == name).expect("a variable").clone()
}

#[test]
fn the_source_of_each_value_is_shown() {
    let folder = folder("sources");
    let user = write(&folder.join("openlapi.conf"), "# mine\nLAPI_SPIN = 17   # polite\nLAPI_COALESCE=no\n");
    let site =
        write(&folder.join("site.conf"), "LAPI_SPIN=3\nLAPI_USE_SHM='no'\nMP_LABELLIO=yes\nnonsense\n");
    let outcome =
        info().env("LAPI_CONFIG", format!("{user}:{site}")).env("LAPI_COALESCE", "yes").arg("--json").run();
    let report: Value = serde_json::from_str(&outcome.ok().stdout).expect("JSON");
    for (name, value, source, place) in [
        ("LAPI_SPIN", "17", "file", Some(format!("{user}:2"))),
        ("LAPI_USE_SHM", "no", "file", Some(format!("{site}:2"))),
        ("LAPI_COALESCE", "yes", "environment", None),
        ("LAPI_STALL_SECONDS", "300", "default", None),
    ] {
        let found = variable(&report, name);
        assert_eq!((&found["value"], &found["source"]), (&value.into(), &source.into()), "{found}");
        assert_eq!(found["place"], serde_json::json!(place), "{found}");
    }
    let faults = &report["files"][1]["faults"];
    assert_eq!(faults[0], format!("{site}:4: not NAME=VALUE"));
    assert_eq!(
        faults[1],
        format!("{site}:3: MP_LABELLIO is not a variable of poe or LAPI; did you mean MP_LABELIO?")
    );

    // The user's file is found without a variable that names it.
    let text = info().env_remove("LAPI_CONFIG").env("XDG_CONFIG_HOME", &folder).run();
    assert!(text.stdout.contains(&format!("user file  {user}")), "{text}");
    assert!(text.stdout.contains("site file  /etc/openlapi.conf"), "{text}");
    assert!(text.stdout.contains(&format!("      set in {user}:2")), "{text}");
}

#[test]
fn lapi_init_takes_files_and_names_the_line_of_a_wrong_value() {
    let folder = folder("wrong");
    let wrong = write(&folder.join("wrong.conf"), "LAPI_SIPN=1\n\nLAPI_SPIN=never\n");
    let program = compile("init-sample", &["samples/init/Init.c"], &[]);
    let words = format!("{wrong}:3: LAPI_SPIN is \"never\"; allowed: auto, or a whole number");
    for job in [Job::direct(&program), Job::new(&program).procs(2)] {
        let failed = job.env("LAPI_CONFIG", &wrong).env("MP_INFOLEVEL", "1").run();
        assert_ne!(failed.status, Some(0), "{failed}");
        failed.says(&words);
    }
    // The environment wins, and what else is wrong is said once.
    let said = Job::direct(&program).env("LAPI_CONFIG", &wrong).env("LAPI_SPIN", "5").run();
    said.ok().says(&format!("{wrong}:1: LAPI_SIPN is not a variable of LAPI; did you mean LAPI_SPIN?"));
    let said = Job::new(&program).procs(2).env("LAPI_CONFIG", &wrong).env("LAPI_SPIN", "5").run();
    assert_eq!(said.ok().stderr.matches("LAPI_SIPN").count(), 1, "{said}");
    let missing = Job::direct(&program).env("LAPI_CONFIG", "/nowhere/x.conf").run();
    missing.ok().says("/nowhere/x.conf: there is no such file");
}

#[test]
fn poe_takes_files_too_and_its_tasks_have_the_same() {
    let folder = folder("poe");
    let file = write(&folder.join("a.conf"), "MP_PROCS=2\nMP_LABELIO=yes\nLAPI_SPIN=23\n");
    let job = |name: &str| {
        let lapi_info = stage().join("bin/lapi_info");
        Job::poe().arg(lapi_info).arg(name).env("LAPI_CONFIG", &file)
    };
    let outcome = job("LAPI_SPIN").run();
    for task in [0, 1] {
        let line = format!("{task}:  from     file {file}:3");
        assert!(outcome.ok().stdout.contains(&line), "{outcome}");
    }
    let flag = job("LAPI_SPIN").poe_arg("-procs").poe_arg("1").env("MP_LABELIO", "no").run();
    assert!(flag.ok().stdout.starts_with("LAPI_SPIN (variable)\n"), "{flag}");
    let wrong = write(&folder.join("b.conf"), "\nMP_LABELIO=maybe\n");
    let refused = poe_info(1).env("LAPI_CONFIG", &wrong).run();
    refused.exited(2).says(&format!("{wrong}:2: MP_LABELIO: \"maybe\" is not yes or no"));
    let dry = job("LAPI_SPIN").poe_arg("-dry_run").run();
    assert!(dry.ok().stdout.contains("    LAPI_SPIN=23\n"), "{dry}");
}

/// The file of the site itself, on a machine that has such a one: in a mount namespace, with a copy
/// of /etc.
#[test]
fn a_job_reads_the_file_of_the_site() {
    let folder = folder("site");
    let script = r#"mount -t tmpfs none "$FOLDER" && cp -a /etc/. "$FOLDER" &&
        echo "LAPI_SPIN=$SPIN" >"$FOLDER/openlapi.conf" && mount --bind "$FOLDER" /etc && exec "$0" "$@""#;
    let mounted = |spin: &str, command: &Path| {
        let job = Job::direct("unshare").arg("-m").arg("sh").arg("-c").arg(script).env("SPIN", spin);
        let job = job.env("FOLDER", &folder).env("XDG_CONFIG_HOME", "/nonexistent").env_remove("LAPI_CONFIG");
        job.arg(command)
    };
    let inside = |spin: &str, program: &Path| {
        mounted(spin, &stage().join("bin/poe")).arg("-procs").arg("2").arg(program)
    };
    if mounted("1", Path::new("true")).run().status != Some(0) {
        return skipped("the file of the site", "nothing can be mounted here");
    }
    let outcome = inside("37", &stage().join("bin/lapi_info")).arg("LAPI_SPIN").run();
    assert_eq!(outcome.ok().stdout.matches("site file /etc/openlapi.conf:1").count(), 2, "{outcome}");
    let program = compile("init-sample", &["samples/init/Init.c"], &[]);
    let failed = inside("never", &program).env("MP_INFOLEVEL", "1").run();
    assert_ne!(failed.status, Some(0), "{failed}");
    failed.says("/etc/openlapi.conf:1: LAPI_SPIN is \"never\"; allowed: auto, or a whole number");
}

/// The files of the machine where poe runs count: a task's own XDG_CONFIG_HOME is another one.
#[test]
fn tasks_on_other_hosts_have_the_settings_of_poe() {
    let what = "files of settings on two hosts";
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return skipped(what, &why),
    };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "Hydra is not installed");
    }
    let folder = folder("hosts");
    let user = write(&folder.join("openlapi.conf"), "LAPI_SPIN=29\n");
    let job = poe_info(2).arg("LAPI_SPIN").poe_arg("-launcher").poe_arg("hydra").env_remove("LAPI_CONFIG");
    let job = job.env("XDG_CONFIG_HOME", &folder).env("MP_STDOUTMODE", "ordered");
    let outcome = hosts.poe_on(&hosts.host_file("node0\nnode1\n"), job).run();
    assert_eq!(outcome.ok().stdout.matches(&format!("user file {user}:1")).count(), 2, "{outcome}");
}

/// A folder with a program that may be misused: it is removed, however the test ends.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program with rights that its user lacks.
#[test]
fn a_setuid_program_reads_the_file_of_the_site_only() {
    let what = "files of settings of a setuid program";
    if !nix::unistd::geteuid().is_root() {
        return skipped(what, "only root can make one for another user");
    }
    let folder = folder("setuid");
    let _removed = Removed(folder.clone());
    let file = write(&folder.join("a.conf"), "LAPI_SPIN=31\n");
    let program = folder.join("lapi_info");
    copy_program(stage().join("bin/lapi_info"), &program);
    let other_user = 65_534;
    std::os::unix::fs::chown(&program, Some(other_user), None).expect("root gives files away");
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o4755);
    fs::set_permissions(&program, mode).expect("a mode");
    let nosuid = nix::sys::statvfs::statvfs(&folder).expect("a file system");
    if nosuid.flags().contains(nix::sys::statvfs::FsFlags::ST_NOSUID) {
        return skipped(what, "the build folder is mounted without setuid");
    }
    let outcome =
        Job::direct(&program).arg("--json").env("LAPI_CONFIG", &file).env("LAPI_CONFIG_READ", "").run();
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let paths: Vec<&str> = report["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| file["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(paths, ["/etc/openlapi.conf"], "{outcome}");
}
