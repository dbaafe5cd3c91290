//! Error codes (the manual's Appendix C, table 35), as macros in C: old programs ask for them
//! with `#ifdef`.

#![allow(missing_docs)] // the names of earlier levels

use libc::c_int;

/// Passes the table of error codes, each once, to the macro `$each`, sorted by number: a number,
/// its name in `lapi.h`, and what it means, without a full stop. Attention messages have no name.
///
/// LAPI's levels disagree on the number of LAPI_ERR_CODE_UNKNOWN (485, 511, 519): this library
/// returns 511 and explains all three.
macro_rules! for_each_code {
    ($each:ident) => {
        $each! {
            0 LAPI_SUCCESS "the call has succeeded";
            400 LAPI_ERR_UNKNOWN "an error that no other code describes";
            401 LAPI_ERR_ALL_HNDL_IN_USE "every instance, or the one asked for, is in use already";
            402 LAPI_ERR_BOTH_NETSTR_SET "MP_LAPI_NETWORK and MP_LAPI_INET_ADDR are both set; only one may be";
            403 LAPI_ERR_CKPT_LOAD_FAILED "the checkpoint library cannot be loaded";
            404 LAPI_ERR_CSS_LOAD_FAILED "no transport that reaches every task can be loaded";
            405 LAPI_ERR_INFO_NULL "the lapi_info_t pointer is null";
            406 LAPI_ERR_MSG_API "MP_MSG_API has a value that does not allow LAPI";
            407 LAPI_ERR_NO_NETSTR_SET "no network is named, and MP_MSG_API does not say lapi";
            408 LAPI_ERR_NO_UDP_HNDLR "lapi_extend_t has neither a UDP handler nor a list of UDP addresses";
            409 LAPI_ERR_HDR_HNDLR_NULL "the header handler is null";
            410 LAPI_ERR_PSS_NON_ROOT "only root may start the persistent subsystem";
            411 LAPI_WARN_PARM_NULL "a parameter is null and was ignored";
            412 LAPI_ERR_SHM_KE_NOT_LOADED "the operating system lacks what shared memory needs";
            413 LAPI_ERR_TIMEOUT "a task has not replied within TIMEOUT seconds";
            414 LAPI_ERR_REG_TIMER "a timer cannot be set";
            415 LAPI_ERR_UDP_PKT_SZ "MP_UDP_PACKET_SIZE is out of range";
            416 LAPI_ERR_USER_UDP_HNDLR_FAIL "the program's UDP handler has returned an error";
            417 LAPI_ERR_HNDL_INVALID "the handle is not valid, or has been terminated";
            418 LAPI_ERR_RET_PTR_NULL "the pointer for the result is null";
            419 LAPI_ERR_ADDR_HNDL_RANGE "the index is not within the address table";
            420 LAPI_ERR_ADDR_TBL_NULL "the address table is null";
            421 LAPI_ERR_TGT_PURGED "the target task has been purged";
            422 LAPI_ERR_MULTIPLE_WAITERS "another thread waits for this counter already";
            423 LAPI_ERR_MEMORY_EXHAUSTED "memory or another resource is exhausted";
            424 LAPI_ERR_INFO_NONZERO "a field of lapi_info_t that must be zero is not";
            425 LAPI_ERR_ORG_ADDR_NULL "the origin address is null, but the length is not 0";
            426 LAPI_ERR_TGT_ADDR_NULL "the target address is null, but the length is not 0";
            427 LAPI_ERR_DATA_LEN "the length is more than LAPI_MAX_MSG_SZ";
            428 LAPI_ERR_TGT "the target is not a task of the job";
            429 LAPI_ERR_UHDR_NULL "the user header is null, but its length is not 0";
            430 LAPI_ERR_UHDR_LEN "the user header is longer than MAX_UHDR_SZ";
            431 LAPI_ERR_HDR_LEN "the length of the user header is not a multiple of the word size";
            432 LAPI_ERR_ORG_EXTENT "the origin vector reaches further than LAPI_MAX_MSG_SZ";
            433 LAPI_ERR_ORG_STRIDE "the origin vector's stride is smaller than its block";
            434 LAPI_ERR_NO_CONNECTIVITY "the task cannot be reached";
            435 LAPI_ERR_ADAPTERS_DOWN "every adapter is down";
            436 LAPI_ERR_RECV_INCOMP "a message was not received as a whole";
            437 LAPI_ERR_SEND_INCOMP "a message was not sent as a whole";
            438 LAPI_ERR_SEND_TIMEOUT "a message could not be sent in time";
            439 LAPI_ERR_SHM_SETUP "shared memory cannot be set up";
            440 LAPI_ERR_ORG_VEC_ADDR "an address in the origin vector is null, but its length is not 0";
            441 LAPI_ERR_ORG_VEC_LEN "the origin vector's lengths add up to more than LAPI_MAX_MSG_SZ";
            442 LAPI_ERR_ORG_VEC_NULL "the origin vector is null";
            443 LAPI_ERR_ORG_VEC_TYPE "the origin vector's type is wrong, or not allowed in this call";
            444 LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL "the origin's strided vector has a null base address";
            445 LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL "the target's strided vector has a null base address";
            446 LAPI_ERR_TGT_EXTENT "the target vector reaches further than LAPI_MAX_MSG_SZ";
            447 LAPI_ERR_TGT_STRIDE "the target vector's stride is smaller than its block";
            448 LAPI_ERR_TGT_VEC_ADDR "an address in the target vector is null, but its length is not 0";
            449 LAPI_ERR_TGT_VEC_LEN "the target vector's lengths add up to more than LAPI_MAX_MSG_SZ";
            450 LAPI_ERR_CKPT "a checkpoint has failed";
            451 LAPI_ERR_TGT_VEC_NULL "the target vector is null";
            452 LAPI_ERR_TGT_VEC_TYPE "the target vector's type is wrong, or not allowed in this call";
            453 LAPI_ERR_VEC_NUM_DIFF "num_vecs of the origin's and the target's vector differ";
            454 LAPI_ERR_VEC_TYPE_DIFF "the types of the origin's and the target's vector differ";
            455 LAPI_ERR_VEC_LEN_DIFF "lengths or block sizes of the two vectors differ";
            456 LAPI_ERR_MSG_INFO_NULL "the lapi_msg_info_t pointer of LAPI_Msgpoll is null";
            457 LAPI_ERR_POLLING_NET "another thread is polling already";
            458 LAPI_ERR_CNTR_NULL "the counter pointer is null";
            459 LAPI_ERR_CNTR_VAL "the value to wait for is not more than 0";
            460 LAPI_ERR_QUERY_TYPE "there is no such attribute, or it cannot be set";
            461 LAPI_ERR_IN_VAL_NULL "in_val is null";
            462 LAPI_ERR_RMW_OP "there is no such read-modify-write operation";
            463 LAPI_ERR_TGT_VAR_NULL "tgt_var is null";
            464 LAPI_ERR_SET_VAL "the value is out of the attribute's range";
            465 LAPI_ERR_DGSP "the DGSP is null, or no registered one";
            466 LAPI_ERR_DGSP_ATOM "the DGSP's atom_size is negative or more than MAX_ATOM_SIZE";
            467 LAPI_ERR_DGSP_BRANCH "the DGSP branches out of its code";
            468 LAPI_ERR_DGSP_CTL "the DGSP has a CONTROL instruction where none may be";
            469 LAPI_ERR_DGSP_COPY_SZ "the DGSP copies a negative number of bytes";
            470 LAPI_ERR_DGSP_FREE "the DGSP was unreserved more often than it was registered and reserved";
            471 LAPI_ERR_DGSP_OPC "the DGSP has an instruction that does not exist";
            472 LAPI_ERR_DGSP_REPS "the DGSP has a GOSUB with negative reps";
            473 LAPI_ERR_DGSP_STACK "the DGSP's GOSUBs nest deeper than its depth says";
            474 LAPI_ERR_OP_SZ "size of lapi_rmw_t is neither 32 nor 64";
            475 LAPI_ERR_UDP_PORT_INFO "a UDP address and port are missing, or no task can receive there";
            476 LAPI_ERR_XFER_CMD "there is no such transfer type";
            477 LAPI_ERR_UTIL_CMD "there is no such utility type";
            478 LAPI_ERR_CATALOG_FAIL "the message catalogue cannot be opened";
            479 LAPI_ERR_PACK_SZ "the pack buffer is too small";
            480 LAPI_ERR_DGSP_OTHER "the DGSP's descriptor is wrong, for example without code";
            481 LAPI_ERR_UDP_SOCKET "a UDP socket has failed";
            482 LAPI_ERR_COLLECTIVE_PSS "the persistent subsystem allows no collective calls";
            485 "failover cannot be set up: internal error (some levels: unknown code)";
            486 "failover cannot be set up: the network availability matrix is not installed";
            487 "failover cannot be set up: group services are not installed";
            488 "failover cannot be set up: the launcher is too old";
            489 "failover cannot be set up: there is no launcher";
            490 "failover cannot be set up: the job uses a device without it";
            491 "failover has stopped: internal error";
            492 LAPI_ERR_TGT_CONTEXT "the target's RDMA context is not valid";
            493 LAPI_ERR_SRC_CONTEXT "the origin's RDMA context is not valid";
            494 LAPI_ERR_TGT_BUFHNDL "the target's RDMA buffer is not valid";
            495 LAPI_ERR_SRC_BUFHNDL "the origin's RDMA buffer is not valid";
            496 LAPI_ERR_TGT_OFFSET "the offset into the target's RDMA buffer is not valid";
            497 LAPI_ERR_SRC_OFFSET "the offset into the origin's RDMA buffer is not valid";
            498 LAPI_ERR_NO_RDMA_RESOURCE "no RDMA resource is available";
            499 "bulk transfer is on";
            500 "tasks have received nothing from each other in time";
            501 "the version of the library";
            502 "shared memory cannot be initialised";
            503 "shared memory cannot be initialised after a restart from a checkpoint";
            504 "shared memory is not used: the job has one task on this machine";
            505 "shared memory cannot be created";
            506 "shared memory of another task cannot be opened";
            507 "shared memory cannot be mapped";
            508 "address space for shared memory cannot be reserved";
            509 "the tasks make first contact over a port";
            510 LAPI_ERR_NO_ENV_VAR "an environment variable is missing or has a wrong value";
            511 LAPI_ERR_CODE_UNKNOWN "LAPI knows no such code";
            513 LAPI_ERR_XLATE_FAILED "memory cannot be registered for RDMA";
            514 LAPI_ERR_RDMA_RESOURCES "RDMA resources are not available";
            515 LAPI_ERR_LW_DATA_LEN "header and data are too long for a light-weight active message";
            516 LAPI_ERR_NO_HNDLR_SET "no handler is set for this index";
            517 LAPI_ERR_OFFSET_LEN "offset and length reach beyond the memory";
            519 (LAPI_ERR_CODE_UNKNOWN) "LAPI knows no such code (the number later levels use)";
        }
    };
}
pub(crate) use for_each_code;

