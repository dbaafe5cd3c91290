//! The files with the output of each task (MP_OUTPUT_DIR).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::output::OutputStream;
use super::settings::Settings;

/// Makes the folder that is asked for, and an empty file for each stream of each task; the jobs of
/// a command file append to them.
pub(super) fn prepare(settings: &Settings, tasks: usize) -> Result<(), Error> {
    let Some(folder) = folder(settings)? else { return Ok(()) };
    let failed = |path: &Path, error| Error::system(format!("-output_dir: {}", path.display()), error);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    for task in 0..tasks {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let path = path(&folder, task, stream);
            File::create(&path).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

pub(super) fn folder(settings: &Settings) -> Result<Option<PathBuf>, Error> {
    Ok(settings.text("MP_OUTPUT_DIR")?.map(PathBuf::from))
}

/// The file of one stream, to append to.
pub(super) fn open(folder: &Path, task: usize, stream: OutputStream) -> std::io::Result<File> {
    File::options().append(true).open(path(folder, task, stream))
}

fn path(folder: &Path, task: usize, stream: OutputStream) -> PathBuf {
    let kind = match stream {
        OutputStream::Stdout => "out",
        OutputStream::Stderr => "err",
    };
    folder.join(format!("task{task}.{kind}"))
}
