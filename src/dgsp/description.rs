//! The description of a vector: how the target's places travel in packets.
//!
//! A description is a list of 64-bit words in the byte order of the machine; all tasks of a job
//! have the same one. The first word is its kind:
//!
//! | kind | words that follow |
//! |---|---|
//! | 0: pieces | for each piece its address and its length in bytes |
//! | 1: strided | base, block, stride (all three in bytes), number of blocks |

use super::layout::Layout;
use super::vector::Vector;
use crate::memory::bytes::is_memory;

const PIECES: u64 = 0;
const STRIDED: u64 = 1;

/// The words that describe a vector.
pub fn describe(vector: &Vector) -> Vec<u64> {
    if let Some(template) = vector.template() {
        return vec![STRIDED, template.base, template.block, template.stride, vector.count() as u64];
    }
    let pieces = vector.pieces().flat_map(|(at, len)| [at, len]);
    std::iter::once(PIECES).chain(pieces).collect()
}

/// The words that describe contiguous bytes.
pub fn describe_contiguous(at: u64, len: u64) -> Vec<u64> {
    if len == 0 { vec![PIECES] } else { vec![PIECES, at, len] }
}

/// The words that describe a layout, run by run.
#[cfg(any(test, feature = "fuzz"))]
pub fn describe_layout(layout: &Layout) -> Vec<u64> {
    let mut words = vec![PIECES];
    layout.runs(0, layout.len(), |at, len| words.extend([at as u64, len as u64]));
    words
}

/// The layout that words describe; `None` for words that are not a description, or that describe
/// places beyond the end of memory. It takes no more memory than the words, whatever they say.
pub fn layout_of(words: &[u64]) -> Option<Layout> {
    match *words {
        [STRIDED, base, block, stride, count] => has_places(base, block, stride, count)
            .then(|| Layout::strided(base as *mut u8, block, stride, count)),
        [PIECES, ref pieces @ ..] if pieces.len() % 2 == 0 => {
            let pieces = pieces.chunks_exact(2);
            let fits = |total: u64, piece: &[u64]| {
                let (at, len) = (piece[0], piece[1]);
                is_memory(at, len).then(|| total.checked_add(len))?
            };
            pieces.clone().try_fold(0, fits)?;
            Some(Layout::pieces(pieces.map(|piece| (piece[0] as *mut u8, piece[1]))))
        }
        _ => None,
    }
}

/// Whether all blocks of a strided vector lie in what can be memory. A stride may be negative.
fn has_places(base: u64, block: u64, stride: u64, count: u64) -> bool {
    let Some(len) = block.checked_mul(count) else { return false };
    if len == 0 {
        return true;
    }
    let last = i128::from(base) + i128::from(stride as i64) * i128::from(count - 1);
    u64::try_from(last).is_ok_and(|last| is_memory(base.max(last), block))
}

#[cfg(test)]
#[path = "description_tests.rs"]
mod tests;
