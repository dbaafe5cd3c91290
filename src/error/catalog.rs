//! Messages in other languages than English: the message catalogues of POSIX
//! (`catopen`, `catgets`).
//!
//! The language is that of LC_ALL, LC_MESSAGES or LANG, the first of them that is set, whether or
//! not the program has called `setlocale`. English, which is also the language of the locales C and
//! POSIX, is built in and asks nothing of the system. A catalogue is looked for where NLSPATH says,
//! then below the prefix that this library is installed in, then where the system's are. A language
//! without a catalogue has the English texts; that is an error only when NLSPATH is set:
//!
//! | NLSPATH has | that is |
//! |---|---|
//! | `%N` | `liblapi.cat` |
//! | `%L` | the locale: complete, without its codeset, and the language alone |
//! | `%l`, `%t`, `%c` | language, territory and codeset of the locale |
//!
//! A catalogue is opened for one message and closed again: messages are rare, variables may change,
//! and a child of a fork finds nothing half open. It allocates and makes system calls, so no
//! handler of signals and no packet may get here.
//!
//! `catalogs/` has the sources, which `gencat` compiles; [`TEXTS`] and [`ABOUT`] are their sets.

#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// The set of the texts: each has its error code for its number, but for [`SUCCESS`].
pub const TEXTS: c_int = 1;
/// The set of what the catalogue says of itself: number 1 is its codeset.
pub const ABOUT: c_int = 2;
/// The number of LAPI_SUCCESS, since 0 is none that a message can have.
pub const SUCCESS: c_int = 1;

/// What a catalogue is called.
const NAME: &str = "liblapi.cat";
/// Where the system's are, and below our own prefix ours.
const PLACES: &str = "%L/LC_MESSAGES/%N";

/// How the environment is looked up.
pub type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where a text is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The text that is built in is the right one: the language is English, or its catalogue
    /// lacks this text.
    BuiltIn,
    /// A catalogue has this one.
    Translated(String),
    /// The language is not English, NLSPATH says where catalogues are, and none for the language
    /// can be opened.
    NoCatalog {
        /// The locale.
        locale: String,
    },
}

/// The text of a code in the language that the environment asks for.
pub fn look_up(code: c_int, env: &Env<'_>) -> Found {
    let Some(locale) = Locale::of(env) else { return Found::BuiltIn };
    let nls_path = nls_path(env);
    for path in candidates(&locale, nls_path.as_deref(), own_prefix().as_deref()) {
        let Some(catalog) = Catalog::open(&path) else { continue };
        let codeset = catalog.get(ABOUT, 1).unwrap_or_default();
        if locale.takes(&codeset) {
            return catalog.get(TEXTS, number(code)).map_or(Found::BuiltIn, Found::Translated);
        }
    }
    // Without NLSPATH no catalogue in particular was asked for: a language that has
    // none gets English.
    if nls_path.is_some() { Found::NoCatalog { locale: locale.name } } else { Found::BuiltIn }
}

/// The number of a code's text in [`TEXTS`].
fn number(code: c_int) -> c_int {
    if code == 0 { SUCCESS } else { code }
}

/// A locale's name in its parts: `language_TERRITORY.codeset@modifier`.
#[derive(Debug)]
struct Locale {
    name: String,
    language: String,
    territory: String,
    codeset: String,
}

impl Locale {
    /// What the environment asks for; none when that is English.
    fn of(env: &Env<'_>) -> Option<Self> {
        let set = |name| env(name).filter(|value| !value.is_empty());
        let name = set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG"))?;
        let plain = name.split('@').next().unwrap_or_default();
        let (place, codeset) = plain.split_once('.').unwrap_or((plain, ""));
        let (language, territory) = place.split_once('_').unwrap_or((place, ""));
        // A name with a slash is a path of locale files to some systems: here it would lead out
        // of the folders.
        if matches!(language, "" | "C" | "POSIX" | "en") || name.contains('/') {
            return None;
        }
        let [language, territory, codeset] = [language, territory, codeset].map(str::to_owned);
        Some(Self { name, language, territory, codeset })
    }

