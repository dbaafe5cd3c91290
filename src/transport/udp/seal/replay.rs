//! Which numbers of datagrams were accepted: a sliding window, as RFC 6479 has it. Its bits lie in
//! a circle of words, and moving it clears whole words only.

/// How many words the circle has.
const WORDS: usize = 128;

/// How many bits a word has.
const BITS: u64 = u64::BITS as u64;

/// The numbers that one peer has used in one connection.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The highest number that was accepted; 0 is never used.
    highest: u64,
    /// The bit of number n is bit n mod 64 of word (n / 64) mod [`WORDS`].
    words: Box<[u64; WORDS]>,
}

impl Window {
    /// A number that is below the highest one by less than this is always judged exactly. The
    /// circle's oldest word may be in use in part.
    pub(super) const SPAN: u64 = (WORDS as u64 - 1) * BITS;

    /// A window that has accepted nothing.
    pub(super) fn new() -> Self {
        Self { highest: 0, words: Box::new([0; WORDS]) }
    }

    /// Whether `number` was not accepted before. Of one that is older than the window that is
    /// unknown: `false`. Number 0 is always too old.
    #[inline]
    pub(super) fn is_new(&self, number: u64) -> bool {
        if number > self.highest {
            return true;
        }
        if number == 0 || self.highest - number >= Self::SPAN {
            return false;
        }
        let (word, bit) = place(number);
        self.words[word] & bit == 0
    }

    /// Accepts `number`, if it is new; returns whether it was.
    #[inline]
    pub(super) fn accept(&mut self, number: u64) -> bool {
        let is_new = self.is_new(number);
        if is_new {
            if number > self.highest {
                self.advance(number);
            }
            let (word, bit) = place(number);
            self.words[word] |= bit;
        }
        is_new
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
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    ((number / BITS % WORDS as u64) as usize, 1 << (number % BITS))
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
