//! `lapi_top`: a live view of a running job: tasks, what they send and receive, and who
//! waits for whom.
//!
//! `poe` asks the tasks when a viewer asks (`poe::reports::viewers`), and tasks keep the
//! statistics anyway, so a job without a viewer pays nothing.

mod job;
mod options;
mod screen;
mod view;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Instant;

use job::{Failure, Source};
use nix::sys::signal::Signal;
use openlapi::base::patient::{self, Patient};
use options::{Options, Request};
use screen::{Key, Screen};
use view::View;

/// The exit status where the arguments are not valid.
const USAGE: u8 = 2;

/// Runs it with the arguments that follow its name. The status is 0 also when the job has ended
/// meanwhile, 1 when no job is found, 128 + N when signal N has ended it.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let options = match options::parse(arguments) {
        Ok(Request::Print(text)) => {
            return match patient::print(&text) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    say(Failure::Output(error));
                    ExitCode::FAILURE
                }
            };
        }
        Ok(Request::Show(options)) => options,
        Err(wrong) => {
            say(format_args!("{wrong}\n{}", options::USAGE));
            return ExitCode::from(USAGE);
        }
    };
    let shown = Source::find(options.pid)
        .and_then(|source| if options.batch { batch(&source, &options) } else { live(&source, &options) });
    match shown {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(signal)) => ExitCode::from(128 + signal as u8),
        Err(Failure::Ended) => {
            say(Failure::Ended);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(failure);
            ExitCode::FAILURE
        }
    }
}

fn say(message: impl std::fmt::Display) {
    crate::said::say("lapi_top", message);
}

/// Writes the states one below the other. A signal ends the process.
fn batch(source: &Source, options: &Options) -> Result<Option<Signal>, Failure> {
    let mut view = View::new(source);
    let mut left = options.times;
    loop {
        let text = view.next(source.ask()?, None);
        let mut out = Patient(io::stdout());
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            // Nobody reads on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            Err(error) => return Err(Failure::Output(error)),
        }
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(None);
        }
        sleep(options.delay);
    }
}

/// Shows them on the terminal until `q` is pressed or a signal comes, which is returned.
fn live(source: &Source, options: &Options) -> Result<Option<Signal>, Failure> {
    screen::check()?;
    let mut view = View::new(source);
    let mut job = source.ask()?;
    let screen = Screen::open().map_err(Failure::Terminal)?;
    let mut left = options.times;
    loop {
        screen.show(&view.next(job, Some(screen.size()))).map_err(Failure::Terminal)?;
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(None);
        }
        let until = Instant::now() + options.delay;
        match screen.key_until(until).map_err(Failure::Terminal)? {
            Some(Key::Quit) => return Ok(None),
            Some(Key::Ended(signal)) => return Ok(Some(signal)),
            Some(Key::Other) | None => {}
        }
        job = source.ask()?;
    }
}
