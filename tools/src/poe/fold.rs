//! Shows a message once that several tasks write alike: every task finds the same
//! mistake of the user.

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
    /// What each task has written one after another, not decided yet.
    blocks: BTreeMap<usize, Vec<Vec<u8>>>,
}

#[derive(Default)]
struct Known {
    /// The line's place among all lines.
    number: usize,
    /// How often it was shown.
    shown: usize,
    /// How often each task wrote it.
    written: HashMap<usize, usize>,
    /// The tasks whose line was not shown, since the last summary.
    folded: BTreeSet<usize>,
}

impl Fold {
    /// Takes a whole line of `task`, if it is one that is folded. It is decided on with the lines
    /// before and after it: of a stack that differs in one line from that of another task all
    /// lines are shown.
    pub(super) fn takes(&mut self, task: usize, line: &[u8]) -> bool {
        let takes = key(task, line).is_some();
        if takes {
            self.blocks.entry(task).or_default().push(line.to_vec());
        }
        takes
    }

    /// The tasks that have lines which are not decided on.
    pub(super) fn open(&self) -> Vec<usize> {
        self.blocks.keys().copied().collect()
    }

    /// What is to be shown of the lines that the task has written one after another: none, when
    /// other tasks have written each of them as often before.
    pub(super) fn close(&mut self, task: usize) -> Vec<u8> {
        let lines = self.blocks.remove(&task).unwrap_or_default();
        let keys: Vec<Vec<u8>> = lines.iter().filter_map(|line| key(task, line)).collect();
        let mut is_new = false;
        for key in &keys {
            let number = self.known.len();
            if number >= MOST && !self.known.contains_key(key) {
                is_new = true;
                continue;
            }
            let known = self.known.entry(key.clone()).or_insert_with(|| Known { number, ..Known::default() });
            let written = known.written.entry(task).or_default();
            *written += 1;
            is_new |= *written > known.shown;
        }
        for key in &keys {
            let Some(known) = self.known.get_mut(key) else { continue };
            if is_new {
                known.shown = known.shown.max(known.written[&task]);
            } else {
                known.folded.insert(task);
            }
        }
        if is_new { lines.concat() } else { Vec::new() }
    }

    /// Whether there is something to summarize.
    pub(super) fn is_pending(&self) -> bool {
        !self.blocks.is_empty() || self.known.values().any(|known| !known.folded.is_empty())
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

/// What a line of the library has in common with the same line of other tasks; `None`: it is not
/// the library's.
fn key(task: usize, line: &[u8]) -> Option<Vec<u8>> {
    let own = format!("LAPI: task {task}: ");
    match line.strip_prefix(own.as_bytes()) {
        Some(rest) => Some([BEGINNING, &common(rest)].concat()),
        None => line.starts_with(BEGINNING).then(|| line.to_vec()),
    }
}

/// What a line has in common with those of other tasks: when several tasks are late to LAPI_Init,
/// the others wait for different ones of them, and for different numbers of them.
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

    /// Whether a line that stands alone is shown.
    fn shows(fold: &mut Fold, task: usize, line: &[u8]) -> bool {
        !fold.takes(task, line) || !fold.close(task).is_empty()
    }

    #[test]
    fn a_stack_that_differs_in_one_line_is_shown_whole() {
        let mut fold = Fold::default();
        let mut block = |task: usize, middle: &str| {
            for line in ["signal 11", middle, "#1 main"] {
                assert!(fold.takes(task, format!("LAPI: task {task}: {line}\n").as_bytes()));
            }
            String::from_utf8(fold.close(task)).expect("a text").lines().count()
        };
        assert_eq!([block(0, "#0 f"), block(1, "#0 f"), block(2, "#0 g"), block(3, "#0 g")], [3, 0, 3, 0]);
        assert!(fold.summary().starts_with("poe: the same from tasks 1, 3 (2 lines, LAPI: signal 11)\n"));
    }

    #[test]
    fn tasks_that_wait_for_different_tasks_say_so_once() {
        let mut fold = Fold::default();
        let mut is_shown = |task: usize, rest: &str| {
            shows(&mut fold, task, format!("LAPI: task {task}: {WAITING_FOR_TASK}{rest}\n").as_bytes())
        };
        assert!(is_shown(0, "900, which has not called LAPI_Init (and for 3 more)"));
        assert!(!is_shown(1, "77, which has not called LAPI_Init (and for 12 more)"));
        assert!(!is_shown(5, "8, which has not called LAPI_Init"));
        assert!(is_shown(7, "9, which has called LAPI_Init, but cannot be reached"));
        assert_eq!(
            fold.summary(),
            "poe: the same from tasks 1, 5 (LAPI: waiting for task N, which has not called LAPI_Init)\n"
        );
    }

    #[test]
    fn a_line_is_shown_as_often_as_one_task_writes_it() {
        let mut fold = Fold::default();
        let wrong: &[u8] = b"LAPI: LAPI_SPIN: \"fast\" is no number\n";
        let shown: Vec<bool> = [2, 0, 1, 1, 0].iter().map(|task| shows(&mut fold, *task, wrong)).collect();
        assert_eq!(shown, [true, false, false, true, false]);
        assert_eq!(
            fold.summary(),
            "poe: the same from tasks 0, 1 (LAPI: LAPI_SPIN: \"fast\" is no number)\n"
        );
        assert!(!fold.is_pending() && fold.summary().is_empty());
        assert!(
            shows(&mut fold, 3, b"a line of the program\n")
                && shows(&mut fold, 4, b"a line of the program\n")
        );
    }

    #[test]
    fn the_tasks_own_number_makes_no_difference_and_another_one_does() {
        let mut fold = Fold::default();
        for task in 0..1024 {
            let line = format!("LAPI: task {task}: LAPI_Init: no\n");
            assert_eq!(shows(&mut fold, task, line.as_bytes()), task == 0);
            assert_eq!(shows(&mut fold, task, b"LAPI: and why\n"), task == 0);
        }
        assert!(shows(&mut fold, 5, b"LAPI: task 4: LAPI_Init: no\n"));
        assert_eq!(fold.summary(), "poe: the same from tasks 1-1023 (2 lines, LAPI: LAPI_Init: no)\n");
    }
}
