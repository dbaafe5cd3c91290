//! Shows a message once that several tasks write alike: every task finds the same mistake of the user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use openlapi::wire::launcher::WAITING_FOR_TASK;

use openlapi::base::ranges::tasks_named;

/// The lines that are folded: the library's own messages.
const BEGINNING: &[u8] = b"LAPI: ";
/// The number of different lines that are remembered; later ones are all shown.
const MOST: usize = 256;
/// The first characters of a line that a summary shows.
const SHOWN: usize = 72;

/// The messages of all tasks.
#[derive(Default)]
pub(super) struct Fold {
    known: HashMap<Vec<u8>, Known>,
}

#[derive(Default)]
struct Known {
    /// Its place among all lines.
    number: usize,
    /// How often it was shown.
    shown: usize,
    /// How often each task wrote it.
    written: HashMap<usize, usize>,
    /// The tasks whose line was not shown, since the last summary.
    folded: BTreeSet<usize>,
}

impl Fold {
    /// Whether this whole line of `task` is to be shown: not when another task has written it as often before.
    pub(super) fn shows(&mut self, task: usize, line: &[u8]) -> bool {
        let own = format!("LAPI: task {task}: ");
        let key = match line.strip_prefix(own.as_bytes()) {
            Some(rest) => [BEGINNING, &common(rest)].concat(),
            None if line.starts_with(BEGINNING) => line.to_vec(),
            None => return true,
        };
        let number = self.known.len();
        if number >= MOST && !self.known.contains_key(&key) {
            return true;
        }
        let known = self.known.entry(key).or_insert_with(|| Known { number, ..Known::default() });
        let written = known.written.entry(task).or_default();
        *written += 1;
        if *written > known.shown {
            known.shown = *written;
            return true;
        }
        known.folded.insert(task);
        false
    }

    /// Whether there is something to summarize.
    pub(super) fn is_pending(&self) -> bool {
        self.known.values().any(|known| !known.folded.is_empty())
    }

    /// One line for each set of tasks whose lines were not shown.
    pub(super) fn summary(&mut self) -> String {
        let mut groups: BTreeMap<BTreeSet<usize>, Vec<(usize, String)>> = BTreeMap::new();
        for (line, known) in self.known.iter_mut().filter(|(_, known)| !known.folded.is_empty()) {
            let mut text = String::from_utf8_lossy(line).trim_end().to_owned();
            if let Some((end, _)) = text.char_indices().nth(SHOWN) {
                text.truncate(end);
                text += "...";
            }
            groups.entry(std::mem::take(&mut known.folded)).or_default().push((known.number, text));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        for (_, lines) in &mut groups {
            lines.sort_unstable();
        }
        groups.sort_unstable_by_key(|(_, lines)| lines[0].0);
        groups.iter().fold(String::new(), |mut text, (tasks, lines)| {
            let numbers: Vec<usize> = tasks.iter().copied().collect();
            let more = if lines.len() > 1 { format!("{} lines, ", lines.len()) } else { String::new() };
            let _ = writeln!(text, "poe: the same from {} ({more}{})", tasks_named(&numbers), lines[0].1);
            text
        })
    }
}

/// What a line has in common with those of other tasks: when several tasks are late to LAPI_Init, the others wait for different ones of
/// them, and for different numbers of them.
fn common(line: &[u8]) -> Vec<u8> {
    let awaited = || {
        let rest = std::str::from_utf8(line).ok()?.strip_prefix(WAITING_FOR_TASK)?;
        let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let clause = rest.split_once(" (and for ").map_or(rest.trim_end(), |(clause, _)| clause);
        Some(format!("{WAITING_FOR_TASK}N{clause}\n").into_bytes())
    };
    awaited().unwrap_or_else(|| line.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_wait_for_different_tasks_say_so_once() {
        let mut fold = Fold::default();
        let mut shows = |task: usize, rest: &str| {
            fold.shows(task, format!("LAPI: task {task}: {WAITING_FOR_TASK}{rest}\n").as_bytes())
        };
        assert!(shows(0, "900, which has not called LAPI_Init (and for 3 more)"));
        assert!(!shows(1, "77, which has not called LAPI_Init (and for 12 more)"));
        assert!(!shows(5, "8, which has not called LAPI_Init"));
        assert!(shows(7, "9, which has called LAPI_Init, but cannot be reached"));
        assert_eq!(
            fold.summary(),
            "poe: the same from tasks 1, 5 (LAPI: waiting for task N, which has not called LAPI_Init)\n"
        );
    }

    #[test]
    fn a_line_is_shown_as_often_as_one_task_writes_it() {
        let mut fold = Fold::default();
        let wrong: &[u8] = b"LAPI: LAPI_SPIN: \"fast\" is no number\n";
        let shown: Vec<bool> = [2, 0, 1, 1, 0].iter().map(|task| fold.shows(*task, wrong)).collect();
        assert_eq!(shown, [true, false, false, true, false]);
        assert_eq!(
            fold.summary(),
            "poe: the same from tasks 0, 1 (LAPI: LAPI_SPIN: \"fast\" is no number)\n"
        );
        assert!(!fold.is_pending() && fold.summary().is_empty());
        assert!(fold.shows(3, b"a line of the program\n") && fold.shows(4, b"a line of the program\n"));
    }

    #[test]
    fn the_tasks_own_number_makes_no_difference_and_another_one_does() {
        let mut fold = Fold::default();
        for task in 0..1024 {
            let line = format!("LAPI: task {task}: LAPI_Init: no\n");
            assert_eq!(fold.shows(task, line.as_bytes()), task == 0);
            assert_eq!(fold.shows(task, b"LAPI: and why\n"), task == 0);
        }
        assert!(fold.shows(5, b"LAPI: task 4: LAPI_Init: no\n"));
        assert_eq!(fold.summary(), "poe: the same from tasks 1-1023 (2 lines, LAPI: LAPI_Init: no)\n");
    }
}
