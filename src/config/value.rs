//! Reading one value: its form, its range, and the sentence that says what is wrong with it.

use super::Env;
use super::form::digits;
use super::table::{ValueKind, Variable, variable};
use crate::error::{Error, Result};

/// The value of `name` without blanks around it; `None` when it is unset or blank.
pub(crate) fn given(env: &Env<'_>, name: &str) -> Option<String> {
    let value = env(name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns an error when `variable` is set to a value that it does not accept.
pub(super) fn check(variable: &Variable, env: &Env<'_>) -> Result<()> {
    match given(env, variable.name) {
        Some(text) if !accepts(variable.kind, &text) => Err(wrong(variable, &text)),
        _ => Ok(()),
    }
}

/// The number that `name` is set to, within its range; `None` when it is not set.
pub(crate) fn number(env: &Env<'_>, name: &str) -> Result<Option<u64>> {
    let variable = known(name);
    match given(env, name) {
        None => Ok(None),
        Some(text) => in_range(variable.kind, &text).map(Some).ok_or_else(|| wrong(variable, &text)),
    }
}

/// The number that holds for `name`: what it is set to, or its default.
pub(super) fn setting(env: &Env<'_>, name: &str) -> Result<u64> {
    let variable = known(name);
    let text = given(env, name).unwrap_or_else(|| variable.default.to_owned());
    in_range(variable.kind, &text).ok_or_else(|| wrong(variable, &text))
}

/// [`setting`] for a variable whose range ends below 2³².
pub(super) fn small(env: &Env<'_>, name: &str) -> Result<u32> {
    let number = setting(env, name)?;
    u32::try_from(number).map_err(|_| wrong(known(name), &number.to_string()))
}

/// The number that holds for `name`, or `None` for its word.
pub(super) fn small_or_word(env: &Env<'_>, name: &str) -> Result<Option<u32>> {
    let variable = known(name);
    let text = given(env, name).unwrap_or_else(|| variable.default.to_owned());
    match variable.kind {
        ValueKind::WordOrInteger(word, ..) if text.eq_ignore_ascii_case(word) => Ok(None),
        _ => small(env, name).map(Some),
    }
}

/// The word that holds for `name`, spelled as in the table.
pub(super) fn word(env: &Env<'_>, name: &str) -> Result<&'static str> {
    let variable = known(name);
    let text = given(env, name).unwrap_or_else(|| variable.default.to_owned());
    find_word(variable.kind, &text).ok_or_else(|| wrong(variable, &text))
}

/// The text that holds for `name`, in its form.
pub(super) fn text(env: &Env<'_>, name: &str) -> Result<String> {
    let variable = known(name);
    check(variable, env)?;
    Ok(given(env, name).unwrap_or_else(|| variable.default.to_owned()))
}

/// Whether `yes` holds for `name`.
pub(super) fn yes(env: &Env<'_>, name: &str) -> Result<bool> {
    Ok(word(env, name)? == "yes")
}

/// Whether `name` is set to anything but `no`.
pub(super) fn switched_on(env: &Env<'_>, name: &str) -> bool {
    given(env, name).is_some_and(|text| !text.eq_ignore_ascii_case("no"))
}

fn accepts(kind: ValueKind, text: &str) -> bool {
    match kind {
        ValueKind::Word(_) | ValueKind::ExactWord(_) => find_word(kind, text).is_some(),
        ValueKind::Integer(..) | ValueKind::Size(..) | ValueKind::SizeFrom(..) => {
            in_range(kind, text).is_some()
        }
        ValueKind::WordOrInteger(word, ..) => {
            text.eq_ignore_ascii_case(word) || in_range(kind, text).is_some()
        }
        ValueKind::Form(_, is_form) => is_form(text),
        ValueKind::Switch | ValueKind::Text | ValueKind::LauncherNumber | ValueKind::LauncherText => true,
    }
}

fn find_word(kind: ValueKind, text: &str) -> Option<&'static str> {
    match kind {
        ValueKind::Word(words) => words.iter().find(|word| word.eq_ignore_ascii_case(text)).copied(),
        ValueKind::ExactWord(words) => words.iter().find(|word| **word == text).copied(),
        _ => None,
    }
}

fn in_range(kind: ValueKind, text: &str) -> Option<u64> {
    let (number, min, max) = match kind {
        ValueKind::Integer(min, max) | ValueKind::WordOrInteger(_, min, max) => (digits(text)?, min, max),
        ValueKind::Size(min, max) => (size(text)?, min, max),
        ValueKind::SizeFrom(min, max) => match text.strip_prefix('-') {
            Some(number) => (size(number).map(|_| min)?, min, max),
            None => (size(text)?.max(min), min, max),
        },
        // What it may be, only the other variables of that launcher can say.
        ValueKind::LauncherNumber => (digits(text)?, 0, u64::from(u32::MAX)),
        _ => return None,
    };
    (min..=max).contains(&number).then_some(number)
}

fn size(text: &str) -> Option<u64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits(number.trim_end())?.checked_mul(unit)
}

fn wrong(variable: &Variable, text: &str) -> Error {
    let is =
        if variable.secret { "has a wrong value (not shown)".to_owned() } else { format!("is \"{text}\"") };
    Error::new(variable.code, format!("{} {is}; allowed: {}", variable.name, variable.kind))
}

fn known(name: &str) -> &'static Variable {
    variable(name).unwrap_or_else(|| panic!("{name} is read but not in the table of variables"))
}
