//! Other users of the host: they get what was granted to them, and nothing else.

mod client;

use client::{Client, Host, VOLATILE};
use fam::FamError;
use fam::wire::{Answer, Ask, Attributes, Change, Kind, Role, Sealed, VERSION};
use openlapi_tests::{copy_program, skipped};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What the other process gets: the port of the daemon, and a ticket of the first one.
const PORT: &str = "FAM_TEST_PORT";
const TICKET: &str = "FAM_TEST_TICKET";
const OTHER: u32 = 65_534;
const GROUP: u32 = 65_533;

#[test]
fn another_user_gets_what_was_granted_alone() {
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return skipped("another user at a daemon", "only root has another user's processes");
    }
    let host = Host::new("users", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let items = Attributes { permission: 2, ..VOLATILE };
    let region = client.region("r", 4 << 20, 0o600, items);
    for (name, mode) in [("closed", 0o600), ("read", 0o604), ("write", 0o602), ("both", 0o606)] {
        let item = client.item(region, name, 4096);
        client.put(&item, 0, &[5; 64]).expect("a put");
        client.ask(&Ask::ItemRights { region, item: item.item, mode }).expect("rights");
    }
    // Rights of a region hold for its items, whatever they say.
    let whole = client.region("whole", 1 << 20, 0o604, VOLATILE);
    let one = client.item(whole, "one", 4096);
    let rights = Ask::ItemRights { region: whole, item: one.item, mode: 0o666 };
    assert_eq!(client.ask(&rights).expect_err("the region's hold").error, FamError::NoPerm);

    let program = this_program(&host);
    let (_, closed) = client.lookup("r", "closed").expect("an item");
    let ticket = fam::wire::encode(&Ask::Open { ticket: client.ticket(region, closed).expect("a ticket") });
    let ticket: String = ticket.iter().map(|byte| format!("{byte:02x}")).collect();
    let other = Command::new(&program)
        .args(["--exact", "the_other_user", "--nocapture"])
        .env(PORT, host.address().port.to_string())
        .env(TICKET, ticket)
        .current_dir(host.path("."))
        .uid(OTHER)
        .gid(GROUP)
        .output()
        .expect("another process");
    let said = String::from_utf8_lossy(&other.stdout).into_owned() + &String::from_utf8_lossy(&other.stderr);
    assert!(other.status.success() && said.contains("all of it"), "{said}");
    // It has changed what it may, and nothing else.
    for (name, byte) in [("closed", 5), ("read", 5), ("write", 9), ("both", 9)] {
        let (_, item) = client.lookup("r", name).expect("an item");
        let item = client.open_item(region, item).expect("an item");
        assert_eq!(client.get(&item, 0, 8).expect("a get"), [byte; 8], "{name}");
    }
}

/// The secret of the pool goes to daemons of the keeper's user alone.
#[test]
fn a_server_of_another_user_learns_nothing() {
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return skipped("another user's daemon", "only root has another user's processes");
    }
    let host = Host::new("impostor", 2, false);
    let program = this_program(&host);
    let impostor = Command::new(&program)
        .args(["--exact", "the_impostor", "--nocapture"])
        .env(PORT, host.server_address(1).port.to_string())
        .current_dir(host.path("."))
        .uid(OTHER)
        .gid(GROUP)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("another process");
    let _keeper = host.keeper();
    let said = impostor.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && text.contains("nothing came"), "{text}");
}

/// A copy of this program that others can run.
fn this_program(host: &Host) -> PathBuf {
    let program = host.path("other");
    copy_program(std::env::current_exe().expect("this program"), &program);
    program
}

/// A program, too, connects to no daemon of a user that it does not expect.
#[test]
fn a_daemon_of_another_user_gets_nothing() {
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return skipped("another user's daemon", "only root has another user's processes");
    }
    let host = Host::new("taken", 1, false);
    let program = this_program(&host);
    let impostor = Command::new(&program)
        .args(["--exact", "the_impostor", "--nocapture"])
        .env(PORT, host.address().port.to_string())
        .current_dir(host.path("."))
        .uid(OTHER)
        .gid(GROUP)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("another process");
    let refused = || {
        let refused = fam::reach::reach(&host.address(), &openlapi_session::Settings::default());
        let Err(failure) = refused else { panic!("another user's daemon is used") };
        assert!([FamError::RpcClientNotFound, FamError::NoPerm].contains(&failure.error), "{failure}");
        failure.error == FamError::NoPerm && failure.text.contains("LAPI_FAM_USER")
    };
    assert!(openlapi_tests::eventually(refused), "it does not listen");
    let said = impostor.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && text.contains("nothing came"), "{text}");
}

