//! What is measured, row after row: made from the options by task 0, and kept with the results.

use serde::{Deserialize, Serialize};

use super::catalog::{self, Operation, Test};
use super::error::{Failure, Result};
use super::options::{MOST_IN_FLIGHT, MOST_ITERATIONS, Mode, Options, Pairs};
use super::sizes;

/// The size of a block of vectors, and of a user header, when none is given.
const BLOCK: u64 = 256;
const HEADER: u64 = 32;
/// Operations in flight when no number is given, and the bytes that they have at most.
const WINDOW: u64 = 64;
const WINDOW_BYTES: u64 = 16 << 20;
/// Light-weight messages are shorter.
const LIGHT: u64 = 128;
/// A message whose handler reads it in place arrives in one packet; every transport has
/// packets of this size.
const READ: u64 = 1024;
/// What a put before a fence, and a variable of LAPI_Rmw64, have when no sizes are given.
const WORD: u64 = 8;

/// All rows, and what they have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) mode: Mode,
    pub(super) pairs: u32,
    pub(super) block: u64,
    pub(super) header: u64,
    pub(super) check: bool,
    pub(super) interrupt: Option<bool>,
    pub(super) error_check: Option<bool>,
    /// Times a cache line before and after each row.
    #[serde(default)]
    pub(super) cache_line: bool,
    pub(super) rows: Vec<Row>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) test: String,
    pub(super) size: u64,
    pub(super) iterations: u64,
    pub(super) warmup: u64,
    pub(super) window: u64,
}

impl Row {
    /// The test of this row; an error when a file names one that does not exist.
    pub(super) fn test(&self) -> Result<&'static Test> {
        Test::named(&self.test).ok_or_else(|| Failure::usage(format!("there is no test {}", self.test)))
    }

    /// Takes the numbers that the options have. They are checked later: a file may have any.
    fn change(&mut self, options: &Options) -> Result<()> {
        if [options.iterations, options.warmup, options.window].iter().all(Option::is_none) {
            return Ok(());
        }
        if !self.test()?.is_latency() {
            self.window = options.window.unwrap_or(self.window);
        }
        let whole = |count: u64| count.checked_next_multiple_of(self.window).unwrap_or(count);
        self.iterations = whole(options.iterations.unwrap_or(self.iterations));
        let warmup = options.iterations.map_or(self.warmup, |_| self.iterations / 10);
        self.warmup = whole(options.warmup.unwrap_or(warmup));
        Ok(())
    }

    /// Whether its numbers are those that options can ask for: a file may have any.
    fn is_possible(&self, test: &Test) -> bool {
        let has_size = match test.operation {
            Operation::Gfence => self.size == 0,
            _ => (1..=sizes::MOST).contains(&self.size) && takes(test, self.size),
        };
        // They are rounded up to whole windows.
        let most = MOST_ITERATIONS + MOST_IN_FLIGHT;
        has_size
            && (1..=MOST_IN_FLIGHT).contains(&self.window)
            && (self.window..=most).contains(&self.iterations)
            && self.warmup <= most
    }
}

impl Plan {
    /// The rows that the options ask for in a job of `tasks` tasks.
    pub(super) fn of(options: &Options, tasks: u32) -> Result<Self> {
        let tests = match &options.tests {
            Some(tests) => tests.clone(),
            None => catalog::choose(catalog::DEFAULT)?,
        };
        let mut plan = Self {
            mode: options.mode.unwrap_or_default(),
            pairs: 1,
            block: options.block.unwrap_or(BLOCK),
            header: options.header.unwrap_or(HEADER),
            check: options.check,
            interrupt: options.interrupt,
            error_check: options.error_check,
            cache_line: options.cache_line,
            rows: Vec::new(),
        };
        for test in tests {
            for size in sizes_of(test, options.sizes.as_deref())? {
                plan.rows.push(row(test, size, options));
            }
        }
        plan.fit(options.pairs.unwrap_or(Pairs::Count(1)), tasks)?;
        Ok(plan)
    }

