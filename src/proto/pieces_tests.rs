//! The parts of messages, compared with a computation byte by byte.

use super::*;
use crate::base::rng::Rng;
use crate::proto::tests::seeds;
use crate::wire::key::{Exposed, Key};
use std::ptr::without_provenance_mut;

/// The address of each byte of a message.
fn addresses(layout: &Layout) -> Vec<usize> {
    let mut all = Vec::new();
    layout.runs(0, layout.len(), |at, len| all.extend((0..len).map(|byte| at.addr() + byte)));
    all
}

/// A layout of `total` bytes: pieces of many lengths, some of them empty, some touching the
/// next; or blocks.
fn draw(rng: &mut Rng, total: u64) -> Layout {
    let start = 0x1000 + rng.below(64);
    let at = |address: u64| without_provenance_mut::<u8>(address as usize);
    match rng.below(4) {
        0 => return Layout::contiguous(at(start), total),
        1 => {
            let count = 1 + rng.below(12);
            if total.is_multiple_of(count) {
                let block = total / count;
                return Layout::strided(at(start), block, block + rng.below(3), count);
            }
        }
        _ => {}
    }
    let (mut pieces, mut left, mut address) = (Vec::new(), total, start);
    while left != 0 {
        let len = [0, 1, rng.below(10), rng.below(60), 30 + rng.below(200)][rng.below(5) as usize].min(left);
        pieces.push((at(address), len));
        address += len + rng.below(3);
        left -= len;
    }
    Layout::pieces(pieces)
}

/// Which bytes are in a run of at least `least` bytes that is contiguous at each of these places.
fn in_long_runs(places: &[&[usize]], least: usize) -> Vec<bool> {
    let total = places[0].len();
    let mut long = vec![false; total];
    let mut from = 0;
    while from < total {
        let mut to = from + 1;
        while to < total && places.iter().all(|place| place[to] == place[to - 1] + 1) {
            to += 1;
        }
        long[from..to].fill(to - from >= least);
        from = to;
    }
    long
}

/// The parts of a message, a few at a time.
fn in_batches(here: &Layout, there: Option<&Layout>, least: u64, rng: &mut Rng) -> Vec<(u64, Piece)> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let most = rng.below(4) as usize;
        let Batch { parts, next } = divide(here, there, least, from, most);
        assert!(parts.len() == most || parts.len() < most && next.is_none());
        all.extend(parts);
        match next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

#[test]
fn parts_are_what_is_long_at_both_ends() {
    seeds(600, |seed| {
        let mut rng = Rng::new(seed);
        let total = 1 + rng.below(1500);
        let (here, there) = (draw(&mut rng, total), draw(&mut rng, total));
        let both = rng.chance(0.7);
        let least = 1 + rng.below(40);
        if is_fine(&here, least) || both && is_fine(&there, least) {
            let batch = divide(&here, both.then_some(&there), least, 0, MOST);
            assert!(batch.parts.is_empty() && batch.next.is_none());
            return;
        }
        let Batch { parts, next } = divide(&here, both.then_some(&there), least, 0, MOST);
        assert_eq!(next, None, "few parts");
        let place = |(from, piece): &(u64, Piece)| (*from, piece.ptr.addr(), piece.len);
        let batches = in_batches(&here, both.then_some(&there), least, &mut rng);
        assert!(batches.iter().map(place).eq(parts.iter().map(place)));
        let (ours, theirs) = (addresses(&here), addresses(&there));
        let places: &[&[usize]] = if both { &[&ours, &theirs] } else { &[&ours] };
        let wanted = in_long_runs(places, least as usize);
        let mut found = vec![false; total as usize];
        for (from, piece) in &parts {
            for byte in 0..piece.len {
                let number = *from as usize + byte;
                assert!(!std::mem::replace(&mut found[number], true), "byte {number} is in two parts");
                assert_eq!(piece.ptr.addr() + byte, ours[number], "the place of byte {number}");
            }
        }
        assert_eq!(found, wanted);
        // What the other side makes of them.
        let exposed =
            |piece: &Piece| Exposed { addr: piece.ptr.addr() as u64, key: Key { key: 0, offset: 0 } };
        let parts: Vec<Part> = parts
            .iter()
            .map(|(from, piece)| Part { from: *from, len: piece.len as u64, exposed: exposed(piece) })
            .collect();
        let mut covered = Vec::new();
        let (first, second) = parts.split_at(rng.below(parts.len() as u64 + 1) as usize);
        [first, second].iter().for_each(|parts| cover(&mut covered, ranges(parts)));
        assert!(covered.is_sorted_by(|one, next| one.0 + one.1 < next.0), "they are apart");
        let ranges = ranges(&parts);
        assert_eq!(rest(covered.iter().copied(), total), rest(ranges.iter().copied(), total));
        let numbers = |ranges: Vec<Range>| {
            ranges.into_iter().flat_map(|(from, len)| from..from + len).collect::<Vec<_>>()
        };
        let remaining = numbers(rest(ranges.iter().copied(), total));
        assert!(remaining.iter().all(|&number| !wanted[number as usize]));
        assert_eq!(remaining.len() + found.iter().filter(|found| **found).count(), total as usize);
        let order = numbers(reordered(&ranges, total).collect());
        assert!(order.starts_with(&remaining));
        let span = Span::new(Arc::new(there));
        let selected = addresses(&span.select(reordered(&ranges, total)));
        assert_eq!(selected, order.iter().map(|&number| theirs[number as usize]).collect::<Vec<_>>());
    });
}