#[test]
fn the_impostor() {
    let Ok(port) = std::env::var(PORT) else { return };
    if std::env::var(TICKET).is_ok() {
        return;
    }
    let name = fam::meeting::socket_name(port.parse().expect("a port"));
    let settings = openlapi_session::Settings::default();
    let mut listener = openlapi_session::Listener::unix_of_any_user(&name, &settings).expect("a listener");
    let late = Some(std::time::Instant::now() + std::time::Duration::from_secs(100));
    // Who is told that this user is not expected may close before there is a session.
    if let Ok(session) = listener.accept(late) {
        let came = session.expect("in time").receive(late);
        assert!(came.is_err(), "{came:?}");
    }
    println!("nothing came");
}

/// The other process; in the tests' own there is nothing to do.
#[test]
fn the_other_user() {
    let Ok(port) = std::env::var(PORT) else { return };
    let address = fam::files::Address { host: "127.0.0.1".to_owned(), port: port.parse().expect("a port") };
    let mut client = Client::at(&address);
    // It says that it is root, and is not believed.
    let hello = Ask::Hello { version: VERSION, role: Role::Program, user: 0, group: 0 };
    let Ok(Answer::Hello { user, group, .. }) = client.ask(&hello) else { panic!("no hello") };
    assert_eq!((user, group), (OTHER, GROUP));
    let keeper = Ask::Hello { version: VERSION, role: Role::Keeper, user: 0, group: 0 };
    assert_eq!(Client::at(&address).ask(&keeper).expect_err("no keeper").error, FamError::NoPerm);

    // The region itself is closed.
    let lookup = Ask::LookupRegion { name: "r".to_owned() };
    assert_eq!(client.ask(&lookup).expect_err("a closed region").error, FamError::NoPerm);
    let (region, read) = client.lookup("r", "read").expect("an item that it may read");
    assert_eq!(client.lookup("r", "closed").expect_err("a closed item").error, FamError::NoPerm);
    let closed = read - 1;
    for ask in [
        Ask::DestroyRegion { region },
        Ask::ResizeRegion { region, size: 1 << 21 },
        Ask::RegionRights { region, mode: 0o777 },
        Ask::StatRegion { region },
        Ask::Allocate { region, name: "mine".to_owned(), size: 128, mode: 0o600 },
        Ask::Deallocate { region, item: closed },
        Ask::Deallocate { region, item: read },
        Ask::StatItem { region, item: closed },
        Ask::Ticket { region, item: closed },
        Ask::ItemRights { region, item: read, mode: 0o777 },
        Ask::Backup { region, item: closed, name: "stolen".to_owned() },
    ] {
        assert_eq!(client.ask(&ask).expect_err("it was not granted").error, FamError::NoPerm, "{ask:?}");
    }
    // A ticket of another user is none of this one's.
    let ticket = std::env::var(TICKET).expect("a ticket");
    let byte = |at: usize| u8::from_str_radix(&ticket[at..at + 2], 16).expect("a byte");
    let bytes: Vec<u8> = (0..ticket.len()).step_by(2).map(byte).collect();
    let Some(Ask::Open { ticket }) = fam::wire::decode(&bytes) else { panic!("a ticket") };
    assert_eq!(client.open_ticket(&ticket).expect_err("another user's").error, FamError::NoPerm);
    let forged = Sealed::new(&ticket.read().expect("a ticket"), &[0; 32]);
    assert_eq!(client.open_ticket(&forged).expect_err("forged").error, FamError::Metadata);

    let add = (Change::Add, Kind::Uint64);
    for (name, reads, writes) in [("read", true, false), ("write", false, true), ("both", true, true)] {
        let (region, item) = client.lookup("r", name).expect("an item");
        let item = client.open_item(region, item).expect("an item");
        let expected = |may: bool| if may { Ok(()) } else { Err(FamError::NoPerm) };
        assert_eq!(client.get(&item, 8, 8).map(drop), expected(reads), "{name}");
        assert_eq!(client.change(&item, 16, add.0, add.1, 1, 0).map(drop), expected(writes), "{name}");
        assert_eq!(client.put(&item, 0, &[9; 8]), expected(writes), "{name}");
        // The long way, too.
        assert_eq!(client.put(&item, 1024, &[9; 3000]), expected(writes), "{name}");
    }
    let (region, one) = client.lookup("whole", "one").expect("an item");
    let one = client.open_item(region, one).expect("an item");
    assert_eq!(client.get(&one, 0, 8).expect("a get"), [0; 8]);
    assert_eq!(client.put(&one, 0, &[9; 8]), Err(FamError::NoPerm));
    // It has memory of its own, which is closed to the daemon's user, root or not.
    client.region("mine", 1 << 20, 0o600, VOLATILE);
    println!("all of it");
}
