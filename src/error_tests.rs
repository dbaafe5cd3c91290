use super::*;
use crate::abi;

#[test]
fn numbers_are_unique_and_sorted() {
    assert!(TABLE.is_sorted_by(|a, b| a.code < b.code));
}

/// The error handler of the manual's chapter 5 has `char errstring[100]`, and
/// LAPI_MAX_ERR_STRING is more.
const SHORTEST_BUFFER: usize = 100;
const _: () = assert!(SHORTEST_BUFFER < abi::LAPI_MAX_ERR_STRING);

#[test]
fn messages_fit_the_buffer_of_msg_string() {
    for entry in TABLE {
        let message = entry.to_string();
        assert!(message.len() < SHORTEST_BUFFER, "{} bytes: {message}", message.len());
        assert!(message.is_ascii() && !message.contains('\n') && !entry.text.is_empty(), "{message}");
    }
}

/// Reads the names of earlier levels from their source: they have no entries of their own.
#[test]
fn every_alias_names_an_entry() {
    let aliases: Vec<&str> = include_str!("abi/error_codes.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.strip_suffix(';')?.split_once(": c_int = "))
        .map(|(_, value)| value)
        .collect();
    assert_eq!(aliases.len(), 15);
    for alias in aliases {
        assert!(TABLE.iter().any(|entry| entry.name == Some(alias)), "{alias}");
    }
    assert_eq!(lookup(abi::LAPI_ERR_OFFSET_LEN).and_then(|entry| entry.name), Some("LAPI_ERR_OFFSET_LEN"));
}

#[test]
fn errors_say_name_number_sentence_and_detail() {
    let error = Error::new(abi::LAPI_ERR_TGT, "task 7 of 4");
    assert_eq!(error.to_string(), "LAPI_ERR_TGT (428): the target is not a task of the job: task 7 of 4");
    let error = Error::from(abi::LAPI_ERR_TGT);
    assert_eq!(error.to_string(), "LAPI_ERR_TGT (428): the target is not a task of the job");
    assert_eq!(Error::new(-5, "odd").to_string(), "LAPI (-5): odd");
}

#[test]
fn unknown_numbers_are_not_found() {
    for code in [-1, 1, 399, 483, 484, 512, 518, 520, c_int::MAX] {
        assert_eq!(lookup(code), None);
    }
    for code in [0, 485, 511, 519] {
        assert!(lookup(code).is_some());
    }
}
