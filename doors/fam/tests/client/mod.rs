//! A daemon with a folder of its own, and a client that speaks the messages.
#![allow(dead_code, reason = "each test uses a part of it")]

use fam::files::Address;
use fam::reach::reach;
use fam::wire::{
    Answer, Ask, Attributes, Change, Kind, Message, Role, Sealed, Shape, VERSION, decode_answer, encode,
};
use fam::{Failure, FamError};
use openlapi_session::{Routes, Session, Settings};
use openlapi_tests::Ports;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Volatile memory, interleaved, with the region's rights.
pub const VOLATILE: Attributes = Attributes { redundancy: 0, memory: 1, interleave: 0, permission: 0 };

/// Persistent memory.
pub fn persistent() -> Attributes {
    Attributes { memory: 2, ..VOLATILE }
}

/// The files of a pool on this host.
pub struct Host {
    folder: PathBuf,
    ports: Ports,
}

impl Host {
    /// A pool with this many servers of memory, the first one the keeper's.
    pub fn new(name: &str, servers: u16, is_persistent: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("openfam-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let config = folder.join("config");
        fs::create_dir_all(&config).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        // The keeper's, and one of each server of memory.
        let ports = Ports::claim(1 + usize::from(servers));
        let numbers = ports.numbers();
        let write = |name: &str, text: String| fs::write(config.join(name), text).expect("a file");
        write(
            "fam_pe_config.yaml",
            format!("fam_client_interface_service_address: 127.0.0.1:{}\n", numbers[0]),
        );
        let entry = |(server, port)| format!("{server}:127.0.0.1:{port}");
        let list: Vec<String> = numbers[1..].iter().enumerate().map(entry).collect();
        write("fam_client_interface_config.yaml", format!("memsrv_list: [{}]\n", list.join(", ")));
        let mut memory = format!("fam_backup_path: {}\nMemservers:\n", folder.join("backup").display());
        for server in 0..servers {
            let kind = if is_persistent { "persistent" } else { "volatile" };
            let path = folder.join(format!("memory{server}"));
            fs::create_dir(&path).expect("a folder");
            memory += &format!(" {server}:\n  memory_type: {kind}\n  fam_path: {}\n", path.display());
        }
        write("fam_memoryserver_config.yaml", memory);
        for name in ["backup", "metadata"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        let path = folder.join("metadata");
        let text = format!("metadata_path: {}\ndataitem_interleave_size: 4096\n", path.display());
        write("fam_metadata_config.yaml", text);
        Self { folder, ports }
    }

    /// A folder of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where the keeper listens.
    pub fn address(&self) -> Address {
        Address { host: "127.0.0.1".to_owned(), port: self.ports.numbers()[0] }
    }

    /// Where a server of memory listens.
    pub fn server_address(&self, server: u64) -> Address {
        let at = if server == 0 { 0 } else { 1 + server as usize };
        Address { host: "127.0.0.1".to_owned(), port: self.ports.numbers()[at] }
    }

    /// A command that runs the daemon with these words.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openfamd"));
        command.arg("--config").arg(self.path("config")).args(words).env("HOME", self.path("home"));
        command
    }

    /// Starts the keeper.
    pub fn keeper(&self) -> Daemon {
        Daemon::start(self.command(&[]))
    }

    /// Starts a server of memory.
    pub fn server(&self, number: u64) -> Daemon {
        Daemon::start(self.command(&["--server", &number.to_string()]))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A daemon, which does not outlive the test.
pub struct Daemon(Child);

impl Daemon {
    /// Starts one, and waits until it is ready.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the daemon");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// The number of the process.
    pub fn process(&self) -> i32 {
        self.0.id() as i32
    }

    /// Kills it, so that it can do nothing more.
    pub fn kill(mut self) {
        self.0.kill().expect("a daemon");
        self.0.wait().expect("its end");
    }
}

impl Daemon {
    /// Ends it in order: how it has ended.
    pub fn end(mut self) -> std::process::ExitStatus {
        // SAFETY: a process of this test, which was not waited for.
        unsafe { libc::kill(self.process(), libc::SIGTERM) };
        self.0.wait().expect("its end")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An item that a client has open.
pub struct Item {
    /// The number.
    pub item: u64,
    /// The region.
    pub region: u64,
    /// The ticket.
    pub ticket: Sealed,
    /// The number of the ticket in the session.
    pub number: u32,
}

/// A client with one session.
pub struct Client {
    /// The session.
    pub session: Session,
    last: u64,
}

fn settings(routes: Routes) -> Settings {
    Settings { routes, patience: Duration::from_secs(100), ..Settings::default() }
}

impl Client {
    /// One that has said nothing yet.
    pub fn connect(host: &Host) -> Self {
        Self::at(&host.address())
    }

    /// One of another daemon, that has said nothing yet.
    pub fn at(address: &Address) -> Self {
        Self::by(address, Routes(Routes::SHARED_MEMORY.0 | Routes::UDP.0))
    }

    /// One by these ways, that has said nothing yet.
    pub fn by(address: &Address, routes: Routes) -> Self {
        Self { session: reach(address, &settings(routes)).expect("a session"), last: 0 }
    }

    /// One that has said who it is.
    pub fn open(host: &Host) -> Self {
        let mut client = Self::connect(host);
        client.hello();
        client
    }

    /// Says who it is.
    pub fn hello(&mut self) {
        let ask = Ask::Hello { version: VERSION, role: Role::Program, user: 0, group: 0 };
        assert!(matches!(self.ask(&ask), Ok(Answer::Hello { .. })));
    }

    /// Sends a message, and waits for the reply.
    pub fn try_exchange(
        &mut self,
        message: impl FnOnce(u64) -> Message,
        data: &[u8],
    ) -> openlapi_session::Result<(Message, Vec<u8>)> {
        self.last += 1;
        let message = message(self.last);
        self.session.post(&message.encode(), data)?;
        let reply = self.reply()?;
        assert_eq!(reply.0.number(), self.last);
        Ok(reply)
    }

    /// The next reply.
    pub fn reply(&self) -> openlapi_session::Result<(Message, Vec<u8>)> {
        let late = Some(Instant::now() + Duration::from_secs(300));
        let reply = self.session.receive(late)?.expect("in time");
        Ok((Message::decode(&reply.header).expect("a message"), reply.data))
    }

    /// Sends a message and waits for the reply, in a session that goes on.
    pub fn exchange(&mut self, message: impl FnOnce(u64) -> Message, data: &[u8]) -> (Message, Vec<u8>) {
        self.try_exchange(message, data).expect("an open session")
    }

    /// Asks.
    pub fn ask(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        match self.exchange(|number| Message::Ask { number }, &encode(ask)) {
            (Message::Answer { .. }, body) => decode_answer(&body),
            other => panic!("{other:?}"),
        }
    }

    /// Asks, and does not wait for the answer. Returns the number of the operation.
    pub fn ask_for(&mut self, ask: &Ask) -> u64 {
        self.last += 1;
        let header = Message::Ask { number: self.last }.encode();
        self.session.post(&header, &encode(ask)).expect("an open session");
        self.last
    }

    /// Asks by this body, and does not wait for the answer.
    pub fn ask_so(&mut self, body: &[u8]) -> openlapi_session::Result<()> {
        self.last += 1;
        self.session.post(&Message::Ask { number: self.last }.encode(), body)
    }

    /// Creates a region.
    pub fn region(&mut self, name: &str, size: u64, mode: u32, attributes: Attributes) -> u64 {
        let ask = Ask::CreateRegion { name: name.to_owned(), size, mode, attributes };
        match self.ask(&ask).expect("a region") {
            Answer::Region(facts) => facts.region,
            other => panic!("{other:?}"),
        }
    }

    /// Allocates an item, and opens it.
    pub fn item(&mut self, region: u64, name: &str, size: u64) -> Item {
        let ask = Ask::Allocate { region, name: name.to_owned(), size, mode: 0o600 };
        match self.ask(&ask).expect("an item") {
            Answer::Item(facts) => self.open_item(region, facts.item).expect("an open item"),
            other => panic!("{other:?}"),
        }
    }

    /// Allocates an item, and does not open it: its number.
    pub fn allocate(&mut self, region: u64, name: &str, size: u64) -> u64 {
        let ask = Ask::Allocate { region, name: name.to_owned(), size, mode: 0o600 };
        match self.ask(&ask).expect("an item") {
            Answer::Item(facts) => facts.item,
            other => panic!("{other:?}"),
        }
    }

    /// Opens an item, of which a piece is at the keeper.
    pub fn open_item(&mut self, region: u64, item: u64) -> Result<Item, Failure> {
        let ticket = self.ticket(region, item)?;
        let number = self.open_ticket(&ticket)?;
        Ok(Item { item, region, ticket, number })
    }

    /// The ticket of an item.
    pub fn ticket(&mut self, region: u64, item: u64) -> Result<Sealed, Failure> {
        match self.ask(&Ask::Ticket { region, item })? {
            Answer::Ticket { ticket, .. } => Ok(ticket),
            other => panic!("{other:?}"),
        }
    }

    /// The number of a ticket.
    pub fn open_ticket(&mut self, ticket: &Sealed) -> Result<u32, Failure> {
        match self.ask(&Ask::Open { ticket: ticket.clone() })? {
            Answer::Opened { number } => Ok(number),
            other => panic!("{other:?}"),
        }
    }

    /// The number of an item of a name, if the user may know it.
    pub fn lookup(&mut self, region: &str, item: &str) -> Result<(u64, u64), Failure> {
        match self.ask(&Ask::Lookup { region: region.to_owned(), item: item.to_owned() })? {
            Answer::Item(facts) => Ok((facts.region, facts.item)),
            other => panic!("{other:?}"),
        }
    }

    /// Puts, and waits.
    pub fn put(&mut self, item: &Item, offset: u64, data: &[u8]) -> Result<(), FamError> {
        done(self.exchange(|number| Message::Put { number, item: item.number, offset }, data).0)
    }

    /// Gets, and waits.
    pub fn get(&mut self, item: &Item, offset: u64, length: u64) -> Result<Vec<u8>, FamError> {
        let ask = |number| Message::Get { number, item: item.number, offset, length };
        data(self.exchange(ask, &[]))
    }

    /// Changes a number.
    pub fn change(
        &mut self,
        item: &Item,
        offset: u64,
        change: Change,
        kind: Kind,
        operand: u128,
        comparand: u128,
    ) -> Result<u128, FamError> {
        let item = item.number;
        let ask = |number| Message::Atomic { number, item, offset, change, kind, operand, comparand };
        match self.exchange(ask, &[]).0 {
            Message::Old { value, .. } => Ok(value),
            other => Err(done(other).expect_err("an old value, or a refusal")),
        }
    }

    /// Scatters.
    pub fn scatter(&mut self, item: &Item, shape: Shape, data: &[u8]) -> Result<(), FamError> {
        done(self.exchange(|number| Message::Scatter { number, item: item.number, shape }, data).0)
    }

    /// Gathers.
    pub fn gather(&mut self, item: &Item, shape: Shape, runs: &[u8]) -> Result<Vec<u8>, FamError> {
        data(self.exchange(|number| Message::Gather { number, item: item.number, shape }, runs))
    }

    /// Whether the daemon ends the session.
    pub fn is_ended(&self) -> bool {
        let late = Some(Instant::now() + Duration::from_secs(100));
        // It may have answered before.
        while let Ok(Some(_)) = self.session.receive(late) {}
        self.session.receive(late).is_err()
    }
}

fn done(message: Message) -> Result<(), FamError> {
    match message {
        Message::Done { code: 0, .. } => Ok(()),
        Message::Done { code, .. } => Err(FamError::of(code)),
        other => panic!("{other:?}"),
    }
}

fn data((message, bytes): (Message, Vec<u8>)) -> Result<Vec<u8>, FamError> {
    match message {
        Message::Data { .. } => Ok(bytes),
        other => Err(done(other).expect_err("data, or a refusal")),
    }
}

/// The names of the files in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Whether both servers of a pool have joined: a new region lies on them.
pub fn have_joined(host: &Host) -> bool {
    let mut client = Client::open(host);
    let ask = Ask::CreateRegion { name: "new".to_owned(), size: 1, mode: 0o600, attributes: VOLATILE };
    let Ok(Answer::Region(facts)) = client.ask(&ask) else { panic!("a region") };
    client.ask(&Ask::DestroyRegion { region: facts.region }).expect("an end");
    facts.servers == [0, 1]
}
