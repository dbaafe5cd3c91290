//! Misspelt names of environment variables.

/// Names with more wrong letters than this are other words.
const NEAR: usize = 2;

/// The known name that was meant by one that is not known.
pub(crate) fn misspelt(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if known.contains(&name) { None } else { nearest(name, known) }
}

/// The known name that is spelled most like this, in either case, when it is spelled enough like it.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let distances =
        known.iter().map(|known| (strsim::osa_distance(&name, &known.to_ascii_uppercase()), *known));
    distances.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, known)| known)
}
