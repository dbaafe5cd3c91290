//! What is left of memory when its daemon is killed: persistent regions with their names, rights
//! and bytes, and the knowledge of what was not written as a whole.

mod client;

use client::{Client, Daemon, Host, VOLATILE, names, persistent};
use fam::FamError;
use fam::wire::{Answer, Ask, Change, Kind, Message};
use openlapi::base::rng::Rng;
use openlapi_session::Routes;
use openlapi_tests::{Deadline, eventually};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::time::Duration;

#[test]
fn persistent_memory_comes_back_after_a_kill() {
    let host = Host::new("comes_back", 1, true);
    let daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 8 << 20, 0o640, persistent());
    let item = client.item(region, "i", 1 << 20);
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 7) as u8).collect();
    client.put(&item, 0, &data).expect("a put");
    assert_eq!(client.change(&item, 8, Change::Swap, Kind::Int128, 77, 0).map(drop), Err(FamError::Invalid));
    client.change(&item, 16, Change::Swap, Kind::Int128, 77, 0).expect("an aligned number");
    client.ask(&Ask::RegionRights { region, mode: 0o600 }).expect("rights");
    let gone = client.item(region, "gone", 4096);
    client.ask(&Ask::Deallocate { region, item: gone.item }).expect("an end");
    let empty = client.region("empty", 1 << 20, 0o600, persistent());
    client.ask(&Ask::DestroyRegion { region: empty }).expect("an end");
    client.ask(&Ask::ResizeRegion { region, size: 16 << 20 }).expect("a longer region");
    assert_eq!(names(&host.path("memory0")).len(), 1);
    daemon.kill();
    assert!(client.is_ended());

    let daemon = host.keeper();
    let mut client = Client::open(&host);
    assert_eq!(client.lookup("r", "gone").expect_err("it has ended").error, FamError::NotFound);
    let none = Ask::LookupRegion { name: "empty".to_owned() };
    assert_eq!(client.ask(&none).expect_err("it has ended").error, FamError::NotFound);
    let Ok(Answer::Region(facts)) = client.ask(&Ask::StatRegion { region }) else { panic!("the region") };
    assert_eq!((facts.mode, facts.size), (0o600, 16 << 20));
    assert_eq!(client.lookup("r", "i").expect("the item"), (region, item.item));
    // A ticket of the daemon before is none; another one is given.
    assert_eq!(client.open_ticket(&item.ticket).expect_err("an old ticket").error, FamError::Metadata);
    let seal = Ask::Seal { ticket: item.ticket.clone() };
    assert_eq!(client.ask(&seal).expect_err("an old ticket").error, FamError::Metadata);
    let again = client.open_item(region, item.item).expect("the item");
    let mut expected = data;
    expected[16..32].copy_from_slice(&77_u128.to_le_bytes());
    assert!(client.get(&again, 0, 1 << 20).expect("a get") == expected, "other bytes");
    // New items have other numbers, and other places.
    let new = client.item(region, "new", 1 << 20);
    assert!(new.item > gone.item);
    client.put(&new, 0, &[1; 4096]).expect("a put");
    assert!(client.get(&again, 0, 1 << 20).expect("a get") == expected, "other bytes");
    client.ask(&Ask::DestroyRegion { region }).expect("an end");
    assert_eq!(names(&host.path("memory0")).len(), 0);
    drop(daemon);
}

#[test]
fn volatile_memory_ends_with_the_daemon() {
    for has_metadata in [true, false] {
        let host = Host::new("volatile", 1, false);
        if !has_metadata {
            for name in ["fam_metadata_config.yaml", "fam_memoryserver_config.yaml"] {
                std::fs::write(host.path("config").join(name), "").expect("a file");
            }
        }
        let daemon = host.keeper();
        let mut client = Client::open(&host);
        let region = client.region("r", 1 << 20, 0o600, VOLATILE);
        let item = client.item(region, "i", 4096);
        daemon.kill();
        let _daemon = host.keeper();
        let mut client = Client::open(&host);
        assert_eq!(client.lookup("r", "i").expect_err("it is gone").error, FamError::NotFound);
        let opened = client.open_item(region, item.item);
        assert_eq!(opened.err().expect("it is gone").error, FamError::NotFound);
        let again = client.region("r", 1 << 20, 0o600, VOLATILE);
        assert_ne!(again, region, "an old descriptor would name it");
        assert_ne!(client.item(again, "i", 4096).item, item.item, "an old descriptor would name it");
    }
}

