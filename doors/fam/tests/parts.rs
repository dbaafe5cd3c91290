//! Files of persistent parts: which ones stay, and which ones go, when servers, metadata or folders
//! are not those of before.

mod client;

use client::{Client, Host, persistent};
use fam::meeting::socket_name;
use fam::wire::{Answer, Ask, Message, VERSION, encode_answer};
use openlapi_session::{Listener, Settings};
use openlapi_tests::eventually;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Metadata of an earlier day have another size of a region.
#[test]
fn a_part_that_is_longer_than_the_metadata_say_stays_so() {
    let host = Host::new("longer", 1, true);
    let daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    daemon.kill();
    let store = host.path("metadata/openfam.redb");
    let earlier = fs::read(&store).expect("metadata");
    let daemon = host.keeper();
    let mut client = Client::open(&host);
    client.ask(&Ask::ResizeRegion { region, size: 8 << 20 }).expect("a longer region");
    let item = client.item(region, "i", 6 << 20);
    client.put(&item, 5 << 20, &[7; 4096]).expect("a put");
    daemon.kill();
    let later = fs::read(&store).expect("metadata");
    fs::write(&store, earlier).expect("metadata");
    host.keeper().kill();
    fs::write(&store, later).expect("metadata");
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let again = client.open_item(region, item.item).expect("the item");
    assert!(client.get(&again, 5 << 20, 4096).expect("a get") == [7; 4096], "bytes are lost");
}

/// The folder was not mounted.
#[test]
fn a_part_whose_file_is_elsewhere_leaves_when_it_is_there_again() {
    let host = Host::new("elsewhere", 2, true);
    let server = host.server(1);
    let mut command = host.command(&[]);
    command.stderr(fs::File::create(host.path("log")).expect("a file"));
    let _keeper = client::Daemon::start(command);
    let joined = |count: usize| {
        let said = fs::read_to_string(host.path("log")).expect("a log");
        said.matches("server 1 of memory has joined").count() == count
    };
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let (folder, elsewhere) = (host.path("memory1"), host.path("elsewhere"));
    server.kill();
    client.ask(&Ask::DestroyRegion { region }).expect("an end");
    fs::rename(&folder, &elsewhere).expect("a folder");
    fs::create_dir(&folder).expect("a folder");
    let server = host.server(1);
    assert!(eventually(|| joined(2)), "the server has not joined");
    // This is answered after the keeper has looked.
    assert!(client.lookup("r", "i").is_err());
    server.kill();
    fs::remove_dir(&folder).expect("an empty folder");
    fs::rename(&elsewhere, &folder).expect("a folder");
    assert_eq!(client::names(&folder).len(), 1);
    let _server = host.server(1);
    assert!(eventually(|| client::names(&folder).is_empty()), "the part is still there");
}

/// The keeper dies while a server does not answer that is to remove its part.
#[test]
fn a_region_that_its_keeper_has_not_destroyed_whole_leaves_no_part() {
    let host = Host::new("half", 2, true);
    let server = host.server(1);
    let keeper = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, persistent());
    let parts = |server: u64| client::names(&host.path(&format!("memory{server}"))).len();
    assert_eq!((parts(0), parts(1)), (1, 1));
    // SAFETY: a process of this test, which was not waited for.
    unsafe { libc::kill(server.process(), libc::SIGSTOP) };
    client.ask_for(&Ask::DestroyRegion { region });
    assert!(eventually(|| parts(0) == 0), "the keeper's own part is still there");
    keeper.kill();
    server.kill();
    assert_eq!(parts(1), 1);
    let _daemons = [host.server(1), host.keeper()];
    assert!(eventually(|| parts(1) == 0), "the part is still there");
}

/// What stands at the place of a server makes no part, and does not say so.
#[test]
fn a_part_that_may_have_been_made_is_removed() {
    let host = Host::new("perhaps", 2, true);
    let name = socket_name(host.server_address(1).port);
    let mut listener = Listener::unix_of_any_user(&name, &Settings::default()).expect("a listener");
    let (made, has_made) = mpsc::channel();
    thread::scope(|scope| {
        let stand_in = scope.spawn(move || {
            let mut may_be_there = None;
            // Two sessions: the first one ends at the question.
            for _ in 0..2 {
                let late = Some(Instant::now() + Duration::from_secs(100));
                let session = listener.accept(late).expect("a session").expect("in time");
                while let Some(message) = session.receive(late).expect("the keeper") {
                    let Some(Message::Ask { number }) = Message::decode(&message.header) else { panic!() };
                    let answer = match fam::wire::decode(&message.data).expect("a question") {
                        Ask::Hello { user, group, .. } => {
                            Answer::Hello { version: VERSION, user, group, servers: Vec::new() }
                        }
                        Ask::Join { parts, .. } => {
                            Answer::Joined { parts, has_volatile: false, has_persistent: true }
                        }
                        Ask::MakePart { part, .. } => {
                            may_be_there = Some(part);
                            made.send(()).expect("the test");
                            break;
                        }
                        Ask::RemovePart { part } => {
                            return assert_eq!(Some(part), may_be_there);
                        }
                        other => panic!("{other:?}"),
                    };
                    let body = encode_answer(&Ok(answer));
                    session.post(&Message::Answer { number }.encode(), &body).expect("the keeper");
                }
            }
            panic!("nothing is removed");
        });
        let _keeper = host.keeper();
        let ask = Ask::CreateRegion { name: "r".to_owned(), size: 1, mode: 0o600, attributes: persistent() };
        // It may not have joined yet.
        let refused = || {
            let mut client = Client::open(&host);
            let Ok(Answer::Region(facts)) = client.ask(&ask) else { return true };
            client.ask(&Ask::DestroyRegion { region: facts.region }).expect("an end");
            false
        };
        assert!(eventually(refused), "the server has not joined");
        has_made.recv_timeout(Duration::from_secs(100)).expect("a question");
        stand_in.join().expect("what is at the place of a server");
        assert!(client::names(&host.path("memory0")).is_empty(), "the other server's part is still there");
    });
}
