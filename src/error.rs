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

macro_rules! table {
    ($($number:literal $($name:ident)? $(($again:ident))? $text:literal;)*) => {
        /// Sorted by number.
        pub static TABLE: &[Entry] = &[$(Entry {
            code: $number,
            name: [$(Some(stringify!($name)),)? $(Some(stringify!($again)),)? None][0],
            text: $text,
        }),*];
    };
}
crate::abi::for_each_code!(table);

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
