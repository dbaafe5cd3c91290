//! What those do who are not of a job: run by `tests/tests/hostile.rs` beside a job.
//!
//! | step | |
//! |---|---|
//! | `record COUNT FILE` | keeps datagrams of UDP that pass on this host's interfaces |
//! | `inject COUNT FILE` | sends such datagrams to where they went, unchanged and changed, from this host's address and from that of the sender |
//! | `inject COUNT FILE ADDRESS` | the same, and each of them also to this address, as if it were of the job |
//! | `alternate COUNT FILE RATE SLICE` | the same, at most RATE in a second, in turn for SLICE milliseconds to a port that is not the job's and to the job; `began` is when, in microseconds of the monotonic clock |
//! | `attach UID PID...` | as another user: connects to all sockets with abstract names, and tries to reach the memory of processes |
//! | `ports UID COUNT READY NAME` | as another user: connects to all ports at which processes of that name listen; then writes to the file READY, and keeps the connections open until it is removed |

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(100);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["record", count, file] => record(number(count), file),
        ["inject", count, file] => inject(number(count), &recorded(file), u64::MAX, None),
        ["inject", count, file, to] => {
            let mut all = recorded(file);
            let to = to.parse().expect("an address");
            let more: Vec<Datagram> = all.iter().map(|one| Datagram { to, ..one.clone() }).collect();
            all.extend(more);
            inject(number(count), &all, u64::MAX, None);
        }
        ["alternate", count, file, rate, slice] => {
            let slice = Duration::from_millis(number(slice));
            inject(number(count), &recorded(file), number(rate), Some(slice));
        }
        ["attach", uid, ref pids @ ..] => attach(number(uid), pids),
        ["ports", uid, count, ready, name] => ports(number(uid), number(count), ready, name),
        _ => panic!("hostile: no such step: {words:?}"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// From here on this process is another user's.
fn become_user(uid: u64) {
    let id = uid as u32;
    setgroups(&[])
        .and_then(|()| setgid(Gid::from_raw(id)))
        .and_then(|()| setuid(Uid::from_raw(id)))
        .expect("root can be another user");
}

/// A datagram: sender, receiver, payload.
#[derive(Clone)]
struct Datagram {
    from: SocketAddrV4,
    to: SocketAddrV4,
    payload: Vec<u8>,
}

/// The datagram in a packet of IPv4.
fn datagram(packet: &[u8]) -> Option<Datagram> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let port =
        |at: usize| Some(u16::from_be_bytes([*packet.get(header + at)?, *packet.get(header + at + 1)?]));
    let is_udp = packet[0] >> 4 == 4 && *packet.get(9)? == 17;
    let found = Datagram {
        from: SocketAddrV4::new(address(12)?, port(0)?),
        to: SocketAddrV4::new(address(16)?, port(2)?),
        payload: packet.get(header + 8..)?.to_vec(),
    };
    // What is longer is a train that the kernel has not cut yet.
    (is_udp && found.payload.len() >= 32 && found.payload.len() <= 1472).then_some(found)
}

fn record(count: u64, file: &str) {
    // SAFETY: a call without pointers; the result is checked, and owned from then on.
    let socket = unsafe {
        let every = i32::from((libc::ETH_P_ALL as u16).to_be());
        let descriptor = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, every);
        assert!(descriptor >= 0, "a packet socket: {}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(descriptor)
    };
    let mut socket = File::from(socket);
    let start = Instant::now();
    let (mut kept, mut found, mut bytes) = (Vec::new(), 0, vec![0; 1 << 16]);
    while found < count {
        assert!(start.elapsed() < DEADLINE, "only {found} of {count} datagrams have passed");
        let len = socket.read(&mut bytes).expect("a packet");
        let Some(one) = datagram(&bytes[..len]) else { continue };
        found += 1;
        for address in [one.from, one.to] {
            kept.extend(address.ip().octets());
            kept.extend(address.port().to_le_bytes());
        }
        kept.extend((one.payload.len() as u32).to_le_bytes());
        kept.extend(one.payload);
    }
    fs::write(file, kept).expect("a file can be written");
}

