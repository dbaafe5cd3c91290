//! The names of addresses: from the dynamic linker, or else from the symbol table of the file.

use object::{Object, ObjectKind, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

/// Names addresses; reads each file once.
#[derive(Debug, Default)]
pub struct Symbols {
    files: HashMap<String, File>,
}

/// The functions of a file, by address.
#[derive(Debug, Default)]
struct File {
    /// Whether its addresses are those in memory: it is a program with a fixed place.
    fixed: bool,
    functions: Vec<Function>,
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
}

impl Symbols {
    /// The name of a return address. It names the call before it, because the next instruction may belong to another function.
    pub fn call(&mut self, address: usize) -> Name {
        self.name(address, 1)
    }

    /// The name of a function.
    pub fn function(&mut self, address: usize) -> Name {
        self.name(address, 0)
    }

    fn name(&mut self, address: usize, back: usize) -> Name {
        if address == 0 {
            return Name { text: "elsewhere".to_owned(), object: String::new() };
        }
        let raw = format!("{address:#x}");
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        let inside = address - back;
        // SAFETY: it takes any address, and fills the structure in when it returns other than 0.
        let info = unsafe {
            if libc::dladdr(inside as *const c_void, info.as_mut_ptr()) == 0 {
                return Name { text: raw, object: String::new() };
            }
            info.assume_init()
        };
        let path = text(info.dli_fname);
        let object = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = if info.dli_sname.is_null() {
            self.in_file(&path, info.dli_fbase as u64, inside as u64)
        } else {
            Some((text(info.dli_sname), info.dli_saddr as u64))
        };
        let text = match found {
            Some((name, begin)) if back == 0 && begin == address as u64 => name,
            Some((name, begin)) => format!("{name}+{:#x}", address as u64 - begin),
            None => raw,
        };
        Name { text, object }
    }

    /// The function around an address, and where it begins.
    fn in_file(&mut self, path: &str, base: u64, address: u64) -> Option<(String, u64)> {
        let file = self.files.entry(path.to_owned()).or_insert_with(|| read(path).unwrap_or_default());
        let base = if file.fixed { 0 } else { base };
        let at = address.checked_sub(base)?;
        let next = file.functions.partition_point(|function| function.begin <= at);
        let function = file.functions.get(next.checked_sub(1)?)?;
        // What is written in assembler may have no size.
        let inside = function.size == 0 || at - function.begin < function.size;
        inside.then(|| (function.name.clone(), function.begin + base))
    }
}

fn read(path: &str) -> Option<File> {
    // The linker knows the program itself by the name that it was started by, which may have been relative to another folder.
    let bytes = fs::read(path).or_else(|_| fs::read("/proc/self/exe")).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut functions: Vec<Function> = file
        .symbols()
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
    Some(File { fixed: file.kind() == ObjectKind::Executable, functions })
}

fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: the linker's own strings end in a zero.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
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
    }
}
