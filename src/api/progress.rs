//! LAPI_Getcntr, LAPI_Setcntr, LAPI_Waitcntr, LAPI_Probe, LAPI_Msgpoll, and waits for a condition
//! of the program.

pub use crate::engine::progress::counters::{
    read as getcntr, read_shortly as getcntr_shortly, set as setcntr, wait as waitcntr,
    wait_shortly as waitcntr_shortly,
};
pub use crate::engine::progress::message_poll::poll as msgpoll;
pub use crate::engine::progress::poll::{poll_once as probe, poll_shortly as probe_shortly};
pub use crate::engine::progress::wait::wait_for as wait_until;
