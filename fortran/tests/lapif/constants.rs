//! The constants: those of `src/abi`, the kinds, and the lengths of the DGSP instructions.

use super::text::Target;
use super::types;
use std::collections::HashMap;

/// A named constant.
pub struct Constant {
    pub name: String,
    /// The bytes of its type.
    pub kind: usize,
    /// As Fortran writes it.
    pub value: String,
}

/// All constants, kinds first.
pub fn all(target: Target) -> Vec<Constant> {
    let constant = |name: &str, kind: usize, value: String| Constant { name: name.to_owned(), kind, value };
    let word = target.word();
    let mut all = vec![
        constant("LAPI_ADDR_TYPE", 4, word.to_string()),
        constant("LAPI_LONG_TYPE", 4, word.to_string()),
        constant("LAPI_LONG_LONG_TYPE", 4, "8".to_owned()),
        constant("LAPI_VOID_HANDLE", 4, "-1".to_owned()),
        constant("LAPI_NULL_THREAD_ID", word, format!("-1_{word}")),
        constant("LAPI_MAX_MSG_SZ", word, target.longest()),
    ];
    all.extend(of_the_sources().into_iter().map(|(name, value)| constant(&name, 4, number(value))));
    let lengths = [
        ("COPY", "COPY"),
        ("MCOPY", "MCOPY"),
        ("MCOPY_BLOCK", "BLOCK"),
        ("BLOCK", "BLOCK"),
        ("GOSUB", "GOSUB"),
        ("ITERATE", "ITERATE"),
        ("CONTROL", "CONTROL"),
    ];
    let types = types::all();
    all.extend(lengths.map(|(name, of)| {
        let of = types.iter().find(|found| found.name == format!("LAPI_DGSM_{of}_T")).expect("its type");
        constant(&format!("LAPI_DGSM_{name}_SIZE"), 4, (of.size(target) / 4).to_string())
    }));
    all
}

/// What the sources of the core define, by name; but for what depends on the width.
fn of_the_sources() -> Vec<(String, i64)> {
    let sources =
        [include_str!("../../../src/abi/constants.rs"), include_str!("../../../src/abi/error_codes.rs")];
    let mut known: HashMap<String, i64> = HashMap::new();
    let mut found = Vec::new();
    for line in sources.into_iter().flat_map(str::lines) {
        // In the table of error codes the number stands first.
        let row = line.trim_start().split_once(" LAPI_").filter(|(number, _)| number.parse::<u32>().is_ok());
        let row = row.and_then(|(number, rest)| {
            let (name, _) = rest.split_once(' ')?;
            Some(format!("LAPI_{name}: c_int = {number};"))
        });
        let Some(definition) = row.as_deref().or_else(|| line.strip_prefix("pub const ")) else { continue };
        let (name, rest) = definition.split_once(':').expect("a constant has a type");
        let (_, value) = rest.split_once(" = ").unwrap_or_else(|| panic!("no value on this line: {line}"));
        let value = value.trim_end_matches(';');
        if name == "LAPI_MAX_MSG_SZ" {
            continue;
        }
        let digits = value.replace('_', "");
        let value = match (digits.strip_prefix("0x"), digits.parse()) {
            (Some(hex), _) => i64::from_str_radix(hex, 16).expect("a number"),
            (None, Ok(number)) => number,
            (None, Err(_)) => {
                *known.get(value).unwrap_or_else(|| panic!("{name} is {value}, whatever that is"))
            }
        };
        known.insert(name.to_owned(), value);
        found.push((name.to_owned(), value));
    }
    assert!(found.len() > 200, "hardly a constant was found");
    found
}

/// A number of 32 bits as Fortran writes it, which has no unsigned ones and not the least one.
fn number(value: i64) -> String {
    match value as u32 as i32 {
        i32::MIN => "-2147483647-1".to_owned(),
        value => value.to_string(),
    }
}
