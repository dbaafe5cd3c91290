//! All tasks in one process, over the loopback.

use super::*;
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::job::start_up::greeting::{Called, Caller, Heard};
use std::net::{TcpListener, TcpStream};

fn task(task: u32, tasks: u32, job: &str, secret: u8) -> Slurm {
    let identity = Identity { task, tasks, key: job.to_owned(), ..Identity::alone() };
    let env = |name: &str| match name {
        "SLURM_STEP_NODELIST" => Some("n[1-2]".to_owned()),
        "SLURMD_NODENAME" => Some("n1".to_owned()),
        "LAPI_JOB_SECRET" => Some(format!("{secret:02x}").repeat(16)),
        _ => None,
    };
    open(&identity, 1, &env).expect("the environment is complete")
}

/// A job of its own for each test, so that ports differ.
fn job(name: &str) -> String {
    format!("{name} {}", std::process::id())
}

fn at_once<T: Send>(tasks: Vec<Slurm>, action: impl Fn(&mut Slurm) -> T + Sync) -> Vec<T> {
    let action = &action;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            tasks.into_iter().map(|mut task| scope.spawn(move || action(&mut task))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

#[test]
fn values_of_all_tasks_at_several_fences() {
    let job = job("values");
    let tasks = (0..5).map(|number| task(number, 5, &job, 7)).collect();
    at_once(tasks, |exchange| {
        let me = exchange.fence.task;
        let value = |task: u32, round: u32| vec![(task * 16 + round) as u8; 1 + 4096 * task as usize];
        for round in 0..3 {
            exchange.publish(&format!("round {round}"), &value(me, round)).expect("it is taken");
            exchange.fence(soon()).expect("all come");
            for other in 0..5 {
                for earlier in 0..=round {
                    let found = exchange.lookup(other, &format!("round {earlier}"));
                    assert_eq!(found, Ok(value(other, earlier)));
                }
            }
            assert!(exchange.lookup(1, "round 9").is_err() && exchange.lookup(5, "round 0").is_err());
        }
    });
}

#[test]
fn strangers_at_the_ports() {
    let job = job("strangers");
    let tasks: Vec<Slurm> = (0..3).map(|number| task(number, 3, &job, 7)).collect();
    // One port is taken by a server that says nothing, the next by one that says something else.
    let mut places = ports(&tasks[0].fence.job);
    let silent = TcpListener::bind(("0.0.0.0", places.next().expect("a port")));
    let other = TcpListener::bind(("0.0.0.0", places.next().expect("a port")));
    let next = places.next().expect("a port");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Another user's server that closes the connection is a stranger, too.
            if let Ok(other) = &other
                && let Ok((mut stream, _)) = other.accept()
            {
                let _ = stream.write_all(
                    b"220 mail.example.org ESMTP ready, and more than a task ever reads at once\r\n",
                );
            }
        });
        scope.spawn(move || {
            // Clients that are no tasks: one silent, one with garbage.
            let deadline = soon();
            while Instant::now() < deadline {
                if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", next)) {
                    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        at_once(tasks, |exchange| {
            exchange.publish("task", &exchange.fence.task.to_le_bytes()).expect("it is taken");
            exchange.fence(soon()).expect("all come");
            for other in 0..3 {
                assert_eq!(exchange.lookup(other, "task"), Ok(other.to_le_bytes().to_vec()));
            }
        });
        // In case that no task has connected to the second port.
        if let Ok(other) = &other {
            drop(TcpStream::connect(other.local_addr().expect("an address")));
        }
    });
    drop(silent);
}

/// A process that knows the job's number knows the ports, and how a request begins.
#[test]
fn strangers_who_know_the_protocol() {
    let job = job("hostile");
    let tasks: Vec<Slurm> = (0..3).map(|number| task(number, 3, &job, 7)).collect();
    let mut places = ports(&tasks[0].fence.job);
    // The first port is taken by a task 0 with another secret.
    let first = TcpListener::bind(("0.0.0.0", places.next().expect("a port"))).expect("it is free");
    let claim = Fence { number: 1, task: 1, ..tasks[0].fence };
    let next = places.next().expect("a port");
    let [over, connected] = [const { std::sync::atomic::AtomicBool::new(false) }; 2];
    let mut kept = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            first.set_nonblocking(true).expect("it is a socket");
            let deadline = soon();
            while !over.load(std::sync::atomic::Ordering::Relaxed) && Instant::now() < deadline {
                let Ok((mut stream, _)) = first.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let mut called = Called::new([8; 16]);
                let mut bytes = vec![0; called.wanted()];
                let _ = stream.set_nonblocking(false);
                if stream.read_exact(&mut bytes).is_ok()
                    && let Heard::Reply(reply) = called.read(&bytes, |_| true)
                {
                    let _ = stream.write_all(&reply);
                    let _ = stream.read(&mut bytes);
                }
            }
        });
        let exchange = scope.spawn(|| {
            at_once(tasks, |exchange| {
                // After the strangers.
                let deadline = soon();
                while exchange.fence.task != 0
                    && !connected.load(std::sync::atomic::Ordering::Relaxed)
                    && Instant::now() < deadline
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                exchange.fence(Instant::now() + Duration::from_secs(60))
            })
        });
        // Far more than are kept: silent, with a claim and values that never end, with a wrong
        // proof.
        let hello = Caller::new([8; 16], &claim.subject()).hello().to_vec();
        for number in 0..300 {
            let deadline = soon();
            let mut stream = loop {
                assert!(Instant::now() < deadline, "task 0 does not listen");
                match TcpStream::connect(("127.0.0.1", next)) {
                    Ok(stream) => break stream,
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            let _ = stream.set_nonblocking(true);
            let _ = match number % 3 {
                0 => Ok(()),
                1 => stream.write_all(&[&hello[..], &[7; 60_000]].concat()),
                _ => stream.write_all(&[&hello[..], &[5; 16]].concat()),
            };
            kept.push(stream);
        }
        connected.store(true, std::sync::atomic::Ordering::Relaxed);
        let found = exchange.join().expect("no panic");
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(found, [const { Ok(()) }; 3]);
    });
}

