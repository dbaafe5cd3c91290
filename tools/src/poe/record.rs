//! The files with the output of each task (MP_OUTPUT_DIR).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::error::Error;
use super::output::OutputStream;
use super::settings::Settings;

/// Makes the folder that is asked for, and an empty file for each stream of each task; the jobs of
/// a command file append to them.
pub(super) fn prepare(settings: &Settings, tasks: usize) -> Result<(), Error> {
    let Some(folder) = folder(settings)? else { return Ok(()) };
    let failed = |path: &Path, error| Error::system(format!("-output_dir: {}", path.display()), error);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, no_folder(error)))?;
    for task in 0..tasks {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let path = path(&folder, task, stream);
            File::create(&path).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

/// The error of a folder that was to be made: what is there already, and is in the way, is none.
pub(super) fn no_folder(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AlreadyExists { Errno::ENOTDIR.into() } else { error }
}

pub(super) fn folder(settings: &Settings) -> Result<Option<PathBuf>, Error> {
    Ok(settings.text("MP_OUTPUT_DIR")?.map(PathBuf::from))
}

/// The file of one stream, to append to.
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    pub(super) fn open(folder: &Path, task: usize, stream: OutputStream) -> io::Result<Self> {
        let path = path(folder, task, stream);
        Ok(Self { file: File::options().append(true).open(&path)?, path })
    }

    /// Writes all of it; an error is returned with the name of the file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), (String, io::Error)> {
        self.file.write_all(bytes).map_err(|error| (self.path.display().to_string(), error))
    }
}

fn path(folder: &Path, task: usize, stream: OutputStream) -> PathBuf {
    let kind = match stream {
        OutputStream::Stdout => "out",
        OutputStream::Stderr => "err",
    };
    folder.join(format!("task{task}.{kind}"))
}
