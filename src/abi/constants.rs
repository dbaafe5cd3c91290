//! Enumerations and flags (the manual's Appendices E and F, and the man pages that introduce them).
//!
//! In `lapi.h` the types named "one of" are real enumerations and the ones named "a set of bits"
//! are integers with macros; both are written by hand in `capi/prelude.h`, since only C can say
//! that an argument is an enum.

use libc::{c_int, c_long, c_uint, c_ulong};

/// One of the runtime attributes of LAPI_Qenv and LAPI_Senv, from [`TASK_ID`] to
/// [`BULK_MIN_MSG_SIZE`].
pub type lapi_query_t = c_uint;
/// The number of the calling task in its job.
pub const TASK_ID: lapi_query_t = 0;
/// How many tasks the job has.
pub const NUM_TASKS: lapi_query_t = 1;
/// The longest user header of an active message, in bytes.
pub const MAX_UHDR_SZ: lapi_query_t = 2;
/// The longest message, in bytes, as far as an int can say it.
pub const MAX_DATA_SZ: lapi_query_t = 3;
/// Whether parameters are checked (1) or not (0); can be set.
pub const ERROR_CHK: lapi_query_t = 4;
/// Seconds without a reply until a peer counts as lost; can be set.
pub const TIMEOUT: lapi_query_t = 5;
/// The smallest value TIMEOUT can take, in seconds.
pub const MIN_TIMEOUT: lapi_query_t = 6;
/// The largest value TIMEOUT can take, in seconds.
pub const MAX_TIMEOUT: lapi_query_t = 7;
/// Whether messages are served without the program calling LAPI (1) or not (0); can be set.
pub const INTERRUPT_SET: lapi_query_t = 8;
/// How many communication ports there are.
pub const MAX_PORTS: lapi_query_t = 9;
/// The payload of one packet, in bytes.
pub const MAX_PKT_SZ: lapi_query_t = 10;
/// The number of retransmission buffers.
pub const NUM_REX_BUFS: lapi_query_t = 11;
/// The size of one retransmission buffer, in bytes.
pub const REX_BUF_SZ: lapi_query_t = 12;
/// The number of entries in the table of LAPI_Addr_set.
pub const LOC_ADDRTBL_SZ: lapi_query_t = 13;
/// Kept for old programs; means nothing.
pub const EPOCH_NUM: lapi_query_t = 14;
/// Kept for old programs; means nothing.
pub const USE_THRESH: lapi_query_t = 15;
/// Kept for old programs; means nothing.
pub const RCV_FIFO_SIZE: lapi_query_t = 16;
/// The largest atom_size of a DGSP, in bytes.
pub const MAX_ATOM_SIZE: lapi_query_t = 17;
/// Messages up to this many bytes are copied before the call returns.
pub const BUF_CP_SIZE: lapi_query_t = 18;
/// How many packets to one task may be without acknowledgement.
pub const MAX_PKTS_OUT: lapi_query_t = 19;
/// After how many packets the receiver acknowledges; can be set.
pub const ACK_THRESHOLD: lapi_query_t = 20;
/// Whether shared memory is in use (1) or not (0).
pub const QUERY_SHM_ENABLED: lapi_query_t = 21;
/// How many tasks are reached through shared memory, this one included.
pub const QUERY_SHM_NUM_TASKS: lapi_query_t = 22;
/// The numbers of these tasks, into an array of QUERY_SHM_NUM_TASKS ints.
pub const QUERY_SHM_TASKS: lapi_query_t = 23;
/// Statistics of the network, into a lapi_statistics_t.
pub const QUERY_STATISTICS: lapi_query_t = 24;
/// Prints statistics to standard output.
pub const PRINT_STATISTICS: lapi_query_t = 25;
/// Statistics of shared memory, into a lapi_statistics_t.
pub const QUERY_SHM_STATISTICS: lapi_query_t = 26;
/// Statistics of messages to the task itself, into a lapi_statistics_t.
pub const QUERY_LOCAL_SEND_STATISTICS: lapi_query_t = 27;
/// Whether bulk transfer is on (1) or off (0).
pub const BULK_XFER: lapi_query_t = 28;
/// From how many bytes on a message goes by bulk transfer.
pub const BULK_MIN_MSG_SIZE: lapi_query_t = 29;
/// One more than the last attribute.
pub const LAST_QUERY: lapi_query_t = 30;

