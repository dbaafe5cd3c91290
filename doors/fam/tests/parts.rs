//! Files of persistent parts: which ones stay, and which ones go, when servers, metadata or folders
//! are not those of before.

mod client;

use client::{Client, Host, persistent};
use fam::wire::Ask;
use openlapi_tests::eventually;
use std::fs;

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
