//! The stack of a thread that a signal has interrupted, with the names of its places.

use super::line::Line;
use super::place::Symbol;
use super::registers::Registers;
use crate::report::lines::{Named, Question};
use libc::{c_int, c_void};
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::mem;
use std::ptr;

/// The deepest stack that is shown.
const FRAMES: usize = 48;

/// The frames from the interrupted one on, and how to find their lines.
pub(super) fn write(registers: &mut Registers) {
    let mut number = 0;
    let left = Symbol::of(registers.instruction).file.is_null();
    if left {
        // A call to where no code is, through a pointer that is not valid. The unwinder would read
        // there: it begins at the caller.
        let mut line = Line::new();
        let _ = Symbol::of(registers.instruction).write(&mut line, number, Named::default());
        line.end();
        number += 1;
        if !registers.leave() {
            return;
        }
    }
    let mut frames = [ptr::null_mut(); FRAMES];
    // SAFETY: the array has that room.
    let count =
        unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) }.clamp(0, FRAMES as c_int) as usize;
    let frames = &frames[..count];
    // This handler and what called it come first.
    let first = frames.iter().position(|frame| *frame as usize == registers.instruction).unwrap_or(0);
    let frames = &frames[first..];
    // What follows reads files and starts a process: with a file system that does not
    // answer, this is all.
    addresses(frames);
    let question = question(frames, left);
    let mut known = false;
    for (at, same) in frames.chunk_by(|one, next| one == next).enumerate() {
        let mut line = Line::new();
        let named = question.answer(at);
        known |= !named.line.is_empty();
        let _ = Symbol::of(same[0] as usize).write(&mut line, number, named);
        if same.len() > 1 {
            let _ = write!(line, ", {} times", same.len());
        }
        line.end();
        number += same.len();
    }
    if !known {
        lines_of_program(frames, left);
    }
}

/// The frames as addresses of files.
fn addresses(frames: &[*mut c_void]) {
    let begin = || {
        let mut line = Line::new();
        line.add(b"  stack:");
        line
    };
    let (mut line, none) = (begin(), begin().length());
    for same in frames.chunk_by(|one, next| one == next) {
        let place = Symbol::of(same[0] as usize);
        line.add(b" ");
        if !place.file.is_null() {
            // SAFETY: a text of the loader.
            let file = unsafe { CStr::from_ptr(place.file) }.to_bytes();
            line.add(file.rsplit(|byte| *byte == b'/').next().unwrap_or(file));
            line.add(b"+");
        }
        let _ = write!(line, "{:#x}", place.in_file);
        if line.is_nearly_full() {
            mem::replace(&mut line, begin()).end();
        }
    }
    if line.length() > none {
        line.end();
    }
}

/// What a helper process says of these frames.
/// `returns`: the first of them is the address of a return too.
fn question(frames: &[*mut c_void], returns: bool) -> &'static Question {
    /// The question, made once in the life of a process.
    struct Once(UnsafeCell<Question>);
    // SAFETY: only the one thread that is in the handler gets here.
    unsafe impl Sync for Once {}
    static QUESTION: Once = Once(UnsafeCell::new(Question::new()));
    // SAFETY: once in the life of a process, by the one thread that is in the handler.
    let question = unsafe { &mut *QUESTION.0.get() };
    for (number, frame) in frames.chunk_by(|one, next| one == next).map(|same| same[0]).enumerate() {
        // The call is before the address of a return.
        let place = Symbol::of(frame as usize - usize::from(returns || number > 0));
        // SAFETY: null, or a text of the loader.
        let file = unsafe { place.file.as_ref() }.map_or(c"", |file| unsafe { CStr::from_ptr(file) });
        if question.add(file.to_bytes(), place.in_file).is_none() {
            break;
        }
    }
    question.ask();
    question
}

/// The command that names the source lines of the program's own frames.
/// `returns`: the first of them is the address of a return too.
fn lines_of_program(frames: &[*mut c_void], returns: bool) {
    let mut line = Line::new();
    let mut program: *const libc::c_char = ptr::null();
    for (number, frame) in frames.chunk_by(|one, next| one == next).map(|same| same[0]).enumerate() {
        // The address is that of a return, usually but for the first: the call is before it.
        let place = Symbol::of(frame as usize - usize::from(returns || number > 0));
        if place.is_library || place.file.is_null() || !(program.is_null() || program == place.file) {
            continue;
        }
        if program.is_null() {
            program = place.file;
            // SAFETY: the loader's name of the file, which ends in a zero.
            let has_blank = unsafe { !libc::strchr(program, c_int::from(b' ')).is_null() };
            let quote = if has_blank { "'" } else { "" };
            let _ = write!(line, "source lines: addr2line -Cfpie {quote}");
            line.text(program);
            let _ = write!(line, "{quote}");
        }
        let _ = write!(line, " {:#x}", place.in_file);
    }
    if !program.is_null() {
        line.end();
    }
}
