use super::*;
use crate::job::board::Board;
use crate::job::identity;
use crate::wire::board;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use std::os::fd::AsRawFd;

#[test]
fn the_launchers_file_counts_for_all_processes_of_a_task() {
    let file = memfd_create("job", MemfdFlags::CLOEXEC).expect("a memory file");
    ftruncate(&file, board::size(3)).expect("room");
    let inode = fstat(&file).expect("a file").st_ino;
    let value = format!("{}:{inode}@77", file.as_raw_fd());
    let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
    let of = |env: &Env<'_>, key: &str, tasks, instance| {
        Openings::from_env(env, &Arc::default(), key, tasks, instance)
    };
    let [one, other] = [0, 3].map(|instance| of(&env, "MP_PARTITION 77", 3, instance));
    assert_eq!((one.open(1), one.open(1), one.open(2), other.open(1)), (1, 2, 1, 1));
    // Another process of the task.
    let again = of(&env, "MP_PARTITION 77", 3, 0);
    assert_eq!((again.open(1), again.opened(0), again.opened(2)), (3, Some(0), Some(1)));
    again.fail(1, 3, 3);
    assert_eq!(one.opened(1), Some(2));
    // Once all have published for an opening, its number is not used again.
    let board = Board::from_env(&env, "MP_PARTITION 77", 3).expect("the board");
    let failing = of(&env, "MP_PARTITION 77", 3, 4);
    for (there, spent) in [(&[0][..], false), (&[1], false), (&[1, 2], true)] {
        there.iter().for_each(|task| assert!(board.publish(*task, 4, 1, b"a card")));
        assert_eq!(failing.open(1), 1);
        failing.fail(1, 1, 3);
        let (opened, closed) = (failing.opened(1), failing.has_closed(1, 1));
        assert_eq!((opened, closed), (Some(u32::from(spent)), spent), "{there:?} have published");
        // A task that comes later does not take what this attempt has published for the next one's.
        assert_eq!((board.card(0, 4, 1).is_some(), board.card(1, 4, 1).is_some()), (true, spent));
    }
    again.close(1, 1);
    assert!(one.has_closed(1, 1) && !one.has_closed(1, 2) && !other.has_closed(1, 1));
    // As poe's tasks find it: by the key that follows from their environment.
    let of_poe = |name: &str| match name {
        "MP_CHILD" => Some("1".to_owned()),
        "MP_PROCS" => Some("3".to_owned()),
        "MP_PARTITION" => Some("77".to_owned()),
        name => env(name),
    };
    let identity = identity::Identity::from_env(&of_poe).expect("a task of a job");
    assert_eq!(of(&of_poe, &identity.key, 3, 0).opened(1), Some(2));
    // The launcher lets another process take the place of one that has died.
    assert_eq!(again.rejoin(1, 3), None);
    again.write(Word::Rejoins(0), 1, 2);
    assert_eq!((other.rejoin(1, 3), again.rejoin(1, 3)), (None, Some(2)));
    // Its first attempts fail, and let go of what they had opened.
    again.close(1, 2);
    let closed = || again.read(Word::Closed(0), 1);
    assert_eq!((again.rejoin(1, 3), closed()), (Some(2), Some(1)));
    again.has_failed(1);
    again.close(1, 2);
    let successor = Opening::new(again.clone(), 1, 2);
    successor.close();
    assert_eq!((again.rejoin(1, 3), closed()), (Some(2), Some(1)));
    successor.has_begun();
    assert_eq!(again.rejoin(1, 3), None);
    successor.close();
    assert_eq!(closed(), Some(2));
    assert!(one.has_closed(1, 1), "the opening before it was closed too");
    // It joins also what all the others have closed meanwhile. If it cannot, its next program opens
    // one of its own.
    again.write(Word::Rejoins(0), 1, 2);
    again.has_failed(1);
    again.write(Word::Closed(0), 0, 2);
    assert_eq!(again.rejoin(1, 3), Some(2), "task 2 is still there");
    again.write(Word::Rejoins(0), 1, 2);
    again.write(Word::Closed(0), 2, 2);
    assert_eq!(again.rejoin(1, 3), Some(2));
    again.has_failed(1);
    assert_eq!((again.rejoin(1, 3), again.read(Word::Rejoins(0), 1)), (None, Some(0)));
    again.has_failed(1);
    assert_eq!(again.read(Word::Rejoins(0), 1), Some(0), "nothing was left to it");
    // Several of its attempts may fail.
    again.write(Word::Rejoins(0), 1, 2);
    again.has_failed(1);
    again.has_failed(1);
    assert_eq!((again.rejoin(1, 3), again.read(Word::Rejoins(0), 1)), (None, Some(0)));
    // A process leaves its place to the next one, and stays after all.
    let opening = Opening::new(again.clone(), 1, 3);
    opening.leave_to_successor();
    again.close(1, 3);
    assert!(!one.has_closed(1, 3), "another process is to join it");
    opening.take_back();
    again.close(1, 3);
    assert_eq!((one.has_closed(1, 3), again.rejoin(1, 3)), (true, None));
    for (key, tasks) in [("MP_PARTITION 78", 3), ("MP_PARTITION 77", 4), ("77", 3)] {
        assert_eq!(of(&env, key, tasks, 0).opened(0), None, "{key}, {tasks} tasks");
    }
}

#[test]
fn without_a_launcher_each_task_counts_for_itself() {
    let counts = Arc::default();
    let of = |counts: &Arc<Counts>, key: &str| Openings::from_env(&|_| None, counts, key, 2, 15);
    let openings = of(&counts, "a job of this test");
    assert_eq!((openings.open(0), openings.open(0)), (1, 2));
    openings.fail(0, 2, 2);
    assert_eq!((openings.open(0), openings.opened(0)), (2, None));
    openings.adopt(9);
    assert_eq!(openings.open(0), 10);
    // Its next session counts on, and another task of this process by itself.
    assert_eq!(of(&counts, "a job of this test").open(0), 11);
    let others = Arc::default();
    assert_eq!(of(&others, "a job of this test").open(1), 1);
    assert_eq!(of(&counts, "another one").open(0), 1);
}
