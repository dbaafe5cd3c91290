//! Errors: one table of every number that LAPI can return or report, and the error type of the
//! core. [`catalog`] has the texts in other languages, [`Log`] is where messages go.

pub mod catalog;
mod log;

use crate::abi::LAPI_ERR_UNKNOWN;
use libc::c_int;
pub use log::Log;

/// The result of anything that can fail with a LAPI error code.
pub type Result<T> = std::result::Result<T, Error>;

/// A LAPI error code, and what happened where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number that the C call returns; one of the LAPI_ERR_ constants of [`crate::abi`].
    pub code: c_int,
    /// What the table cannot know: the task, the file, the limit found and the limit
    /// needed; may be empty.
    pub detail: String,
}

impl Error {
    /// An error with a detail. Cold: calls that succeed pay nothing for it.
    #[cold]
    pub fn new(code: c_int, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// In English, as details are.
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, &*self.detail) {
            (code, "") => f.write_str(&describe(code)),
            // Its text says nothing.
            (LAPI_ERR_UNKNOWN, detail) => write!(f, "LAPI_ERR_UNKNOWN ({LAPI_ERR_UNKNOWN}): {detail}"),
            (code, detail) => write!(f, "{}: {detail}", describe(code)),
        }
    }
}

impl std::error::Error for Error {}

impl From<c_int> for Error {
    #[cold]
    fn from(code: c_int) -> Self {
        Self { code, detail: String::new() }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number.
    pub code: c_int,
    /// The name of the number in `lapi.h`; attention messages have none.
    pub name: Option<&'static str>,
    /// What it means, without a full stop.
    pub text: &'static str,
}

impl std::fmt::Display for Entry {
    /// `LAPI_ERR_TGT (428): the target is not a task of the job`; fits LAPI_MAX_ERR_STRING.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.with(self.text))
    }
}

impl Entry {
    /// The name and the number, with another text for them.
    pub fn with(&self, text: &str) -> String {
        format!("{} ({}): {text}", self.name.unwrap_or("LAPI"), self.code)
    }
}

/// What is known of a number; none if it is not LAPI's.
pub fn lookup(code: c_int) -> Option<&'static Entry> {
    TABLE.binary_search_by_key(&code, |entry| entry.code).ok().map(|i| &TABLE[i])
}

fn describe(code: c_int) -> String {
    lookup(code).map_or_else(|| format!("LAPI ({code})"), Entry::to_string)
}

const fn error(code: c_int, name: &'static str, text: &'static str) -> Entry {
    Entry { code, name: Some(name), text }
}

const fn attention(code: c_int, text: &'static str) -> Entry {
    Entry { code, name: None, text }
}

