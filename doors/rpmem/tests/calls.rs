//! The calls of librpmem, through its C interface, with the daemon as a process of its own.

mod support;

use openlapi_tests::{Hosts, Job, eventually, skipped, workspace};
use rpmem::disk::{HEADER, Header};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use support::{Host, PART, built};

/// The pool of two parts.
const TWO: u64 = 2 * PART - 4096;

/// The program says that it has come to its end.
fn all_of_it(job: Job) {
    let outcome = job.run();
    assert!(outcome.ok().stdout.ends_with(": all of it\n"), "{}", outcome.stdout);
}

#[test]
fn exactly_the_twelve_functions_are_exported() {
    let listed =
        Command::new("nm").args(["-D", "--defined-only"]).arg(built().join("librpmem.so.1")).output();
    let listed = String::from_utf8(listed.expect("nm runs").stdout).expect("text");
    let mut found: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .filter(|name| !name.starts_with("LIBRPMEM"))
        .collect();
    found.sort_unstable();
    let frozen = fs::read_to_string(workspace().join("doors/rpmem/tests/symbols.txt")).expect("the list");
    assert_eq!(found, frozen.lines().collect::<Vec<_>>());
}

#[test]
fn what_the_library_refuses_by_itself() {
    let host = Host::new("arguments");
    all_of_it(host.calls(&["arguments", "host", "none.set"]));
    assert_eq!(host.log(), "", "a daemon was started");
}

#[test]
fn a_pool_from_its_creation_to_its_removal() {
    for options in ["", "OPTION SINGLEHDR"] {
        let host = Host::new("whole");
        host.set("two", options, 2);
        let size = if options.is_empty() { TWO } else { 2 * PART };
        all_of_it(host.calls(&["whole", "host", "two", &size.to_string()]));
        assert!(!host.part("two", 0).exists() && host.path("sets/two").exists());
    }
}

#[test]
fn a_pool_without_headers() {
    let host = Host::new("plain");
    host.set("plain", "OPTION NOHDRS", 2);
    all_of_it(host.calls(&["plain", "host", "plain", &(2 * PART).to_string()]));
    assert!(!host.part("plain", 0).exists() && !host.path("sets/plain").exists());
}

#[test]
fn by_instructions_of_the_processor() {
    let host = Host::new("direct");
    host.set("two", "", 2);
    let job = host.calls(&["whole", "host", "two", &TWO.to_string()]);
    all_of_it(job.env("PMEM_IS_PMEM_FORCE", "1"));
}

#[test]
fn threads_with_lanes_of_their_own() {
    for threads in ["1", "3"] {
        let host = Host::new("lanes");
        host.set("two", "", 2);
        let command = format!("{} --nthreads {threads}", host.command());
        let job = host.calls(&["lanes", "host", "two", &TWO.to_string()]).env("RPMEM_CMD", command);
        all_of_it(job);
    }
}

/// A daemon with several threads does what a lane asks for in its order.
#[test]
fn a_lane_is_ordered() {
    let host = Host::new("order");
    host.set("two", "", 2);
    let command = format!("{} --nthreads 4", host.command());
    let job = host.calls(&["order", "host", "two", &TWO.to_string()]);
    all_of_it(job.env("RPMEM_CMD", command).env("PMEM_IS_PMEM_FORCE", "1"));
}

#[test]
fn a_close_waits_for_flushes() {
    let host = Host::new("undrained");
    host.set("two", "", 2);
    let command = format!("{} --nthreads 4", host.command());
    let job = host.calls(&["undrained", "host", "two", &TWO.to_string()]);
    all_of_it(job.env("RPMEM_CMD", command).env("PMEM_IS_PMEM_FORCE", "1"));
}

