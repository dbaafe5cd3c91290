//! What `/proc` says of this process.

/// How many threads are listed.
const LISTED: usize = 32;

/// The threads of this process, as lines.
pub(super) fn threads() -> Vec<String> {
    let own = rustix::thread::gettid().as_raw_pid();
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.retain(|number| *number != own);
    numbers.sort_unstable();
    let mut lines = vec![format!("threads of the process: {}", numbers.len())];
    lines.extend(numbers.iter().take(LISTED).map(|number| {
        let read = |what: &str| {
            std::fs::read_to_string(format!("/proc/self/task/{number}/{what}")).unwrap_or_default()
        };
        let stat = read("stat");
        // The name may hold anything and ends at the last bracket.
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).unwrap_or("?");
        format!("  {number} {}: state {state}", read("comm").trim())
    }));
    if numbers.len() > LISTED {
        lines.push(format!("  and {} more", numbers.len() - LISTED));
    }
    lines
}
