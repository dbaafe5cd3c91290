//! What a session refuses: nothing is opened or changed then, and the detail says why.

use super::*;
use crate::abi::{LAPI_ERR_SET_VAL, LAPI_VOID_HANDLE};
use crate::config::MAX_TASKS;

fn refused(identity: &Identity, settings: Settings<'_>) -> (i32, String) {
    let opened = Session::open(identity, settings, &Link::none(), Arc::new(Quiet::default()));
    let error = opened.map(drop).expect_err("a mistake");
    (error.code, error.detail)
}

#[test]
fn settings_out_of_range_are_refused() {
    let me = identity("mistakes in settings", 0, 2);
    let wrong = [
        (Settings { instance: 16, ..Settings::default() }, LAPI_ERR_SET_VAL, "instance 16; valid: 0 to 15"),
        (Settings { handle: 0, ..Settings::default() }, LAPI_ERR_HNDL_INVALID, "handle 0x0"),
        (
            Settings { handle: LAPI_VOID_HANDLE, ..Settings::default() },
            LAPI_ERR_HNDL_INVALID,
            "handle 0xffffffff",
        ),
        (
            Settings { completion_threads: 0, ..Settings::default() },
            LAPI_ERR_SET_VAL,
            "completion_threads 0; valid: 1 to 128",
        ),
        (
            Settings { completion_threads: 129, ..Settings::default() },
            LAPI_ERR_SET_VAL,
            "completion_threads 129; valid: 1 to 128",
        ),
    ];
    for (settings, code, says) in wrong {
        let (found, detail) = refused(&me, settings);
        assert!(found == code && detail.starts_with(says), "{says}: {found} {detail}");
    }
    // The last valid ones; the task was not opened before.
    let settings =
        Settings { instance: 15, completion_threads: 2, handle: u32::MAX - 1, ..Settings::default() };
    let session = Session::open(&me, settings, &Link::none(), Arc::new(Quiet::default())).expect("a session");
    session.close().expect("an open session");
}

#[test]
fn an_identity_that_cannot_be_is_refused() {
    let of = |task, tasks| identity("mistakes in identity", task, tasks);
    let shares = |common| Identity { common, ..of(1, 4) };
    let wrong = [
        of(0, 0),
        of(2, 2),
        of(0, MAX_TASKS + 1),
        of(u32::MAX, 1),
        shares(Common::Counted(0)),
        shares(Common::Counted(4)),
        shares(Common::Listed(vec![])),
        shares(Common::Listed(vec![0, 2])),
        shares(Common::Listed(vec![2, 1])),
        shares(Common::Listed(vec![1, 1])),
        shares(Common::Listed(vec![1, 4])),
        shares(Common::Listed(vec![0, 1, 2, 3])),
    ];
    for identity in wrong {
        let (code, detail) = refused(&identity, Settings::default());
        let says = format!("task {} of {}", identity.task, identity.tasks);
        assert!(code == LAPI_ERR_SET_VAL && detail.starts_with(&says), "{code} {detail}");
    }
}

/// Else the thread could have two ways to what the lock guards.
#[test]
fn a_thread_enters_a_session_once_at_a_time() {
    let task = Task::open("entered twice", 0, 1);
    let mut held = task.session.enter().expect("an open session");
    assert_eq!(task.session.enter().map(drop).unwrap_err().code, LAPI_ERR_UNKNOWN);
    assert_eq!(task.session.context().enter().map(drop).unwrap_err().code, LAPI_ERR_UNKNOWN);
    assert_eq!(held.tasks(), 1);
    drop(held);
    // Another session has a lock of its own.
    let other = Task::open("entered beside", 0, 1);
    let (_one, _two) = (task.session.enter().expect("an open session"), other.session.enter());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(task.session.context().try_enter().is_none(), "the lock is held"));
    });
}
