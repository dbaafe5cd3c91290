//! Failures, with the numbers that programs know.

use std::fmt;

/// Whether a step has failed.
pub type Result<T> = std::result::Result<T, Failure>;

/// OpenFAM's `Fam_Error`, whose names begin with `FAM_ERR_` there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs, reason = "the interface has names alone")]
pub enum FamError {
    NoError = 0,
    Unknown,
    NoPerm,
    Timeout,
    Invalid,
    Libfabric,
    Shm,
    NotCreated,
    NotFound,
    AlreadyExist,
    Allocator,
    Rpc,
    Pmi,
    OutOfRange,
    NoSpace,
    NullPtr,
    Unimpl,
    Resource,
    InvalidOp,
    RpcClientNotFound,
    MemservListEmpty,
    Metadata,
    Memory,
    NameTooLong,
    AtlQueueFull,
    AtlQueueInsert,
    AtlNotEnabled,
    Atl,
    BackupNotCreated,
    BackupNotFound,
    BackupInfoNotFound,
    NotPwrTwo,
}

/// All of them, in the order of their numbers.
const ALL: [FamError; 32] = {
    use FamError::*;
    [
        NoError,
        Unknown,
        NoPerm,
        Timeout,
        Invalid,
        Libfabric,
        Shm,
        NotCreated,
        NotFound,
        AlreadyExist,
        Allocator,
        Rpc,
        Pmi,
        OutOfRange,
        NoSpace,
        NullPtr,
        Unimpl,
        Resource,
        InvalidOp,
        RpcClientNotFound,
        MemservListEmpty,
        Metadata,
        Memory,
        NameTooLong,
        AtlQueueFull,
        AtlQueueInsert,
        AtlNotEnabled,
        Atl,
        BackupNotCreated,
        BackupNotFound,
        BackupInfoNotFound,
        NotPwrTwo,
    ]
};

impl FamError {
    /// The number that programs see.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The error of a number; of one that is none, [`FamError::Unknown`].
    pub fn of(code: i32) -> Self {
        usize::try_from(code).ok().and_then(|at| ALL.get(at)).copied().unwrap_or(Self::Unknown)
    }

    /// This error, with a text for people.
    pub fn because(self, why: impl Into<String>) -> Failure {
        Failure { error: self, text: why.into() }
    }
}

/// An error, and what people read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub error: FamError,
    /// One sentence without its full stop.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_interface() {
        for (number, error) in ALL.iter().enumerate() {
            assert_eq!((error.code(), FamError::of(error.code())), (number as i32, *error));
        }
        let known = [
            (FamError::NoPerm, 2),
            (FamError::NotFound, 8),
            (FamError::Rpc, 11),
            (FamError::NotPwrTwo, 31),
            (FamError::NameTooLong, 23),
        ];
        assert!(known.iter().all(|(error, code)| error.code() == *code));
        assert!([-1, 32, i32::MAX, i32::MIN].iter().all(|code| FamError::of(*code) == FamError::Unknown));
    }
}