    /// The values of %L, the most exact first.
    fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone()];
        if !self.territory.is_empty() {
            names.push(format!("{}_{}", self.language, self.territory));
        }
        names.push(self.language.clone());
        names.dedup();
        names
    }

    /// Whether texts in this codeset can be shown. A locale that names none takes all.
    fn takes(&self, codeset: &str) -> bool {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        codeset.is_empty() || self.codeset.is_empty() || plain(codeset) == plain(&self.codeset)
    }
}

/// NLSPATH; not in a program that runs with other rights than its user's: the user could make it
/// open any file.
fn nls_path(env: &Env<'_>) -> Option<String> {
    // SAFETY: getauxval(3) takes a number and touches no memory of ours.
    let is_privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_privileged { None } else { env("NLSPATH").filter(|path| !path.is_empty()) }
}

/// Where a catalogue may be, in the order in which it counts.
fn candidates(locale: &Locale, nls_path: Option<&str>, prefix: Option<&Path>) -> Vec<PathBuf> {
    let share =
        |prefix: &Path| format!("{}/share/locale/{PLACES}", prefix.display().to_string().replace('%', "%%"));
    let own = prefix.map(share);
    let system = share(Path::new("/usr"));
    let templates =
        nls_path.into_iter().flat_map(|path| path.split(':')).chain(own.as_deref()).chain([&*system]);
    let mut paths = Vec::new();
    for template in templates {
        // An empty one means the name itself.
        let template = if template.is_empty() { "%N" } else { template };
        for name in locale.names() {
            let path = PathBuf::from(expand(template, &name, locale));
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn expand(template: &str, name: &str, locale: &Locale) -> String {
    let mut path = String::new();
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some('N')) => path += NAME,
            ('%', Some('L')) => path += name,
            ('%', Some('l')) => path += &locale.language,
            ('%', Some('t')) => path += &locale.territory,
            ('%', Some('c')) => path += &locale.codeset,
            ('%', Some('%')) => path.push('%'),
            ('%', _) => {}
            _ => path.push(c),
        }
    }
    // Only a name with a slash is a file to catopen; any other it would look for by itself.
    if path.contains('/') { path } else { format!("./{path}") }
}

/// The prefix that this library is installed in: PREFIX of PREFIX/lib/liblapi_r.so.1.
fn own_prefix() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    let here = own_prefix as fn() -> Option<PathBuf> as *const c_void;
    // SAFETY: `info` is writable; the address is that of this function.
    if unsafe { libc::dladdr(here, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr has set a string, which lives as long as the library is loaded,
    // and that is now.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    Some(file.parent()?.parent()?.to_owned())
}

/// An open catalogue.
struct Catalog(NlCatd);

type NlCatd = *mut c_void;

unsafe extern "C" {
    fn catopen(name: *const c_char, flag: c_int) -> NlCatd;
    fn catgets(catalog: NlCatd, set: c_int, number: c_int, default: *const c_char) -> *mut c_char;
    fn catclose(catalog: NlCatd) -> c_int;
}

impl Catalog {
    fn open(path: &Path) -> Option<Self> {
        // The C library would wait for the other end of a pipe.
        if !path.is_file() {
            return None;
        }
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: `name` is a string.
        let opened = unsafe { catopen(name.as_ptr(), 0) };
        // What cannot be opened is -1.
        (opened.addr() != usize::MAX).then_some(Self(opened))
    }

    /// A message; `None` when the catalogue has none of this number, or one that is not text.
    fn get(&self, set: c_int, number: c_int) -> Option<String> {
        // SAFETY: the catalogue is open. Without such a message it returns the default,
        // which is null.
        let found = unsafe { catgets(self.0, set, number, ptr::null()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: a string of the catalogue, which is open; it is copied before that ends.
        let text = unsafe { CStr::from_ptr(found) }.to_str().ok()?.trim();
        (!text.is_empty() && !text.contains(char::is_control)).then(|| text.to_owned())
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is closed only here.
        unsafe { catclose(self.0) };
    }
}
