//! Short texts for lists of numbers: of tasks, and of processors.

/// How many ranges of a long list are written.
const MOST: usize = 16;

/// `0, 2-7, 12`, of numbers in ascending order; of a long list the beginning, and how many
/// more there are.
pub fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts: Vec<String> = runs
        .iter()
        .take(MOST)
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    let more = match runs.iter().skip(MOST).map(|(first, last)| last - first + 1).sum::<usize>() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    texts.join(", ") + &more
}

/// `task 3`, or `tasks 0, 2-7`.
pub fn tasks_named(tasks: &[usize]) -> String {
    format!("task{} {}", if tasks.len() == 1 { "" } else { "s" }, ranges(tasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short() {
        assert_eq!(tasks_named(&[3]), "task 3");
        assert_eq!(tasks_named(&[3, 4]), "tasks 3, 4");
        assert_eq!(tasks_named(&[0, 1, 3, 4, 5, 9]), "tasks 0, 1, 3-5, 9");
        let odd: Vec<usize> = (0..100).map(|number| 2 * number).collect();
        assert!(ranges(&odd).ends_with(", 30 and 84 more"));
        assert_eq!(ranges(&[]), "");
    }
}
