//! The report as a page that needs nothing but itself: DIR/report.html.

use super::summary::Report;

const PAGE: &str = include_str!("page.html");
/// The mark in the page that the data replaces.
const MARK: &str = "@REPORT@";

/// The page with the data of a report in it.
pub fn page(report: &Report) -> Result<String, String> {
    let data = serde_json::to_string(report).map_err(|error| error.to_string())?;
    // A text inside of a script must not contain the script's end.
    Ok(PAGE.replace(MARK, &data.replace('<', "\\u003c")))
}