    /// This plan's rows again, in a job of `tasks` tasks, each in the way that the options ask for.
    pub(super) fn again(mut self, options: &Options, tasks: u32) -> Result<Self> {
        self.mode = options.mode.unwrap_or(self.mode);
        self.block = options.block.unwrap_or(self.block);
        self.header = options.header.unwrap_or(self.header);
        for row in &mut self.rows {
            row.change(options)?;
        }
        self.check |= options.check;
        self.interrupt = options.interrupt.or(self.interrupt);
        self.error_check = options.error_check.or(self.error_check);
        self.cache_line |= options.cache_line;
        let pairs = options.pairs.unwrap_or(Pairs::Count(self.pairs));
        self.fit(pairs, tasks)?;
        Ok(self)
    }

    /// Sets the number of pairs, and refuses what cannot be measured.
    fn fit(&mut self, pairs: Pairs, tasks: u32) -> Result<()> {
        if tasks < 2 {
            return Err(Failure::usage(
                "this is a job of one task, and there is nothing to measure between: poe lapi_perf ... -procs 2",
            ));
        }
        let most = if self.mode == Mode::Incast { tasks - 1 } else { tasks / 2 };
        self.pairs = match pairs {
            Pairs::All => most,
            Pairs::Count(count) if (1..=most).contains(&count) => count,
            Pairs::Count(count) => {
                let what = match (self.mode, most) {
                    (Mode::Incast, 1) => "origin beside task 0",
                    (Mode::Incast, _) => "origins beside task 0",
                    (_, 1) => "pair",
                    _ => "pairs",
                };
                return Err(Failure::usage(format!("-p {count}: a job of {tasks} tasks has {most} {what}")));
            }
        };
        if self.cache_line && (self.pairs > 1 || self.mode == Mode::Incast) {
            return Err(Failure::usage(
                "--cache-line: a cache line is timed between the two tasks of one pair (-p 1, without -m incast)",
            ));
        }
        for (what, bytes) in [("a block", self.block), ("a user header", self.header)] {
            if !(1..=sizes::MOST).contains(&bytes) {
                return Err(Failure::usage(format!("{what} of {bytes} bytes cannot be measured")));
            }
        }
        for row in &self.rows {
            let test = row.test()?;
            if !row.is_possible(test) {
                let Row { size, iterations, warmup, window, .. } = row;
                return Err(Failure::usage(format!(
                    "{}: {iterations} operations of {size} bytes, {window} at once, after {warmup} others cannot be measured",
                    test.name
                )));
            }
            if self.mode == Mode::Incast && !test.takes_incast() {
                return Err(Failure::usage(format!(
                    "{}: the target sends to one origin, and -m incast has several; tests whose target takes no part: put_cmpl, put_cbw, \
                     get, get_bw, am_cmpl, those of LAPI_Rmw, fence",
                    test.name
                )));
            }
            if test.is_strided() && row.size > self.block && row.size % self.block != 0 {
                return Err(Failure::usage(format!(
                    "{}: a strided vector has blocks of one size, and {} bytes are not a multiple of {} (-b)",
                    test.name, row.size, self.block
                )));
            }
        }
        Ok(())
    }

    /// What one operation reaches over, at most.
    pub(super) fn extent(&self) -> u64 {
        let scattered = |row: &Row| row.test().is_ok_and(Test::is_scattered);
        self.rows
            .iter()
            .map(|row| if scattered(row) { row.size * 2 } else { row.size })
            .max()
            .unwrap_or(0)
            .max(WORD)
    }

    /// Whether any row has a user header.
    pub(super) fn has_header(&self) -> bool {
        self.rows.iter().any(|row| row.test().is_ok_and(|test| test.operation == Operation::AmHeader))
    }
}

/// Whether an operation of the test can have data of this size.
fn takes(test: &Test, size: u64) -> bool {
    match test.operation {
        Operation::Rmw(_) => [4, 8].contains(&size),
        Operation::AmLight => size < LIGHT,
        Operation::AmRead => size <= READ,
        Operation::PutSeen => size > 0 && size.is_multiple_of(WORD),
        _ => true,
    }
}

