use super::*;
use crate::base::rng::Rng;

const SIZE: usize = 4096;
const LONGEST: usize = 600;

/// The places of messages that fill a buffer.
fn places(rng: &mut Rng) -> Vec<(usize, usize)> {
    let (mut places, mut end) = (Vec::new(), 0);
    while SIZE - end >= LONGEST {
        let len = FRAME + 8 * rng.below(((LONGEST - FRAME) / 8) as u64 + 1) as usize;
        places.push((end, len));
        end += len;
    }
    places
}

/// The end is reported with the last message, or alone and before it.
#[test]
fn a_buffer_is_complete_when_each_message_was_reported_in_any_order() {
    for seed in 0..2000 {
        let mut rng = Rng::stream(seed, 21);
        let mut open = places(&mut rng);
        let last = open.last().copied();
        let mut filled = Filled::default();
        let alone = rng.below(2) == 0;
        while !open.is_empty() {
            assert!(!filled.is_complete(), "seed {seed}: {open:?} are open, {filled:?}");
            if alone && rng.below(8) == 0 {
                filled.note_end(None, SIZE, LONGEST);
            }
            let at = if rng.below(2) == 0 { 0 } else { rng.below(open.len() as u64) as usize };
            let (offset, len) = open.remove(at);
            filled.note(offset, len);
            if !alone && Some((offset, len)) == last {
                filled.note_end(Some(offset + len), SIZE, LONGEST);
            }
        }
        if alone {
            filled.note_end(None, SIZE, LONGEST);
        }
        assert!(filled.is_complete(), "seed {seed}: all were reported, {filled:?}");
    }
}

#[test]
fn padding_between_messages_is_no_hole() {
    let mut filled = Filled::default();
    let mut offset = 0;
    while SIZE - offset >= LONGEST {
        filled.note(offset, LONGEST - 16 + 8);
        offset += LONGEST;
    }
    filled.note_end(Some(offset - 8), SIZE, LONGEST);
    assert!(filled.is_complete(), "{filled:?}");
}

#[test]
fn a_buffer_that_has_failed_is_never_complete() {
    let mut filled = Filled::default();
    filled.note(0, SIZE);
    filled.note_failure();
    filled.note_end(Some(SIZE), SIZE, LONGEST);
    assert!(!filled.is_complete(), "{filled:?}");
}
