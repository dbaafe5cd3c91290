//! Source lines of addresses, found by a helper process: `lapi_prof where`, which is installed
//! with the library.
//!
//! Reading debug information takes memory and time, and must not be done in a process that has
//! crashed, whose heap may be locked or damaged. All that [`Question`] calls may be called in a
//! signal handler.

use libc::{c_char, c_int, c_void};
use openlapi::base::call_stack::MARK;
use openlapi::base::loader::object_at;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt::{self, Write as _};
use std::mem;
use std::ptr;
use std::time::{Duration, Instant};

/// The most places of a question.
pub const PLACES: usize = 48;
/// How long the helper may take. poe kills tasks 5 s after it has asked them to end.
const LIMIT: Duration = Duration::from_secs(3);
/// The stack of the process that starts it.
const STACK: usize = 128 << 10;
const TOOL: &CStr = c"lapi_prof";
/// Where the helper is, from the folder of the library on, or of `poe`.
const BESIDE: [&str; 3] = ["/../bin/lapi_prof", "/../../bin/lapi_prof", "/lapi_prof"];

/// A number of places, and what the helper says of them. It uses no heap.
pub struct Question {
    text: Text<{ 12 << 10 }>,
    /// Where the argument of each place begins.
    begins: [usize; PLACES],
    count: usize,
    /// The helper shortens long names so that all places have room (`lapi_prof`, REPLY).
    reply: [u8; 12 << 10],
    replied: usize,
}

/// The name of a place; each empty where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named<'a> {
    /// The function.
    pub function: &'a str,
    /// `stencil.c:120`.
    pub line: &'a str,
}

impl Default for Question {
    fn default() -> Self {
        Self::new()
    }
}

impl Question {
    /// No places.
    pub const fn new() -> Self {
        let (text, begins) = (Text::new(), [0; PLACES]);
        Self { text, begins, count: 0, reply: [0; 12 << 10], replied: 0 }
    }

    /// Adds an address of a file, as the file has it. Returns the place's number; `None` when
    /// there is no room.
    pub fn add(&mut self, file: &[u8], address: usize) -> Option<usize> {
        let begin = self.text.length;
        let written =
            self.count < PLACES && self.text.add(file) && write!(self.text, "+{address:#x}\0").is_ok();
        if !written {
            self.text.length = begin;
            return None;
        }
        self.begins[self.count] = begin;
        self.count += 1;
        Some(self.count - 1)
    }

    /// Asks the helper. Where there is none, or when it takes too long, no place has a name.
    pub fn ask(&mut self) {
        self.replied = 0;
        if self.count == 0 {
            return;
        }
        let mut pipe = [-1; 2];
        // SAFETY: the array lives during the call. The helper inherits the writing end, and no
        // other program that is started here.
        unsafe {
            if libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return;
            }
            libc::fcntl(pipe[1], libc::F_SETFD, 0);
        }
        let until = Instant::now() + LIMIT;
        let helper = self.start(pipe[1]);
        // SAFETY: both ends are ours, and closed once.
        unsafe { libc::close(pipe[1]) };
        if let Some(helper) = helper
            && self.read(pipe[0], until) == End::Late
        {
            // SAFETY: it has not closed its end of the pipe: the number is still its own.
            unsafe { libc::kill(helper, libc::SIGKILL) };
        }
        // SAFETY: this end is ours, and nobody has closed it.
        unsafe { libc::close(pipe[0]) };
    }

    /// Starts the helper, which writes to this descriptor.
    fn start(&self, to: c_int) -> Option<libc::pid_t> {
        let mut number = Text::<24>::new();
        write!(number, "{to}\0").ok()?;
        let mut arguments: [*const c_char; PLACES + 5] = [ptr::null(); PLACES + 5];
        let first = [TOOL.as_ptr(), c"where".as_ptr(), c"--to".as_ptr(), number.bytes.as_ptr().cast()];
        arguments[..first.len()].copy_from_slice(&first);
        for (argument, begin) in arguments[first.len()..].iter_mut().zip(&self.begins[..self.count]) {
            *argument = self.text.bytes[*begin..].as_ptr().cast();
        }
        // Nothing that is preloaded here.
        let environment: [*mut c_char; 1] = [ptr::null_mut()];
        let mut path = Text::<1024>::new();
        let arguments = arguments.as_ptr().cast::<*mut c_char>();
        let (spawn, path): (Spawn, *const c_char) = match beside(&mut path) {
            Some(path) => (libc::posix_spawn, path),
            // What the PATH of another user names is not started.
            // SAFETY: it has no preconditions.
            None if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 => return None,
            None => (libc::posix_spawnp, TOOL.as_ptr()),
        };
        Start { spawn, path, arguments, environment: environment.as_ptr(), helper: None }.by_another()
    }

    /// Reads until there is a line for each place.
    fn read(&mut self, from: c_int, until: Instant) -> End {
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_millis() as c_int;
            let mut polled = libc::pollfd { fd: from, events: libc::POLLIN, revents: 0 };
            let room = &mut self.reply[self.replied..];
            // SAFETY: both live during the calls.
            let count = unsafe {
                match libc::poll(&mut polled, 1, left) {
                    1 => libc::read(from, room.as_mut_ptr().cast(), room.len()),
                    -1 if left > 0 && *libc::__errno_location() == libc::EINTR => continue,
                    _ => return End::Late,
                }
            };
            if count <= 0 {
                return End::Done;
            }
            self.replied += count as usize;
            let lines = self.reply[..self.replied].iter().filter(|byte| **byte == b'\n').count();
            if lines >= self.count {
                return End::Done;
            }
        }
    }

    /// The name of a place.
    pub fn answer(&self, place: usize) -> Named<'_> {
        let mut lines = self.reply[..self.replied].split_inclusive(|byte| *byte == b'\n');
        let line = lines.nth(place).and_then(|line| std::str::from_utf8(line).ok()?.strip_suffix('\n'));
        let (function, line) = line.and_then(|line| line.split_once('\t')).unwrap_or_default();
        Named { function, line }
    }
}

