//! Tasks of one process, each with an endpoint of its own.

use crate::base::clock::test_deadline;
use crate::error::Result;
use crate::transport::conformance::{Served, served};
use crate::transport::fabric::{
    Directory, FabricSettings, FabricTransport, Own, Preferences, failed, open_one, provider,
};
use crate::transport::{Endpoint, Task, Want};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Published(pub(super) Arc<Vec<Vec<u8>>>);

impl Directory<Vec<u8>> for Published {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        Ok(self.0[peer as usize].clone())
    }
}

/// The endpoints of `tasks` tasks, and what they publish.
pub(super) fn open(tasks: u32, provider: &str) -> Result<Vec<(Own, Vec<u8>)>> {
    open_as(tasks, &preferring(provider))
}

pub(super) fn preferring(provider: &str) -> Preferences {
    Preferences { provider: Some(provider.into()), one_machine: true, ..Preferences::default() }
}

fn open_as(tasks: u32, preferences: &Preferences) -> Result<Vec<(Own, Vec<u8>)>> {
    let open = |me| {
        let (info, choice) = provider::tests::choose(preferences).map_err(failed)?;
        let network = info.fabric_name();
        let settings = FabricSettings { me, tasks, preferences: preferences.clone() };
        let own = open_one(&settings, &choice, (info, network))?;
        let published = own.published.clone();
        Ok((own, published))
    };
    (0..tasks).map(open).collect()
}

/// Joined tasks that have had contact: each learns when another one ends.
pub(super) fn network(tasks: u32, provider: &str) -> Vec<Served<FabricTransport>> {
    network_as(tasks, &preferring(provider))
}

/// Joined tasks whose end waits for the others as long as it must: no watch of processes shows it,
/// and on a crowded machine a departure that follows some megabytes over udp;ofi_rxd comes late.
pub(super) fn patient(tasks: u32, provider: &str) -> Vec<Served<FabricTransport>> {
    let mut ends = unserved(tasks, &preferring(provider));
    ends.iter_mut().for_each(|end| end.linger = test_deadline());
    served(ends)
}

/// Joined tasks with other preferences.
pub(super) fn network_as(tasks: u32, preferences: &Preferences) -> Vec<Served<FabricTransport>> {
    served(unserved(tasks, preferences))
}

/// Joined tasks without a thread that serves them.
pub(super) fn unserved(tasks: u32, preferences: &Preferences) -> Vec<FabricTransport> {
    let mut ends = strangers(tasks, preferences);
    for (task, end) in ends.iter_mut().enumerate() {
        (0..tasks).filter(|peer| *peer != task as Task).for_each(|peer| end.want(Want::Connection(peer)));
    }
    let deadline = Instant::now() + test_deadline();
    while ends.iter().any(|end| end.has_pending()) {
        ends.iter_mut().for_each(|end| end.serve());
        assert!(Instant::now() < deadline, "the greetings never arrive");
    }
    ends
}

/// Joined tasks that have not had contact.
pub(super) fn strangers(tasks: u32, preferences: &Preferences) -> Vec<FabricTransport> {
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        open_as(tasks, preferences).expect("endpoints").into_iter().unzip();
    let published = Arc::new(published);
    let join = |own| FabricTransport::new(own, &[7; 16], Box::new(Published(published.clone())));
    own.into_iter().map(|own| join(own).expect("a transport")).collect()
}
