//! UDP: packets in datagrams, over any network that carries IP.
//!
//! * [`device`]: a lossy device, which carries datagrams.
//! * [`socket`]: the device on real sockets.
//! * [`seal`]: what makes a datagram the job's own: tags, encryption, and the refusal of replays.
//! * [`reliable`]: the reliable core, which has no socket and no clock.
//!
//! The endpoint that joins them is not built: no job uses this transport yet, and `MP_EUILIB=ip` is an error that says so.

pub mod device;
pub mod reliable;
pub mod seal;
pub mod socket;