/// Who reads what the tasks publish does not know their secret.
#[test]
fn the_jobs_secret_does_not_travel() {
    let job = job("concealed");
    let tasks: Vec<Slurm> = (0..3).map(|number| task(number, 3, &job, 7)).collect();
    let found = at_once(tasks, |exchange| {
        let (me, tasks) = (exchange.fence.task, exchange.fence.tasks);
        let identity = Identity { task: me, tasks, ..Identity::alone() };
        let offer =
            crate::job::secret::Offer::publish(exchange, &identity, None, false).expect("it is taken");
        exchange.fence(soon()).expect("all come");
        let secret = offer.agree(exchange, &identity).expect("they agree");
        for (key, value) in exchange.table.iter().flatten() {
            assert!(!value.windows(8).any(|part| part == &secret[..8]), "{key} reveals it");
        }
        secret
    });
    assert!(found.iter().all(|secret| *secret == found[0]));
    // Whose key is another one, and who has seen the number, has another secret.
    let (one, other) = (task(0, 3, &job, 7), task(0, 3, &job, 8));
    assert_ne!(one.conceal([5; 16]), other.conceal([5; 16]));
    assert_ne!(one.conceal([5; 16]), one.conceal([6; 16]));
}

#[test]
fn another_secret_is_refused() {
    let job = job("secret");
    let tasks = vec![task(0, 2, &job, 7), task(1, 2, &job, 8)];
    let deadline = Instant::now() + Duration::from_secs(8);
    let found = at_once(tasks, |exchange| exchange.fence(deadline).map_err(|error| error.detail));
    assert_eq!(found[1], Err("Slurm: task 0 on n1 has another secret (LAPI_JOB_SECRET)".to_owned()));
    assert_eq!(
        found[0],
        Err("Slurm: only 1 of 2 tasks have come in time; one had another secret (LAPI_JOB_SECRET)".to_owned())
    );
}

#[test]
fn a_task_that_does_not_come() {
    let job = job("missing");
    let tasks = vec![task(0, 3, &job, 7), task(1, 3, &job, 7)];
    let deadline = Instant::now() + Duration::from_secs(1);
    for found in at_once(tasks, |exchange| exchange.fence(deadline)) {
        let error = found.unwrap_err();
        assert!(
            error.code == LAPI_ERR_NO_CONNECTIVITY || error.detail.contains("task 0 has ended"),
            "{error}"
        );
    }
    let mut alone = task(1, 2, &job, 7);
    let error = alone.fence(Instant::now() + Duration::from_millis(200)).unwrap_err();
    assert_eq!(error.code, LAPI_ERR_NO_CONNECTIVITY);
    assert!(error.detail.contains("task 0 is not to be found on host n1"), "{}", error.detail);
}