fn recorded(file: &str) -> Vec<Datagram> {
    let bytes = fs::read(file).expect("it was recorded");
    let mut rest = &bytes[..];
    let mut take = |len: usize| {
        let (taken, after) = rest.split_at(len);
        rest = after;
        (taken.to_vec(), after.is_empty())
    };
    let mut all = Vec::new();
    loop {
        let mut address = || {
            let (bytes, _) = take(6);
            let octets: [u8; 4] = bytes[..4].try_into().expect("four bytes");
            SocketAddrV4::new(octets.into(), u16::from_le_bytes([bytes[4], bytes[5]]))
        };
        let (from, to) = (address(), address());
        let len = u32::from_le_bytes(take(4).0.try_into().expect("four bytes"));
        let (payload, is_last) = take(len as usize);
        all.push(Datagram { from, to, payload });
        if is_last {
            return all;
        }
    }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// With slices, each second one of them goes to the job, from the second one on.
fn inject(count: u64, all: &[Datagram], rate: u64, slice: Option<Duration>) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // SAFETY: as in `record`.
    let raw = unsafe {
        let descriptor = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW);
        assert!(descriptor >= 0, "a raw socket: {}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(descriptor)
    };
    let mut random = Random(0x5eed);
    let mut sent = 0_u64;
    let start = Instant::now();
    println!("began {}", monotonic_microseconds());
    for number in 0..count {
        assert!(start.elapsed() < 3 * DEADLINE, "only {number} of {count} were sent");
        if rate != u64::MAX {
            let at = Duration::from_nanos(1_000_000_000 / rate * number);
            std::thread::sleep(at.saturating_sub(start.elapsed()));
        }
        let past =
            slice.is_some_and(|slice| (start.elapsed().as_nanos() / slice.as_nanos()).is_multiple_of(2));
        let one = &all[random.below(all.len())];
        let to = if past { SocketAddrV4::new(*one.to.ip(), 9) } else { one.to };
        let mut payload = one.payload.clone();
        match random.below(8) {
            0 | 1 => {}
            2 => payload.truncate(random.below(one.payload.len())),
            3 => payload.extend((0..random.below(64)).map(|byte| byte as u8)),
            // The envelope of the datagram, with another number: that of one to come.
            4 => {
                let ahead = u64::from_le_bytes(payload[8..16].try_into().expect("eight bytes"));
                let ahead = ahead + random.below(100_000) as u64;
                payload[8..16].copy_from_slice(&ahead.to_le_bytes());
            }
            5 => payload[16..].fill(random.below(256) as u8),
            _ => {
                let at = random.below(payload.len());
                payload[at] ^= 1 << random.below(8);
            }
        }
        let done = if random.below(2) == 0 {
            socket.send_to(&payload, to).is_ok()
        } else {
            send_as(&raw, one.from, to, &payload)
        };
        sent += u64::from(done);
    }
    println!("injected {sent}");
    assert!(sent > count / 2, "{sent} of {count} were sent");
}

fn monotonic_microseconds() -> i64 {
    // SAFETY: the pointer is to a value for which all zero is valid.
    let now = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now
    };
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Sends a datagram whose source address is another host's.
fn send_as(raw: &OwnedFd, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> bool {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from.ip().octets());
    packet.extend(to.ip().octets());
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    // SAFETY: all zero is a valid address; the pointers are to what they say, for the
    // time of the call.
    let sent = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as u16;
        address.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
        libc::sendto(
            raw.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    sent == packet.len() as isize
}

/// The abstract names at which sockets of whole messages listen.
fn names() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/unix").expect("a list of sockets");
    let listening = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, flags, kind, _, _, name] = fields[..] else { return None };
        (flags == "00010000" && kind == "0005").then(|| name.strip_prefix('@').map(str::to_owned))?
    };
    table.lines().filter_map(listening).collect()
}

