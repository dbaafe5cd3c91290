//! What a process does that uses LAPI, beside the calls: the policy of `capi` and `lapi`, which
//! stand on it, for the sessions of the core.
//!
//! * [`init`]: LAPI_Init and LAPI_Term, by the [`environment`] and the files of settings.
//! * [`events`]: what no call can return. [`console`] and [`diagnostics`]: messages.
//! * [`link`]: the launcher. [`report`]: which task waits for which, and for what.
//! * [`fork`] and [`exit`]: what must be done then.
//! * [`request`], [`rdma`] and [`udp`]: what C's structures ask of the core.

mod at_exit;
pub mod console;
mod diagnostics;
pub mod environment;
mod events;
pub mod exit;
pub mod fork;
pub mod init;
pub mod instances;
mod link;
pub mod messages;
pub mod once;
pub mod rdma;
pub mod report;
pub mod request;
pub mod udp;
pub mod unimplemented;