/// The daemon is killed as soon as the first of many bytes is there.
#[test]
fn a_put_that_the_death_of_the_daemon_has_cut_is_found() {
    let host = Host::new("torn", 1, true);
    let daemon = host.keeper();
    let mut client = Client::by(&host.address(), Routes::UDP);
    client.hello();
    let region = client.region("r", 128 << 20, 0o600, persistent());
    let item = client.item(region, "i", 100 << 20);
    let whole = client.item(region, "whole", 1 << 20);
    client.put(&whole, 0, &vec![3; 1 << 20]).expect("a put");
    let file = names(&host.path("memory0")).pop().expect("a part");
    let file = std::fs::File::open(host.path("memory0").join(file)).expect("a file");
    let put = Message::Put { number: 1 << 40, item: item.number, offset: 5 };
    let is_there = |offset: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, (1 << 16) + offset).expect("a byte");
        byte == [9]
    };
    std::thread::scope(|scope| {
        // It pauses while much is under way, and ends by the death.
        let sender = scope.spawn(|| {
            let _ = client.session.post(&put.encode(), &vec![9; 90 << 20]);
            let _ = client.session.receive(None);
        });
        let mut deadline = Deadline::after(Duration::from_secs(60));
        while !is_there(5) {
            assert!(!deadline.has_passed(), "nothing of the put has come");
            std::hint::spin_loop();
        }
        daemon.kill();
        sender.join().expect("a sender");
    });
    assert!(!is_there(4 + (90 << 20)), "the put was over before the daemon was");
    let daemon = host.keeper();
    let listed = host.command(&["--torn"]).output().expect("a list");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let expected = format!("item {}: {} bytes at 5\n", item.item, 90 << 20);
    assert!(listed.ends_with(&expected) && listed.lines().count() == 1, "{listed}");
    // They are known until their memory is another item's.
    daemon.kill();
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let listed = || host.command(&["--torn"]).output().expect("a list").stdout.len();
    assert_ne!(listed(), 0);
    client.ask(&Ask::Deallocate { region, item: item.item }).expect("an end");
    assert_ne!(listed(), 0);
    client.item(region, "next", 100 << 20);
    assert_eq!(listed(), 0);
}

#[test]
fn a_put_that_the_end_of_its_session_has_cut_is_found() {
    let host = Host::new("left", 1, true);
    let start = |log: &str| {
        let mut command = host.command(&[]);
        command.stderr(std::fs::File::create(host.path(log)).expect("a file"));
        Daemon::start(command)
    };
    let daemon = start("first");
    let mut client = Client::by(&host.address(), Routes::UDP);
    client.hello();
    let region = client.region("r", 128 << 20, 0o600, persistent());
    let item = client.item(region, "i", 100 << 20);
    let file = names(&host.path("memory0")).pop().expect("a part");
    let file = std::fs::File::open(host.path("memory0").join(file)).expect("a file");
    let put = Message::Put { number: 1 << 40, item: item.number, offset: 0 };
    std::thread::scope(|scope| {
        scope.spawn(|| client.session.post(&put.encode(), &vec![9; 90 << 20]));
        let mut deadline = Deadline::after(Duration::from_secs(60));
        let mut byte = [0];
        while byte != [9] {
            assert!(!deadline.has_passed(), "nothing of the put has come");
            file.read_exact_at(&mut byte, 1 << 16).expect("a byte");
        }
        client.session.end();
    });
    drop(client);
    let line = format!("item {}: {} bytes at 0", item.item, 90 << 20);
    let listed = || {
        let listed = host.command(&["--torn"]).output().expect("a list").stdout;
        String::from_utf8(listed).expect("text").contains(&line)
    };
    assert!(eventually(listed), "it is not found");
    let line = format!("item {} is torn: {} bytes at 0", item.item, 90 << 20);
    let said = |log: &str| std::fs::read_to_string(host.path(log)).expect("a log").contains(&line);
    assert!(eventually(|| said("first")), "the log does not name it");
    daemon.kill();
    let _daemon = start("second");
    assert!(eventually(|| said("second")), "the next daemon's log does not name it");
}

