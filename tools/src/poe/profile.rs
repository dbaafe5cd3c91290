//! A job with the profiler (MP_PROFILE): the library that is preloaded, and where its report goes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::settings::Settings;

/// What the loader loads before all libraries of a program.
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// The folder of the report, for the profiler.
const FOLDER: &str = "LAPIPROF_OUT";
const LIBRARY: &str = "liblapiprof.so.1";

/// Makes the folder of the report, and tries to write there: a job that ran for nothing would be profiled again.
pub(super) fn prepare(settings: &Settings) -> Result<(), Error> {
    let Some(folder) = settings.text("MP_PROFILE")?.map(PathBuf::from) else { return Ok(()) };
    let trial = folder.join(format!(".poe-{}", std::process::id()));
    let tried = fs::create_dir_all(&folder)
        .and_then(|()| File::create_new(&trial))
        .and_then(|_| fs::remove_file(&trial));
    tried.map_err(|error| Error::system(format!("-profile: {}", folder.display()), error))
}

/// The variables of the tasks. `preloaded`: what they would have preloaded otherwise; `None`: what `poe` itself has.
pub(super) fn variables(
    folder: &str,
    preloaded: Option<String>,
) -> Result<[(&'static str, String); 2], Error> {
    let library = library()?;
    let folder = std::path::absolute(folder)
        .map_err(|error| Error::system(format!("-profile {folder}"), error))?
        .to_string_lossy()
        .into_owned();
    let others = preloaded.or_else(|| std::env::var(PRELOAD).ok()).unwrap_or_default();
    // A poe that a task of a profiled job starts has it already.
    let others = others.split([':', ' ']).filter(|other| !other.is_empty() && !is_profiler(other));
    let all = std::iter::once(&*library).chain(others).collect::<Vec<_>>().join(":");
    Ok([(PRELOAD, all), (FOLDER, folder)])
}

fn is_profiler(library: &str) -> bool {
    Path::new(library).file_name().is_some_and(|name| name.to_string_lossy().starts_with("liblapiprof.so"))
}

/// The library that was installed with this `poe`.
fn library() -> Result<String, Error> {
    let program =
        std::env::current_exe().map_err(|error| Error::system("-profile: the path of poe", error))?;
    let library: PathBuf =
        program.parent().and_then(Path::parent).unwrap_or(Path::new("/")).join("lib").join(LIBRARY);
    let path = library.to_string_lossy();
    if !library.is_file() {
        return Err(Error::asked(format!("-profile: the profiler is not installed: there is no {path}")));
    }
    if path.contains([':', ' ']) {
        // The loader splits its list at both.
        return Err(Error::asked(format!(
            "-profile: \"{path}\" cannot be preloaded: its path has a blank or a colon"
        )));
    }
    Ok(path.into_owned())
}