#[test]
fn pieces_that_are_far_too_short_are_not_looked_at() {
    let at = |address: usize| without_provenance_mut::<u8>(address);
    let fine = Layout::strided(at(0x1000), 1, 2, 1 << 40);
    assert_eq!(divide(&fine, None, 1000, 0, MOST).bytes(), 0);
    assert_eq!(divide(&fine, None, 1000, 0, MOST).next, None);
    let whole = Part { from: 0, len: 8000, exposed: Exposed { addr: 1, key: Key { key: 0, offset: 0 } } };
    for (block, long) in [(1000, true), (999, false), (10, false)] {
        let layout = Layout::strided(at(0x1000), block, block + 1, 8000 / block);
        assert_eq!(Span::new(Arc::new(layout)).is_long_in(&[whole], 1000), long, "{block}");
    }
}

/// Any number of places, in batches: each has as many parts as it may have, and no window cuts one.
#[test]
fn batches_have_as_many_parts_as_they_may_have() {
    let at = |address: usize| without_provenance_mut::<u8>(address);
    for (count, block) in
        [(1, 1000), (MOST as u64, 1000), (MOST as u64 + 1, 1000), (1 << 40, 1000), (20_000, 64)]
    {
        let here = Layout::strided(at(0x1000), block, block + 1, count);
        // Other boundaries, and all of it in one place.
        for there in [None, Some(Layout::contiguous(at(0x10), block * count))] {
            let (mut number, mut next) = (0, Some(0));
            while let Some(from) = next.filter(|_| number < 50_000) {
                let batch = divide(&here, there.as_ref(), block, from, MOST);
                for (from, piece) in &batch.parts {
                    let wanted = (number * block, 0x1000 + number * (block + 1), block);
                    assert_eq!((*from, piece.ptr.addr() as u64, piece.len as u64), wanted);
                    number += 1;
                }
                assert_eq!(batch.parts.len() as u64, (MOST as u64).min(count - from / block));
                assert_eq!(batch.next, (number < count).then_some(number * block));
                next = batch.next;
            }
            assert!(number == count || number >= 50_000);
        }
    }
    // A part of more places at the other task than a window has.
    let here = Layout::contiguous(at(0x1000), 3 * WINDOW * 1000);
    let there = Layout::strided(at(0x1000), 1000, 1001, 3 * WINDOW);
    assert_eq!(divide(&here, Some(&there), 1000, 0, 1).parts.len(), 1);
    assert_eq!(divide(&here, Some(&there), 1000, 0, 1).bytes(), here.len());
}

/// A message longer than its places: what has none is left out.
#[test]
fn bytes_without_places_are_left_out() {
    let layout =
        Layout::pieces([(0x1000, 10), (0x2000, 10)].map(|(at, len)| (without_provenance_mut(at), len)));
    let span = Span { layout: Arc::new(layout), skip: 5 };
    let mut runs = Vec::new();
    span.runs((3, 100), |at, len| runs.push((at.addr(), len)));
    assert_eq!(runs, [(0x1008, 2), (0x2000, 10)]);
    assert_eq!(span.select(rest([(2, 4)], 30)).len(), 2 + 9);
}
