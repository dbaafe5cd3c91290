use super::*;
use crate::base::clock::test_deadline;
use crate::base::thread::ThreadConfig;
use crate::error::Log;
use crate::job::exchange::Exchange;
use crate::job::exchange::memory::{InMemory, Table};
use crate::job::join::agreed::Near;
use crate::job::secret::Offer;
use crate::job::{Hosts, Identity, Link};
use crate::transport::conformance::Calls;
use std::net::UdpSocket;
use std::time::Instant;

fn config(variables: &[(&str, &str)]) -> Config {
    let env =
        |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    Config::from_env(&env).expect("valid")
}

#[test]
fn both_variables_bound_the_time_after_which_something_is_sent_again() {
    let found = |variables: &[(&str, &str)]| longest_interval(&config(variables)).as_micros();
    assert_eq!(found(&[]), 400_000);
    assert_eq!(found(&[("MP_RETRANSMIT_INTERVAL", "1000")]), 400);
    assert_eq!(found(&[("MP_RETRANSMIT_INTERVAL", "2147483647")]), 400_000);
    let both = [("MP_POLLING_INTERVAL", "20000"), ("MP_RETRANSMIT_INTERVAL", "100000")];
    assert_eq!(found(&both), 20_000);
}

#[test]
fn datagrams_fit_every_interface_on_the_network() {
    let card = |networks: &[(&str, u16)]| Card {
        networks: networks.iter().map(|(name, _)| (*name).to_owned()).collect(),
        addresses: networks
            .iter()
            .map(|(_, longest)| {
                UdpAddress { at: (Ipv4Addr::LOCALHOST, 9).into(), longest: *longest }.encode()
            })
            .collect(),
        ..Card::default()
    };
    let cards = [card(&[("a", 8972), ("b", 1472)]), card(&[("b", 1400), ("a", 8000)])];
    assert_eq!((longest(&cards, "a"), longest(&cards, "b")), (8000, 1400));
}

/// A task that has taken the place of another process awaits processes that come after it.
#[test]
fn a_process_that_had_ended_before_this_one_came_is_not_the_awaited_one() {
    let started = || {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let process = Process::of(child.id());
        (process, move || child.kill().and_then(|()| child.wait()).map(drop).expect("its end"))
    };
    let (former, mut end) = started();
    end();
    let (later, mut end_later) = started();
    for (replaces, dies) in [(false, true), (true, false)] {
        let seen = Seen::new(former, replaces);
        assert_eq!((seen.has_died(None), seen.has_died(Some(former))), (dies, dies), "replaces: {replaces}");
        assert!(!seen.has_died(Some(later)));
    }
    let (awaits, lived) = (Seen::new(former, true), Seen::new(later, true));
    end_later();
    assert!(awaits.has_died(Some(later)) && lived.has_died(Some(later)) && lived.has_died(None));
}

/// Finds no card, and is not to look for that of task 0.
struct OfTaskOne;

impl Exchange for OfTaskOne {
    fn name(&self) -> &'static str {
        "a test"
    }

    fn publish(&mut self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn fence(&mut self, _: Instant) -> Result<()> {
        Ok(())
    }

    fn lookup(&mut self, task: u32, _: &str) -> Result<Vec<u8>> {
        assert_eq!(task, 1, "this task does not see the process");
        Err(failed("nothing was published"))
    }

    fn follows(&self) -> bool {
        true
    }
}

#[test]
fn the_card_of_a_task_is_not_read_whose_process_is_not_seen() {
    let cards = vec![Card::default(); 2];
    let addresses = rails::Addresses::new(cards, Box::new(OfTaskOne)).on("a network");
    let processes = Box::new([None, Some(Seen::new(Process::own(), false))]);
    let mut directory = OnNetwork { addresses, processes };
    assert!(!directory.has_died(0) && !directory.has_died(1));
}

/// A job of two tasks on this machine, in one opening of LAPI, with a secret that
/// the user has set.
struct Opening {
    exchanges: [InMemory; 2],
    secret: Secret,
}

const CONFIGURED: Secret = [7; 16];

