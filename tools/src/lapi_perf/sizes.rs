//! Sizes as they are written: 8, 4K, 1M, and lists and ranges of them.

use super::error::{Failure, Result};

/// The largest size of a message here: what a test allocates is a multiple of it.
pub(super) const MOST: u64 = 1 << 40;

/// What runs when no sizes are given.
pub(super) const DEFAULT: &str = "8:2M:8";

/// A number of bytes; K, M and G (or KiB, MiB, GiB) are powers of 1024.
pub(super) fn bytes(flag: &str, text: &str) -> Result<u64> {
    let wrong = || {
        Failure::usage(format!(
            "{flag}: \"{text}\" is not a size; a size is a number of bytes, as 8, 4K or 1M"
        ))
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let size =
        text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    match size {
        0 => Err(Failure::usage(format!("{flag}: a size of 0; the smallest message has 1 byte"))),
        1..=MOST => Ok(size),
        _ => Err(Failure::usage(format!("{flag}: {text} is more than a message can have here (1024G)"))),
    }
}

/// Sizes by commas, each one size or a range MIN:MAX or MIN:MAX:FACTOR; ascending, each once.
pub(super) fn list(flag: &str, text: &str) -> Result<Vec<u64>> {
    let mut sizes = Vec::new();
    for word in text.split(',').map(str::trim) {
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            [size] => sizes.push(bytes(flag, size)?),
            [least, most] => range(flag, least, most, 2, &mut sizes)?,
            [least, most, factor] => {
                let number = factor.parse().ok().filter(|factor| *factor >= 2);
                let number = number.ok_or_else(|| {
                    Failure::usage(format!(
                        "{flag}: in {word} the factor has to be a number from 2 on, not {factor}"
                    ))
                })?;
                range(flag, least, most, number, &mut sizes)?;
            }
            _ => return Err(Failure::usage(format!("{flag}: \"{word}\" is not a size or MIN:MAX[:FACTOR]"))),
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn range(flag: &str, least: &str, most: &str, factor: u64, sizes: &mut Vec<u64>) -> Result<()> {
    let (first, last) = (bytes(flag, least)?, bytes(flag, most)?);
    if first > last {
        return Err(Failure::usage(format!("{flag}: in {least}:{most} the first size is the larger one")));
    }
    let steps = std::iter::successors(Some(first), |size| size.checked_mul(factor));
    sizes.extend(steps.take_while(|size| *size <= last));
    Ok(())
}

/// A size for people.
pub(super) fn text(size: u64) -> String {
    match size {
        0 => String::from("-"),
        _ if size.is_multiple_of(1 << 30) => format!("{}G", size >> 30),
        _ if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        _ if size.is_multiple_of(1 << 10) => format!("{}K", size >> 10),
        _ => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        assert_eq!(list("-s", "8,4K,1MiB").expect("sizes"), [8, 4096, 1 << 20]);
        assert_eq!(list("-s", "1:8").expect("sizes"), [1, 2, 4, 8]);
        assert_eq!(list("-s", "3:20,6").expect("sizes"), [3, 6, 12]);
        assert_eq!(list("-s", DEFAULT).expect("sizes"), [8, 64, 512, 4096, 32768, 1 << 18, 1 << 21]);
    }

    #[test]
    fn a_wrong_size_is_named() {
        for (wrong, said) in [
            ("", "is not a size"),
            ("x", "\"x\" is not a size"),
            ("8,,9", "\"\" is not a size"),
            ("-8", "is not a size"),
            ("8T", "\"8T\" is not a size"),
            ("0", "a size of 0"),
            ("99999999999999999999", "is not a size"),
            ("2048G", "more than a message"),
            ("16:8", "the first size is the larger one"),
            ("8:64:1", "the factor"),
            ("1:2:3:4", "MIN:MAX"),
        ] {
            let message = list("-s", wrong).expect_err(wrong).to_string();
            assert!(message.contains(said) && message.starts_with("-s"), "{wrong}: {message}");
        }
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for size in ["8", "4K", "12K", "3M", "1G", "1000"] {
            assert_eq!(text(bytes("-s", size).expect("a size")), size);
        }
    }
}
