//! The tasks of this job: which one this is, which others exist, and how they connect.
//!
//! [`identity`] reads the environment, [`connect`] connects tasks when they first need each other,
//! [`openings`] distinguishes the programs and contexts of one job that follow one another, and
//! [`link`] is what a task's contexts have in common.
//! [`exchange`] carries a few values of each task to the others at start-up, where a job has
//! several machines: [`host`] finds which tasks share one, and [`secret`] what they all must know.
//! Without a launcher the program gives the [`addresses`], and the user a [`key_file`].
//! [`start_up`] has the connections over TCP by which a job on several machines starts.
//! [`reporter`] is the line to the launcher for reports, and [`ended`] holds which tasks have
//! ended, as the launcher reports them.

pub mod addresses;
mod board;
mod channel;
pub mod connect;
mod derive;
pub mod ended;
pub mod exchange;
pub mod host;
mod hosts;
pub mod identity;
mod join;
pub mod key_file;
mod link;
mod name;
mod openings;
pub mod reporter;
pub mod secret;
pub mod start_up;

pub use connect::Connections;
pub use hosts::Hosts;
pub use identity::{Common, Identity};
pub use join::{Joined, Listed, Listing, Way, fabric_candidates, join, network_preferences, udp_interfaces};
pub use link::Link;
pub use openings::{Opening, Openings};
