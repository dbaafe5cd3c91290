use super::*;
use crate::wire::board::size;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use std::os::fd::AsRawFd;

/// Task 0 gives up, and calls LAPI_Init again after task 2: task 1, which has seen its first card,
/// does not use that.
#[test]
fn a_card_that_was_taken_back_counts_no_more() {
    let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("a memory file");
    ftruncate(&file, size(3)).expect("room");
    let value = format!("{}:{}@9", file.as_raw_fd(), fstat(&file).expect("a file").st_ino);
    let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
    let board = Board::from_env(&env, "MP_PARTITION 9", 3).expect("the board");
    let turn = Turn { instance: 1, opening: 1 };
    let join = |me: Task, number: u8, until: Duration| {
        let mut task = Poe::new(board, me, 3, turn, Arc::new(Ends::of_none()));
        task.publish("number", &[number])?;
        task.fence(Instant::now() + until)?;
        task.lookup(0, "number")
    };
    let (soon, late) = (Duration::from_millis(50), Duration::from_secs(20));
    std::thread::scope(|scope| {
        let one = scope.spawn(|| join(1, 1, late));
        join(0, 2, soon).expect_err("task 2 is not there");
        board.withdraw(0, 1, 1);
        let two = scope.spawn(|| join(2, 1, late));
        std::thread::sleep(soon);
        let again = join(0, 3, late);
        for joined in [one.join(), two.join()] {
            assert_eq!(joined.expect("a thread").expect("all are there"), [3]);
        }
        assert_eq!(again.expect("all are there"), [3]);
    });
}

#[test]
fn tasks_read_what_the_others_have_published() {
    let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("a memory file");
    ftruncate(&file, size(3)).expect("room");
    let value = format!("{}:{}@9", file.as_raw_fd(), fstat(&file).expect("a file").st_ino);
    let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
    let turn = Turn { instance: 1, opening: 2 };
    let mut tasks: Vec<Poe> = (0..3)
        .map(|me| {
            let board = Board::from_env(&env, "MP_PARTITION 9", 3).expect("the board");
            Poe::new(board, me, 3, turn, Arc::new(Ends::of_none()))
        })
        .collect();
    for task in &mut tasks {
        task.publish("number", &[task.me as u8]).expect("room");
        task.publish("name", format!("task {}", task.me).as_bytes()).expect("room");
    }
    let soon = Instant::now() + Duration::from_millis(20);
    let board = Board::from_env(&env, "MP_PARTITION 9", 3).expect("the board");
    let mut alone = Poe::new(board, 0, 3, Turn { instance: 2, opening: 2 }, Arc::new(Ends::of_any_job()));
    let late = alone.fence(soon).expect_err("two have published nothing");
    assert!(late.to_string().contains("task 1 has not called LAPI_Init"), "{late}");
    let end = Instant::now() + Duration::from_secs(20);
    let [first, rest @ ..] = &mut tasks[..] else { unreachable!("three tasks") };
    std::thread::scope(|scope| {
        for task in rest.iter_mut() {
            scope.spawn(move || task.fence(end).expect("all are there"));
        }
        first.fence(end).expect("all are there");
    });
    for task in &mut tasks {
        for other in 0..3 {
            assert_eq!(task.lookup(other, "number").expect("a value"), [other as u8]);
            assert_eq!(task.lookup(other, "name").expect("a value"), format!("task {other}").as_bytes());
        }
        assert!(task.lookup(1, "nothing").is_err());
    }
    // The launcher has seen the ends of two tasks, one of which had closed its opening.
    for task in [1, 2] {
        assert!(!tasks[0].has_died(task));
        board.write(Word::Ended, task, 1);
    }
    board.write(Word::Closed(1), 2, 2);
    assert!(tasks[0].has_died(1) && !tasks[0].has_died(2));
    // Another fence is another one.
    tasks[2].publish("later", b"x").expect("room");
    let late = tasks[2].fence(Instant::now() + Duration::from_millis(20));
    assert!(late.is_err(), "the others have not come");
    assert_eq!(tasks[0].lookup(2, "later").expect("a value"), b"x");
}
