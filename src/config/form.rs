//! Values with a form of their own.

use super::MAX_TASKS;

/// The other tasks on this machine, from `COUNT[:TASK...]` (the manual's "Standalone setup"):
/// `None` when the text has another form, or lists another number of tasks than it says, or one
/// of them twice.
pub(crate) fn common_tasks(text: &str) -> Option<Vec<u32>> {
    // Byte by byte: each task of a large job reads a list of all others when it starts.
    let mut fields = text.trim_end_matches(':').as_bytes().split(|byte| *byte == b':').map(task_number);
    let count = fields.next()??;
    let mut tasks = Vec::with_capacity(count.min(MAX_TASKS) as usize);
    for task in fields {
        tasks.push(task?);
    }
    let listed = tasks.len();
    if !tasks.is_sorted_by(|one, next| one < next) {
        tasks.sort_unstable();
        tasks.dedup();
    }
    (tasks.len() == listed && listed == count as usize).then_some(tasks)
}

/// A number in decimal digits alone, with blanks around it.
fn task_number(text: &[u8]) -> Option<u32> {
    let digits = text.trim_ascii();
    let step = |number: u32, digit: &u8| {
        let value = digit.wrapping_sub(b'0');
        (value < 10).then(|| number.checked_mul(10)?.checked_add(u32::from(value))).flatten()
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, step) }
}

/// The 16 bytes of 32 hexadecimal digits.
pub fn secret(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// Whether `text` is `@COUNT:A,B[:A,B...]` with COUNT pairs, at least one.
pub(super) fn is_network_statement(text: &str) -> bool {
    let Some((count, pairs)) = text.strip_prefix('@').and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    let is_pair = |pair: &str| {
        let mut sides = pair.split(',');
        sides.by_ref().take(2).filter(|side| !side.trim().is_empty()).count() == 2 && sides.next().is_none()
    };
    pairs.split(':').all(is_pair) && digits(count) == Some(pairs.split(':').count() as u64)
}

/// A number written in decimal digits alone: no sign, no fraction.
pub(super) fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|digit| digit.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Some tasks, or all of them (`None`).
pub(super) fn tasks(text: &str) -> Option<Option<Vec<u32>>> {
    if text.eq_ignore_ascii_case("all") {
        return Some(None);
    }
    let number = |text: &str| digits(text).and_then(|number| u32::try_from(number).ok());
    text.split(',').map(number).collect::<Option<_>>().map(Some)
}

/// The first number of `N` or `N,M`.
pub(super) fn rdma_count(text: &str) -> Option<u32> {
    let (first, second) = text.split_once(',').map_or((text, None), |(first, second)| (first, Some(second)));
    second
        .is_none_or(|second| task_number(second.as_bytes()).is_some())
        .then(|| task_number(first.as_bytes()))?
}

/// A signal by name (with SIG or without, in capitals or not) or number, `None` for the word
/// none; nothing when it is neither, or a signal that cannot have a handler or means that the
/// program is broken.
pub(super) fn report_signal(text: &str) -> Option<Option<i32>> {
    let text = text.to_ascii_uppercase();
    if text == "NONE" {
        return Some(None);
    }
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    let number = match SIGNALS.iter().find(|(known, _)| *known == name) {
        Some((_, number)) => *number,
        None => i32::try_from(digits(&text)?).ok()?,
    };
    // Above the others are those of real time, of which the C library keeps two to itself.
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let usable = SIGNALS.iter().any(|(_, known)| *known == number) || real_time.contains(&number);
    usable.then_some(Some(number))
}

const SIGNALS: &[(&str, i32)] = &[
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("TSTP", libc::SIGTSTP),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
];
