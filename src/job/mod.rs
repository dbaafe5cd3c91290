//! Who is in this job: which task this is, which others there are, and how those on one machine meet.
//!
//! [`identity`] reads the environment, [`rendezvous`] brings the tasks of one machine together.

pub mod identity;
pub mod rendezvous;

pub use identity::{Common, Identity};
pub use rendezvous::{Member, meet};
