//! Threads play the tasks, except where it matters that they are processes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::set_thread_res_uid;

use super::message::{Hello, ToMember, ToRoot};
use super::*;
use crate::job::Common;
use crate::job::channel::{Channel, Listener, Receive, wait};

/// More than any round needs, less than for ever.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn identity(task: u32, tasks: u32, key: &str) -> Identity {
    let key = format!("{key} {}", std::process::id());
    Identity { task, tasks, key, common: Common::All, source: "a test" }
}

fn round(task: u32, tasks: u32, key: &str) -> Round {
    Round::new(&identity(task, tasks, key), 0, None, PATIENCE).unwrap()
}

/// Runs `task` for every task at once.
fn job<T: Send>(tasks: u32, task: impl Fn(u32) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let task = &task;
        let threads: Vec<_> = (0..tasks).map(|number| scope.spawn(move || task(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// [`super::meet`] of tasks that have not met before.
fn meet(
    me: &Identity,
    instance: u32,
    secret: Option<&[u8]>,
    blob: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Duration,
) -> Result<Vec<Member>> {
    super::meet(me, instance, secret, blob, fds, deadline, &mut || Search::Nowhere)
        .map(|members| members.expect("nothing else has been found"))
}

fn meet_bare(task: u32, tasks: u32, key: &str, deadline: Duration) -> Result<Vec<Member>> {
    meet(&identity(task, tasks, key), 0, None, &task.to_le_bytes(), &[], deadline)
}

/// A memory file that holds the number of its task.
fn mark(task: u32) -> File {
    let mut file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(format!("task {task}").as_bytes()).unwrap();
    file
}

fn check(members: Vec<Member>, tasks: u32, blob: impl Fn(u32) -> Vec<u8>, fds: impl Fn(u32) -> usize) {
    assert_eq!(members.len(), tasks as usize);
    for (task, member) in (0..tasks).zip(members) {
        assert_eq!(member.task, task);
        assert_eq!(member.uid, rustix::process::geteuid().as_raw());
        assert_eq!(member.blob, blob(task));
        assert_eq!(member.fds.len(), fds(task));
        for fd in member.fds {
            assert!(fcntl_getfd(&fd).unwrap().contains(FdFlags::CLOEXEC));
            let mut file = File::from(fd);
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("task {task}"));
        }
    }
}

/// Everything of a job in which each task brings its own number of bytes and descriptors. The descriptors are
/// read one task at a time: tasks that are threads share their file offsets.
fn exchange(tasks: u32, key: &str, blob: impl Fn(u32) -> Vec<u8> + Sync, fds: impl Fn(u32) -> usize + Sync) {
    let met = job(tasks, |task| {
        let file = mark(task);
        let given = vec![file.as_fd(); fds(task)];
        meet(&identity(task, tasks, key), 0, None, &blob(task), &given, PATIENCE).unwrap()
    });
    for members in met {
        assert!(members.iter().all(|member| member.pid == std::process::id() as i32));
        check(members, tasks, &blob, &fds);
    }
}

#[test]
fn two() {
    exchange(2, "two", |task| vec![task as u8; 100], |_| 2);
}

#[test]
fn sixteen_with_as_much_as_they_may_bring() {
    exchange(16, "sixteen", |task| vec![task as u8; MAX_BLOB], |_| MAX_FDS);
}

#[test]
fn a_hundred_and_twenty_eight() {
    // As threads they need room for the descriptors of all of them in one process.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    exchange(128, "many", |task| vec![task as u8; task as usize * 32], |task| usize::from(task % 16 == 0));
}

#[test]
fn descriptors_of_other_kinds() {
    let met = job(2, |task| {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        let members = meet(&identity(task, 2, "event"), 0, None, &[], &[event.as_fd()], PATIENCE).unwrap();
        rustix::io::write(&members[1 - task as usize].fds[0], &1_u64.to_ne_bytes()).unwrap();
        (event, members)
    });
    for (event, _) in met {
        assert_eq!(rustix::io::read(&event, &mut [0; 8]).unwrap(), 8);
    }
}

#[test]
fn one() {
    let file = mark(0);
    let members = meet(&Identity::alone(), 0, None, b"alone", &[file.as_fd()], SHORT).unwrap();
    check(members, 1, |_| b"alone".to_vec(), |_| 1);
}

#[test]
fn some_of_a_job() {
    let common = Common::Listed(vec![3, 5, 8]);
    let met = job(3, |number| {
        let me = Identity { common: common.clone(), ..identity([3, 5, 8][number as usize], 9, "some") };
        meet(&me, 0, None, &[], &[], PATIENCE).unwrap()
    });
    for members in met {
        assert_eq!(members.iter().map(|member| member.task).collect::<Vec<_>>(), [3, 5, 8]);
    }
}

#[test]
fn two_hundred_rounds_in_a_row() {
    job(3, |task| {
        for number in 0..200_u32 {
            let members = meet(&identity(task, 3, "rounds"), 0, None, &number.to_le_bytes(), &[], PATIENCE);
            for member in members.unwrap() {
                assert_eq!(member.blob, number.to_le_bytes(), "a blob of another round");
            }
        }
    });
}

#[test]
fn two_instances_and_two_jobs_at_once() {
    job(8, |number| {
        let (task, instance, key) = (number % 2, number / 2 % 2, ["this", "that"][number as usize / 4]);
        let blob = format!("{key} {instance}");
        let members = meet(&identity(task, 2, key), instance, None, blob.as_bytes(), &[], PATIENCE).unwrap();
        assert!(members.iter().all(|member| member.blob == blob.as_bytes()));
    });
}

#[test]
fn nothing_is_left() {
    job(2, |task| meet_bare(task, 2, "left", PATIENCE).unwrap());
    assert!(Channel::connect(&round(0, 2, "left").name).unwrap().is_none());
}

#[test]
fn a_task_that_vanishes() {
    for has_heard in [false, true] {
        let seated = Barrier::new(2);
        let errors = job(3, |task| {
            let round = round(task, 4, "vanishing");
            match task {
                0 => meet_bare(0, 4, "vanishing", PATIENCE).unwrap_err().detail,
                1 => {
                    let channel = say_hello(&round);
                    assert_eq!(hear(&channel, &round), Some(ToMember::Welcome));
                    seated.wait();
                    match hear(&channel, &round) {
                        Some(ToMember::Fail(LAPI_ERR_SHM_SETUP, why)) => why,
                        other => panic!("{other:?}"),
                    }
                }
                _ => {
                    seated.wait();
                    let channel = say_hello(&round);
                    if has_heard {
                        assert_eq!(hear(&channel, &round), Some(ToMember::Welcome));
                    }
                    "task 2 left the rendezvous; task 3 did not come".to_owned()
                }
            }
        });
        for error in errors {
            for part in ["task 2", "left the rendezvous", "task 3 did not come"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}

#[test]
fn a_task_that_vanishes_after_it_has_everything() {
    let errors = job(3, |task| {
        if task == 2 {
            let round = round(2, 3, "late");
            let channel = say_hello(&round);
            while !matches!(hear(&channel, &round), Some(ToMember::Part(_))) {}
            return None;
        }
        Some(meet_bare(task, 3, "late", PATIENCE).unwrap_err())
    });
    for error in errors.into_iter().flatten() {
        assert!(error.detail.contains("task 2") && error.detail.contains("left"), "{}", error.detail);
    }
}

#[test]
fn a_root_that_vanishes() {
    let errors = job(2, |task| {
        let round = round(task, 2, "rootless");
        if task == 1 {
            return Some(meet_bare(1, 2, "rootless", PATIENCE).unwrap_err());
        }
        let listener = Listener::bind(&round.name).unwrap().unwrap();
        let channel = loop {
            wait(&[(listener.as_fd(), PollFlags::IN)], round.deadline).unwrap();
            if let Some(channel) = listener.accept().unwrap() {
                break channel;
            }
        };
        wait(&[(channel.as_fd(), PollFlags::IN)], round.deadline).unwrap();
        assert!(matches!(channel.receive().unwrap(), Receive::Message(_)));
        channel.send(&ToMember::Welcome.encode(), &[], round.deadline).unwrap();
        None
    });
    let error = errors[1].as_ref().unwrap();
    assert!(error.detail.contains("task 0") && error.detail.contains("left"), "{}", error.detail);
}

#[test]
fn everyone_learns_who_is_missing() {
    // Once the root's patience ends first, once another's.
    for (root, other) in [(SHORT, PATIENCE), (PATIENCE, SHORT)] {
        let errors = job(2, |task| {
            let deadline = if task == 0 { root } else { other };
            meet_bare(task, 5, "missing", deadline).unwrap_err()
        });
        for error in errors {
            assert_eq!(error.code, LAPI_ERR_SHM_SETUP);
            assert!(error.detail.contains("tasks 2-4 did not come"), "{}", error.detail);
        }
    }
    let error = meet_bare(1, 2, "missing root", SHORT).unwrap_err();
    assert!(error.detail.contains("task 0 did not come"), "{}", error.detail);
}

#[test]
fn the_secret_decides() {
    let secret = [7_u8; 16];
    let met = job(2, |task| {
        let me = identity(task, 2, "secret");
        if task == 1 {
            // The right name, but another secret, or none: refused, and the round goes on.
            for wrong in [&b"0123456789abcdef"[..], &[]] {
                let mut round = Round::new(&me, 0, Some(&secret), PATIENCE).unwrap();
                round.key.secret = wrong.to_vec();
                let error = member::join(&round, &[], &[], &mut || Search::Nowhere).unwrap_err();
                assert!(error.detail.contains("LAPI_JOB_SECRET"), "{}", error.detail);
            }
        }
        meet(&me, 0, Some(&secret), &[], &[], PATIENCE).unwrap()
    });
    assert!(met.iter().all(|members| members.len() == 2));
}

#[test]
fn names_differ_with_everything_they_are_made_from() {
    let name = |key: &str, instance, secret: Option<&[u8]>| {
        Round::new(&identity(0, 2, key), instance, secret, SHORT).unwrap().name
    };
    let names = [
        name("a", 0, None),
        name("b", 0, None),
        name("a", 1, None),
        name("a", 0, Some(&[0; 16])),
        name("a", 0, Some(&[1; 16])),
        name("a", 0, Some(&[1; 17])),
    ];
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    assert_eq!(name("a", 0, Some(&[1; 16])), name("a", 0, Some(&[1; 16])));
}

#[test]
fn two_processes_that_are_the_same_task() {
    let errors = job(3, |number| meet_bare(number.min(1), 3, "twice", PATIENCE).unwrap_err());
    assert!(errors[0].detail.contains("both say that they are task 1"), "{}", errors[0].detail);
    assert!(errors[0].detail.contains("MP_PARTITION"));
    assert!(errors.iter().all(|error| error.detail == errors[0].detail));
}

#[test]
fn tasks_that_disagree_about_the_job() {
    let errors = job(2, |task| meet_bare(task, 2 + task, "sizes", PATIENCE).unwrap_err());
    for error in errors {
        assert!(error.detail.contains("has 3 tasks, task 0 says 2"), "{}", error.detail);
    }
    let errors = job(2, |task| {
        let common = if task == 0 { Common::Listed(vec![0, 2]) } else { Common::Listed(vec![0, 1]) };
        meet(&Identity { common, ..identity(task, 3, "lists") }, 0, None, &[], &[], PATIENCE).unwrap_err()
    });
    for error in errors {
        assert!(error.detail.contains("MP_COMMON_TASKS"), "{}", error.detail);
    }
}

#[test]
fn strangers_do_not_disturb() {
    let met = job(2, |task| {
        if task == 1 {
            let round = round(1, 2, "strangers");
            // One says nothing, one leaves, one talks nonsense.
            let silent = connect(&round);
            drop(connect(&round));
            let nonsense = connect(&round);
            nonsense.send(b"GET / HTTP/1.1", &[], round.deadline).unwrap();
            assert!(matches!(hear(&nonsense, &round), Some(ToMember::Fail(..))));
            let met = meet_bare(1, 2, "strangers", PATIENCE).unwrap();
            drop(silent);
            return met;
        }
        meet_bare(task, 2, "strangers", PATIENCE).unwrap()
    });
    assert!(met.iter().all(|members| members.len() == 2));
}

#[test]
fn another_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be somebody else");
        return;
    }
    let nobody = || {
        let uid = Some(rustix::process::Uid::from_raw(65534));
        set_thread_res_uid(uid, uid, uid).unwrap();
    };

    // Who holds the name: everybody says so at once.
    let name = round(0, 2, "held").name;
    let held = thread::spawn(move || {
        nobody();
        Listener::bind(&name).unwrap().unwrap()
    });
    let _held = held.join().unwrap();
    for error in job(2, |task| meet_bare(task, 2, "held", PATIENCE).unwrap_err()) {
        assert!(error.detail.contains("user 65534"), "{}", error.detail);
    }

    // Who comes as a guest: gets no answer, and the round goes on.
    let met = job(2, |task| {
        if task == 1 {
            thread::spawn(move || {
                let round = round(1, 2, "guest");
                nobody();
                let channel = connect(&round);
                // May find the connection closed already.
                let _ = channel.send(&hello(&round), &[], round.deadline);
                assert_eq!(hear(&channel, &round), None);
            })
            .join()
            .unwrap();
        }
        meet_bare(task, 2, "guest", PATIENCE).unwrap()
    });
    assert!(met.iter().all(|members| members[1].uid == 0));
}

#[test]
fn what_cannot_be_brought() {
    let file = mark(0);
    let me = identity(0, 2, "too much");
    let error = meet(&me, 0, None, &[0; MAX_BLOB + 1], &[], SHORT).unwrap_err();
    assert!(error.detail.contains("4097"), "{}", error.detail);
    let error = meet(&me, 0, None, &[], &[file.as_fd(); MAX_FDS + 1], SHORT).unwrap_err();
    assert!(error.detail.contains("4 descriptors"), "{}", error.detail);
    let me = Identity { common: Common::Counted(2), ..identity(0, 4, "counted") };
    let error = meet(&me, 0, None, &[], &[], SHORT).unwrap_err();
    assert!(error.detail.contains("2 of 4") && error.detail.contains("MP_COMMON_TASKS"), "{}", error.detail);
}

#[test]
fn lists_of_tasks() {
    assert_eq!(list(&[]), "");
    assert_eq!(list(&[4]), "4");
    assert_eq!(list(&[0, 3, 4, 5, 9]), "0, 3-5, 9");
    let odd: Vec<u32> = (0..100).map(|number| number * 2 + 1).collect();
    assert!(list(&odd).ends_with("31, and others"));
}

const TASK: &str = "TEST_RENDEZVOUS_TASK";
const PARENT: &str = "TEST_RENDEZVOUS_PARENT";
const PROCESSES: u32 = 128;

/// More descriptors than fit one message, with the limit on open files that most systems have.
#[test]
fn a_hundred_and_twenty_eight_processes() {
    let name = format!("{}::one_process", module_path!().split_once("::").unwrap().1);
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|task| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--ignored", &name])
                .env(TASK, task.to_string())
                .env(PARENT, std::process::id().to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
#[ignore = "one of the processes of the test above"]
fn one_process() {
    let (Ok(task), Ok(parent)) = (std::env::var(TASK), std::env::var(PARENT)) else { return };
    let task: u32 = task.parse().unwrap();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(1024);
    setrlimit(Resource::Nofile, limit).unwrap();
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();

    let before = open_files();
    let me = Identity { key: parent, ..identity(task, PROCESSES, "") };
    // Not through `check`: the processes share the offsets of the files that they pass around.
    let file = mark(task);
    let members = meet(&me, 0, None, &task.to_le_bytes(), &[file.as_fd(), file.as_fd()], PATIENCE).unwrap();
    let pids: HashSet<i32> = members.iter().map(|member| member.pid).collect();
    assert_eq!(pids.len(), PROCESSES as usize);
    for (task, member) in (0_u32..).zip(&members) {
        assert_eq!((member.task, &member.blob[..], member.fds.len()), (task, &task.to_le_bytes()[..], 2));
        let expected = format!("task {task}");
        for fd in &member.fds {
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
            let mut text = vec![0; expected.len()];
            rustix::io::pread(fd, &mut text, 0).unwrap();
            assert_eq!(text, expected.as_bytes());
        }
    }
    drop((file, members));
    assert_eq!(open_files(), before);
}

fn connect(round: &Round) -> Channel {
    while !round.deadline.has_passed() {
        if let Some(channel) = Channel::connect(&round.name).unwrap() {
            return channel;
        }
        round.deadline.sleep(Duration::from_millis(1));
    }
    panic!("no root");
}

fn hello(round: &Round) -> Vec<u8> {
    let (task, tasks, secret) = (round.task, round.tasks, round.key.secret.clone());
    ToRoot::Hello(Hello { task, tasks, secret, blob: Vec::new(), fds: 0 }).encode()
}

fn say_hello(round: &Round) -> Channel {
    let channel = connect(round);
    channel.send(&hello(round), &[], round.deadline).unwrap();
    channel
}

/// The next message; `None` when the other end is closed.
fn hear(channel: &Channel, round: &Round) -> Option<ToMember> {
    loop {
        wait(&[(channel.as_fd(), PollFlags::IN)], round.deadline).unwrap();
        match channel.receive().unwrap() {
            Receive::Message(received) => return ToMember::decode(&received.bytes),
            Receive::Closed => return None,
            Receive::Nothing => assert!(!round.deadline.has_passed(), "no answer"),
        }
    }
}

#[test]
fn a_task_that_finds_its_job_elsewhere_leaves() {
    // Task 1 only leaves when the root has sent it away: its own answer is no.
    let met = job(2, |task| {
        let me = identity(task, 3, "elsewhere");
        super::super::meet(&me, 0, None, &[], &[], PATIENCE, &mut || {
            let back = task == 0 || Channel::connect(&round(0, 3, "elsewhere").name).unwrap().is_none();
            if back { Search::Back } else { Search::Nowhere }
        })
    });
    assert!(met.into_iter().all(|outcome| outcome.unwrap().is_none()));
}

/// Two come back at the same time, and one of them dies in the meeting that they hold meanwhile.
#[test]
fn a_meeting_that_fails_does_not_matter_where_the_job_runs_already() {
    for patient in [true, false] {
        let (me, mut asked) = (identity(0, 3, "fails"), 0);
        let met = thread::scope(|scope| {
            scope.spawn(|| {
                let round = round(1, 3, "fails");
                let hello = Hello { task: 1, tasks: 3, secret: Vec::new(), blob: Vec::new(), fds: 0 };
                let root = loop {
                    if let Some(root) = Channel::connect(&round.name).unwrap() {
                        break root;
                    }
                };
                root.send(&ToRoot::Hello(hello).encode(), &[], round.deadline).unwrap();
                // The welcome; and then it is gone.
                wait(&[(root.as_fd(), PollFlags::IN)], round.deadline).unwrap();
            });
            super::super::meet(&me, 0, None, &[], &[], PATIENCE, &mut || {
                asked += 1;
                match asked {
                    1 | 2 => Search::Called,
                    _ if patient => Search::Back,
                    _ => Search::Nowhere,
                }
            })
        });
        assert_eq!(met.is_ok_and(|members| members.is_none()), patient);
    }
}
