//! A short soak: every operation at once, while tasks are killed and restarted. `make soak`
//! is the long one.

use openlapi_tests::{Hosts, Soak, SoakNetwork, skipped};

/// With this seed two die at once, and one more while those rejoin. It has deadlines of its own.
#[test]
fn tasks_die_and_come_back_among_all_operations() {
    let soak = Soak { seed: 1, seconds: 5, tasks: 4, hosts: 1, rails: 1, network: SoakNetwork::Fabric };
    println!("{}", soak.run().unwrap_or_else(|what| panic!("{what}")));
}

/// The soak with two tasks on each of two hosts: what a process that has died has sent never
/// arrives at another one.
#[test]
fn tasks_die_and_come_back_on_two_hosts() {
    if let Err(why) = Hosts::new(2) {
        return skipped("the soak on two hosts", &why);
    }
    let soak = Soak { seed: 1, seconds: 12, tasks: 4, hosts: 2, rails: 1, network: SoakNetwork::Fabric };
    println!("{}", soak.run().unwrap_or_else(|what| panic!("{what}")));
}

/// The soak with two links between the hosts: a rail may be connected with a process before the
/// other one knows of it.
#[test]
fn tasks_die_and_come_back_on_two_hosts_with_two_rails() {
    if let Err(why) = Hosts::new(2) {
        return skipped("the soak on two hosts with two rails", &why);
    }
    let soak = Soak { seed: 1, seconds: 12, tasks: 4, hosts: 2, rails: 2, network: SoakNetwork::Fabric };
    println!("{}", soak.run().unwrap_or_else(|what| panic!("{what}")));
}

/// The soak over UDP, where each host loses one datagram in a hundred.
#[test]
fn tasks_die_and_come_back_on_two_hosts_over_udp_with_loss() {
    if let Err(why) = Hosts::new(2) {
        return skipped("the soak on two hosts over UDP", &why);
    }
    let network = SoakNetwork::Udp { loss: 1 };
    let soak = Soak { seed: 1, seconds: 12, tasks: 4, hosts: 2, rails: 1, network };
    println!("{}", soak.run().unwrap_or_else(|what| panic!("{what}")));
}
