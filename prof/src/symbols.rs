//! The names of addresses: from the dynamic linker, or else from the symbol table of the file; and
//! their source lines, where the file has debug information.

use crate::places;
use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};
use openlapi::base::loader::object_at;
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names addresses; reads each file once.
#[derive(Default)]
#[allow(missing_debug_implementations, reason = "debug information has none")]
pub struct Symbols {
    files: HashMap<String, File>,
    /// What was asked before.
    names: HashMap<(usize, usize), Name>,
}

/// The functions of a file, by address.
#[derive(Default)]
struct File {
    /// Whether its addresses are those in memory: it is a program with a fixed place.
    fixed: bool,
    functions: Vec<Function>,
    /// From its debug information.
    lines: Option<Context<EndianArcSlice<RunTimeEndian>>>,
}

#[derive(Debug)]
struct Function {
    begin: u64,
    size: u64,
    name: String,
}

/// The name of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// `function+0x12`, or the address alone.
    pub text: String,
    /// The file that contains it; empty when no file does.
    pub object: String,
    /// `stencil.c:120`; empty when it is not known.
    pub line: String,
}

impl Symbols {
    /// The name of a return address. It names the call before it, because the next instruction may
    /// belong to another function.
    pub fn call(&mut self, address: usize) -> Name {
        self.name(address, 1)
    }

    /// The name of a function.
    pub fn function(&mut self, address: usize) -> Name {
        self.name(address, 0)
    }

    /// As [`Symbols::in_file`].
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no program and no library.
    pub fn in_readable(&mut self, path: &str, address: u64) -> io::Result<(String, String)> {
        if !self.files.contains_key(path) {
            self.files.insert(path.to_owned(), read(path)?);
        }
        Ok(self.in_file(path, address))
    }

    /// The function and the source line of an address of a file, as the file has it; each empty
    /// where it is not known.
    pub fn in_file(&mut self, path: &str, address: u64) -> (String, String) {
        let file = self.files.entry(path.to_owned()).or_insert_with(|| read(path).unwrap_or_default());
        let function = file.function(0, address).map(|(name, _)| name);
        (function.unwrap_or_default(), file.line(0, address).unwrap_or_default())
    }

    fn name(&mut self, address: usize, back: usize) -> Name {
        if let Some(place) = places::named(address) {
            let (text, object) = (place.function.clone(), place.file.clone());
            return Name { text, object, line: format!("{}:{}", file_name(&place.file), place.line) };
        }
        if let Some(name) = self.names.get(&(address, back)) {
            return name.clone();
        }
        let name = self.look_up(address, back);
        self.names.insert((address, back), name.clone());
        name
    }

    fn look_up(&mut self, address: usize, back: usize) -> Name {
        if address == 0 {
            return Name { text: "elsewhere".to_owned(), ..Name::default() };
        }
        let raw = format!("{address:#x}");
        let inside = address - back;
        let Some(mapped) = object_at(inside) else { return Name { text: raw, ..Name::default() } };
        let path = mapped.file.to_string_lossy().into_owned();
        let object = file_name(&path);
        let found = if mapped.function.is_null() {
            self.file(&path).function(mapped.base as u64, inside as u64)
        } else {
            // SAFETY: the linker's own strings end in a zero.
            let name = unsafe { CStr::from_ptr(mapped.function) };
            Some((name.to_string_lossy().into_owned(), mapped.function_at as u64))
        };
        let text = match found {
            Some((name, begin)) if back == 0 && begin == address as u64 => name,
            Some((name, begin)) => format!("{name}+{:#x}", address as u64 - begin),
            None => raw,
        };
        let line = self.file(&path).line(mapped.base as u64, inside as u64).unwrap_or_default();
        Name { text, object, line }
    }

    fn file(&mut self, path: &str) -> &File {
        // The linker knows the program itself by the name that it was started by, which may have
        // been relative to another folder.
        let read = || read(path).or_else(|_| read("/proc/self/exe")).unwrap_or_default();
        self.files.entry(path.to_owned()).or_insert_with(read)
    }
}