/// One of the operations of LAPI_Rmw and LAPI_Rmw64.
pub type RMW_ops_t = c_uint;
/// Adds in_val to the target.
pub const FETCH_AND_ADD: RMW_ops_t = 0;
/// Combines in_val with the target by a bitwise or.
pub const FETCH_AND_OR: RMW_ops_t = 1;
/// Puts in_val into the target.
pub const SWAP: RMW_ops_t = 2;
/// Puts in_val\[1\] into the target if the target is in_val\[0\].
pub const COMPARE_AND_SWAP: RMW_ops_t = 3;

/// The kind of an operation, as error handlers get it.
pub type lapi_err_t = c_uint;
/// A get failed.
pub const GET_ERR: lapi_err_t = 0;
/// A put failed.
pub const PUT_ERR: lapi_err_t = 1;
/// A read-modify-write failed.
pub const RMW_ERR: lapi_err_t = 2;
/// An active message failed.
pub const AM_ERR: lapi_err_t = 3;
/// LAPI itself failed.
pub const INT_ERR: lapi_err_t = 4;
/// A timer failed, or time ran out.
pub const TMR_ERR: lapi_err_t = 5;

/// One of the levels of the library that a program can ask for in lapi_info_t.
pub type lapi_lib_t = c_uint;
/// The basic level: a counter is one int, and nothing behind it is touched.
pub const L1_LIB: lapi_lib_t = 0;
/// Counters are whole lapi_cntr_t values.
pub const L2_LIB: lapi_lib_t = 1;
/// A later level, like L2_LIB here.
pub const L3_LIB: lapi_lib_t = 2;
/// A later level, like L2_LIB here.
pub const L4_LIB: lapi_lib_t = 3;
/// The newest level.
pub const LAST_LIB: lapi_lib_t = 4;

/// One of the ways bytes can travel, as LAPI_Init reports it in lapi_info_t.protocol.
pub type lapi_dev_t = c_uint;
/// The name the device type has in `css_shared.h`.
pub type css_dev_t = lapi_dev_t;
/// No device.
pub const NULL_DEV: lapi_dev_t = 0;
/// UDP.
pub const UDP_DEV: lapi_dev_t = 8;
/// Shared memory: every task of the job is on this machine.
pub const LAPI_SHM_DEV: lapi_dev_t = 32;
/// Nothing to travel: the job has one task.
pub const LAPI_SELF_DEV: lapi_dev_t = 33;
/// libfabric: tasks of the job are on several machines, or LAPI_USE_SHM is `no`.
pub const LAPI_FABRIC_DEV: lapi_dev_t = 34;

/// A set of bits for lapi_info_t.protocol on entry to LAPI_Init: share the device with
/// another protocol.
pub const LAPI_SHARE_PROTOCOL: c_uint = 0x8000_0000;
/// On entry to LAPI_Init: the persistent subsystem of a file system.
pub const LAPI_PSS_GPFS: c_uint = 0x4000_0000;
/// On entry to LAPI_Init: start with INTERRUPT_SET off.
pub const LAPI_INTERRUPT_OFF: c_uint = 0x2000_0000;

/// One of the shapes of a vector.
pub type lapi_vectype_t = c_uint;
/// Buffers one by one, equally many and equally long on both sides.
pub const LAPI_GEN_IOVECTOR: lapi_vectype_t = 0;
/// Blocks of one size at a fixed distance: info\[0\] is the base, info\[1\] the block size,
/// info\[2\] the stride.
pub const LAPI_GEN_STRIDED_XFER: lapi_vectype_t = 1;
/// Buffers one by one, not the same on both sides; active messages only.
pub const LAPI_GEN_GENERIC: lapi_vectype_t = 2;

/// One of the operations of LAPI_Xfer.
pub type lapi_xfer_type_t = c_uint;
/// lapi_get_t
pub const LAPI_GET_XFER: lapi_xfer_type_t = 0;
/// lapi_am_t
pub const LAPI_AM_XFER: lapi_xfer_type_t = 1;
/// lapi_put_t
pub const LAPI_PUT_XFER: lapi_xfer_type_t = 2;
/// lapi_getv_t
pub const LAPI_GETV_XFER: lapi_xfer_type_t = 3;
/// lapi_putv_t
pub const LAPI_PUTV_XFER: lapi_xfer_type_t = 4;
/// lapi_amv_t
pub const LAPI_AMV_XFER: lapi_xfer_type_t = 5;
/// lapi_rmw_t
pub const LAPI_RMW_XFER: lapi_xfer_type_t = 6;
/// lapi_amdgsp_t
pub const LAPI_DGSP_XFER: lapi_xfer_type_t = 7;
/// lapi_hwxfer_t
pub const LAPI_RDMA_XFER: lapi_xfer_type_t = 8;
/// lapi_am_t, of which shdlr, sinfo and the counters are ignored
pub const LAPI_AM_LW_XFER: lapi_xfer_type_t = 9;
/// lapi_amx_t
pub const LAPI_AMX_XFER: lapi_xfer_type_t = 10;
/// Multicast.
pub const LAPI_MC_XFER: lapi_xfer_type_t = 11;

