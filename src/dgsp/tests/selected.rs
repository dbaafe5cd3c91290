//! Ranges of a layout.

use crate::base::rng::Rng;
use crate::dgsp::Layout;
use std::sync::Arc;

/// The addresses of the bytes of a layout, byte by byte.
fn addresses(layout: &Layout, from: u64, len: u64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut end = None;
    layout.runs(from, len, |at, len| {
        assert_ne!(end, Some(at.addr()), "two runs that touch");
        end = Some(at.addr() + len);
        found.extend(at.addr()..at.addr() + len);
    });
    found
}

#[test]
fn selected_ranges_are_where_the_whole_layout_has_them() {
    let mut rng = Rng::new(4);
    let mut memory = vec![0_u8; 4_000];
    let base = memory.as_mut_ptr();
    for _ in 0..300 {
        let whole = match rng.below(3) {
            0 => Layout::contiguous(base, 300),
            1 => Layout::strided(base, 3, 3 + rng.below(9), 100),
            _ => Layout::pieces((0..40).map(|at| (base.wrapping_add(at * 90), rng.below(15)))),
        };
        let mut ranges = Vec::new();
        let mut from = 0;
        while from < 310 {
            from += rng.below(60);
            let len = rng.below(40);
            ranges.push((from, len));
            from += len;
        }
        let every = addresses(&whole, 0, u64::MAX);
        let wanted: Vec<usize> = ranges
            .iter()
            .flat_map(|&(from, len)| every.iter().skip(from as usize).take(len as usize).copied())
            .collect();
        let selected = Layout::selected(Arc::new(whole), ranges);
        assert_eq!(selected.len(), wanted.len() as u64);
        assert_eq!(addresses(&selected, 0, u64::MAX), wanted);
        assert!(selected.run_count() <= wanted.len() as u64);
        if let Some((at, len)) = selected.as_contiguous() {
            assert!(wanted.iter().copied().eq(at.addr()..at.addr() + len as usize));
        }
        let from = rng.below(wanted.len() as u64 + 1);
        let len = rng.below(wanted.len() as u64 + 1 - from) as usize;
        let part = &wanted[from as usize..][..len];
        assert_eq!(addresses(&selected, from, len as u64), part);
        memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7) as u8);
        let mut out = vec![0_u8; len];
        // SAFETY: all of the layout is in `memory`, and `out` is long enough.
        unsafe { selected.gather(from, len, out.as_mut_ptr()) };
        let at = |address: usize| address - base.addr();
        assert!(part.iter().zip(&out).all(|(&address, &byte)| memory[at(address)] == byte));
        let sent: Vec<u8> = (0..len).map(|at| 1 + at as u8 % 200).collect();
        memory.fill(0);
        // SAFETY: all of the layout is in `memory`, and `sent` is long enough.
        unsafe { selected.scatter(from, sent.as_ptr(), len) };
        assert!(part.iter().zip(&sent).all(|(&address, &byte)| memory[at(address)] == byte));
        assert_eq!(memory.iter().filter(|&&byte| byte != 0).count(), len);
    }
}

#[test]
fn ranges_of_many_pieces_take_no_memory_for_the_pieces() {
    let whole = Arc::new(Layout::strided(std::ptr::null_mut(), 1, 2, 1 << 50));
    let selected = Layout::selected(whole, [(0, 1 << 40), (1 << 41, 1 << 40)]);
    assert_eq!(selected.len(), 1 << 41);
    assert_eq!(addresses(&selected, (1 << 40) - 1, 2), [(2 << 40) - 2, 2 << 41]);
}