/// The program has waited for ssh, and the number of that process is in use again. It runs where no
/// others have numbers.
#[test]
fn no_other_process_is_killed() {
    let alone = "unshare -rpf --mount-proc";
    let is_possible = Command::new("sh").args(["-c", &format!("{alone} true")]).output();
    if !is_possible.is_ok_and(|output| output.status.success()) {
        return skipped("no_other_process_is_killed", "no namespace of processes can be made");
    }
    let host = Host::new("stranger");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let program = format!("exec {alone} {} stranger host two {TWO}", support::calls().display());
    all_of_it(host.reached_by(Job::direct("/bin/sh").arg("-c").arg(program)));
}

#[test]
fn sizes_of_pools_and_sets() {
    let host = Host::new("sizes");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO + 4096).0, "EFBIG");
    assert!(!host.part("two", 0).exists(), "a pool that is not created leaves nothing");
    let (errno, rest) = host.try_call("create", "two", TWO);
    assert_eq!((&*errno, &*rest), ("OK", "7"));
    assert_eq!(host.try_call("open", "two", TWO + 4096).0, "EFBIG");
    assert_eq!(host.try_call("open", "two", 8192).0, "OK");
    let (errno, rest) = host.try_by("open", "two", 8192, |job| job.env("RPMEM_MAX_NLANES", "3"));
    assert_eq!((&*errno, &*rest), ("OK", "3"));
}

#[test]
fn the_mode_of_new_parts_is_what_the_umask_leaves() {
    let host = Host::new("modes");
    for (umask, mode) in [("000", 0o666), ("027", 0o640)] {
        host.set("two", "", 2);
        host.script("ssh", &format!("umask {umask}\nfor command; do :; done\nexec sh -c \"$command\"\n"));
        assert_eq!(host.try_call("create", "two", TWO).0, "OK");
        for part in 0..2 {
            let found = host.part("two", part).metadata().expect("a part");
            assert_eq!((found.permissions().mode() & 0o777, found.len()), (mode, PART), "umask {umask}");
        }
        assert_eq!(host.try_call("remove", "two", TWO).0, "OK");
    }
}

#[test]
fn sets_that_are_missing_or_wrong() {
    let host = Host::new("sets");
    assert_eq!(host.try_call("open", "none", PART).0, "ENOENT");
    host.set("two", "", 2);
    assert_eq!(host.try_call("open", "two", PART).0, "ENOENT");
    assert_eq!(host.try_call("remove", "two", PART).0, "ENOENT");
    // A word of which the text of the failure cannot have all.
    let long = format!("PMEMPOOLSET\n{}\u{fc} /tmp/x\n", "x".repeat(100_000));
    for (set, errno) in [
        ("not a set", "EINVAL"),
        (&*long, "EINVAL"),
        ("PMEMPOOLSET\n8M /tmp/x\nREPLICA other set\n", "EINVAL"),
        ("PMEMPOOLSET\nOPTION SINGLEHDR\nOPTION NOHDRS\n8M /tmp/x\n", "EINVAL"),
        ("PMEMPOOLSET\n1M /tmp/x\n", "EINVAL"),
        ("PMEMPOOLSET\nAUTO /dev/dax0.0\n", "EOPNOTSUPP"),
        ("PMEMPOOLSET\n8M /tmp\n", "EOPNOTSUPP"),
        ("PMEMPOOLSET\n8M /dev/null\n", "EOPNOTSUPP"),
    ] {
        host.write("sets/wrong", set);
        for call in ["create", "open"] {
            let (found, text) = host.try_call(call, "wrong", PART);
            assert_eq!(found, errno, "{call} {set:.99}: {text}");
        }
    }
    // Attributes and headers go together.
    assert_eq!(host.try_call("none", "two", PART).0, "EINVAL");
    host.set("plain", "OPTION NOHDRS", 1);
    assert_eq!(host.try_call("create", "plain", PART).0, "EINVAL");
    assert!(!host.part("two", 0).exists() && !host.part("plain", 0).exists());
}

