//! `rpmemd`: has a pool's part files on this host, and serves one client of librpmem by its
//! standard input and output. See rpmemd(1).

mod config;
mod files;
mod flush;
mod log;
mod mapping;
mod options;
mod pool;
mod remove;
mod serve;

use config::Config;
use options::{Options, USAGE};
use rpmem::{Failure, Result};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match options::parse(&words) {
        Ok(options) => options,
        Err(failure) => {
            eprintln!("rpmemd: {failure}\n{USAGE}");
            return exit(&failure);
        }
    };
    if options.help || options.version {
        let text = if options.help { USAGE } else { concat!("rpmemd ", env!("CARGO_PKG_VERSION"), "\n") };
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rpmemd: {failure}");
            exit(&failure)
        }
    }
}

/// The exit status says the errno.
fn exit(failure: &Failure) -> ExitCode {
    u8::try_from(failure.errno).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn run(options: &Options) -> Result<()> {
    let home = std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
    let mut config = Config::new(&home);
    match &options.config {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::invalid(format!("{path}: {error}")))?;
            config.read(path, &text)?;
        }
        None => {
            for path in ["/etc/rpmemd/rpmemd.conf".to_owned(), format!("{home}/.rpmemd.conf")] {
                match std::fs::read_to_string(&path) {
                    Ok(text) => config.read(&path, &text)?,
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                    Err(error) => return Err(Failure::invalid(format!("{path}: {error}"))),
                }
            }
        }
    }
    for (key, value) in &options.settings {
        config.set(key, value)?;
    }
    config.check()?;
    log::open(config.log_level, (!config.use_syslog).then_some(&*config.log_file));
    if config.persist_apm {
        log::notice(
            "persist-apm: whether caches are bypassed cannot be seen from here; the general method is used",
        );
    }
    let folder = Path::new(&config.poolset_dir);
    match &options.remove {
        Some(set) => remove::remove(folder, set, options.force, options.pool_set),
        None => serve::serve(folder, options.threads),
    }
    .inspect_err(|failure| log::error(&failure.text))
}