/// As many as a program has puts under way, whose session ends at a bad moment.
#[test]
fn of_many_torn_ranges_the_log_names_some() {
    let host = Host::new("many_torn", 1, true);
    let daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let item = client.item(region, "i", 1 << 16).item;
    daemon.kill();
    let file = host.path("memory0").join(names(&host.path("memory0")).pop().expect("a part"));
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("a file");
    for mark in 0..100_u64 {
        let words = [item, 100 * mark, 50, 0].map(u64::to_le_bytes);
        file.write_all_at(words.as_flattened(), 64 + 32 * mark).expect("a mark");
    }
    let mut command = host.command(&[]);
    command.stderr(std::fs::File::create(host.path("log")).expect("a file"));
    let _daemon = Daemon::start(command);
    let said = std::fs::read_to_string(host.path("log")).expect("a log");
    assert_eq!(said.matches("is torn: 50 bytes at").count(), 8, "{said}");
    assert_eq!(said.matches("are torn: openfamd --torn lists them").count(), 1, "{said}");
    let listed = host.command(&["--torn"]).output().expect("a list").stdout;
    assert_eq!(String::from_utf8(listed).expect("text").lines().count(), 100);
}

/// A keeper whose writes beyond a limit fail.
fn of_small_files(host: &Host) -> Daemon {
    let mut command = host.command(&[]);
    let ignore = || {
        // SAFETY: a call that may stand between fork and exec.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: `ignore` does nothing else.
    unsafe { command.pre_exec(ignore) };
    Daemon::start(command)
}

/// Gives files of a daemon this length at most.
fn limit(daemon: &Daemon, current: Option<u64>) {
    let limit = Rlimit { current, maximum: None };
    prlimit(Pid::from_raw(daemon.process()), Resource::Fsize, limit).expect("a limit");
}

#[test]
fn a_backup_that_the_metadata_do_not_take_leaves_no_file() {
    let host = Host::new("untaken", 1, true);
    let daemon = of_small_files(&host);
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let item = client.item(region, "i", 4096);
    // The backup has room, and the metadata have none.
    limit(&daemon, Some(4096));
    let backup = Ask::Backup { region, item: item.item, name: "b".to_owned() };
    assert_eq!(client.ask(&backup).expect_err("the disk is full").error, FamError::NoSpace);
    assert_eq!(names(&host.path("backup")), [""; 0]);
    limit(&daemon, None);
    client.ask(&backup).expect("a backup");
    assert_eq!(names(&host.path("backup")).len(), 1);
}

#[test]
fn names_and_rights_are_kept_again_when_the_disk_takes_them_again() {
    let host = Host::new("disk", 1, true);
    let daemon = of_small_files(&host);
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let limit = |current| limit(&daemon, current);
    let change = Ask::RegionRights { region, mode: 0o640 };
    // Now every file is full.
    limit(Some(0));
    for _ in 0..3 {
        assert_eq!(client.ask(&change).expect_err("the disk is full").error, FamError::NoSpace);
    }
    let Ok(Answer::Region(facts)) = client.ask(&Ask::StatRegion { region }) else { panic!("the region") };
    assert_eq!(facts.mode, 0o600, "what was refused has happened");
    limit(None);
    client.ask(&change).expect("the disk has room");
    client.item(region, "i", 4096);
    daemon.kill();
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let Ok(Answer::Region(facts)) = client.ask(&Ask::StatRegion { region }) else { panic!("the region") };
    assert_eq!(facts.mode, 0o640);
    client.lookup("r", "i").expect("the item");
}

#[test]
fn a_daemon_ends_in_order_though_a_program_is_connected() {
    let host = Host::new("in_order", 1, true);
    let daemon = host.keeper();
    let client = Client::open(&host);
    assert!(daemon.end().success());
    assert!(client.is_ended());
}

#[test]
fn a_folder_is_one_daemons() {
    let host = Host::new("folder", 1, true);
    let _daemon = host.keeper();
    let other = Host::new("folder_too", 1, true);
    let text = std::fs::read_to_string(host.path("config/fam_memoryserver_config.yaml")).expect("a file");
    std::fs::write(other.path("config/fam_memoryserver_config.yaml"), text).expect("a file");
    let refused = other.command(&[]).output().expect("a daemon");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("another daemon uses"), "{said}");
}

