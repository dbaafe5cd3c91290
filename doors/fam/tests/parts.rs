//! Files of persistent parts: which ones stay, and which ones go, when servers, metadata or folders
//! are not those of before.

mod client;

use client::{Client, Host, persistent};
use fam::wire::Ask;
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
