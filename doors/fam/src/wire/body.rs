//! What is asked and answered, as the data of messages.

use super::{Answer, Ask};
use crate::error::{Failure, FamError, Result};

/// The longest body of what is asked, in bytes.
pub const LONGEST_BODY: usize = 1 << 20;
/// The longest answer, in bytes: a list of backups.
const LONGEST_ANSWER: usize = 64 << 20;

/// What is asked, as bytes.
pub fn encode(ask: &Ask) -> Vec<u8> {
    postcard::to_allocvec(ask).unwrap_or_default()
}

/// What these bytes ask; `None`: nothing.
pub fn decode(body: &[u8]) -> Option<Ask> {
    whole(body, LONGEST_BODY)
}

/// An answer, or a failure, as bytes.
pub fn encode_answer(answer: &Result<Answer>) -> Vec<u8> {
    let answer = answer.as_ref().map_err(|failure| (failure.error.code(), failure.text.as_str()));
    postcard::to_allocvec(&answer).unwrap_or_default()
}

/// The answer in these bytes; [`FamError::Rpc`]: they are none.
///
/// # Errors
/// What the daemon has refused, and why.
pub fn decode_answer(body: &[u8]) -> Result<Answer> {
    let answer: Option<std::result::Result<Answer, (i32, String)>> = whole(body, LONGEST_ANSWER);
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err((code, text))) => {
            let error = FamError::of(code);
            // A failure is never a success.
            let error = if error == FamError::NoError { FamError::Unknown } else { error };
            Err(Failure { error, text })
        }
        None => Err(FamError::Rpc.because("the daemon has answered what is no answer")),
    }
}

fn whole<'a, T: serde::Deserialize<'a>>(body: &'a [u8], longest: usize) -> Option<T> {
    if body.len() > longest {
        return None;
    }
    let (value, rest) = postcard::take_from_bytes(body).ok()?;
    rest.is_empty().then_some(value)
}