/// The sizes of a test, of those given.
fn sizes_of(test: &Test, given: Option<&[u64]>) -> Result<Vec<u64>> {
    let all = || given.map_or_else(|| sizes::list("-s", sizes::DEFAULT), |given| Ok(given.to_vec()));
    let those = |what: &str| {
        let fitting: Vec<u64> = all()?.into_iter().filter(|size| takes(test, *size)).collect();
        if fitting.is_empty() {
            return Err(Failure::usage(format!("{}: none of the sizes (-s) is {what} bytes", test.name)));
        }
        Ok(fitting)
    };
    match test.operation {
        Operation::Gfence => Ok(vec![0]),
        // Sizes are about data, and most lists have none for these two.
        Operation::Rmw(_) => {
            let words: Vec<u64> =
                given.unwrap_or(&[4, 8]).iter().copied().filter(|size| takes(test, *size)).collect();
            Ok(if words.is_empty() { vec![WORD] } else { words })
        }
        Operation::Fence => Ok(given.map_or(vec![WORD], <[u64]>::to_vec)),
        Operation::AmLight => those(&format!("below {LIGHT}")),
        Operation::AmRead => those(&format!("at most {READ}")),
        Operation::PutSeen => those(&format!("a multiple of {WORD}")),
        _ => all(),
    }
}