/// Sorted by number. LAPI's levels disagree on the number of LAPI_ERR_CODE_UNKNOWN (485, 511, 519):
/// this library returns 511 and explains all three.
#[rustfmt::skip] // one line per number
pub static TABLE: &[Entry] = &[
    error(0, "LAPI_SUCCESS", "the call has succeeded"),
    error(400, "LAPI_ERR_UNKNOWN", "an error that no other code describes"),
    error(401, "LAPI_ERR_ALL_HNDL_IN_USE", "every instance, or the one asked for, is in use already"),
    error(402, "LAPI_ERR_BOTH_NETSTR_SET", "MP_LAPI_NETWORK and MP_LAPI_INET_ADDR are both set; only one may be"),
    error(403, "LAPI_ERR_CKPT_LOAD_FAILED", "the checkpoint library cannot be loaded"),
    error(404, "LAPI_ERR_CSS_LOAD_FAILED", "no transport that reaches every task can be loaded"),
    error(405, "LAPI_ERR_INFO_NULL", "the lapi_info_t pointer is null"),
    error(406, "LAPI_ERR_MSG_API", "MP_MSG_API has a value that does not allow LAPI"),
    error(407, "LAPI_ERR_NO_NETSTR_SET", "no network is named, and MP_MSG_API does not say lapi"),
    error(408, "LAPI_ERR_NO_UDP_HNDLR", "lapi_extend_t has neither a UDP handler nor a list of UDP addresses"),
    error(409, "LAPI_ERR_HDR_HNDLR_NULL", "the header handler is null"),
    error(410, "LAPI_ERR_PSS_NON_ROOT", "only root may start the persistent subsystem"),
    error(411, "LAPI_WARN_PARM_NULL", "a parameter is null and was ignored"),
    error(412, "LAPI_ERR_SHM_KE_NOT_LOADED", "the operating system lacks what shared memory needs"),
    error(413, "LAPI_ERR_TIMEOUT", "a task has not replied within TIMEOUT seconds"),
    error(414, "LAPI_ERR_REG_TIMER", "a timer cannot be set"),
    error(415, "LAPI_ERR_UDP_PKT_SZ", "MP_UDP_PACKET_SIZE is out of range"),
    error(416, "LAPI_ERR_USER_UDP_HNDLR_FAIL", "the program's UDP handler has returned an error"),
    error(417, "LAPI_ERR_HNDL_INVALID", "the handle is not valid, or has been terminated"),
    error(418, "LAPI_ERR_RET_PTR_NULL", "the pointer for the result is null"),
    error(419, "LAPI_ERR_ADDR_HNDL_RANGE", "the index is not within the address table"),
    error(420, "LAPI_ERR_ADDR_TBL_NULL", "the address table is null"),
    error(421, "LAPI_ERR_TGT_PURGED", "the target task has been purged"),
    error(422, "LAPI_ERR_MULTIPLE_WAITERS", "another thread waits for this counter already"),
    error(423, "LAPI_ERR_MEMORY_EXHAUSTED", "memory or another resource is exhausted"),
    error(424, "LAPI_ERR_INFO_NONZERO", "a field of lapi_info_t that must be zero is not"),
    error(425, "LAPI_ERR_ORG_ADDR_NULL", "the origin address is null, but the length is not 0"),
    error(426, "LAPI_ERR_TGT_ADDR_NULL", "the target address is null, but the length is not 0"),
    error(427, "LAPI_ERR_DATA_LEN", "the length is more than LAPI_MAX_MSG_SZ"),
    error(428, "LAPI_ERR_TGT", "the target is not a task of the job"),
    error(429, "LAPI_ERR_UHDR_NULL", "the user header is null, but its length is not 0"),
    error(430, "LAPI_ERR_UHDR_LEN", "the user header is longer than MAX_UHDR_SZ"),
    error(431, "LAPI_ERR_HDR_LEN", "the length of the user header is not a multiple of the word size"),
    error(432, "LAPI_ERR_ORG_EXTENT", "the origin vector reaches further than LAPI_MAX_MSG_SZ"),
    error(433, "LAPI_ERR_ORG_STRIDE", "the origin vector's stride is smaller than its block"),
    error(434, "LAPI_ERR_NO_CONNECTIVITY", "the task cannot be reached"),
    error(435, "LAPI_ERR_ADAPTERS_DOWN", "every adapter is down"),
    error(436, "LAPI_ERR_RECV_INCOMP", "a message was not received as a whole"),
    error(437, "LAPI_ERR_SEND_INCOMP", "a message was not sent as a whole"),
    error(438, "LAPI_ERR_SEND_TIMEOUT", "a message could not be sent in time"),
    error(439, "LAPI_ERR_SHM_SETUP", "shared memory cannot be set up"),
    error(440, "LAPI_ERR_ORG_VEC_ADDR", "an address in the origin vector is null, but its length is not 0"),
    error(441, "LAPI_ERR_ORG_VEC_LEN", "the origin vector's lengths add up to more than LAPI_MAX_MSG_SZ"),
    error(442, "LAPI_ERR_ORG_VEC_NULL", "the origin vector is null"),
    error(443, "LAPI_ERR_ORG_VEC_TYPE", "the origin vector's type is wrong, or not allowed in this call"),
    error(444, "LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL", "the origin's strided vector has a null base address"),
    error(445, "LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL", "the target's strided vector has a null base address"),
    error(446, "LAPI_ERR_TGT_EXTENT", "the target vector reaches further than LAPI_MAX_MSG_SZ"),
    error(447, "LAPI_ERR_TGT_STRIDE", "the target vector's stride is smaller than its block"),
    error(448, "LAPI_ERR_TGT_VEC_ADDR", "an address in the target vector is null, but its length is not 0"),
    error(449, "LAPI_ERR_TGT_VEC_LEN", "the target vector's lengths add up to more than LAPI_MAX_MSG_SZ"),
    error(450, "LAPI_ERR_CKPT", "a checkpoint has failed"),
    error(451, "LAPI_ERR_TGT_VEC_NULL", "the target vector is null"),
    error(452, "LAPI_ERR_TGT_VEC_TYPE", "the target vector's type is wrong, or not allowed in this call"),
    error(453, "LAPI_ERR_VEC_NUM_DIFF", "num_vecs of the origin's and the target's vector differ"),
    error(454, "LAPI_ERR_VEC_TYPE_DIFF", "the types of the origin's and the target's vector differ"),
    error(455, "LAPI_ERR_VEC_LEN_DIFF", "lengths or block sizes of the two vectors differ"),
    error(456, "LAPI_ERR_MSG_INFO_NULL", "the lapi_msg_info_t pointer of LAPI_Msgpoll is null"),
    error(457, "LAPI_ERR_POLLING_NET", "another thread is polling already"),
    error(458, "LAPI_ERR_CNTR_NULL", "the counter pointer is null"),
    error(459, "LAPI_ERR_CNTR_VAL", "the value to wait for is not more than 0"),
    error(460, "LAPI_ERR_QUERY_TYPE", "there is no such attribute, or it cannot be set"),
    error(461, "LAPI_ERR_IN_VAL_NULL", "in_val is null"),
    error(462, "LAPI_ERR_RMW_OP", "there is no such read-modify-write operation"),
    error(463, "LAPI_ERR_TGT_VAR_NULL", "tgt_var is null"),
    error(464, "LAPI_ERR_SET_VAL", "the value is out of the attribute's range"),
    error(465, "LAPI_ERR_DGSP", "the DGSP is null, or no registered one"),
    error(466, "LAPI_ERR_DGSP_ATOM", "the DGSP's atom_size is negative or more than MAX_ATOM_SIZE"),
    error(467, "LAPI_ERR_DGSP_BRANCH", "the DGSP branches out of its code"),
    error(468, "LAPI_ERR_DGSP_CTL", "the DGSP has a CONTROL instruction where none may be"),
    error(469, "LAPI_ERR_DGSP_COPY_SZ", "the DGSP copies a negative number of bytes"),
    error(470, "LAPI_ERR_DGSP_FREE", "the DGSP was unreserved more often than it was registered and reserved"),
    error(471, "LAPI_ERR_DGSP_OPC", "the DGSP has an instruction that does not exist"),
    error(472, "LAPI_ERR_DGSP_REPS", "the DGSP has a GOSUB with negative reps"),
    error(473, "LAPI_ERR_DGSP_STACK", "the DGSP's GOSUBs nest deeper than its depth says"),
    error(474, "LAPI_ERR_OP_SZ", "size of lapi_rmw_t is neither 32 nor 64"),
    error(475, "LAPI_ERR_UDP_PORT_INFO", "a UDP address and port are missing, or no task can receive there"),
    error(476, "LAPI_ERR_XFER_CMD", "there is no such transfer type"),
    error(477, "LAPI_ERR_UTIL_CMD", "there is no such utility type"),
    error(478, "LAPI_ERR_CATALOG_FAIL", "the message catalogue cannot be opened"),
    error(479, "LAPI_ERR_PACK_SZ", "the pack buffer is too small"),
    error(480, "LAPI_ERR_DGSP_OTHER", "the DGSP's descriptor is wrong, for example without code"),
    error(481, "LAPI_ERR_UDP_SOCKET", "a UDP socket has failed"),
    error(482, "LAPI_ERR_COLLECTIVE_PSS", "the persistent subsystem allows no collective calls"),
    attention(485, "failover cannot be set up: internal error (some levels: unknown code)"),
    attention(486, "failover cannot be set up: the network availability matrix is not installed"),
    attention(487, "failover cannot be set up: group services are not installed"),
    attention(488, "failover cannot be set up: the launcher is too old"),
    attention(489, "failover cannot be set up: there is no launcher"),
    attention(490, "failover cannot be set up: the job uses a device without it"),
    attention(491, "failover has stopped: internal error"),
    error(492, "LAPI_ERR_TGT_CONTEXT", "the target's RDMA context is not valid"),
    error(493, "LAPI_ERR_SRC_CONTEXT", "the origin's RDMA context is not valid"),
    error(494, "LAPI_ERR_TGT_BUFHNDL", "the target's RDMA buffer is not valid"),
    error(495, "LAPI_ERR_SRC_BUFHNDL", "the origin's RDMA buffer is not valid"),
    error(496, "LAPI_ERR_TGT_OFFSET", "the offset into the target's RDMA buffer is not valid"),
    error(497, "LAPI_ERR_SRC_OFFSET", "the offset into the origin's RDMA buffer is not valid"),
    error(498, "LAPI_ERR_NO_RDMA_RESOURCE", "no RDMA resource is available"),
    attention(499, "bulk transfer is on"),
    attention(500, "tasks have received nothing from each other in time"),
    attention(501, "the version of the library"),
    attention(502, "shared memory cannot be initialised"),
    attention(503, "shared memory cannot be initialised after a restart from a checkpoint"),
    attention(504, "shared memory is not used: the job has one task on this machine"),
    attention(505, "shared memory cannot be created"),
    attention(506, "shared memory of another task cannot be opened"),
    attention(507, "shared memory cannot be mapped"),
    attention(508, "address space for shared memory cannot be reserved"),
    attention(509, "the tasks make first contact over a port"),
    error(510, "LAPI_ERR_NO_ENV_VAR", "an environment variable is missing or has a wrong value"),
    error(511, "LAPI_ERR_CODE_UNKNOWN", "LAPI knows no such code"),
    error(513, "LAPI_ERR_XLATE_FAILED", "memory cannot be registered for RDMA"),
    error(514, "LAPI_ERR_RDMA_RESOURCES", "RDMA resources are not available"),
    error(515, "LAPI_ERR_LW_DATA_LEN", "header and data are too long for a light-weight active message"),
    error(516, "LAPI_ERR_NO_HNDLR_SET", "no handler is set for this index"),
    error(517, "LAPI_ERR_OFFSET_LEN", "offset and length reach beyond the memory"),
    error(519, "LAPI_ERR_CODE_UNKNOWN", "LAPI knows no such code (the number later levels use)"),
];

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
