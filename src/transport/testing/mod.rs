//! What tests use in place of networks.
//!
//! * [`mem`]: a network in the memory of one process, whose ends share nothing else.
//! * [`faults`]: a transport that delays, refuses and loses what another one carries.

pub mod faults;
pub mod mem;
