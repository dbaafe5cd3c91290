//! Which numbers of datagrams were accepted: a sliding window, as RFC 6479 has it. Its bits lie in
//! a circle of words, and moving it clears whole words only.

/// How many words the circle has.
const WORDS: usize = 128;

/// How many bits a word has.
const BITS: u64 = u64::BITS as u64;

/// What a window knows of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The number was not accepted before.
    New,
    /// The number was accepted before.
    Before,
    /// The number is older than the window: it may have been accepted before.
    TooOld,
}

/// The numbers that one peer has used in one connection.
#[derive(Clone, Debug)]
pub struct Window {
    /// The highest number that was accepted; 0 is never used.
    highest: u64,
    /// The bit of number n is bit n mod 64 of word (n / 64) mod [`WORDS`].
    words: Box<[u64; WORDS]>,
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl Window {
    /// A number that is below the highest one by less than this is always judged exactly. The
    /// circle's oldest word may be in use in part.
    pub const SPAN: u64 = (WORDS as u64 - 1) * BITS;

    /// A window that has accepted nothing.
    pub fn new() -> Self {
        Self { highest: 0, words: Box::new([0; WORDS]) }
    }

    /// What is known of `number`. Changes nothing. Number 0 is always too old.
    #[inline]
    pub fn look(&self, number: u64) -> Seen {
        if number > self.highest {
            return Seen::New;
        }
        if number == 0 || self.highest - number >= Self::SPAN {
            return Seen::TooOld;
        }
        let (word, bit) = place(number);
        if self.words[word] & bit == 0 { Seen::New } else { Seen::Before }
    }

    /// Accepts `number`, if it is new; returns what was known of it.
    #[inline]
    pub fn accept(&mut self, number: u64) -> Seen {
        let seen = self.look(number);
        if seen == Seen::New {
            if number > self.highest {
                self.advance(number);
            }
            let (word, bit) = place(number);
            self.words[word] |= bit;
        }
        seen
    }

    /// Moves the window to a new highest number.
    #[inline]
    fn advance(&mut self, number: u64) {
        let (old, new) = (self.highest / BITS, number / BITS);
        for word in 1..=(new - old).min(WORDS as u64) {
            self.words[((old + word) % WORDS as u64) as usize] = 0;
        }
        self.highest = number;
    }

    /// The highest number that was accepted; 0 when none was.
    pub fn highest(&self) -> u64 {
        self.highest
    }
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    ((number / BITS % WORDS as u64) as usize, 1 << (number % BITS))
}

#[cfg(test)]
mod tests {
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
        fn accept(&mut self, number: u64) -> Seen {
            if number == 0 || self.highest.checked_sub(number).is_some_and(|age| age >= Window::SPAN) {
                return Seen::TooOld;
            }
            self.highest = self.highest.max(number);
            if self.accepted.insert(number) { Seen::New } else { Seen::Before }
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
                assert_eq!((window.accept(first), model.accept(first)), (Seen::New, Seen::New));
            }
            for step in 0..3_000 {
                let number = next(&mut rng, &model);
                let looked = window.look(number);
                let expected = model.accept(number);
                assert_eq!(looked, expected, "seed {seed}, step {step}, number {number}");
                assert_eq!(window.accept(number), expected, "seed {seed}, step {step}, number {number}");
                assert_eq!(window.highest(), model.highest, "seed {seed}, step {step}");
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
            let accepted: Vec<u64> =
                numbers.iter().copied().filter(|number| window.accept(*number) == Seen::New).collect();
            let again = numbers.iter().filter(|number| window.accept(**number) == Seen::New).count();
            assert_eq!(again, 0, "seed {seed}");
            assert_eq!(accepted.len(), accepted.iter().collect::<BTreeSet<_>>().len(), "seed {seed}");
            assert!(accepted.len() > 10_000, "seed {seed}: {} accepted", accepted.len());
        }
    }
}
