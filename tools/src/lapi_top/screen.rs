//! The terminal: another screen, keys without a line end, and all as it was afterwards, also when a
//! signal ends it.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use openlapi::base::patient::Patient;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::job::Failure;
use crate::poe::now_ignored;

/// Another screen, without a cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line.
const HOME: &str = "\x1b[H";
/// The rest of a line, and the rest of the screen, become empty.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// The terminal while it is used.
pub(super) struct Screen {
    before: Termios,
    signals: SignalFd,
}

/// What was pressed, or has come as a signal.
pub(super) enum Key {
    Quit,
    /// A signal that ends it.
    Ended(Signal),
    /// Any other key, or another size.
    Other,
}

/// The signals that end a program.
const ENDS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Whether there is a terminal, for keys and to draw on.
pub(super) fn check() -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::NoTerminal("output"));
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::NoTerminal("input"));
    }
    match std::env::var_os("TERM") {
        Some(kind) if kind == "dumb" => Err(Failure::Dumb("TERM is \"dumb\"")),
        Some(kind) if !kind.is_empty() => Ok(()),
        _ => Err(Failure::Dumb("TERM is not set")),
    }
}

impl Screen {
    /// Takes the terminal that [`check`] has found.
    pub(super) fn open() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        // Before the terminal changes.
        let signals = signals()?;
        let mut now = before.clone();
        // Ctrl-C is a key: the terminal must become what it was.
        now.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        // Ctrl-S would hold up a write, and with it the signals that are read between writes.
        now.input_modes -= InputModes::IXON;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &now)?;
        let screen = Self { before, signals };
        write(BEGIN)?;
        Ok(screen)
    }

    /// Lines and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        // A terminal that does not know its size says 0.
        let known = |cells: u16, usual: usize| if cells == 0 { usual } else { usize::from(cells) };
        let size = tcgetwinsize(rustix::stdio::stdout());
        size.map_or((24, 80), |size| (known(size.ws_row, 24), known(size.ws_col, 80)))
    }

    /// Shows a text that fits.
    pub(super) fn show(&self, text: &str) -> io::Result<()> {
        let lines: Vec<&str> = text.lines().collect();
        write(&format!("{HOME}{}{CLEAR_LINE}{CLEAR_REST}", lines.join(&format!("{CLEAR_LINE}\r\n"))))
    }

    /// The next key, if one is pressed until then.
    pub(super) fn key_until(&self, until: Instant) -> io::Result<Option<Key>> {
        let stdin = rustix::stdio::stdin();
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let sources = [stdin, self.signals.as_fd()];
        let mut polled = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
        match poll(&mut polled, Some(&left)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(info) = self.signals.read_signal()? {
            let ends = ENDS.into_iter().find(|signal| *signal as u32 == info.ssi_signo);
            return Ok(Some(ends.map_or(Key::Other, Key::Ended)));
        }
        if polled[0].revents().is_empty() {
            return Ok(None);
        }
        let mut keys = [0; 64];
        let count = rustix::io::read(stdin, &mut keys)?;
        // 3 is Ctrl-C; a terminal that is gone is at its end.
        let quits = count == 0 || keys[..count].iter().any(|key| matches!(key, b'q' | b'Q' | 3));
        Ok(Some(if quits { Key::Quit } else { Key::Other }))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(END);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Those that end it, unless it was started to ignore them, and that of another size, one after the
/// other.
fn signals() -> io::Result<SignalFd> {
    let mut taken: SigSet = ENDS.into_iter().filter(|signal| !now_ignored(*signal)).collect();
    taken.add(Signal::SIGWINCH);
    taken.thread_block()?;
    Ok(SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = Patient(io::stdout());
    out.write_all(text.as_bytes())?;
    out.flush()
}