/// A connection for whole messages; `None` when it is refused.
fn connect(name: &str) -> Option<OwnedFd> {
    // SAFETY: the pointers are to what they say, for the time of the call; a new descriptor is
    // owned from then on.
    unsafe {
        let flags = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        let descriptor = libc::socket(libc::AF_UNIX, flags, 0);
        assert!(descriptor >= 0, "a socket: {}", std::io::Error::last_os_error());
        let socket = OwnedFd::from_raw_fd(descriptor);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = byte as libc::c_char;
        }
        let len = (3 + name.len()) as libc::socklen_t;
        let status = libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len);
        (status == 0).then_some(socket)
    }
}

fn attach(uid: u64, pids: &[&str]) {
    become_user(uid);
    let names = names();
    let mut connected = 0;
    for round in 0..200 {
        let mut kept = Vec::new();
        for name in &names {
            // A task that is busy has a full queue for a moment.
            let Some(socket) = connect(name) else { continue };
            connected += 1;
            let stream = File::from(socket);
            let _ = match round % 4 {
                0 => (&stream).write(&[]),
                1 => (&stream).write(&[1, 2, 3]),
                2 => (&stream).write(&[0xff; 1024]),
                _ => (&stream).write(&vec![7; 100_000]),
            };
            kept.push(stream);
        }
        for mut stream in kept {
            // The other end is closed, and has sent nothing.
            let read = stream.read(&mut [0; 64]);
            let refused = read
                .as_ref()
                .map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |got| *got == 0);
            assert!(refused, "a task has sent {read:?}");
        }
    }
    let mut tried = 0;
    for pid in pids {
        for path in ["mem", "maps", "environ", "fd/0", "map_files"] {
            let path = format!("/proc/{pid}/{path}");
            let opened = if path.ends_with("map_files") {
                fs::read_dir(&path).map(drop)
            } else {
                File::open(&path).map(drop)
            };
            let error = opened.expect_err(&path);
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}: {error}");
            tried += 1;
        }
        for descriptor in 0..64 {
            assert!(
                File::open(format!("/proc/{pid}/fd/{descriptor}")).is_err(),
                "descriptor {descriptor} of {pid}"
            );
        }
    }
    println!("names {} connected {connected} tried {tried}", names.len());
}

/// The ports of TCP over IPv4 or IPv6 at which processes of this name listen.
fn listening(name: &str) -> BTreeSet<u16> {
    let mut sockets = BTreeSet::new();
    for process in fs::read_dir("/proc").expect("processes").flatten() {
        let comm = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        // Launchers pass their own sockets on to `poe --task`.
        if comm.trim() == name && !command.contains("--task") {
            let descriptors = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            sockets.extend(descriptors.filter_map(|one| fs::read_link(one.path()).ok()));
        }
    }
    let mut found = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_there = sockets.contains(Path::new(&format!("socket:[{}]", fields[9])));
            let port = fields[1].rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            found.extend(port.filter(|_| is_there && fields[3] == "0A"));
        }
    }
    found
}

fn ports(uid: u64, count: u64, ready: &str, name: &str) {
    let found = listening(name);
    assert!(!found.is_empty(), "no process {name} listens");
    // Another user may not see its folder.
    let mut marked = File::create(ready).expect("a file can be written");
    become_user(uid);
    let mut kept = Vec::new();
    let mut connected = 0;
    for number in 0..count {
        for port in &found {
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port);
            let Ok(mut stream) = TcpStream::connect_timeout(&address.into(), Duration::from_secs(2)) else {
                continue;
            };
            connected += 1;
            let _ = stream.set_nonblocking(true);
            let _ = match number % 4 {
                0 => Ok(()),
                1 => stream.write_all(b"POELINK1half"),
                2 => stream.write_all(&[b"POELINK1".as_slice(), &[b'0'; 37]].concat()),
                _ => stream.write_all(&[b'x'; 200_000]),
            };
            if kept.len() < 900 {
                kept.push(stream);
            }
        }
    }
    println!("ports {} connected {connected}", found.len());
    marked.write_all(b"ready").expect("a file can be written");
    let start = Instant::now();
    while marked.metadata().is_ok_and(|file| file.nlink() != 0) && start.elapsed() < DEADLINE {
        std::thread::sleep(Duration::from_millis(50));
    }
}
