//! What the tasks of a job send each other at start-up, where the launcher only carries bytes: the
//! values of one task, the table with the values of all tasks, and the frames of the exchange over
//! TCP ([`crate::job::exchange`]). Numbers are little-endian words of 32 bits.

use super::bytes::{take, take_some};
use std::collections::BTreeMap;

/// The values that one task has published, by key.
pub type Values = BTreeMap<String, Vec<u8>>;

/// The largest frame, in bytes: the table of the largest job with 4 KiB per task, and
/// as much again.
pub const LONGEST_FRAME: usize = 128 << 20;
/// The largest frame with the values of one task, which has proved that it knows the key.
pub const LONGEST_VALUES: usize = 256 << 10;
/// A frame: its length and its bytes.
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}

/// The first frame at the beginning of `input`, which is removed from it; `None` until it is
/// there as a whole.
///
/// # Errors
/// The length that the peer has announced, when that is more than `longest`.
pub fn take_frame(input: &mut Vec<u8>, longest: usize) -> Result<Option<Vec<u8>>, usize> {
    let Some(length) = input.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > longest {
        return Err(length);
    }
    if input.len() < 4 + length {
        return Ok(None);
    }
    let rest = input.split_off(4 + length);
    let frame = std::mem::replace(input, rest).split_off(4);
    Ok(Some(frame))
}

/// The values of one task as bytes.
pub fn encode_values(values: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    put_values(values, &mut out);
    out
}

/// The values in these bytes; none if they are something else.
pub fn decode_values(bytes: &[u8]) -> Option<Values> {
    let mut rest = bytes;
    let values = take_values(&mut rest)?;
    rest.is_empty().then_some(values)
}

/// The values of all tasks, in the order of the tasks, as bytes.
pub fn encode_table(table: &[Values]) -> Vec<u8> {
    let mut out = (table.len() as u32).to_le_bytes().to_vec();
    for values in table {
        put_values(values, &mut out);
    }
    out
}

/// The table in these bytes; none if they are something else.
pub fn decode_table(bytes: &[u8]) -> Option<Vec<Values>> {
    let mut rest = bytes;
    let tasks = u32::from_le_bytes(take(&mut rest)?);
    // Each task takes at least a word: a number that bytes do not support reserves no memory.
    let mut table = Vec::with_capacity((tasks as usize).min(rest.len() / 4));
    for _ in 0..tasks {
        table.push(take_values(&mut rest)?);
    }
    rest.is_empty().then_some(table)
}

fn put_values(values: &Values, out: &mut Vec<u8>) {
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    for (key, value) in values {
        for bytes in [key.as_bytes(), value] {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

fn take_values(from: &mut &[u8]) -> Option<Values> {
    let count = u32::from_le_bytes(take(from)?);
    let mut values = Values::new();
    for _ in 0..count {
        let mut sized = || {
            let length = u32::from_le_bytes(take(from)?) as usize;
            take_some(from, length)
        };
        let (key, value) = (sized()?, sized()?);
        values.insert(std::str::from_utf8(key).ok()?.to_owned(), value.to_vec());
    }
    Some(values)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
