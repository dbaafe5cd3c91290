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

fn dialled(machine: &mut Machine, line: Line) -> Hello {
    let [Action::Dial(peer, hello)] = &machine.actions()[..] else { panic!("no call") };
    machine.reached(*peer, line, 100);
    hello.clone()
}

#[test]
fn of_two_calls_that_cross_the_lower_tasks_counts() {
    let (mut low, mut high) = (machine(0), machine(1));
    low.want(1);
    high.want(0);
    let (from_low, from_high) = (dialled(&mut low, 1), dialled(&mut high, 2));
    low.called(2, from_high, 100);
    assert_eq!(low.actions(), [Action::HangUp(2, None)]);
    high.called(1, from_low, 100);
    let actions = high.actions();
    assert_eq!(actions[0], Action::HangUp(2, None));
    let Action::Answer(0, 1, hello) = &actions[1] else { panic!("{actions:?}") };
    low.answered(1, hello.clone(), Duration::ZERO);
    assert!(matches!(low.actions()[..], [Action::Establish { line: 1, confirm: true, .. }]));
    high.confirmed(1);
    assert!(matches!(high.actions()[..], [Action::Establish { line: 1, confirm: false, .. }]));
}

/// How often a task of a job of this size calls a peer that does not listen, in this time.
fn vain_calls(tasks: u32, time: Duration) -> usize {
    let mut machine = Machine::new(Hello { tasks, generation: 1, ..Hello::default() });
    let (mut now, mut calls) = (Duration::ZERO, 0);
    machine.want(1);
    while now < time {
        for action in machine.actions() {
            assert!(matches!(action, Action::Dial(1, _)));
            calls += 1;
            machine.unreachable(1, now);
        }
        let due = machine.due().expect("it calls again");
        assert!(due > now && due - now <= LONGEST_PAUSE.max(Duration::from_millis(tasks.into())));
        now = due;
        machine.tick(now);
    }
    calls
}

#[test]
fn pauses_between_calls_grow_and_end() {
    let calls = vain_calls(2, Duration::from_secs(60));
    assert!((290..320).contains(&calls), "{calls} calls in a minute");
}

/// While the last of many tasks start, each of the others calls some of them in vain.
#[test]
fn tasks_of_a_large_job_call_more_seldom() {
    assert_eq!([2, 16, 256, 1024].map(|tasks| vain_calls(tasks, Duration::from_secs(1))), [12, 12, 7, 5]);
}

#[test]
fn another_number_of_tasks_is_refused_with_a_reason() {
    let mut machine = machine(0);
    machine.called(5, Hello { task: 1, tasks: 3, generation: 1, ..Hello::default() }, 100);
    let [Action::HangUp(5, Some(why))] = &machine.actions()[..] else { panic!("not refused") };
    assert!(why.contains("task 1") && why.contains("3 tasks"), "{why}");
}

#[test]
fn a_process_that_has_taken_anothers_place_waits_until_it_is_let_in() {
    let mut machine = machine(0);
    let hello = |incarnation| Hello { task: 1, tasks: 2, generation: 1, incarnation, ..Hello::default() };
    machine.called(1, hello(7), 100);
    machine.confirmed(1);
    machine.actions();
    machine.called(2, hello(8), 101);
    assert_eq!(machine.actions(), []);
    machine.part(1);
    assert_eq!(machine.actions(), []);
    machine.rejoin(1, 40);
    let [Action::Answer(1, 2, answer)] = &machine.actions()[..] else { panic!("not answered") };
    assert_eq!(answer.epoch, 40);
    machine.confirmed(2);
    let actions = machine.actions();
    let [Action::Establish { epoch: Some(40), hello, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(hello.incarnation, 8);
}
