//! Event loops in two real processes that no launcher has started: this test program, and the same
//! one again as task 1.

use super::event_loop::{run, run_by_time};
use super::*;
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::api::address;
use crate::base::this_program::this_program;
use crate::job::addresses::Address;
use crate::job::{Listing, Way};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Child;

/// Tells the other process what it is to do: a [`Job`].
const VARIABLE: &str = "OPENLAPI_TEST_PEER";

const ROUNDS: i32 = 100;

/// The job, as both processes know it.
#[derive(Clone)]
struct Job {
    key: String,
    /// The ports of both tasks for UDP; 0: they share memory.
    ports: [u16; 2],
    /// Task 1 replies as often; then it leaves, or waits for its end.
    stays: bool,
}

impl Job {
    fn new(what: &str, udp: bool, stays: bool) -> Self {
        let port = |socket: &UdpSocket| socket.local_addr().expect("an address").port();
        let ports = match udp {
            false => [0; 2],
            // Free a moment ago, and others do not ask for a certain one.
            true => [0, 1]
                .map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"))
                .each_ref()
                .map(port),
        };
        Self { key: format!("{what}, of process {}", std::process::id()), ports, stays }
    }

    fn text(&self) -> String {
        let [one, other] = self.ports;
        format!("{one} {other} {} {}", self.stays, self.key)
    }

    fn of(text: &str) -> Self {
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        let port = |at: usize| words[at].parse().expect("a port");
        Self { key: words[3].to_owned(), ports: [port(0), port(1)], stays: words[2] == "true" }
    }

    fn open(&self, task: u32, events: Arc<dyn Events>) -> Session {
        let (key, source) = (self.key.clone(), "a test");
        let identity = Identity { task, tasks: 2, key, common: Common::All, source };
        let mut listed = Ports(self.ports);
        let mut settings = Settings { interrupts: Interrupts::Never, ..Settings::default() };
        if self.ports[0] != 0 {
            let env = |name: &str| match name {
                "MP_EUILIB" => Some("ip".to_owned()),
                "LAPI_USE_SHM" => Some("no".to_owned()),
                "LAPI_JOB_SECRET" => Some("00112233445566778899aabbccddeeff".to_owned()),
                _ => None,
            };
            settings.config = Config::from_env(&env).expect("settings");
            settings.addresses = Some(&mut listed);
        }
        Session::open(&identity, settings, &Link::none(), events).expect("a session")
    }

    /// The other process.
    fn start(&self) -> Other {
        let other = "api::session::tests::processes::the_other_process";
        let mut command = this_program();
        command.args([other, "--exact", "--ignored", "--nocapture"]).env(VARIABLE, self.text());
        Other(command.spawn().expect("a process"))
    }
}

/// The other process, which ends with the test.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The addresses of both tasks.
struct Ports([u16; 2]);

impl Listing for Ports {
    fn way(&self, _: u32) -> Way {
        Way::List
    }

    fn read(&mut self, _: &Identity, _: Option<Address>) -> Result<Vec<Address>> {
        Ok(self.0.map(|port| Address::of(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))).into())
    }
}

/// Runs the loop until this is so. A network has deadlines.
fn wait(session: &Session, udp: bool, until: impl FnMut() -> bool) {
    if udp { run_by_time(session, until) } else { run(session, until) }
}

/// Both sides: each puts when the other one's put has come, and sleeps meanwhile.
fn converse(session: &Session, me: u32, udp: bool) {
    static DATA: [u8; 24] = [9; 24];
    let place = [const { AtomicI32::new(0) }; 6];
    let came = AtomicI32::new(0);
    let exchange = |value: &AtomicI32| {
        let mut held = session.enter().expect("an open session");
        address::exchange(&mut held, value.as_ptr().addr() as u64).expect("the addresses")[1 - me as usize]
    };
    let (remote, tgt_cntr) = (exchange(&place[0]), exchange(&came));
    let tgt = 1 - me;
    let put = Put {
        tgt,
        places: Places::Contiguous { local: DATA.as_ptr().addr(), remote, len: DATA.len() },
        tgt_cntr,
        cmpl_cntr: 0,
        done: SendDone { bytes: 24, user: true, ..SendDone::nothing(tgt) },
        hint: Hint::None,
    };
    // SAFETY: the data is static, and the memory of both lives until the fence of all has returned.
    let send = || unsafe { put_get::put(&mut session.enter().expect("an open session"), &put) };
    for round in 1..=ROUNDS {
        if me == 0 {
            send().expect("a put");
        }
        wait(session, udp, || came.load(Ordering::Acquire) == round);
        if me == 1 {
            send().expect("a put");
        }
    }
    fence::gfence(&mut session.enter().expect("an open session")).expect("a fence");
    assert!(place.iter().all(|word| word.load(Ordering::Acquire).to_ne_bytes() == [9; 4]));
}

#[test]
#[ignore = "the other process, which the tests start"]
fn the_other_process() {
    let job = Job::of(&std::env::var(VARIABLE).expect("what to do"));
    let session = job.open(1, Arc::new(NoEvents));
    let udp = job.ports[0] != 0;
    converse(&session, 1, udp);
    wait(&session, udp, || !job.stays);
    session.close().expect("an open session");
}

fn two_processes_converse(udp: bool) {
    let job = Job::new("a conversation", udp, false);
    let mut other = job.start();
    let session = job.open(0, Arc::new(NoEvents));
    converse(&session, 0, udp);
    session.close().expect("an open session");
    assert!(other.0.wait().expect("its end").success());
}

#[test]
fn event_loops_of_two_processes_converse_by_shared_memory() {
    two_processes_converse(false);
}

#[test]
fn event_loops_of_two_processes_converse_over_udp() {
    two_processes_converse(true);
}

/// Notes the first failure, and calls the loop.
#[derive(Default)]
struct Noted(Mutex<Option<(i32, u32)>>);

impl Events for Noted {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, _: &Context, failure: &Failure<'_>) {
        self.0.lock().get_or_insert((failure.error.code, failure.source));
    }

    fn fatal(&self) {}

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

fn a_death_is_told(udp: bool) {
    let job = Job::new("a death", udp, true);
    let mut other = job.start();
    let noted = Arc::new(Noted::default());
    let session = job.open(0, noted.clone());
    converse(&session, 0, udp);
    other.0.kill().expect("a process");
    other.0.wait().expect("its end");
    // It owes a reply.
    let (word, data) = (AtomicI32::new(0), [0; 8]);
    let put = Put {
        tgt: 1,
        places: Places::Contiguous {
            local: data.as_ptr().addr(),
            remote: data.as_ptr().addr() as u64,
            len: 8,
        },
        tgt_cntr: 0,
        cmpl_cntr: word.as_ptr().addr(),
        done: SendDone { bytes: 8, user: true, ..SendDone::nothing(1) },
        hint: Hint::None,
    };
    // SAFETY: it never arrives; the counter lives.
    let _ = unsafe { put_get::put(&mut session.enter().expect("an open session"), &put) };
    run_by_time(&session, || noted.0.lock().is_some());
    assert_eq!(*noted.0.lock(), Some((LAPI_ERR_NO_CONNECTIVITY, 1)));
    session.close().expect("an open session");
}

#[test]
fn an_event_loop_learns_that_a_process_has_died_by_shared_memory() {
    a_death_is_told(false);
}

#[test]
fn an_event_loop_learns_that_a_process_has_died_over_udp() {
    a_death_is_told(true);
}