/// Puts, numbers and names, until the daemon is killed at a random moment. What was replied to is
/// there, and of the last operation all or nothing, or its range is listed.
#[test]
fn what_was_replied_to_survives_a_kill_at_any_moment() {
    let host = Host::new("any_moment", 1, true);
    let mut rng = Rng::new(11);
    let mut daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 64 << 20, 0o600, persistent());
    let mut item = client.item(region, "bytes", 1 << 16);
    let mut model = vec![0_u8; 1 << 16];
    let mut named = 0;
    for round in 0..8 {
        let process = daemon.process();
        let after = std::time::Duration::from_micros(rng.below(30_000));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            // SAFETY: the daemon of this test, which is waited for later.
            unsafe { libc::kill(process, libc::SIGKILL) };
        });
        let (mut cut, mut unnamed) = (None, None);
        loop {
            let length = if rng.below(2) == 0 { 8 } else { 1 + rng.below(20_000) };
            let offset = rng.below((1 << 16) - length) / 8 * 8;
            let data: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
            let put = |number| Message::Put { number, item: item.number, offset };
            match client.try_exchange(put, &data) {
                Ok((reply, _)) => assert!(matches!(reply, Message::Done { code: 0, .. }), "{reply:?}"),
                Err(_) => {
                    cut = Some((offset as usize, data));
                    break;
                }
            }
            model[offset as usize..][..data.len()].copy_from_slice(&data);
            if rng.below(8) == 0 {
                let name = format!("n{named}");
                let ask = Ask::Allocate { region, name, size: 128, mode: 0o600 };
                let ask = fam::wire::encode(&ask);
                if client.try_exchange(|number| Message::Ask { number }, &ask).is_err() {
                    unnamed = Some(named);
                    break;
                }
                named += 1;
            }
        }
        killer.join().expect("a killer");
        daemon.kill();
        daemon = host.keeper();
        client = Client::open(&host);
        for number in 0..named {
            client.lookup("r", &format!("n{number}")).expect("a name that was given");
        }
        if let Some(number) = unnamed {
            // All or nothing: the name can be used, or given.
            named += u64::from(client.lookup("r", &format!("n{number}")).is_ok());
        }
        item = client.open_item(region, item.item).expect("the item");
        let found = client.get(&item, 0, 1 << 16).expect("a get");
        if let Some((offset, data)) = cut {
            let range = offset..offset + data.len();
            let torn = host.command(&["--torn"]).output().expect("a list").stdout;
            let torn = String::from_utf8(torn).expect("text").contains(&format!("item {}:", item.item));
            let now = &found[range.clone()];
            assert!(torn || *now == data || *now == model[range.clone()], "round {round}: a torn put");
            model[range.clone()].copy_from_slice(&found[range]);
        }
        assert!(found == model, "round {round}: bytes that were put are lost");
    }
}
