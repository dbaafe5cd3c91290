//! What the seeds do to the tasks.

use super::super::{MILLISECOND, SECOND, State};
use super::link::Faults;
use super::world::{LEAST, World};

/// Seeds of each scenario: `UDP_SEEDS` in the environment asks for more, and `UDP_SEED` for one.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("UDP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("UDP_SEEDS").unwrap_or(usual),
    }
}

/// Runs `scenario` for each seed, and names the seed that fails.
fn each_seed(usual: u64, scenario: impl Fn(u64)) {
    struct Name(u64);
    impl Drop for Name {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("UDP_SEED={} repeats this", self.0);
            }
        }
    }
    for seed in seeds(usual) {
        let name = Name(seed);
        scenario(seed);
        std::mem::forget(name);
    }
}

/// Some traffic: the next event, or a packet of any task.
fn traffic(world: &mut World, release: f64) {
    let task = world.any();
    let peer = world.other(task);
    match world.rng.below(4) {
        0 => drop(world.send(task, peer)),
        1 if world.rng.chance(0.1) => world.kick(task, peer),
        _ => {}
    }
    let latest = world.now + 5 * MILLISECOND;
    world.step(latest, release);
}

#[test]
fn everything_arrives_once_on_a_bad_network() {
    each_seed(1_500, |seed| {
        let mut world = World::new(seed, 2);
        for _ in 0..120 {
            traffic(&mut world, 0.5);
        }
        // The network stays bad.
        world.settle();
        assert!(world.arrived != 0 || seed != 1);
    });
}

#[test]
fn everything_arrives_when_the_links_are_whole_again() {
    each_seed(600, |seed| {
        let mut world = World::new(seed, 2 + (seed % 3) as u32);
        for _ in 0..200 {
            let task = world.any();
            let peer = world.other(task);
            match world.rng.below(60) {
                0 => _ = world.cut.insert((task, peer)),
                1 => world.cut.extend([(task, peer), (peer, task)]),
                2 => world.cut.clear(),
                3 => {
                    let until = world.now + world.rng.below(3 * SECOND);
                    world.tasks[task as usize].paused = until;
                }
                4 => world.tasks[task as usize].holds ^= true,
                5 => world.now += world.rng.below(2 * SECOND),
                _ => traffic(&mut world, 0.3),
            }
        }
        let faults = if seed % 2 == 0 { Faults::NONE } else { world.faults };
        world.heal(faults);
        world.settle();
    });
}

/// Links take less than the tasks believe, and not always the same.
#[test]
fn everything_arrives_where_links_take_less() {
    each_seed(1_000, |seed| {
        let mut world = World::new(seed, 2);
        world.parameters.base = LEAST.min(world.parameters.unit);
        if seed % 2 == 0 {
            world.faults = Faults { delay: MILLISECOND / 10, ..Faults::NONE };
        }
        world.restart();
        for _ in 0..200 {
            if world.rng.chance(0.03) {
                let longest = world.parameters.unit as u64;
                world.takes = LEAST + world.rng.below(longest) as usize;
            }
            traffic(&mut world, 0.5);
        }
        // It stays as it is.
        world.settle();
        assert!(world.arrived != 0);
    });
}

#[test]
fn nothing_of_a_former_connection_arrives() {
    each_seed(800, |seed| {
        let mut world = World::new(seed, 2 + (seed % 3) as u32);
        for _ in 0..200 {
            let task = world.any();
            let peer = world.other(task);
            match world.rng.below(60) {
                0 | 1 => world.replace(task),
                2 => world.connect(task, peer),
                3 => {
                    world.connect(task, peer);
                    world.connect(peer, task);
                }
                4 => _ = world.cut.insert((task, peer)),
                5 => world.cut.clear(),
                6..16 => world.replay(),
                _ => traffic(&mut world, 0.5),
            }
        }
        world.heal(Faults::NONE);
        world.settle();
    });
}

#[test]
fn a_task_that_ends_is_closed_for_its_peer_when_everything_has_arrived() {
    each_seed(600, |seed| {
        let mut world = World::new(seed, 2);
        // Both know each other: a peer that is never met does not learn of the end.
        let is_up = |world: &World, task: u32| {
            world.tasks[task as usize].connections[&(1 - task)].state() == State::Up
        };
        while !(is_up(&world, 0) && is_up(&world, 1)) {
            traffic(&mut world, 0.5);
        }
        for _ in 0..world.rng.below(60) {
            traffic(&mut world, 0.5);
        }
        let both = world.rng.chance(0.3);
        let now = world.now;
        for (task, peer) in world.pairs() {
            if task == 0 || both {
                world.tasks[task as usize].connections.get_mut(&peer).expect("a connection").close(now);
            }
            assert!(task != 0 || !world.send(task, peer), "nothing is taken after the end");
        }
        let limit = now + 120 * SECOND;
        let settled =
            |world: &World, task: u32| world.tasks[task as usize].connections[&(1 - task)].is_settled();
        while !(settled(&world, 0) && (settled(&world, 1) || !both)) {
            assert!(world.now < limit, "seed {seed}: the end is not confirmed");
            world.step(limit, 1.0);
        }
        let closed = |task: u32| world.tasks[task as usize].connections[&(1 - task)].state() == State::Closed;
        assert!(closed(1) || both && closed(0), "seed {seed}");
        assert!(both || world.all_have_arrived(0), "seed {seed}: packets are missing");
    });
}

/// Without losses nothing is sent again, and few datagrams carry nothing.
#[test]
fn a_good_network_carries_little_more_than_the_data() {
    each_seed(50, |seed| {
        let mut world = World::new(seed, 2);
        world.faults = Faults { delay: MILLISECOND / 10, ..Faults::NONE };
        world.parameters.acknowledge_every = 30;
        for _ in 0..400 {
            traffic(&mut world, 1.0);
        }
        world.settle();
        for (task, peer) in world.pairs() {
            let connection = &world.tasks[task as usize].connections[&peer];
            let counted = connection.statistics();
            assert_eq!((counted.sent_again, counted.duplicates, counted.refused), (0, 0, 0), "seed {seed}");
            assert!(connection.sender.end() > 20, "seed {seed}: {counted:?}");
        }
    });
}

/// A kick arrives, whatever is lost; a peer that has packets to take needs none.
#[test]
fn kicks_arrive() {
    each_seed(200, |seed| {
        let mut world = World::new(seed, 2);
        world.kick(0, 1);
        world.kick(1, 0);
        world.settle();
        assert_eq!(world.kicks, 2, "seed {seed}");
    });
}