/// Files that the daemon's user may not read. Root is one of them without its capabilities.
#[test]
fn files_without_permissions() {
    let host = Host::new("access");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let limited = "setpriv --bounding-set=-dac_override,-dac_read_search";
    let root = format!("[ \"$(id -u)\" -ne 0 ] || exec {limited} sh -c \"$command\"");
    host.script("ssh", &format!("for command; do :; done\n{root}\nexec sh -c \"$command\"\n"));
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(host.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    for (name, calls) in
        [("sets/two", &["create", "open", "remove"][..]), ("two1", &["open", "remove", "force"])]
    {
        mode(name, 0);
        for call in calls {
            let (errno, text) = host.try_call(call, "two", TWO);
            assert!(errno == "EACCES" && text.contains(name), "{call}: {errno} {text}");
        }
        mode(name, 0o600);
    }
    assert_eq!(host.try_call("remove", "two", TWO).0, "OK");
    // A folder that takes no new part.
    fs::create_dir(host.path("closed")).expect("a folder");
    let part = host.path("closed/part");
    host.write("sets/far", &format!("PMEMPOOLSET\n{PART} {}\n", part.display()));
    mode("closed", 0o500);
    let (errno, text) = host.try_call("create", "far", PART);
    assert!(errno == "EACCES" && text.contains("closed/part"), "{errno} {text}");
    mode("closed", 0o700);
    assert_eq!(host.try_call("create", "far", PART).0, "OK");
}

#[test]
fn the_log_of_the_library() {
    let host = Host::new("log");
    host.set("two", "", 2);
    let file = host.path("client.log");
    let create = |level: &str, file: &Path| {
        let job = host.calls(&["try", "create", "host", "two", &TWO.to_string()]);
        let outcome = job.env("RPMEM_LOG_LEVEL", level).env("RPMEM_LOG_FILE", file).run();
        outcome.ok().complaints().to_owned()
    };
    let logged = || fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(create("3", &file), "");
    assert!(logged().starts_with("<librpmem>: <3> ") && logged().contains("a session with host"));
    // More is added at the end: the pool exists.
    let before = logged();
    assert_eq!(create("1", &file), "");
    let added = logged().strip_prefix(&before).map(str::to_owned).expect("what was there");
    assert!(added.starts_with("<librpmem>: <1> rpmem_create: ") && added.contains("errno 17"), "{added}");
    assert_eq!((create("0", &file), logged()), (String::new(), before + &added));
    // Without a file, or with one that cannot be written, it goes to standard error.
    for file in [Path::new(""), &host.path("sets")] {
        assert!(create("1", file).contains("<librpmem>: <1> rpmem_create: "));
    }
}

/// A client that is killed at any moment leaves 8192 bytes of one persist, by shared memory and by
/// the network of two hosts.
#[test]
fn what_is_persisted_lands_as_a_whole() {
    let hosts = Hosts::new(2);
    if let Err(why) = &hosts {
        skipped("what_is_persisted_lands_as_a_whole between hosts", why);
    }
    for hosts in [None, hosts.ok()] {
        let mut host = Host::new("again");
        host.set("two", "", 2);
        assert_eq!(host.try_call("create", "two", TWO).0, "OK");
        let target = hosts.as_ref().map_or_else(|| "host".to_owned(), |hosts| hosts.name(1));
        if let Some(hosts) = &hosts {
            host.ssh = hosts.ssh();
        }
        for lines in 1..=12 {
            let job = host.calls(&["again", &target, "two", &TWO.to_string()]);
            let job = hosts.iter().fold(job, |job, hosts| hosts.inside(0, job));
            let mut client = job.start();
            client.lines(lines);
            let number = client.pid().to_string();
            assert!(Command::new("kill").args(["-9", &number]).status().is_ok_and(|killed| killed.success()));
            let said = client.wait().stdout;
            let last: u32 = said.lines().next_back().expect("a line").parse().expect("a number");
            assert!(eventually(|| host.is_free("two")), "the daemon is left");
            let part = File::open(host.part("two", 0)).expect("a part");
            let mut found = [0; 8192];
            part.read_exact_at(&mut found, 5000).expect("data");
            let first = u32::from(found[0]);
            assert!(found.iter().all(|byte| *byte == found[0]), "some of {first} after {last}");
            assert!([last % 251, (last + 1) % 251].contains(&first), "{first} after {last}");
        }
    }
}

#[test]
fn parts_that_are_in_use_or_damaged() {
    let host = Host::new("parts");
    host.set("two", "", 2);
    // An empty file is taken, one with something in it is not.
    File::create(host.part("two", 0)).expect("a file");
    fs::write(host.part("two", 1), vec![1; PART as usize]).expect("a file");
    assert_eq!(host.try_call("create", "two", TWO).0, "EEXIST");
    fs::write(host.part("two", 1), vec![0; PART as usize]).expect("a file");
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    assert_eq!(host.try_call("create", "two", TWO).0, "EEXIST");

    let part = OpenOptions::new().read(true).write(true).open(host.part("two", 1)).expect("a part");
    let mut byte = [0];
    for at in [9, 30, 60, 4090] {
        part.read_exact_at(&mut byte, at).expect("a byte");
        part.write_all_at(&[!byte[0]], at).expect("a byte");
        assert_eq!(host.try_call("open", "two", TWO).0, "EINVAL", "byte {at}");
        assert_eq!(host.try_call("remove", "two", TWO).0, "EINVAL", "byte {at}");
        part.write_all_at(&byte, at).expect("a byte");
    }
    assert_eq!(host.try_call("open", "two", TWO).0, "OK");
    // The part of another pool.
    let other = fs::read(host.part("two", 1)).expect("a part");
    assert_eq!(host.try_call("remove", "two", TWO).0, "OK");
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    fs::write(host.part("two", 1), &other).expect("a part");
    assert_eq!(host.try_call("open", "two", TWO).0, "EINVAL");
    fs::remove_file(host.part("two", 0)).expect("a part");
    assert_eq!(host.try_call("remove", "two", TWO).0, "ENOENT");
    assert_eq!(host.try_call("force", "two", TWO).0, "OK");
    assert!(!host.part("two", 1).exists());
}

#[test]
fn the_sample() {
    let host = Host::new("sample");
    host.set("text", "", 1);
    let sample = support::program("rpmem_replica", "doors/rpmem/samples/replica.c");
    let run = |words: &[&str]| {
        host.reached_by(words.iter().fold(Job::direct(&sample), |job, word| job.arg(word))).run()
    };
    let failed = run(&["restore", "host", "text"]);
    assert_eq!(failed.status, Some(1));
    failed.says("replica: open: ");
    run(&["save", "host", "text", "what was in memory"]).ok();
    assert_eq!(run(&["restore", "host", "text"]).ok().stdout, "what was in memory\n");
}

#[test]
fn one_client_at_a_time() {
    let host = Host::new("busy");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    // A set of one of the same parts.
    let text = format!("PMEMPOOLSET\n{PART} {}\n", host.part("two", 1).display());
    host.write("sets/one", &text);
    let mut holder = host.calls(&["hold", "host", "two", &TWO.to_string()]).stdin_stays_open().start();
    assert_eq!(holder.lines(1), ["open OK"]);
    for set in ["two", "one"] {
        for call in ["create", "open", "remove", "force"] {
            assert_eq!(host.try_call(call, set, PART).0, "EBUSY", "{call} {set}");
        }
    }
    drop(holder);
    assert!(eventually(|| host.try_call("open", "two", TWO).0 == "OK"));
}

#[test]
fn the_header_has_the_numbers_of_the_interface_for_c_and_cxx() {
    let folder = workspace().join("doors/rpmem");
    for (compiler, language) in [("cc", "c"), ("g++", "c++")] {
        let compiled = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", language])
            .args(["-I", "include", "tests/c/layout.c"])
            .current_dir(&folder)
            .output()
            .expect("a compiler");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }
}

#[test]
fn whether_a_pool_was_closed_in_order() {
    let host = Host::new("state");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let header = |part: usize| {
        let bytes = fs::read(host.part("two", part)).expect("a part");
        Header::decode(bytes.first_chunk::<HEADER>().expect("a header")).expect("a header")
    };
    assert!(header(0).has_state() && !header(0).is_dirty);
    let mut holder = host.calls(&["hold", "host", "two", &TWO.to_string()]).stdin_stays_open().start();
    assert_eq!(holder.lines(1), ["open OK"]);
    assert!(header(0).is_dirty && header(1).is_dirty);
    // A client that is killed leaves a daemon that closes its pool.
    let client = holder.pid().to_string();
    assert!(Command::new("kill").args(["-9", &client]).status().is_ok_and(|killed| killed.success()));
    assert!(eventually(|| host.is_free("two")));
    assert!(!header(0).is_dirty && !header(1).is_dirty);
    drop(holder);
    // Open when the machine stopped: taken, as the devices are what they were.
    let write = |change: &dyn Fn(&mut Header)| {
        for part in [0, 1] {
            let mut header = header(part);
            change(&mut header);
            let file = OpenOptions::new().write(true).open(host.part("two", part)).expect("a part");
            file.write_all_at(&header.encode(false), 0).expect("a header");
        }
    };
    write(&|header| header.is_dirty = true);
    assert_eq!(host.try_call("open", "two", TWO).0, "OK");
    assert!(!header(0).is_dirty);
    // And refused, as they are not.
    write(&|header| (header.is_dirty, header.devices) = (true, [1, 2]));
    let (errno, text) = host.try_call("open", "two", TWO);
    assert!(errno == "EINVAL" && text.contains("not closed in order"), "{errno} {text}");
    write(&|header| header.is_dirty = false);
    // What a daemon that is killed now leaves says nothing of those devices.
    let mut holder = host.calls(&["hold", "host", "two", &TWO.to_string()]).stdin_stays_open().start();
    assert_eq!(holder.lines(1), ["open OK"]);
    assert!([0, 1].iter().all(|part| header(*part).is_dirty && header(*part).devices == [0; 2]));
    drop(holder);
    assert!(eventually(|| host.is_free("two")));
    assert_eq!(host.try_call("open", "two", TWO).0, "OK");
}

/// The first call that finds the daemon gone fails by ECONNRESET, and so do all later ones, and the
/// close.
#[test]
fn a_daemon_that_is_lost() {
    let host = Host::new("lost");
    host.set("two", "", 2);
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let number = host.path("daemon");
    let script =
        format!("echo $$ >{}\nfor command; do :; done\nexec sh -c \"exec $command\"\n", number.display());
    host.script("ssh", &script);
    let go = host.path("go");
    assert!(Command::new("mkfifo").arg(&go).status().is_ok_and(|made| made.success()));
    let words = ["hold", "host", "two", &TWO.to_string()];
    let shell = format!("exec {} {} <{}", support::calls().display(), words.join(" "), go.display());
    let mut holder = host.reached_by(Job::direct("/bin/sh").arg("-c").arg(shell)).start();
    let mut line = OpenOptions::new().write(true).open(&go).expect("the program reads");
    assert_eq!(holder.lines(1), ["open OK"]);
    writeln!(line).expect("a line");
    assert_eq!(holder.lines(4)[1..], ["persist OK", "drain OK", "read OK"]);
    let daemon = fs::read_to_string(&number).expect("a number");
    assert!(Command::new("kill").args(["-9", daemon.trim()]).status().is_ok_and(|killed| killed.success()));
    writeln!(line).expect("a line");
    drop(line);
    let outcome = holder.wait();
    let said: Vec<&str> = outcome.ok().stdout.lines().skip(4).collect();
    assert_eq!(said, ["persist ECONNRESET", "drain ECONNRESET", "read ECONNRESET", "close ECONNRESET"]);
    // Nothing is left open.
    assert_eq!(host.try_call("open", "two", TWO).0, "OK");
}

#[test]
fn ssh_and_daemons_that_fail() {
    let host = Host::new("ssh");
    host.set("two", "", 2);
    let ssh = |script: &str| {
        let ssh = host.script("other", script);
        let (errno, text) = host.try_by("open", "two", TWO, |job| job.env("RPMEM_SSH", &ssh));
        let removed = host.try_by("remove", "two", TWO, |job| job.env("RPMEM_SSH", &ssh));
        (errno, text, removed.0)
    };
    let (errno, text, removed) = ssh("echo Hello >&2; echo 'no route to host' >&2; exit 255\n");
    assert_eq!((&*errno, &*removed), ("ECONNREFUSED", "ECONNREFUSED"));
    assert!(text.contains("no route to host") && !text.contains("Hello"), "{text}");
    let (errno, text, removed) = ssh("echo 'sh: rpmemd: not found' >&2; exit 127\n");
    assert_eq!((&*errno, &*removed), ("EREMOTEIO", "EREMOTEIO"));
    assert!(text.contains("rpmemd: not found"), "{text}");
    assert_eq!(ssh("kill -9 $$\n").0, "ECONNABORTED");
    assert_eq!(ssh("exit 0\n").0, "ECONNABORTED");
    assert_eq!(ssh("echo a greeting that is none; sleep 1\n").0, "EREMOTEIO");
    // It reads nothing. What is written to it is no signal; whether that or its greeting is found
    // first is open.
    let (errno, ..) = ssh("exec <&-; printf LAPICON1; head -c 32 /dev/zero; sleep 1\n");
    assert!(["ECONNABORTED", "EREMOTEIO"].contains(&&*errno), "{errno}");
    let nothing = host.path("nothing");
    assert_eq!(host.try_by("open", "two", TWO, |job| job.env("RPMEM_SSH", nothing)).0, "ECONNREFUSED");
    // The daemon's configuration.
    host.write("rpmemd.conf", "unknown-key = yes\n");
    let (errno, text) = host.try_call("open", "two", TWO);
    assert!(errno == "EINVAL" && text.contains("unknown-key"), "{errno} {text}");
    assert_eq!(host.try_call("remove", "two", TWO).0, "EINVAL");
}

/// Wrappers parse the command line.
#[test]
fn how_ssh_is_called() {
    let host = Host::new("line");
    let ssh = host.script("other", &format!("echo \"$@\" >>{}\nexit 255\n", host.path("said").display()));
    let run = |target: &str, call: &str| {
        let job = host.calls(&["try", call, target, "a set", "8192"]);
        job.env("RPMEM_SSH", &ssh).env("RPMEM_CMD", "one -c x | two").run().ok();
    };
    // What the program sets later changes nothing.
    let late = host.calls(&["late", "host", "a set", "8192"]);
    all_of_it(late.env("RPMEM_SSH", &ssh).env("RPMEM_CMD", "one | two"));
    for (target, call) in [("host", "open"), ("me@host:2222", "remove"), ("[::1]:22", "force")] {
        run(target, call);
    }
    let said = fs::read_to_string(host.path("said")).expect("ssh was called");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "-T -4 -oBatchMode=yes host one",
            "-T -4 -oBatchMode=yes host two",
            "-T -4 -oBatchMode=yes host one -c x",
            "-p 2222 -T -4 -oBatchMode=yes me@host one -c x --remove 'a set'",
            "-p 22 -T -oBatchMode=yes ::1 one -c x --remove 'a set' --force",
        ]
    );
}
