//! Requests of LAPI_Util that the manual does not have: those of `lapi_checkpoint.h`.

use super::lapi_util_type_t;

/// Leave the job for a checkpoint.
pub const LAPI_CHECKPOINT_BEFORE: lapi_util_type_t = 32;
/// Come back.
pub const LAPI_CHECKPOINT_AFTER: lapi_util_type_t = 33;
