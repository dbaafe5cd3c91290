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

/// Reads the constants from their source, so that a new one without a sentence fails here.
#[test]
fn every_constant_has_its_entry() {
    let mut constants = 0;
    for line in include_str!("abi/error_codes.rs").lines() {
        let Some((name, value)) = line
            .strip_prefix("pub const ")
            .and_then(|rest| rest.strip_suffix(';'))
            .and_then(|rest| rest.split_once(": c_int = "))
        else {
            assert!(!line.contains("const"), "not understood: {line}");
            continue;
        };
        constants += 1;
        match value.parse() {
            Ok(code) => assert_eq!(lookup(code).and_then(|entry| entry.name), Some(name)),
            Err(_) => assert!(TABLE.iter().any(|entry| entry.name == Some(value)), "alias {name}"),
        }
    }
    let named = TABLE.iter().filter(|entry| entry.name.is_some()).count();
    // Aliases have no entry of their own; the two numbers of LAPI_ERR_CODE_UNKNOWN
    // share a constant.
    assert_eq!(constants, named - 1 + ALIASES);
}
const ALIASES: usize = 15;

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
