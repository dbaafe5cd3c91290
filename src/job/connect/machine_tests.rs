//! One machine, or two, driven step by step.

use super::*;

/// A machine that a test drives step by step.
fn machine(task: Task) -> Machine {
    Machine::new(Hello {
        task,
        tasks: 2,
        generation: 1,
        incarnation: 1 + u64::from(task),
        ..Hello::default()
    })
}

fn requested(machine: &mut Machine, channel: ChannelId) -> Hello {
    let [Action::Request(peer, hello)] = &machine.actions()[..] else { panic!("no request") };
    machine.reached(*peer, channel, 100);
    hello.clone()
}

#[test]
fn of_two_requests_that_cross_the_lower_tasks_counts() {
    let (mut low, mut high) = (machine(0), machine(1));
    low.want(1);
    high.want(0);
    let (from_low, from_high) = (requested(&mut low, 1), requested(&mut high, 2));
    low.received_request(2, from_high, 100);
    assert_eq!(low.actions(), [Action::Close(2, None)]);
    high.received_request(1, from_low, 100);
    let actions = high.actions();
    assert_eq!(actions[0], Action::Close(2, None));
    let Action::Reply(0, 1, hello) = &actions[1] else { panic!("{actions:?}") };
    low.received_reply(1, hello.clone(), Duration::ZERO);
    assert!(matches!(low.actions()[..], [Action::Establish { channel: 1, confirm: true, .. }]));
    high.received_confirmation(1);
    assert!(matches!(high.actions()[..], [Action::Establish { channel: 1, confirm: false, .. }]));
}

/// How many requests a task of a job of this size sends to a peer that does not
/// listen, in this time.
fn vain_requests(tasks: u32, time: Duration) -> usize {
    let mut machine = Machine::new(Hello { tasks, generation: 1, ..Hello::default() });
    let (mut now, mut requests) = (Duration::ZERO, 0);
    machine.want(1);
    while now < time {
        for action in machine.actions() {
            assert!(matches!(action, Action::Request(1, _)));
            requests += 1;
            machine.unreachable(1, now);
        }
        let due = machine.due().expect("it sends another request");
        assert!(due > now && due - now <= LONGEST_PAUSE.max(Duration::from_millis(tasks.into())));
        now = due;
        machine.tick(now);
    }
    requests
}

#[test]
fn pauses_between_requests_grow_and_end() {
    let requests = vain_requests(2, Duration::from_secs(60));
    assert!((290..320).contains(&requests), "{requests} requests in a minute");
}

/// While the last of many tasks start, each of the others sends requests to some of them in vain.
#[test]
fn tasks_of_a_large_job_send_requests_more_seldom() {
    assert_eq!([2, 16, 256, 1024].map(|tasks| vain_requests(tasks, Duration::from_secs(1))), [12, 12, 7, 5]);
}

#[test]
fn another_number_of_tasks_is_refused_with_a_reason() {
    let mut machine = machine(0);
    machine.received_request(5, Hello { task: 1, tasks: 3, generation: 1, ..Hello::default() }, 100);
    let [Action::Close(5, Some(why))] = &machine.actions()[..] else { panic!("not refused") };
    assert!(why.contains("task 1") && why.contains("3 tasks"), "{why}");
}

/// The request of the very process that the task is connected with shows that it has parted; that
/// of its successor does not.
#[test]
fn a_request_of_a_connected_process_shows_that_it_has_parted() {
    let mut machine = machine(0);
    let hello = |incarnation, epoch| Hello {
        task: 1,
        tasks: 2,
        generation: 1,
        incarnation,
        epoch,
        ..Hello::default()
    };
    machine.received_request(1, hello(7, NO_EPOCH), 100);
    assert!(!machine.has_parted(1), "the connection is not complete");
    machine.received_confirmation(1);
    assert!(!machine.has_parted(1));
    machine.received_request(2, hello(8, NO_EPOCH), 101);
    assert!(!machine.has_parted(1), "its successor");
    machine.received_request(3, hello(7, 40), 100);
    assert!(machine.has_parted(1));
    machine.closed(3, Duration::ZERO);
    assert!(!machine.has_parted(1), "the channel is closed");
    machine.received_request(4, hello(7, 41), 100);
    assert!(machine.has_parted(1));
    machine.actions();
    machine.part(1);
    assert!(!machine.has_parted(1), "this task has parted, too");
    machine.rejoin(1, 50);
    assert!(matches!(machine.actions()[..], [Action::Reply(1, 4, _)]));
    machine.received_confirmation(4);
    assert!(!machine.has_parted(1));
}

#[test]
fn a_process_that_has_taken_anothers_place_waits_until_it_is_let_in() {
    let mut machine = machine(0);
    let hello = |incarnation| Hello { task: 1, tasks: 2, generation: 1, incarnation, ..Hello::default() };
    machine.received_request(1, hello(7), 100);
    machine.received_confirmation(1);
    machine.actions();
    machine.received_request(2, hello(8), 101);
    assert_eq!(machine.actions(), []);
    machine.part(1);
    assert_eq!(machine.actions(), []);
    machine.rejoin(1, 40);
    let [Action::Reply(1, 2, reply)] = &machine.actions()[..] else { panic!("no reply") };
    assert_eq!(reply.epoch, 40);
    machine.received_confirmation(2);
    let actions = machine.actions();
    let [Action::Establish { epoch: Some(40), hello, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(hello.incarnation, 8);
}