/// One of the operations of LAPI_Util.
pub type lapi_util_type_t = c_uint;
/// lapi_reg_dgsp_t
pub const LAPI_REGISTER_DGSP: lapi_util_type_t = 0;
/// lapi_resv_dgsp_t
pub const LAPI_RESERVE_DGSP: lapi_util_type_t = 1;
/// lapi_dref_dgsp_t
pub const LAPI_UNRESERVE_DGSP: lapi_util_type_t = 2;
/// lapi_reg_ddm_t
pub const LAPI_REG_DDM_FUNC: lapi_util_type_t = 3;
/// lapi_pack_dgsp_t
pub const LAPI_DGSP_PACK: lapi_util_type_t = 4;
/// lapi_unpack_dgsp_t
pub const LAPI_DGSP_UNPACK: lapi_util_type_t = 5;
/// lapi_add_udp_port_t
pub const LAPI_ADD_UDP_DEST_PORT: lapi_util_type_t = 6;
/// lapi_thread_func_t
pub const LAPI_GET_THREAD_FUNC: lapi_util_type_t = 7;
/// lapi_remote_cxt_t
pub const LAPI_REMOTE_RCXT: lapi_util_type_t = 8;
/// lapi_get_pvo_t
pub const LAPI_XLATE_ADDRESS: lapi_util_type_t = 9;
/// A later level's; LAPI_Util returns LAPI_ERR_UTIL_CMD.
pub const LAPI_REGISTER_NOTIFICATION: lapi_util_type_t = 10;
/// A later level's; LAPI_Util returns LAPI_ERR_UTIL_CMD.
pub const LAPI_TRIGGER_ADD: lapi_util_type_t = 11;
/// A later level's; LAPI_Util returns LAPI_ERR_UTIL_CMD.
pub const LAPI_TRIGGER_REMOVE: lapi_util_type_t = 12;
/// A later level's; LAPI_Util returns LAPI_ERR_UTIL_CMD.
pub const LAPI_ADD_UDP_DEST_EXT: lapi_util_type_t = 13;
/// A later level's; LAPI_Util returns LAPI_ERR_UTIL_CMD.
pub const LAPI_STAT_SAVE: lapi_util_type_t = 14;

/// What lapi_remote_cxt_t and lapi_get_pvo_t ask for: take the resource.
pub const LAPI_RDMA_ACQUIRE: c_uint = 0;
/// Give the resource back.
pub const LAPI_RDMA_RELEASE: c_uint = 1;
/// A bit of lapi_hwxfer_t.op: read from the target.
pub const LAPI_RDMA_GET: c_uint = 1;
/// A bit of lapi_hwxfer_t.op: write to the target.
pub const LAPI_RDMA_PUT: c_uint = 2;
/// A bit of lapi_hwxfer_t.op: run a handler at the target.
pub const LAPI_RCALLBACK: c_uint = 4;
/// A bit of lapi_hwxfer_t.op: update a counter at the target.
pub const LAPI_RCNTR_UPDATE: c_uint = 8;

/// Who fills a LAPI_Util structure; for debugging only.
pub type lapi_usr_fcall_t = c_uint;
/// An ordinary call.
pub const LAPI_NORMAL_CALL: lapi_usr_fcall_t = 0;
/// A send completion handler.
pub const LAPI_SEND_COMPL_HNDLR: lapi_usr_fcall_t = 1;
/// A completion handler that runs inline.
pub const LAPI_RECV_INLINE_HNDLR: lapi_usr_fcall_t = 2;

/// One of the instructions of a data gather/scatter program.
pub type lapi_dgsm_opcode_t = c_uint;
/// lapi_dgsm_copy_t
pub const LAPI_DGSM_COPY: lapi_dgsm_opcode_t = 0;
/// lapi_dgsm_mcopy_t
pub const LAPI_DGSM_MCOPY: lapi_dgsm_opcode_t = 1;
/// lapi_dgsm_gosub_t
pub const LAPI_DGSM_GOSUB: lapi_dgsm_opcode_t = 2;
/// lapi_dgsm_iterate_t
pub const LAPI_DGSM_ITERATE: lapi_dgsm_opcode_t = 3;
/// lapi_dgsm_control_t
pub const LAPI_DGSM_CONTROL: lapi_dgsm_opcode_t = 4;

