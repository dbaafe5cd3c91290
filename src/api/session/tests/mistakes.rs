//! What a session refuses: nothing is opened or changed then, and the detail says why.

use super::*;
use crate::abi::{LAPI_ERR_SET_VAL, LAPI_VOID_HANDLE};
use crate::config::MAX_TASKS;
use std::sync::OnceLock;

fn refused(identity: &Identity, settings: Settings<'_>) -> (i32, String) {
    let opened = Session::open(identity, settings, &Link::none(), Arc::new(NoEvents));
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
            Settings { completion_threads: 129, ..Settings::default() },
            LAPI_ERR_SET_VAL,
            "completion_threads 129; valid: 0 to 128",
        ),
    ];
    for (settings, code, says) in wrong {
        let (found, detail) = refused(&me, settings);
        assert!(found == code && detail.starts_with(says), "{says}: {found} {detail}");
    }
    // The last valid ones; the task was not opened before.
    let settings =
        Settings { instance: 15, completion_threads: 2, handle: u32::MAX - 1, ..Settings::default() };
    let session = Session::open(&me, settings, &Link::none(), Arc::new(NoEvents)).expect("a session");
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
    assert_eq!(task.session.poll().unwrap_err().code, LAPI_ERR_UNKNOWN);
    assert_eq!(task.session.arm().unwrap_err().code, LAPI_ERR_UNKNOWN);
    // Also while a wait calls the program, unless in a round of the dispatcher.
    let mut refused = None;
    let waited = progress::wait_until(&mut held, None, || {
        refused = task.session.enter().map(drop).err().map(|error| error.code);
        true
    });
    assert_eq!((waited, refused), (Ok(true), Some(LAPI_ERR_UNKNOWN)));
    assert_eq!(held.tasks(), 1);
    drop(held);
    // Another session has a lock of its own.
    let other = Task::open("entered beside", 0, 1);
    let (_one, _two) = (task.session.enter().expect("an open session"), other.session.enter());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(task.session.context().try_enter().is_none(), "the lock is held"));
    });
}

/// The thread cannot take the lock again, and yet no other thread sleeps on.
#[test]
fn a_thread_inside_a_session_wakes_the_others() {
    let task = Task::open_with(Interrupts::Never, "woken from within", 0, 1);
    while task.session.poll().expect("an open session") || task.session.arm().expect("the same").is_none() {}
    let held = task.session.enter().expect("an open session");
    task.session.wake();
    drop(held);
    let ready = crate::base::poll::await_readable(&[task.session.as_fd()], Some(Duration::ZERO));
    assert_eq!(ready, [true], "the event loop sleeps on");
    task.session.disarm().expect("an open session");
}

static IN_HANDLER: OnceLock<Session> = OnceLock::new();
static CODES: Mutex<Vec<Option<i32>>> = Mutex::new(Vec::new());

extern "C" fn sleeps_in_a_handler(
    _: *const crate::abi::lapi_handle_t,
    _: *mut libc::c_void,
    _: *mut crate::abi::lapi_sh_info_t,
) {
    let session = IN_HANDLER.get().expect("the session");
    let code = |outcome: Result<()>| outcome.err().map(|error| error.code);
    let wait = |held: &mut Held<'_>| progress::wait_until(held, None, || false).map(drop);
    let mut codes = CODES.lock();
    codes.push(code(session.arm().map(drop)));
    codes.push(code(session.enter().and_then(|mut held| wait(&mut held))));
    codes.push(code(session.enter().map(drop)));
    session.wake();
}

#[test]
fn a_handler_calls_its_session_and_must_neither_wait_nor_arm() {
    static DATA: [u8; 8] = [1; 8];
    static PLACE: [AtomicI32; 2] = [AtomicI32::new(0), AtomicI32::new(0)];
    let identity = identity("a handler", 0, 1);
    let opened = Session::open(&identity, Settings::default(), &Link::none(), Arc::new(NoEvents));
    let session = IN_HANDLER.get_or_init(|| opened.expect("a session"));
    let put = Put {
        tgt: 0,
        places: Places::Contiguous {
            local: DATA.as_ptr().addr(),
            remote: PLACE.as_ptr().addr() as u64,
            len: DATA.len(),
        },
        tgt_cntr: 0,
        cmpl_cntr: 0,
        done: SendDone {
            handler: sleeps_in_a_handler as *const () as usize,
            bytes: 8,
            ..SendDone::nothing(0)
        },
        hint: Hint::None,
    };
    let mut held = session.enter().expect("an open session");
    // SAFETY: all of it is static.
    unsafe { put_get::put(&mut held, &put) }.expect("a put");
    progress::wait_until(&mut held, None, || !CODES.lock().is_empty()).expect("the handler");
    drop(held);
    assert_eq!(*CODES.lock(), [Some(LAPI_ERR_UNKNOWN), Some(LAPI_ERR_UNKNOWN), None]);
    session.close().expect("an open session");
}
