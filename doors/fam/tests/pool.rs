//! Several daemons: items that lie on all of them, copies, backups, and the death of one.

mod client;

use client::{Client, Host, VOLATILE, have_joined, persistent};
use fam::FamError;
use fam::meeting::socket_name;
use fam::wire::{Answer, Ask, Attributes, Message, Sealed, Ticket, encode_answer};
use openlapi_session::{Listener, Settings};
use openlapi_tests::eventually;
use std::io::{ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};
use std::{fs, thread};

const SERVERS: u16 = 3;

/// A client with sessions with all daemons.
struct Everywhere {
    all: Vec<Client>,
}

/// An item by the numbers that servers have given.
struct Item {
    item: u64,
    sealed: Sealed,
    ticket: Ticket,
    numbers: Vec<u32>,
}

impl Everywhere {
    fn new(host: &Host) -> Self {
        let open = |server| {
            let mut client = Client::at(&host.server_address(server));
            client.hello();
            client
        };
        Self { all: (0..u64::from(SERVERS)).map(open).collect() }
    }

    fn keeper(&mut self) -> &mut Client {
        &mut self.all[0]
    }

    fn allocate(&mut self, region: u64, name: &str, size: u64) -> Item {
        let ask = Ask::Allocate { region, name: name.to_owned(), size, mode: 0o600 };
        let Ok(Answer::Item(facts)) = self.keeper().ask(&ask) else { panic!("an item") };
        self.open(region, facts.item)
    }

    fn open(&mut self, region: u64, item: u64) -> Item {
        let sealed = self.keeper().ticket(region, item).expect("a ticket");
        let ticket = sealed.read().expect("a ticket");
        let servers = ticket.pieces.iter().map(|piece| piece.server as usize);
        let numbers = servers.map(|server| self.all[server].open_ticket(&sealed).expect("a piece")).collect();
        Item { item, sealed, ticket, numbers }
    }

