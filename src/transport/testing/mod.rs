//! What tests use in place of networks.
//!
//! * [`mem`]: a network in the memory of one process, whose ends share nothing else.
//! * [`faults`]: a transport that delays, refuses and loses what another one carries.
//! * [`forward`]: what a wrapper of a transport passes on to the transport inside.

pub mod faults;
pub(crate) mod forward;
pub mod mem;
