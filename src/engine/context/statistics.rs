//! The statistics, by the path that data takes (the manual's chapter 8).

use crate::abi::lapi_statistics_t;
use crate::job::Hosts;
use crate::transport::{Tally, Task};

/// Counts of one context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Packets and data by shared memory. A copy across address spaces is a packet of its own.
    pub peers: Path,
    /// Packets and data by the network. A remote access is a packet of its own.
    pub network: Path,
    /// Data to oneself.
    pub local: Path,
    /// Packets among those of `peers` and `network` that only probe whether a task lives,
    /// and the replies.
    pub liveness: u64,
}

impl Stats {
    /// A number that changes with each packet or copy. Probes of silent tasks do not count.
    pub fn moved(&self) -> u64 {
        let (sent, received) = self.packets();
        sent.wrapping_add(received).wrapping_sub(self.liveness).wrapping_add(self.local.bytes_received)
    }

    /// Packets sent and received, by whichever path.
    pub fn packets(&self) -> (u64, u64) {
        let sum = |of: fn(&Path) -> u64| of(&self.peers).wrapping_add(of(&self.network));
        (sum(|path| path.packets_sent), sum(|path| path.packets_received))
    }

    /// Bytes of the program's data sent and received in whole messages, by whichever path.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&Path) -> u64| {
            of(&self.peers).wrapping_add(of(&self.network)).wrapping_add(of(&self.local))
        };
        (sum(|path| path.bytes_sent), sum(|path| path.bytes_received))
    }

    /// The counts of what goes to and from `peer`.
    #[inline]
    pub fn path(&mut self, hosts: &Hosts, peer: Task) -> &mut Path {
        if hosts.shares_memory(peer) { &mut self.peers } else { &mut self.network }
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
    /// What the transport counts below the packets.
    pub tally: Tally,
}

impl Path {
    /// As the program sees it.
    pub fn as_statistics(&self) -> lapi_statistics_t {
        lapi_statistics_t {
            Tot_dup_pkt_cnt: self.tally.duplicates,
            Tot_retrans_pkt_cnt: self.refused + self.tally.sent_again,
            Tot_gho_pkt_cnt: self.tally.refused,
            Tot_ack_send_cnt: self.tally.acknowledgements_sent,
            Tot_ack_recv_cnt: self.tally.acknowledgements_received,
            Tot_pkt_sent_cnt: self.packets_sent,
            Tot_pkt_rcv_cnt: self.packets_received,
            Tot_data_sent: self.bytes_sent,
            Tot_data_rcv: self.bytes_received,
        }
    }
}