impl File {
    /// The function around an address, and where it begins.
    fn function(&self, base: u64, address: u64) -> Option<(String, u64)> {
        let base = if self.fixed { 0 } else { base };
        let at = address.checked_sub(base)?;
        let next = self.functions.partition_point(|function| function.begin <= at);
        let function = self.functions.get(next.checked_sub(1)?)?;
        // What is written in assembler may have no size.
        let inside = function.size == 0 || at - function.begin < function.size;
        inside.then(|| (function.name.clone(), function.begin + base))
    }

    /// The source line of an address, without the folder.
    fn line(&self, base: u64, address: u64) -> Option<String> {
        let at = address.checked_sub(if self.fixed { 0 } else { base })?;
        let location = self.lines.as_ref()?.find_location(at).ok()??;
        let file = Path::new(location.file?).file_name()?.to_string_lossy().into_owned();
        Some(format!("{file}:{}", location.line?))
    }
}

fn read(path: &str) -> io::Result<File> {
    let bytes = fs::read(path)?;
    let file = object::File::parse(&*bytes).map_err(|why| {
        io::Error::new(io::ErrorKind::InvalidData, format!("no program or library ({why})"))
    })?;
    let separate = separate(path, &file);
    let separate = separate.as_deref().and_then(|bytes| object::File::parse(bytes).ok());
    let mut functions: Vec<Function> = file
        .symbols()
        .chain(separate.iter().flat_map(|separate| separate.symbols()))
        // The last one of an address names it: those that are exported.
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            Some(Function {
                begin: symbol.address(),
                size: symbol.size(),
                name: symbol.name().ok()?.to_owned(),
            })
        })
        .collect();
    functions.sort_by_key(|function| function.begin);
    let fixed = file.kind() == ObjectKind::Executable;
    Ok(File { fixed, functions, lines: lines(separate.as_ref().unwrap_or(&file)) })
}

/// What was taken out of a file that has no lines, where debuggers look for it: in a file with the
/// same build ID, below the system's folder by that number, or by the name that the file gives.
fn separate(path: &str, file: &object::File<'_>) -> Option<Vec<u8>> {
    if has_lines(file) {
        return None;
    }
    let id = file.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let system = Path::new("/usr/lib/debug");
    let mut places = vec![system.join(format!(".build-id/{first:02x}/{rest}.debug"))];
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = Path::new(OsStr::from_bytes(name)).file_name();
        let path = fs::canonicalize(path).ok();
        if let (Some(name), Some(folder)) = (name, path.as_deref().and_then(Path::parent)) {
            let below = system.join(folder.strip_prefix("/").unwrap_or(folder));
            places.extend([folder.join(name), folder.join(".debug").join(name), below.join(name)]);
        }
    }
    places.into_iter().find_map(|place| {
        if !fs::metadata(&place).ok()?.is_file() {
            return None;
        }
        let bytes = fs::read(place).ok()?;
        let found = object::File::parse(&*bytes).ok()?;
        (found.build_id().ok()? == Some(id) && has_lines(&found)).then_some(bytes)
    })
}

fn has_lines(file: &object::File<'_>) -> bool {
    file.section_by_name(".debug_line").is_some()
}

fn lines(file: &object::File<'_>) -> Option<Context<EndianArcSlice<RunTimeEndian>>> {
    if !has_lines(file) {
        return None;
    }
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = |id: gimli::SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default();
        Ok::<_, gimli::Error>(EndianArcSlice::new((&*data).into(), endian))
    };
    Context::from_dwarf(Dwarf::load(section).ok()?).ok()
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::Symbols;

    #[test]
    fn functions_are_named_and_unknown_addresses_stay_numbers() {
        let mut symbols = Symbols::default();
        let named = symbols.function(super::read as *const () as usize);
        assert!(named.text.contains("read") && !named.text.contains('+'), "{named:?}");
        let inside = symbols.call(libc::malloc as *const () as usize + 4);
        assert!(inside.text.ends_with("malloc+0x4") && inside.object.starts_with("libc"), "{inside:?}");
        assert_eq!(symbols.call(0x10).text, "0x10");
        assert_eq!(symbols.call(0).text, "elsewhere");
        // Tests may be built without debug information.
        assert!(named.line.is_empty() || named.line.starts_with("symbols.rs:"), "{named:?}");
    }
}