macro_rules! constants {
    ($($number:literal $($name:ident)? $(($again:ident))? $text:literal;)*) => {
        $($(#[doc = $text] pub const $name: c_int = $number;)?)*
    };
}
for_each_code!(constants);

// Names of earlier levels for the same numbers.
pub const LAPI_ERR_INIT_FAILED: c_int = LAPI_ERR_CSS_LOAD_FAILED;
pub const LAPI_ERR_BAD_PARAMETER: c_int = LAPI_ERR_PSS_NON_ROOT;
pub const LAPI_WAIT_INTERRUPTED: c_int = LAPI_ERR_ADDR_TBL_NULL;
pub const LAPI_ERR_PURGED_TASK: c_int = LAPI_ERR_TGT_PURGED;
pub const LAPI_ERR_EXHAUSTED_MEMORY: c_int = LAPI_ERR_MEMORY_EXHAUSTED;
pub const LAPI_ERR_NONZERO_INFO: c_int = LAPI_ERR_INFO_NONZERO;
pub const LAPI_ERR_BAD_FIRST_PARM: c_int = LAPI_ERR_ORG_ADDR_NULL;
pub const LAPI_ERR_BAD_SECOND_PARM: c_int = LAPI_ERR_TGT_ADDR_NULL;
pub const LAPI_ERR_BAD_THIRD_PARM: c_int = LAPI_ERR_DATA_LEN;
pub const LAPI_ERR_BAD_FOURTH_PARM: c_int = LAPI_ERR_TGT;
pub const LAPI_ERR_BAD_FIFTH_PARM: c_int = LAPI_ERR_UHDR_NULL;
pub const LAPI_ERR_BAD_SIXTH_PARM: c_int = LAPI_ERR_UHDR_LEN;
pub const LAPI_ERR_BAD_SEVENTH_PARM: c_int = LAPI_ERR_HDR_LEN;
pub const LAPI_ERR_BAD_EIGHTH_PARM: c_int = LAPI_ERR_ORG_EXTENT;
pub const LAPI_ERR_BAD_NINTH_PARM: c_int = LAPI_ERR_ORG_STRIDE;
