//! The statistics, by the path that data takes (the manual's chapter 8).

use crate::abi::lapi_statistics_t;

/// Counts of one context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Packets and data between tasks. A copy across address spaces is a packet of its own.
    pub peers: Path,
    /// Data to oneself.
    pub local: Path,
    /// Packets among those of `peers` that only probe whether a task lives, and the replies.
    pub liveness: u64,
}

impl Stats {
    /// A number that changes with each packet or copy. Probes of silent tasks do not count.
    pub fn moved(&self) -> u64 {
        let packets = self.peers.packets_sent.wrapping_add(self.peers.packets_received);
        packets.wrapping_sub(self.liveness).wrapping_add(self.local.bytes_received)
    }
}

/// Counts of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of the program's data in messages that were sent successfully.
    pub bytes_sent: u64,
    /// Bytes of the program's data in messages that have arrived completely.
    pub bytes_received: u64,
    /// Copies across address spaces that the kernel refused, so that the data went by packets.
    pub refused: u64,
}

impl Path {
    /// As the program sees it.
    pub fn as_statistics(&self) -> lapi_statistics_t {
        lapi_statistics_t {
            Tot_retrans_pkt_cnt: self.refused,
            Tot_pkt_sent_cnt: self.packets_sent,
            Tot_pkt_rcv_cnt: self.packets_received,
            Tot_data_sent: self.bytes_sent,
            Tot_data_rcv: self.bytes_received,
            ..lapi_statistics_t::default()
        }
    }
}
