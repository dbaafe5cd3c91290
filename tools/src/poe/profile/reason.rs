//! Why a profiled job has left no parts: what its programs are.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use object::FileKind;
use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::endian::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};

/// How much of a program's file is looked at: what the loader needs is at its beginning.
const BEGINNING: u64 = 1 << 20;

/// In words: of the first program into which the profiler cannot have come, or in general.
pub(super) fn of(programs: &[OsString]) -> String {
    let named = |program: &OsString| {
        let file = find(program)?;
        let why = if is_static(&file) {
            "is linked statically, and it is the loader of libraries that brings the profiler in"
        } else if fs::metadata(&file).ok()?.permissions().mode() & 0o6000 != 0 {
            "runs with the rights of another user, for which the loader brings nothing in"
        } else {
            return None;
        };
        Some(format!("{} {why}", program.to_string_lossy()))
    };
    programs.iter().find_map(named).unwrap_or_else(|| {
        "no task has called LAPI_Init of the library liblapi_r.so, or all were ended before they could write".to_owned()
    })
}

/// The file that a command names, as far as it is known here.
fn find(program: &OsStr) -> Option<PathBuf> {
    let path = PathBuf::from(program);
    if path.components().count() > 1 {
        return path.is_file().then_some(path);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether no loader of libraries has a part in starting it: no file that is named as
/// its interpreter.
fn is_static(file: &PathBuf) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    if read.is_err() {
        return false;
    }
    match FileKind::parse(&*bytes) {
        Ok(FileKind::Elf64) => has_interpreter::<FileHeader64<Endianness>>(&bytes) == Some(false),
        Ok(FileKind::Elf32) => has_interpreter::<FileHeader32<Endianness>>(&bytes) == Some(false),
        // A script, whose interpreter may be anything.
        _ => false,
    }
}

fn has_interpreter<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<bool> {
    let header = Header::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let parts = header.program_headers(endian, bytes).ok()?;
    Some(parts.iter().any(|part| part.p_type(endian) == PT_INTERP))
}
