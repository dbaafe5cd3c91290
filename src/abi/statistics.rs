//! What LAPI_Qenv counts (the manual's chapter 8).

use super::lapi_long_t;

/// Counts since LAPI_Init. In C the two receive fields have a second name, with `recv` for `rcv`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lapi_statistics_t {
    /// Packets that came twice.
    pub Tot_dup_pkt_cnt: lapi_long_t,
    /// Packets sent again.
    pub Tot_retrans_pkt_cnt: lapi_long_t,
    /// Packets from no task of the job.
    pub Tot_gho_pkt_cnt: lapi_long_t,
    /// Packets sent.
    pub Tot_pkt_sent_cnt: lapi_long_t,
    /// Packets received.
    pub Tot_pkt_rcv_cnt: lapi_long_t,
    /// Bytes sent.
    pub Tot_data_sent: lapi_long_t,
    /// Bytes received.
    pub Tot_data_rcv: lapi_long_t,
    /// Acknowledgements sent.
    pub Tot_ack_send_cnt: lapi_long_t,
    /// Acknowledgements received.
    pub Tot_ack_recv_cnt: lapi_long_t,
}