    fn put(&mut self, item: &Item, offset: u64, mut data: &[u8]) -> Result<(), FamError> {
        for segment in item.ticket.segments(offset, data.len() as u64) {
            let (now, rest) = data.split_at(segment.length as usize);
            data = rest;
            let client = &mut self.all[item.ticket.pieces[segment.piece].server as usize];
            let (item, offset) = (item.numbers[segment.piece], segment.offset);
            match client.exchange(|number| Message::Put { number, item, offset }, now).0 {
                Message::Done { code: 0, .. } => {}
                Message::Done { code, .. } => return Err(FamError::of(code)),
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    fn get(&mut self, item: &Item, offset: u64, length: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for segment in item.ticket.segments(offset, length) {
            let client = &mut self.all[item.ticket.pieces[segment.piece].server as usize];
            let (item, offset, length) = (item.numbers[segment.piece], segment.offset, segment.length);
            let (reply, data) = client.exchange(|number| Message::Get { number, item, offset, length }, &[]);
            assert!(matches!(reply, Message::Data { .. }), "{reply:?}");
            all.extend(data);
        }
        all
    }
}

fn bytes(length: usize, turn: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 13 + at / 255 + turn) as u8).collect()
}

/// `enable_region_spanning: false`: a region has one server, and all have as many regions.
#[test]
fn a_region_that_does_not_span_has_one_server() {
    let host = Host::new("one", SERVERS, false);
    let file = host.path("config/fam_metadata_config.yaml");
    let text = fs::read_to_string(&file).expect("a file") + "enable_region_spanning: false\n";
    fs::write(&file, text).expect("a file");
    let _servers = [host.server(1), host.server(2)];
    let _keeper = host.keeper();
    let mut client = Everywhere::new(&host);
    let mut all = Vec::new();
    for number in 0..6 {
        let region = client.keeper().region(&format!("r{number}"), 1 << 20, 0o600, VOLATILE);
        let Ok(Answer::Region(facts)) = client.keeper().ask(&Ask::StatRegion { region }) else {
            panic!("a region")
        };
        let [server] = facts.servers[..] else { panic!("{:?}", facts.servers) };
        // Also an item of many blocks.
        let long = client.allocate(region, "long", 10 * 4096);
        let places: Vec<u64> = long.ticket.pieces.iter().map(|piece| piece.server).collect();
        assert_eq!(places, [server]);
        let data = bytes(10 * 4096, number);
        assert_eq!(client.put(&long, 0, &data), Ok(()));
        assert!(client.get(&long, 0, 10 * 4096) == data);
        all.push(server);
    }
    all.sort_unstable();
    assert_eq!(all, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn an_item_lies_on_all_servers_in_turn() {
    let host = Host::new("all", SERVERS, false);
    let _servers = [host.server(1), host.server(2)];
    let _keeper = host.keeper();
    let mut client = Everywhere::new(&host);
    let region = client.keeper().region("r", 16 << 20, 0o600, VOLATILE);
    let size = 10 * 4096 + 77;
    let spread = client.allocate(region, "spread", size);
    let servers: Vec<u64> = spread.ticket.pieces.iter().map(|piece| piece.server).collect();
    assert_eq!(servers.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{servers:?}");
    let data = bytes(size as usize, 1);
    assert_eq!(client.put(&spread, 0, &data), Ok(()));
    assert!(client.get(&spread, 0, size) == data);
    assert!(client.get(&spread, 4000, 9000) == data[4000..13_000]);
    // Short ones lie on one server each, and not all on one.
    let short: Vec<Item> =
        (0..6).map(|number| client.allocate(region, &format!("s{number}"), 4096)).collect();
    assert!(short.iter().all(|item| item.ticket.pieces.len() == 1));
    let places: std::collections::BTreeSet<u64> =
        short.iter().map(|item| item.ticket.pieces[0].server).collect();
    assert_eq!(places.len(), 3);
    // Without interleaving a long one, too.
    let alone = client.keeper().region("alone", 16 << 20, 0o600, Attributes { interleave: 2, ..VOLATILE });
    assert_eq!(client.allocate(alone, "long", size).ticket.pieces.len(), 1);

    // Copies go from any server to any.
    let other = client.allocate(alone, "other", 60_000);
    let copy = |from: &Item, from_offset, to: &Item, to_offset, length| Ask::Copy {
        from: from.sealed.clone(),
        from_offset,
        to: to.sealed.clone(),
        to_offset,
        length,
    };
    client.keeper().ask(&copy(&spread, 100, &other, 7, 30_000)).expect("a copy");
    assert!(client.get(&other, 7, 30_000) == data[100..30_100]);
    client.keeper().ask(&copy(&other, 7, &spread, 8192, 5000)).expect("a copy");
    assert!(client.get(&spread, 8192, 5000) == data[100..5100]);
    let beyond = client.keeper().ask(&copy(&spread, 0, &other, 50_000, 20_000)).expect_err("beyond");
    assert_eq!(beyond.error, FamError::OutOfRange);

    // More blocks than are under way at a time, between items that lie on all servers.
    let long = bytes(3 << 19, 2);
    let wide = ["from", "to"].map(|name| client.allocate(region, name, long.len() as u64 + 99));
    assert_eq!(client.put(&wide[0], 50, &long), Ok(()));
    client.keeper().ask(&copy(&wide[0], 50, &wide[1], 99, long.len() as u64)).expect("a copy");
    assert!(client.get(&wide[1], 99, long.len() as u64) == long);

    // An item that has ended is nowhere any more.
    client.keeper().ask(&Ask::Deallocate { region, item: spread.item }).expect("an end");
    for (server, item) in servers.into_iter().zip(spread.numbers) {
        let client = &mut client.all[server as usize];
        let (reply, _) = client.exchange(|number| Message::Get { number, item, offset: 0, length: 1 }, &[]);
        assert!(matches!(reply, Message::Done { code, .. } if code == FamError::NotFound.code()));
        assert_eq!(client.open_ticket(&spread.sealed).expect_err("gone").error, FamError::NotFound);
    }
}

#[test]
fn backups_are_made_restored_and_removed() {
    let host = Host::new("backups", SERVERS, false);
    let _servers = [host.server(1), host.server(2)];
    let keeper = host.keeper();
    let mut client = Everywhere::new(&host);
    let region = client.keeper().region("r", 16 << 20, 0o600, VOLATILE);
    let item = client.allocate(region, "i", 300_000);
    let data = bytes(300_000, 3);
    assert_eq!(client.put(&item, 0, &data), Ok(()));
    let backup = |name: &str| Ask::Backup { region, item: item.item, name: name.to_owned() };
    client.keeper().ask(&backup("one")).expect("a backup");
    assert_eq!(client.keeper().ask(&backup("one")).expect_err("twice").error, FamError::AlreadyExist);
    for name in ["", "a\nb"] {
        assert_eq!(client.keeper().ask(&backup(name)).expect_err("no name").error, FamError::Invalid);
    }
    // It outlives the daemon.
    keeper.kill();
    let _keeper = host.keeper();
    let mut client = Everywhere::new(&host);
    let Ok(Answer::Backups(all)) = client.keeper().ask(&Ask::ListBackups { name: String::new() }) else {
        panic!("backups")
    };
    assert_eq!(all.iter().map(|one| (one.name.as_str(), one.size)).collect::<Vec<_>>(), [("one", 300_000)]);
    let region = client.keeper().region("r", 16 << 20, 0o600, Attributes { interleave: 2, ..VOLATILE });
    let (shorter, longer) = (client.allocate(region, "s", 4096), client.allocate(region, "l", 400_000));
    let restore = |to: &Item, name: &str| Ask::Restore { name: name.to_owned(), to: to.sealed.clone() };
    let refused = client.keeper().ask(&restore(&shorter, "one")).expect_err("too short");
    assert_eq!(refused.error, FamError::OutOfRange);
    let none = client.keeper().ask(&restore(&longer, "two")).expect_err("no such backup");
    assert_eq!(none.error, FamError::BackupNotFound);
    client.keeper().ask(&restore(&longer, "one")).expect("the item's bytes");
    assert!(client.get(&longer, 0, 300_000) == data);
    // A damaged one changes nothing.
    let file = client::names(&host.path("backup")).pop().expect("a file");
    let path = host.path("backup").join(file);
    let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().expect("a file"));
    assert_eq!(mode & 0o077, 0, "others read what the item's rights keep from them");
    let mut content = std::fs::read(&path).expect("a backup");
    content[5000] ^= 1;
    std::fs::write(&path, content).expect("a backup");
    assert_eq!(client.put(&longer, 0, &[1; 8]), Ok(()));
    let damaged = client.keeper().ask(&restore(&longer, "one")).expect_err("it is damaged");
    assert_eq!(damaged.error, FamError::BackupInfoNotFound);
    assert_eq!(client.get(&longer, 0, 8), [1; 8]);
    client.keeper().ask(&Ask::DeleteBackup { name: "one".to_owned() }).expect("an end");
    assert!(client::names(&host.path("backup")).is_empty());
    let gone = client.keeper().ask(&Ask::StatBackup { name: "one".to_owned() }).expect_err("gone");
    assert_eq!(gone.error, FamError::BackupNotFound);
}

/// Metadata of an earlier day know nothing of a backup.
#[test]
fn a_backup_that_the_metadata_do_not_know_stays_where_it_is() {
    let host = Host::new("unknown", 1, false);
    let daemon = host.keeper();
    daemon.kill();
    let store = host.path("metadata/openfam.redb");
    let earlier = fs::read(&store).expect("metadata");
    let daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, VOLATILE);
    let item = client.item(region, "i", 4096);
    client.ask(&Ask::Backup { region, item: item.item, name: "b".to_owned() }).expect("a backup");
    let files = || client::names(&host.path("backup"));
    let known = files();
    assert_eq!(known.len(), 1);
    daemon.kill();
    fs::write(&store, earlier).expect("metadata");
    // A daemon that is killed leaves this one.
    fs::write(host.path("backup").join(format!("unfinished-{}", known[0])), [1; 9]).expect("a file");
    let _daemon = host.keeper();
    assert_eq!(files(), known);
}

#[test]
fn a_server_that_was_killed_joins_again() {
    let host = Host::new("joins", SERVERS, true);
    let (one, _two) = (host.server(1), host.server(2));
    let _keeper = host.keeper();
    let mut client = Everywhere::new(&host);
    let region = client.keeper().region("r", 16 << 20, 0o600, persistent());
    let item = client.allocate(region, "i", 40_000);
    let data = bytes(40_000, 5);
    assert_eq!(client.put(&item, 0, &data), Ok(()));
    one.kill();
    assert!(client.all[1].is_ended());
    let _one = host.server(1);
    // Without its keeper it believes no ticket.
    let ready = || {
        let mut client = Client::at(&host.server_address(1));
        client.hello();
        let Err(failure) = client.open_ticket(&item.sealed) else { return false };
        assert!([FamError::Rpc, FamError::Metadata].contains(&failure.error), "{failure}");
        failure.error == FamError::Metadata
    };
    assert!(eventually(ready), "the keeper has not found it");
    let mut client = Everywhere::new(&host);
    let again = client.open(region, item.item);
    assert!(client.get(&again, 0, 40_000) == data, "bytes are lost");
}

/// Folders of two servers are exchanged by mistake, for a start of the daemons.
#[test]
fn memory_of_another_server_is_left_alone() {
    let host = Host::new("exchanged", 2, true);
    let config = host.path("config/fam_memoryserver_config.yaml");
    let right = fs::read_to_string(&config).expect("a file");
    let wrong = right.replace("/memory0", "/memory_").replace("/memory1", "/memory0");
    let wrong = wrong.replace("/memory_", "/memory1");
    let start = |log: &str| {
        let file = fs::File::create(host.path(log)).expect("a file");
        let daemons = [&["--server", "1"][..], &[]].map(|words| {
            let mut command = host.command(words);
            command.stderr(file.try_clone().expect("a file"));
            client::Daemon::start(command)
        });
        let said = || fs::read_to_string(host.path(log)).expect("a log");
        assert!(eventually(|| said().matches("of memory has joined").count() == 2), "{}", said());
        daemons
    };
    let mut daemons = start("first");
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let items = ["a", "b"].map(|name| client.allocate(region, name, 4096));
    let piece = |item: u64, client: &mut Client| {
        let sealed = client.ticket(region, item).expect("a ticket");
        let mut at = Client::at(&host.server_address(sealed.read().expect("a ticket").pieces[0].server));
        at.hello();
        let number = at.open_ticket(&sealed).expect("a piece");
        (at, client::Item { item, region, ticket: sealed, number })
    };
    for item in items {
        let (mut at, item) = piece(item, &mut client);
        at.put(&item, 0, &[item.item as u8; 4096]).expect("a put");
    }
    let files = || [client::names(&host.path("memory0")), client::names(&host.path("memory1"))];
    let before = files();
    assert!(before.iter().all(|names| names.len() == 1), "{before:?}");
    for (text, log) in [(&wrong, "wrong"), (&right, "right")] {
        daemons.into_iter().for_each(client::Daemon::kill);
        fs::write(&config, text).expect("a file");
        daemons = start(log);
        assert_eq!(files(), before);
    }
    let said = fs::read_to_string(host.path("wrong")).expect("a log");
    assert_eq!(said.matches("belongs to no region on server").count(), 2, "{said}");
    let mut client = Client::open(&host);
    for item in items {
        let (mut at, item) = piece(item, &mut client);
        assert!(at.get(&item, 0, 4096).expect("a get") == [item.item as u8; 4096], "bytes are lost");
    }
}

#[test]
fn a_region_that_is_destroyed_while_a_server_is_gone_leaves_it_when_it_joins() {
    let host = Host::new("destroyed", 2, true);
    let server = host.server(1);
    let keeper = host.keeper();
    let mut client = Client::open(&host);
    let [region, other] = ["r", "other"].map(|name| client.region(name, 1 << 20, 0o600, persistent()));
    let parts = |server: u64| client::names(&host.path(&format!("memory{server}"))).len();
    server.kill();
    client.ask(&Ask::DestroyRegion { region }).expect("an end");
    assert_eq!((parts(0), parts(1)), (1, 2));
    // The keeper remembers it.
    keeper.kill();
    let keeper = host.keeper();
    let _server = host.server(1);
    assert!(eventually(|| parts(1) == 1), "the part is still there");
    let mut client = Client::open(&host);
    client.ask(&Ask::DestroyRegion { region: other }).expect("an end");
    assert!(eventually(|| (parts(0), parts(1)) == (0, 0)), "a part is still there");
    drop(keeper);
}

#[test]
fn a_server_that_does_not_answer_holds_up_nobody() {
    let host = Host::new("deaf", 2, false);
    let server = host.server(1);
    let _keeper = host.keeper();
    let mut client = Client::open(&host);
    server.kill();
    let name = SocketAddr::from_abstract_name(socket_name(host.server_address(1).port)).expect("a name");
    let deaf = UnixListener::bind_addr(&name).expect("the server's name");
    let (mut keeper, _) = deaf.accept().expect("the keeper");
    let asked = client.ask(&Ask::LookupRegion { name: "none".to_owned() });
    assert_eq!(asked.expect_err("no such region").error, FamError::NotFound);
    // The keeper still waits for what listens there.
    keeper.set_nonblocking(true).expect("a socket");
    let mut said = [0; 4096];
    let ended = loop {
        match keeper.read(&mut said) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    assert!(!ended, "the answer has come after the keeper's patience");
    // It joins when it answers.
    drop((deaf, keeper));
    let _server = host.server(1);
    assert!(eventually(|| have_joined(&host)), "the server has not joined");
}

/// Daemons of two versions.
#[test]
fn a_keeper_says_why_a_server_does_not_join() {
    let host = Host::new("refuses", 2, false);
    let name = socket_name(host.server_address(1).port);
    let mut listener = Listener::unix_of_any_user(&name, &Settings::default()).expect("a listener");
    let mut command = host.command(&[]);
    command.stderr(fs::File::create(host.path("log")).expect("a file"));
    let late = || Some(Instant::now() + Duration::from_secs(100));
    let server = thread::spawn(move || {
        for _ in 0..3 {
            let session = listener.accept(late()).expect("a session").expect("in time");
            let hello = session.receive(late()).expect("the keeper").expect("a hello");
            let number = Message::decode(&hello.header).expect("a message").number();
            let body = encode_answer(&Err(FamError::Rpc.because("another version")));
            session.post(&Message::Answer { number }.encode(), &body).expect("the keeper");
            while session.receive(late()).is_ok() {}
        }
    });
    let _keeper = client::Daemon::start(command);
    server.join().expect("a server");
    let said = fs::read_to_string(host.path("log")).expect("a log");
    assert_eq!(said.matches("server 1 of memory: another version").count(), 1, "{said}");
}

#[test]
fn a_log_that_cannot_be_written_ends_no_daemon() {
    let host = Host::new("unlogged", 2, false);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = host.command(&[]);
    command.stderr(writer);
    let _keeper = client::Daemon::start(command);
    // This is a line of the log, of another thread than the first one.
    let _server = host.server(1);
    assert!(eventually(|| have_joined(&host)), "the server has not joined");
}