fn identity(task: Task) -> Identity {
    Identity { task, tasks: 2, ..Identity::alone() }
}

impl Opening {
    fn new() -> Self {
        let table = Table::default();
        let mut exchanges = [0, 1].map(|task| InMemory(task, table.clone()));
        let offers = [0, 1].map(|task| {
            let exchange = &mut exchanges[task as usize];
            Offer::publish(exchange, &identity(task), Some(CONFIGURED), false).expect("memory takes it")
        });
        let [first, _] = offers;
        let secret = first.agree(&mut exchanges[0], &identity(0)).expect("they agree");
        Self { exchanges, secret }
    }

    /// One of the tasks, and where it receives. The other one, which is a process that lives as
    /// long, receives at `other`.
    fn task(&self, me: Task, other: SocketAddr) -> (Box<dyn Transport>, SocketAddr) {
        let (config, identity) = (config(&[]), identity(me));
        let link = Link::none();
        let place = Joining {
            config: &config,
            identity: &identity,
            instance: 0,
            thread_config: Some(ThreadConfig::PLAIN),
            log: &Log::none(),
            link: &link,
            openings: &link.openings("notices", 2, 0),
            opening: 1,
            replaces: false,
            ignores_addresses: false,
        };
        let on = Candidate {
            interface: "lo".into(),
            address: Some(Ipv4Addr::LOCALHOST.into()),
            network: "127.0.0.0/8".into(),
        };
        let own = Own::open(&place, &[(on.network.clone(), on)]).expect("the loopback interface");
        let at = own.socket.local();
        let Process { pid, started } = Process::own();
        let card = own.publish(Card { pid, started, pid_namespace: 1, ..Card::default() });
        let address = UdpAddress { at: other, longest: 1472 }.encode();
        let mut cards = vec![Card { addresses: vec![address], ..card.clone() }, card];
        if me == 0 {
            cards.swap(0, 1);
        }
        let InMemory(_, table) = &self.exchanges[0];
        let agreed = Agreed {
            cards,
            exchange: Box::new(InMemory(me, table.clone())),
            secret: self.secret,
            near: Near::open(&place, &Hosts::new(me, [0, 1]), ("a test", &self.secret), Box::default())
                .expect("no neighbour"),
        };
        (own.join(&place, agreed).expect("a transport").0, at)
    }
}

/// How many datagrams a task refuses that gets these, and how many it replies to at once.
fn refused(opening: &Opening, recorder: &UdpSocket, recorded: &[Vec<u8>]) -> (u64, usize) {
    let (mut task, at) = opening.task(0, (Ipv4Addr::LOCALHOST, 9).into());
    recorded.iter().for_each(|datagram| {
        recorder.send_to(datagram, at).expect("the loopback interface takes it");
    });
    let soon = Instant::now() + Duration::from_millis(300);
    let mut replies = 0;
    while Instant::now() < soon {
        task.serve();
        replies += usize::from(recorder.recv_from(&mut [0; 2048]).is_ok());
    }
    (task.tally().refused, replies)
}

/// What was recorded in an opening is refused in the next one, although the processes and
/// LAPI_JOB_SECRET are the same.
#[test]
fn a_notice_of_another_opening_is_refused() {
    let recorder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    recorder.set_nonblocking(true).expect("a socket");
    let first = Opening::new();
    let (mut task, _) = first.task(1, recorder.local_addr().expect("bound"));
    let (mut recorded, deadline) = (Vec::new(), Instant::now() + test_deadline());
    // That it watches the other one.
    while recorded.is_empty() {
        task.serve();
        let mut bytes = [0; 2048];
        if let Ok((len, _)) = recorder.recv_from(&mut bytes) {
            recorded.push(bytes[..len].to_vec());
        }
        assert!(Instant::now() < deadline, "it sends no notice");
    }
    task.close();
    while recorder.recv_from(&mut [0; 2048]).is_ok() {}
    assert_eq!(refused(&first, &recorder, &recorded), (0, 1), "in its own opening");
    assert_eq!(refused(&Opening::new(), &recorder, &recorded), (1, 0), "in the next one");
}