#[test]
fn an_environment_that_is_not_complete() {
    let identity = Identity { task: 1, tasks: 2, ..Identity::alone() };
    let error = open(&identity, 1, &|_| None).map(drop).unwrap_err();
    assert!(error.detail.contains("SLURM_STEP_NODELIST"), "{}", error.detail);
    let mut lost =
        Slurm { is_there: false, host: "no-such-host.invalid".to_owned(), ..task(1, 2, "lost", 7) };
    let error = lost.fence(soon()).unwrap_err();
    assert!(error.detail.contains("no-such-host.invalid"), "{}", error.detail);
}

/// Only a task of the same job takes part in a fence, and in no other one.
#[test]
fn other_jobs_fences_and_tasks() {
    let fence = Fence { job: [1; 16], task: 0, tasks: 4, opening: 1, number: 1 };
    assert_eq!(fence.caller(&Fence { task: 3, ..fence }.subject()), Some(3));
    for other in [
        Fence { job: [2; 16], task: 3, ..fence },
        Fence { tasks: 5, task: 3, ..fence },
        Fence { opening: 2, task: 3, ..fence },
        Fence { number: 2, task: 3, ..fence },
        Fence { task: 0, ..fence },
        Fence { task: 4, ..fence },
    ] {
        assert_eq!(fence.caller(&other.subject()), None, "{other:?}");
    }
}

#[test]
fn the_variable_is_taken_before_the_file() {
    let secret = "000102030405060708090a0b0c0d0e0F";
    let of = |variable: &'static str, value: &str| {
        let value = value.to_owned();
        Key::of_this_task(&move |name| (name == variable).then(|| value.clone()))
    };
    let key = of("LAPI_JOB_SECRET", secret).expect("a key");
    assert_eq!(key.secret, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let bad = of("LAPI_JOB_SECRET", &"+1".repeat(16));
    assert!(bad.map(drop).unwrap_err().detail.contains("LAPI_JOB_SECRET"));
    let none = of("HOME", "relative").map(drop).unwrap_err();
    assert!(none.detail.contains("LAPI_JOB_SECRET") && none.detail.contains("HOME"), "{}", none.detail);
}

/// A daemon may start the tasks without HOME. That of a user who has no files is only named.
#[test]
fn without_home_the_users_file_is_in_the_listed_home_directory() {
    const NOBODY: libc::c_long = 65_534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let as_nobody = std::thread::spawn(|| {
        // SAFETY: the kernel changes the effective user of this thread alone.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1_i64, NOBODY, -1_i64) }, 0);
        (key_file::path(&|_| None), Key::of_this_task(&|_| None).map(drop))
    });
    let (path, key) = as_nobody.join().expect("no panic");
    // SAFETY: no memory is named. The other user has made this process one that others do not read.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1_i64) }, 0);
    let Some(path) = path else { return };
    let refused = key.unwrap_err().detail;
    assert!(refused.contains(&format!("{} cannot be made", path.display())), "{refused}");
}

/// The first of the tasks makes the file in the home directory. One that others may read is
/// refused.
#[test]
fn the_users_file() {
    use std::os::unix::fs::PermissionsExt;
    let name = format!("lapi-key-{:032x}", u128::from_ne_bytes(crate::base::random::random()));
    let home = std::env::temp_dir().join(name);
    std::fs::create_dir(&home).expect("a folder can be made");
    let env = |name: &str| (name == "HOME").then(|| home.display().to_string());
    let [one, other] = [(), ()].map(|()| Key::of_this_task(&env).map(|key| key.secret));
    let mode = std::fs::Permissions::from_mode(0o640);
    let changed = std::fs::set_permissions(home.join(".openlapi/key"), mode);
    let refused = Key::of_this_task(&env).map(drop);
    let _ = std::fs::remove_dir_all(&home);
    assert!(one.is_ok() && one == other && changed.is_ok(), "{one:?} {other:?}");
    assert!(refused.unwrap_err().detail.contains("mode 0600"));
}
