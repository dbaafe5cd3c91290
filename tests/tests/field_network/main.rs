//! Networks that mislead: addresses that every host has, filters, tunnels, hosts that vanish. The
//! hosts are network namespaces.

mod candidates;
mod start;
mod top;
