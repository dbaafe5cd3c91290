use super::{Key, PLACES, note_thread, this_thread, thread_number};
use std::sync::Barrier;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn a_thread_is_called_what_the_c_library_calls_it() {
    // SAFETY: pthread_self has no preconditions.
    let both = || (this_thread(), unsafe { libc::pthread_self() as usize });
    let (here, there) = (both(), thread::spawn(both).join().expect("it ends"));
    assert_eq!(here.0, here.1);
    assert_eq!(there.0, there.1);
    assert_ne!(here, there);
}

/// As the child of a fork finds the key that another thread was about to make.
#[test]
fn a_key_that_is_being_made_is_not_waited_for() {
    static KEY: Key = Key(AtomicI64::new(Key::UNMADE));
    let (begun, making) = channel();
    let (go_on, wait) = channel::<()>();
    let slow = thread::spawn(move || {
        KEY.get(|| {
            begun.send(()).expect("it is awaited");
            wait.recv().expect("a word");
            None
        })
    });
    making.recv().expect("it begins");
    let (done, result) = channel();
    let quick = thread::spawn(move || {
        let made = (KEY.made(), KEY.get(|| Some(7)), KEY.get(|| panic!("it is made")));
        done.send(made).expect("it is awaited");
    });
    let made = result.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits");
    assert_eq!(made, (None, Some(7), Some(7)));
    go_on.send(()).expect("it waits");
    assert_eq!(slow.join().expect("it ends"), Some(7), "that of the first one");
    quick.join().expect("it ends");
}

/// From now on the calling thread's checks whether a file exists fail.
fn without_stat() {
    let word = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let forbidden = [
        // Arm has no call without a folder.
        #[cfg(not(target_arch = "aarch64"))]
        libc::SYS_stat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
    ];
    let mut program = vec![word(0x20, 0, 0, 0)];
    for (at, call) in forbidden.iter().enumerate() {
        program.push(word(0x15, (forbidden.len() - at) as u8, 0, *call as u32));
    }
    program.push(word(0x06, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.push(word(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives during the call, and is the thread's own.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 2, &filter), 0);
    }
    assert!(!std::path::Path::new("/").exists(), "the filter works");
}

/// A table that is full of living threads stays as it is, and no thread asks the system
/// about the others.
#[test]
fn threads_are_known_while_they_live_and_are_not_looked_up() {
    // Other tests of this process may have known threads too: at most PLACES
    // threads find a place.
    const THREADS: usize = PLACES + 20;
    let (entered, looked) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let me = || (this_thread(), rustix::thread::gettid().as_raw_pid());
    let count = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    note_thread();
                    let (thread, number) = me();
                    let known = thread_number(thread);
                    assert!(known.is_none_or(|known| known == number));
                    entered.wait();
                    looked.wait();
                    assert_eq!(thread_number(thread), known, "another thread has taken the place");
                    known.is_some()
                })
            })
            .collect();
        entered.wait();
        let late = scope.spawn(|| {
            without_stat();
            note_thread();
            thread_number(this_thread())
        });
        assert_eq!(late.join().expect("it ends"), None, "there is no place left");
        looked.wait();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).filter(|known| *known).count()
    });
    assert!(count > PLACES / 2 && count <= PLACES, "{count}");
    // They have ended, and their places are free.
    let next = thread::spawn(move || {
        note_thread();
        (thread_number(me().0), me().1)
    });
    let (known, number) = next.join().expect("it ends");
    assert_eq!(known, Some(number));
}