/// How the reading of the reply has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The helper has said what it knows.
    Done,
    /// The helper has taken too long.
    Late,
}

/// posix_spawn, or posix_spawnp.
type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const libc::posix_spawn_file_actions_t,
    *const libc::posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// The start of the helper.
struct Start {
    spawn: Spawn,
    path: *const c_char,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
    /// The number of the helper, once it is started.
    helper: Option<libc::pid_t>,
}

impl Start {
    /// Starts the helper by a process in between that ends at once: the helper is no child of this
    /// process, whose program may wait for any child, or count them at SIGCHLD. Of the one in
    /// between no signal tells, and wait(2) does not find it without __WCLONE.
    fn by_another(mut self) -> Option<libc::pid_t> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which ends with the process that uses it as its stack. That one
        // has the memory of this one, and the calling thread waits until it has ended
        // (CLONE_VFORK). It has blocked the signals that the calling thread has, and no handler
        // runs on that stack.
        unsafe {
            let stack = libc::mmap(ptr::null_mut(), STACK, access, kind, -1, 0);
            if stack == libc::MAP_FAILED {
                return None;
            }
            let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let mut between = Between { start: &mut self, mask: before };
            let flags = libc::CLONE_VM | libc::CLONE_VFORK;
            let number = libc::clone(in_between, stack.byte_add(STACK), flags, (&raw mut between).cast());
            while number > 0
                && libc::waitpid(number, ptr::null_mut(), libc::__WCLONE) == -1
                && *libc::__errno_location() == libc::EINTR
            {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            libc::munmap(stack, STACK);
        }
        self.helper
    }
}

/// What the process in between gets.
struct Between<'a> {
    start: &'a mut Start,
    /// The signals that the helper blocks.
    mask: libc::sigset_t,
}

extern "C" fn in_between(argument: *mut c_void) -> c_int {
    // SAFETY: the caller's, whose thread waits. Lists of zero-terminated texts, ended by null, that
    // live during the call. glibc's functions take no lock and no memory of the heap where no file
    // actions are asked for.
    unsafe {
        let Between { start, mask } = &mut *argument.cast::<Between<'_>>();
        let (mut helper, mut attributes) = (0, mem::zeroed());
        libc::posix_spawnattr_init(&mut attributes);
        libc::posix_spawnattr_setsigmask(&mut attributes, mask);
        libc::posix_spawnattr_setflags(&mut attributes, libc::POSIX_SPAWN_SETSIGMASK as libc::c_short);
        let failed = (start.spawn)(
            &mut helper,
            start.path,
            ptr::null(),
            &attributes,
            start.arguments,
            start.environment,
        );
        start.helper = (failed == 0).then_some(helper);
    }
    0
}

