//! What two ports do to each other, without a clock, a socket or a lock: docs/design/0029-gm.md.

mod classes;
mod incoming;
mod index;
#[cfg(test)]
mod memory_tests;
mod messages;
#[cfg(test)]
mod moves_tests;
#[cfg(test)]
mod order_tests;
mod outgoing;
mod port;
#[cfg(test)]
mod promises_tests;
mod registered;
#[cfg(test)]
mod simulation;
mod types;
mod words;

pub use port::{Port, Settings};
pub use types::{Data, Event, Output, Request, Target, Then, Verdict};
