//! Against a launcher of our own on a pair of sockets; the real ones are in
//! `tests/tests/launchers/exchange.rs`.

use super::*;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread;

/// Lets the task say no more until the launcher has taken so many bytes, which are no lines.
fn fill(own: &mut UnixStream) -> u64 {
    own.set_nonblocking(true).expect("a socket");
    let filled = std::iter::from_fn(|| own.write(b"x").ok()).count();
    own.set_nonblocking(false).expect("a socket");
    filled as u64
}

/// Writes byte by byte. The task has taken what came before each 64th, so that it finds parts of
/// a line; to wait for each byte would take long on a crowded machine.
fn write_in_parts(writer: &mut UnixStream, text: &str) {
    for (at, byte) in text.bytes().enumerate() {
        writer.write_all(&[byte]).expect("it reads");
        let mut waiting: libc::c_int = 1;
        while at % 64 == 0 && waiting != 0 {
            thread::yield_now();
            // SAFETY: the number is writable.
            let asked = unsafe { libc::ioctl(writer.as_raw_fd(), libc::TIOCOUTQ, &raw mut waiting) };
            assert_eq!(asked, 0, "a socket");
        }
    }
}

/// Serves one task as Hydra does, after the bytes that fill the buffer; a line that is too long for
/// Slurm is an error.
fn serve(stream: UnixStream, filled: u64) -> thread::JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut table = HashMap::new();
        let mut lines = Vec::new();
        let mut writer = stream.try_clone().expect("a second descriptor");
        // The task finds the buffer full meanwhile.
        thread::sleep(Duration::from_millis(50));
        let mut reader = BufReader::new(stream);
        std::io::copy(&mut reader.by_ref().take(filled), &mut std::io::sink()).expect("bytes");
        for line in reader.lines() {
            let line = line.expect("a line");
            assert!(line.len() < 1023, "Slurm takes no longer one");
            let word = |name: &str| {
                line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
            };
            let reply = match word("cmd").expect("a command").as_str() {
                "init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1".to_owned(),
                "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".to_owned(),
                "put" => {
                    let (key, value) = (word("key").expect("a key"), word("value").expect("a value"));
                    assert!(key.len() < 64 && value.len() < 1024);
                    table.insert(key, value);
                    "cmd=put_result rc=0 msg=success".to_owned()
                }
                "get" => match table.get(&word("key").expect("a key")) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
                },
                "barrier_in" if table.contains_key("lapi-2-0-late-0") => {
                    lines.push(line);
                    continue;
                }
                "barrier_in" => "cmd=barrier_out".to_owned(),
                other => panic!("{other} was not to be said"),
            };
            lines.push(line);
            write_in_parts(&mut writer, &format!("{reply}\n"));
        }
        lines
    })
}

#[test]
fn a_conversation() {
    let soon = || Instant::now() + Duration::from_secs(20);
    let identity = Identity { tasks: 2, ..Identity::alone() };
    let conversation = Arc::default();
    for (value, why) in [("x", "no descriptor"), ("-1", "no descriptor"), ("999999", "not an open socket")] {
        let error =
            open(&identity, 1, &|_| Some(value.to_owned()), &conversation, soon()).err().expect("an error");
        assert!(error.detail.contains(why) && error.detail.contains(value), "{}", error.detail);
    }
    let file = std::fs::File::open("/dev/null").expect("a file");
    let error = open(&identity, 1, &|_| Some(file.as_raw_fd().to_string()), &conversation, soon());
    let error = error.err().expect("an error");
    assert!(error.detail.contains("not an open socket"), "{}", error.detail);

    let (mut own, launchers) = UnixStream::pair().expect("a pair of sockets");
    let launcher = serve(launchers, fill(&mut own));
    let env = |name: &str| (name == "PMI_FD").then(|| own.as_raw_fd().to_string());
    let value: Vec<u8> = (0..5000_u32).map(|at| (at * 7) as u8).collect();
    let mut first = open(&identity, 1, &env, &conversation, soon()).expect("the launcher replies");
    let mut second = open(&identity, 2, &env, &conversation, soon()).expect("one conversation");
    first.publish("address", &value).expect("it is taken");
    second.publish("address", b"other").expect("it is taken");
    first.publish("empty", b"").expect("it is taken");
    first.fence(soon()).expect("all have come");
    assert_eq!(first.lookup(0, "address").as_deref(), Ok(&value[..]));
    assert_eq!(first.lookup(0, "empty").as_deref(), Ok(&b""[..]));
    assert_eq!(second.lookup(0, "address").as_deref(), Ok(&b"other"[..]));
    let error = first.lookup(1, "address").unwrap_err();
    assert!(error.detail.contains("task 1") && error.detail.contains("address"), "{}", error.detail);
    assert!(first.publish(&"k".repeat(60), b"").unwrap_err().detail.contains("at most 63 characters"));
    assert!(first.publish("a b", b"").is_err());
    assert!(first.publish("long", &vec![0; (1 << 20) + 1]).unwrap_err().detail.contains("1048577"));
    assert_eq!(first.lookup(0, "empty").as_deref(), Ok(&b""[..]), "refusals do not end the conversation");

    // After a deadline the conversation cannot continue.
    second.publish("late", b"").expect("it is taken");
    let error = second.fence(Instant::now() + Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.code, crate::abi::LAPI_ERR_NO_CONNECTIVITY);
    assert_eq!(first.lookup(0, "empty").unwrap_err(), error);

    drop(own);
    let lines = launcher.join().expect("the launcher was content");
    assert_eq!(lines.iter().filter(|line| line.starts_with("cmd=init")).count(), 1);
}

#[test]
fn a_reply_after_the_deadline_is_not_that_of_the_next_opening() {
    let identity = Identity { tasks: 2, ..Identity::alone() };
    let conversation = Arc::default();
    let (own, mut launcher) = UnixStream::pair().expect("a pair of sockets");
    let env = |name: &str| (name == "PMI_FD").then(|| own.as_raw_fd().to_string());
    let soon = Instant::now() + Duration::from_millis(50);
    let late = open(&identity, 1, &env, &conversation, soon).err().expect("no reply has come");
    assert_eq!(late.code, crate::abi::LAPI_ERR_NO_CONNECTIVITY);
    let reply = b"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    launcher.write_all(reply).expect("the socket takes it");
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(open(&identity, 2, &env, &conversation, soon).err(), Some(late));
    let mut said = [0; 500];
    let len = launcher.read(&mut said).expect("something was said");
    assert_eq!(String::from_utf8_lossy(&said[..len]).lines().count(), 1, "\"init\" is said once");
}

#[test]
fn a_launcher_that_takes_nothing_is_late() {
    let identity = Identity { tasks: 2, ..Identity::alone() };
    let (mut own, _launcher) = UnixStream::pair().expect("a pair of sockets");
    fill(&mut own);
    let env = |name: &str| (name == "PMI_FD").then(|| own.as_raw_fd().to_string());
    let soon = Instant::now() + Duration::from_millis(50);
    let late = open(&identity, 1, &env, &Arc::default(), soon).err().expect("nothing was said");
    assert_eq!(late.code, crate::abi::LAPI_ERR_NO_CONNECTIVITY, "{}", late.detail);
    assert!(late.detail.contains("has not replied to init in time"), "{}", late.detail);
}
