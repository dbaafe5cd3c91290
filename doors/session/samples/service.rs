//! A service that lends memory, and a client that puts into it; no launcher has started them.
//!
//! `session_service serve PATH` serves one client after the other at a Unix socket;
//! `session_service call PATH` is such a client.

use openlapi_session::{Error, Listener, Result, Session, Settings, connect_unix};

/// What the service lends to each client.
const ROOM: usize = 4096;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["serve", path] => serve(path),
        ["call", path] => call(path),
        _ => {
            eprintln!("usage: session_service serve|call PATH");
            std::process::exit(2);
        }
    };
    if let Err(error) = result {
        eprintln!("session_service: {error}");
        std::process::exit(1);
    }
}

fn serve(path: &str) -> Result<()> {
    let mut listener = Listener::unix(path, &Settings::default())?;
    loop {
        match listener.accept(None) {
            Ok(Some(session)) => println!("{}", lend(session).unwrap_or_else(|error| error.to_string())),
            Ok(None) => {}
            Err(error) => eprintln!("session_service: {error}"),
        }
    }
}

/// Lends memory to a client until it closes the session; returns what it has left there.
fn lend(session: Session) -> Result<String> {
    let mut memory = vec![0_u8; ROOM];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    session.send(b"memory", &address.to_le_bytes())?;
    match session.receive(None) {
        Err(Error::Closed) => {}
        other => drop(other?),
    }
    session.close()?;
    let end = memory.iter().position(|byte| *byte == 0).unwrap_or(ROOM);
    Ok(String::from_utf8_lossy(&memory[..end]).into_owned())
}

fn call(path: &str) -> Result<()> {
    let session = connect_unix(path, &Settings::default())?;
    let Some(message) = session.receive(None)? else { return Ok(()) };
    let Ok(address) = message.data.try_into().map(u64::from_le_bytes) else { return Ok(()) };
    let text = format!("process {} was here, by {}", std::process::id(), session.route());
    // SAFETY: the service lends ROOM bytes there until this side closes the session, and the text
    // lives as long.
    unsafe { session.put(text.as_ptr(), text.len(), address)? };
    session.close()
}