/// One of the densities of a data layout.
pub type lapi_dgsp_density_t = c_uint;
/// The layout has gaps.
pub const LAPI_DGSM_SPARSE: lapi_dgsp_density_t = 0;
/// The layout has no gap inside, but one between repetitions.
pub const LAPI_DGSM_CONTIG: lapi_dgsp_density_t = 1;
/// The layout has no gap, repeated or not.
pub const LAPI_DGSM_UNIT: lapi_dgsp_density_t = 2;

/// The operation of a CONTROL instruction that ends control mode.
pub const LAPI_DGSM_NO_CTL: c_int = -1;

/// A set of bits: what LAPI_Msgpoll saw happen.
pub type lapi_msg_state_t = c_uint;
/// A message was sent.
pub const LAPI_SEND_COMPLETE: lapi_msg_state_t = 1;
/// A message was received.
pub const LAPI_RECV_COMPLETE: lapi_msg_state_t = 2;
/// Both of the above.
pub const LAPI_BOTH_COMPLETE: lapi_msg_state_t = 3;
/// Another thread is polling already.
pub const LAPI_POLLING_NET: lapi_msg_state_t = 4;
/// The dispatcher has looped as often as asked and nothing happened.
pub const LAPI_DISP_CNTR: lapi_msg_state_t = 8;

/// A set of bits: how a completion handler is to be run.
pub type lapi_ret_flags_t = c_int;
/// By a completion thread.
pub const LAPI_NORMAL: lapi_ret_flags_t = 0;
/// Inline; the handler does not call LAPI.
pub const LAPI_LOCAL_STATE: lapi_ret_flags_t = 1;
/// Inline; the handler sends a reply.
pub const LAPI_SEND_REPLY: lapi_ret_flags_t = 2;

/// One of the things that can be done with an arriving message.
pub type lapi_ctl_flags_t = c_uint;
/// Deliver it.
pub const LAPI_DELIVER_MSG: lapi_ctl_flags_t = 0;
/// Drop its data; the origin sees no difference.
pub const LAPI_BURY_MSG: lapi_ctl_flags_t = 1;
/// Take it as not arrived; it will come again.
pub const LAPI_DROP_PKT: lapi_ctl_flags_t = 2;

/// An entry of dest_status of LAPI_Setcntr_wstatus: nothing yet.
pub const LAPI_MSG_INITIAL: c_int = 0;
/// A reply has come.
pub const LAPI_MSG_RECVD: c_int = 1;
/// The task was purged before a reply came.
pub const LAPI_MSG_PURGED: c_int = 2;
/// The task was purged after a reply came.
pub const LAPI_MSG_PURGED_RCVD: c_int = 3;
/// The task was purged already when the counter was set.
pub const LAPI_MSG_INVALID: c_int = 4;

/// A bit of a transfer's flags: tgt_vec is a lapi_vec_t, not a lapi_lvec_t.
pub const USE_TGT_VEC_TYPE: c_int = 0x02;
/// A bit of a transfer's flags: acknowledgements may come late.
pub const LAPI_USE_LAZY_ACKS: c_int = 0x04;
/// A bit of a transfer's flags: the data is contiguous on both sides.
pub const BUFFER_BOTH_CONTIGUOUS: c_int = 0x10;
/// A bit of a transfer's flags: no bulk transfer.
pub const LAPI_NOT_USE_BULK_XFER: c_int = 0x20;
/// A bit of a transfer's flags: bulk transfer, if LAPI_NOT_USE_BULK_XFER is not set as well.
pub const LAPI_USE_BULK_XFER: c_int = 0x40;
/// A bit of a transfer's flags: one adapter only.
pub const LAPI_NOT_STRIPE: c_int = 0x80;
/// A bit of a transfer's flags: no copy of a small message at the origin.
pub const LAPI_NO_LOCAL_COPY: c_int = 0x100;

/// The longest message in bytes (Appendix F).
pub const LAPI_MAX_MSG_SZ: c_ulong = c_long::MAX as c_ulong;
/// The size of the buffer of LAPI_Msg_string in bytes, the closing NUL included.
pub const LAPI_MAX_ERR_STRING: usize = 160;
