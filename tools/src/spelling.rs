//! Misspelt names of environment variables.

use openlapi::config::files::Line;

/// Names with more wrong letters than this are other words.
const NEAR: usize = 2;

/// The known name that was meant by one that is not known.
pub(crate) fn misspelt(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if known.contains(&name) { None } else { nearest(name, known) }
}

/// What is wrong with the name of a setting that begins with MP_; the library has
/// judged the others.
pub(crate) fn unknown_in_file(line: &Line, known: &[&'static str]) -> Option<String> {
    if known.contains(&&*line.name) {
        return None;
    }
    let hint = nearest(&line.name, known).map(|known| format!("; did you mean {known}?")).unwrap_or_default();
    Some(format!("{} is not a variable of poe or LAPI{hint}", line.name))
}

/// The known name that is spelled most like this, in either case, when it is spelled
/// enough like it.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_ascii_uppercase();
    let distances =
        known.iter().map(|known| (strsim::osa_distance(&name, &known.to_ascii_uppercase()), *known));
    distances.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, known)| known)
}
