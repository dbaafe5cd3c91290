//! Two layouts of one message: the parts of it that are contiguous at both.

use super::Layout;
use std::collections::VecDeque;

/// Passes on the parts of the bytes `from..from + len` of a message that are contiguous at both
/// layouts, in order: the address in each, and the length.
pub fn overlaps(
    here: &Layout,
    there: &Layout,
    from: u64,
    len: u64,
    mut each: impl FnMut(*mut u8, *mut u8, usize),
) {
    let mut theirs = VecDeque::new();
    there.runs(from, len, |at, len| theirs.push_back((at, len)));
    here.runs(from, len, |mut at, mut len| {
        while len != 0 {
            let Some((there, left)) = theirs.front_mut() else { return };
            let both = len.min(*left);
            each(at, *there, both);
            (at, len) = (at.wrapping_add(both), len - both);
            (*there, *left) = (there.wrapping_add(both), *left - both);
            if *left == 0 {
                theirs.pop_front();
            }
        }
    });
}