/// The path of the helper beside this library, if it is there.
fn beside(path: &mut Text<1024>) -> Option<*const c_char> {
    let mut own = Text::<1024>::new();
    let file = object_at(beside as *const () as usize)?.file;
    if file.to_bytes().contains(&b'/') {
        own.add(file.to_bytes());
    } else {
        // A program that the PATH has named.
        // SAFETY: the text is not longer than the buffer.
        let length = unsafe {
            libc::readlink(c"/proc/self/exe".as_ptr(), own.bytes.as_mut_ptr().cast(), own.bytes.len())
        };
        own.length = usize::try_from(length).ok()?;
    }
    let folder = own.bytes[..own.length].iter().rposition(|byte| *byte == b'/')?;
    BESIDE.iter().find_map(|rest| {
        path.length = 0;
        let written = path.add(&own.bytes[..folder]) && path.add(rest.as_bytes()) && path.add(b"\0");
        let text = path.bytes.as_ptr().cast();
        // SAFETY: a zero-terminated text.
        (written && unsafe { libc::access(text, libc::X_OK) } == 0).then_some(text)
    })
}

/// A text without the heap. What has no room is left out.
struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    fn add(&mut self, more: &[u8]) -> bool {
        let Some(room) = self.bytes[self.length..].get_mut(..more.len()) else { return false };
        room.copy_from_slice(more);
        self.length += more.len();
        true
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.add(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

/// A text with its marks replaced: `main at dead.c:34`, or what is known. For one process that does
/// so for the reports of all tasks.
pub fn with_lines(text: &str) -> String {
    const OPEN: char = MARK.0;
    const CLOSE: char = MARK.1;
    let marks = || text.split(OPEN).skip(1).filter_map(|rest| Some(rest.split_once(CLOSE)?.0));
    let mut names: BTreeMap<&str, String> = marks().map(|mark| (mark, mark.to_owned())).collect();
    let all: Vec<&str> = names.keys().copied().collect();
    for some in all.chunks(PLACES) {
        let mut question = Box::new(Question::new());
        for mark in some {
            let place = mark.rsplit_once("+0x").and_then(|(file, address)| {
                question.add(file.as_bytes(), usize::from_str_radix(address, 16).ok()?)
            });
            if place.is_none() {
                question.add(b"?", 0);
            }
        }
        question.ask();
        for (at, mark) in some.iter().enumerate() {
            let name = match question.answer(at) {
                Named { function: "", line: "" } => continue,
                Named { function, line: "" } => format!("{function} ({mark})"),
                Named { function: "", line } => line.to_owned(),
                Named { function, line } => format!("{function} at {line}"),
            };
            names.insert(mark, name);
        }
    }
    let mut parts = text.split(OPEN);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(CLOSE) {
            Some((mark, rest)) => {
                named += names.get(mark).map_or(mark, String::as_str);
                named += rest;
            }
            None => named.extend(["\u{2039}", part]),
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi::base::call_stack::mark;

    #[test]
    fn a_question_that_nobody_answers_has_no_names() {
        let mut question = Question::new();
        assert_eq!(question.add(b"/no/such/file", 0x1139), Some(0));
        question.ask();
        // Where the tool is installed it knows nothing of that file.
        assert_eq!(question.answer(0), Named::default());
        assert_eq!(question.answer(7), Named::default());
        while question.add(b"/a/file", 1).is_some() {}
        assert_eq!(question.count, PLACES);
        let mut long = Question::new();
        assert_eq!(long.add(&[b'x'; 13 << 10], 1), None);
        assert_eq!(long.add(b"x", 1), Some(0));
    }

    #[test]
    fn replies_are_read_line_by_line() {
        let mut question = Question::new();
        let reply = b"main\tdead.c:34\n\t\nodd\tx.f90:7\npart";
        question.reply[..reply.len()].copy_from_slice(reply);
        question.replied = reply.len();
        assert_eq!(question.answer(0), Named { function: "main", line: "dead.c:34" });
        assert_eq!(question.answer(1), Named::default());
        assert_eq!(question.answer(2), Named { function: "odd", line: "x.f90:7" });
        assert_eq!(question.answer(3), Named::default());
    }

    #[test]
    fn marks_without_a_name_stay_as_they_are() {
        let text = format!("called at {}, and \u{2039} alone", mark("/no/such", 0x10));
        assert_eq!(with_lines(&text), "called at /no/such+0x10, and \u{2039} alone");
        assert_eq!(with_lines("nothing"), "nothing");
    }
}