fn row(test: &Test, size: u64, options: &Options) -> Row {
    let window = match test.is_latency() {
        true => 1,
        false => options.window.unwrap_or(WINDOW.min((WINDOW_BYTES / size.max(1)).max(1))),
    };
    let iterations = options.iterations.unwrap_or(match size {
        0..=8192 => 10_000,
        8193..=65_536 => 2_000,
        65_537..=1_048_576 => 500,
        _ => 100,
    });
    // A window is measured as a whole.
    let iterations = iterations.next_multiple_of(window);
    let warmup = options.warmup.unwrap_or(iterations / 10).next_multiple_of(window);
    Row { test: test.name.to_owned(), size, iterations, warmup, window }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(tests: &str, change: impl Fn(&mut Options), tasks: u32) -> Result<Plan> {
        let mut options =
            Options { tests: Some(catalog::choose(tests).expect("tests")), ..Options::default() };
        change(&mut options);
        Plan::of(&options, tasks)
    }

    #[test]
    fn every_test_has_rows() {
        let plan = plan("all", |_| {}, 2).expect("a plan");
        for test in catalog::TESTS {
            let rows: Vec<&Row> = plan.rows.iter().filter(|row| row.test == test.name).collect();
            assert!(!rows.is_empty(), "{}", test.name);
            assert!(rows.iter().all(|row| row.iterations % row.window == 0 && row.warmup % row.window == 0));
        }
    }

    #[test]
    fn what_is_given_counts() {
        let plan = plan(
            "put_bw,add",
            |options| {
                options.sizes = Some(vec![4, 1 << 20]);
                (options.iterations, options.warmup, options.window) = (Some(10), Some(0), Some(4));
            },
            8,
        )
        .expect("a plan");
        let found: Vec<_> = plan
            .rows
            .iter()
            .map(|row| (&*row.test, row.size, row.iterations, row.warmup, row.window))
            .collect();
        assert_eq!(found, [("put_bw", 4, 12, 0, 4), ("put_bw", 1 << 20, 12, 0, 4), ("add_lat", 4, 10, 0, 1)]);
    }

    #[test]
    fn pairs_are_those_that_the_job_has() {
        let pairs = |mode, pairs, tasks| {
            plan("get", |options| (options.mode, options.pairs) = (Some(mode), Some(pairs)), tasks)
                .map(|plan| plan.pairs)
        };
        assert_eq!(pairs(Mode::Far, Pairs::All, 5), Ok(2));
        assert_eq!(pairs(Mode::Near, Pairs::Count(2), 4), Ok(2));
        assert_eq!(pairs(Mode::Incast, Pairs::All, 5), Ok(4));
        for (mode, count, tasks, said) in [
            (Mode::Far, 3, 4, "-p 3: a job of 4 tasks has 2 pairs"),
            (Mode::Incast, 4, 4, "-p 4: a job of 4 tasks has 3 origins"),
            (Mode::Far, 1, 1, "a job of one task"),
        ] {
            let message = pairs(mode, Pairs::Count(count), tasks).expect_err(said).to_string();
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn the_rows_of_a_file_are_measured_as_the_options_say() {
        let old = |change: fn(&mut Options)| {
            let old = plan("put_lat,put_bw,amh", |options| options.sizes = Some(vec![8]), 8).expect("a plan");
            let mut options = Options::default();
            change(&mut options);
            old.again(&options, 8)
        };
        let rows = |change: fn(&mut Options)| -> Vec<_> {
            let plan = old(change).expect("it can be measured");
            plan.rows.iter().map(|row| (row.iterations, row.warmup, row.window)).collect()
        };
        let (lat, bw) = ((10_000, 1000, 1), (10_048, 1024, 64));
        assert_eq!(rows(|_| {}), [lat, bw, lat]);
        assert_eq!(
            rows(|options| options.iterations = Some(100)),
            [(100, 10, 1), (128, 64, 64), (100, 10, 1)]
        );
        assert_eq!(rows(|options| options.window = Some(10)), [lat, (10_050, 1030, 10), lat]);
        let both = rows(|options| (options.iterations, options.warmup) = (Some(100), Some(0)));
        assert_eq!(both, [(100, 0, 1), (128, 0, 64), (100, 0, 1)]);
        let plan = old(|options| {
            (options.block, options.header) = (Some(8), Some(16));
            (options.mode, options.pairs) = (Some(Mode::Near), Some(Pairs::All));
        })
        .expect("it can be measured");
        assert_eq!((plan.block, plan.header, plan.mode, plan.pairs), (8, 16, Mode::Near, 4));
        let message = old(|options| options.pairs = Some(Pairs::Count(5))).expect_err("5 of 8").to_string();
        assert!(message.contains("-p 5: a job of 8 tasks has 4 pairs"), "{message}");
    }

    /// A file may be of anybody.
    #[test]
    fn numbers_of_a_file_that_cannot_be_measured_are_refused() {
        let whole = plan("all", |_| {}, 2).expect("a plan");
        whole.clone().again(&Options::default(), 2).expect("it has been measured");
        let changed = |tests: &str, change: &dyn Fn(&mut Plan)| {
            let mut plan = plan(tests, |_| {}, 2).expect("a plan");
            change(&mut plan);
            plan.again(&Options::default(), 2).expect_err(tests).to_string()
        };
        let row = |tests: &str, change: fn(&mut Row)| changed(tests, &|plan| change(&mut plan.rows[0]));
        for said in [
            row("put_lat", |row| row.window = 0),
            row("put_bw", |row| row.window = u64::MAX),
            row("put_bw", |row| row.iterations = 0),
            row("put_bw", |row| row.iterations = row.window - 1),
            row("put_lat", |row| row.iterations = u64::MAX),
            row("put_lat", |row| row.warmup = u64::MAX),
            row("put_lat", |row| row.size = 0),
            row("putv", |row| row.size = u64::MAX),
            row("gfence", |row| row.size = 8),
            row("add", |row| row.size = 16),
            row("amlw", |row| row.size = 128),
            row("amread", |row| row.size = 1025),
            row("put_seen", |row| row.size = 12),
            changed("putv", &|plan| plan.block = 0),
            changed("amh", &|plan| plan.header = 0),
        ] {
            assert!(said.contains("cannot be measured"), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let said =
            |tests: &str, change: fn(&mut Options)| plan(tests, change, 4).expect_err(tests).to_string();
        assert!(
            said("put_lat", |options| options.mode = Some(Mode::Incast))
                .contains("put_lat: the target sends")
        );
        assert!(said("putv", |options| options.sizes = Some(vec![1000])).contains("not a multiple of 256"));
        assert!(said("amlw", |options| options.sizes = Some(vec![128])).contains("below 128"));
        assert!(said("amread", |options| options.sizes = Some(vec![1025])).contains("at most 1024"));
        assert!(said("put_seen", |options| options.sizes = Some(vec![0, 7, 12])).contains("a multiple of 8"));
        plan("putiov,dgsp,putv", |options| (options.sizes, options.block) = (Some(vec![1000]), Some(500)), 4)
            .expect("it fits");
    }
}
