//! A seeded generator for faults and tests.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
//! It is written out here, because a seed that was printed by a failing run must give the same run
//! with every later version: a crate may change its sequence. Not for secrets.

/// A generator: the same seed gives the same numbers, always.
#[derive(Clone, Debug)]
pub struct Rng(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// The generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of many unrelated generators of the same seed: one for each task of a job, say.
    pub const fn stream(seed: u64, number: u64) -> Self {
        Self(mix(seed ^ mix(number.wrapping_add(1).wrapping_mul(GOLDEN))))
    }

    /// 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number from 0 up to, not including, `bound`. 0 when `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product is even enough: a bias of bound / 2^64.
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Whether something of probability `p` happens: never for 0 and below, always for 1 and above.
    pub fn chance(&mut self, p: f64) -> bool {
        let unit = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        unit < p
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_the_published_one() {
        let mut rng = Rng::new(1_234_567);
        let got: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            got,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn below_covers_its_range_and_no_more() {
        let mut rng = Rng::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 800), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn chance_keeps_its_ends() {
        let mut rng = Rng::new(2);
        assert!((0..1_000).all(|_| !rng.chance(0.0)));
        assert!((0..1_000).all(|_| rng.chance(1.0)));
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
    }

    #[test]
    fn streams_differ() {
        let firsts: std::collections::BTreeSet<u64> =
            (0..1_000).map(|n| Rng::stream(42, n).next_u64()).collect();
        assert_eq!(firsts.len(), 1_000);
    }
}
