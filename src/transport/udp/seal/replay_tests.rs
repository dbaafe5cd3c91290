use super::*;
use crate::base::rng::Rng;
use std::collections::BTreeSet;

/// A model of the window without bound: what was accepted is never forgotten.
#[derive(Default)]
struct Model {
    highest: u64,
    accepted: BTreeSet<u64>,
}

impl Model {
    fn accept(&mut self, number: u64) -> bool {
        if number == 0 || self.highest.checked_sub(number).is_some_and(|age| age >= Window::SPAN) {
            return false;
        }
        self.highest = self.highest.max(number);
        self.accepted.insert(number)
    }
}

/// Numbers near the highest one, at the edges of the window, far ahead, and repeated ones.
fn next(rng: &mut Rng, model: &Model) -> u64 {
    let highest = model.highest;
    match rng.below(16) {
        0 => highest.saturating_add(1 + rng.below(4 * Window::SPAN)),
        1 => highest.saturating_add(1 + rng.below(BITS * 2)),
        2 => highest.saturating_sub((Window::SPAN + rng.below(5)).saturating_sub(2)),
        3 => highest.saturating_sub(rng.below(2 * Window::SPAN)),
        4 => rng.below(3),
        5 => highest,
        6..10 => highest.saturating_sub(rng.below(100)),
        _ => highest.saturating_add(1),
    }
}

#[test]
fn it_accepts_what_a_model_accepts() {
    for seed in 0..200 {
        let mut rng = Rng::stream(0x5eed, seed);
        let (mut window, mut model) = (Window::new(), Model::default());
        // Some start so high that numbers end.
        if seed % 8 == 7 {
            let first = u64::MAX - rng.below(Window::SPAN);
            assert_eq!((window.accept(first), model.accept(first)), (true, true));
        }
        for step in 0..3_000 {
            let number = next(&mut rng, &model);
            let looked = window.is_new(number);
            let expected = model.accept(number);
            assert_eq!(looked, expected, "seed {seed}, step {step}, number {number}");
            assert_eq!(window.accept(number), expected, "seed {seed}, step {step}, number {number}");
            assert_eq!(window.highest, model.highest, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn nothing_is_accepted_twice_in_whatever_order() {
    for seed in 0..20 {
        let mut rng = Rng::stream(0x0dd, seed);
        let mut numbers: Vec<u64> = (1..=20_000).collect();
        // Neighbours far apart change places.
        for at in 0..numbers.len() {
            let other = (at + rng.below(3 * Window::SPAN / 4) as usize).min(numbers.len() - 1);
            numbers.swap(at, other);
        }
        let mut window = Window::new();
        let accepted: Vec<u64> = numbers.iter().copied().filter(|number| window.accept(*number)).collect();
        let again = numbers.iter().filter(|number| window.accept(**number)).count();
        assert_eq!(again, 0, "seed {seed}");
        assert_eq!(accepted.len(), accepted.iter().collect::<BTreeSet<_>>().len(), "seed {seed}");
        assert!(accepted.len() > 10_000, "seed {seed}: {} accepted", accepted.len());
    }
}
