//! Who is in this job: which task this is, which others there are, and how those on one machine meet.
//!
//! [`identity`] reads the environment, [`rendezvous`] brings the tasks of one machine together, and in its [`lobby`] a
//! task is found again by one that had lost it. [`reporter`] is the line to the launcher for reports, and [`ended`] holds which
//! tasks have ended, as the launcher reports them.

mod channel;
pub mod ended;
pub mod identity;
pub mod lobby;
mod name;
pub mod rendezvous;
pub mod reporter;

pub use identity::{Common, Identity};
pub use lobby::Lobby;
pub use rendezvous::{Member, meet};
