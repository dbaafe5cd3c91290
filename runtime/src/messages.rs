//! LAPI_Msg_string.

use openlapi::abi::{LAPI_ERR_CATALOG_FAIL, LAPI_ERR_CODE_UNKNOWN, LAPI_MAX_ERR_STRING};
use openlapi::config::Env;
use openlapi::error::catalog::{self, Found};
use openlapi::error::{self, Error, Result};
use std::ffi::c_int;

/// The text of a return code in the language of the environment, without a final zero (man page
/// LAPI_Msg_string). An unknown number gets a text as well, which names it as unknown. At most
/// LAPI_MAX_ERR_STRING - 1 bytes.
///
/// # Errors
/// `LAPI_ERR_CATALOG_FAIL`: NLSPATH is set, and no catalogue of that language can be opened; the
/// text is the English one. `LAPI_ERR_CODE_UNKNOWN`.
pub fn message(code: c_int, env: &Env<'_>) -> (String, Result<()>) {
    let (mut text, outcome) = match error::lookup(code) {
        Some(entry) => match catalog::look_up(code, env) {
            Found::BuiltIn => (entry.to_string(), Ok(())),
            Found::Translated(text) => (entry.with(&text), Ok(())),
            Found::NoCatalog { locale } => {
                let detail = format!("no liblapi.cat for the locale {locale}; the text is in English");
                (entry.to_string(), Err(Error::new(LAPI_ERR_CATALOG_FAIL, detail)))
            }
        },
        None => match system_error(code) {
            Some(text) => (text, Ok(())),
            None => (
                format!("{code} is not a return code of LAPI"),
                Err(Error::new(LAPI_ERR_CODE_UNKNOWN, format!("{code} is not a return code of LAPI"))),
            ),
        },
    };
    while text.len() >= LAPI_MAX_ERR_STRING {
        text.pop();
    }
    (text, outcome)
}

/// The manual has LAPI look for texts of the system's error numbers too.
fn system_error(code: c_int) -> Option<String> {
    let text = (1..=133).contains(&code).then(|| std::io::Error::from_raw_os_error(code).to_string())?;
    (!text.starts_with("Unknown error")).then_some(text)
}
