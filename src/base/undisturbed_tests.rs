use super::*;

fn value(name: &CStr) -> Option<CString> {
    // SAFETY: a name that a zero ends, and a text of the environment.
    unsafe {
        let found = libc::getenv(name.as_ptr());
        (!found.is_null()).then(|| CStr::from_ptr(found).to_owned())
    }
}

fn one(name: &CStr) -> [(CString, CString); 1] {
    [(name.to_owned(), c"1".to_owned())]
}

fn handler() -> Option<usize> {
    disposition(libc::SIGURG).map(|now| now.sa_sigaction)
}

#[test]
fn what_was_changed_meanwhile_is_given_back() {
    // SAFETY: SIGURG does nothing by default, and no other test of this process uses it.
    let handle = |handler: usize| unsafe { libc::signal(libc::SIGURG, handler) };
    let before = value(c"PATH");
    open(&one(c"UNDISTURBED_A"), || {
        // SAFETY: a library of the C library, which runs nothing; its function is not called.
        let function = unsafe {
            let library = libc::dlopen(c"libthread_db.so.1".as_ptr(), libc::RTLD_NOW);
            libc::dlsym(library, c"td_init".as_ptr())
        };
        handle(function as usize);
        assert_eq!(handler(), Some(function as usize));
        assert_eq!(value(c"UNDISTURBED_A"), Some(c"1".to_owned()));
        assert_eq!(value(c"IPATH_NO_BACKTRACE"), Some(c"1".to_owned()));
        assert_eq!(value(c"PATH"), before);
    });
    assert_eq!(value(c"UNDISTURBED_A"), None);
    assert_eq!(value(c"PATH"), before);
    assert_eq!(handler(), Some(libc::SIG_DFL));
    // What the program itself has done meanwhile stays.
    open(&[], || handle(libc::SIG_IGN));
    assert_eq!(handler(), Some(libc::SIG_IGN));
    handle(libc::SIG_DFL);
}

#[test]
fn a_library_that_sets_a_variable_leaves_no_other() {
    let before = value(c"PATH");
    open(&one(c"UNDISTURBED_B"), || {
        // SAFETY: texts that a zero ends. No array of the environment is freed: the C library
        // has made none before.
        unsafe { libc::setenv(c"UNDISTURBED_SET".as_ptr(), c"2".as_ptr(), 1) };
    });
    assert_eq!(value(c"UNDISTURBED_SET"), Some(c"2".to_owned()));
    assert_eq!(value(c"UNDISTURBED_B"), None);
    assert_eq!(value(c"PATH"), before);
}

#[test]
fn two_threads_that_open_leave_nothing() {
    let opens = |name: &'static CStr| {
        std::thread::spawn(move || {
            for _ in 0..100 {
                open(&one(name), || assert_eq!(value(name), Some(c"1".to_owned())));
                assert_eq!(value(name), None);
            }
        })
    };
    for thread in [c"UNDISTURBED_C", c"UNDISTURBED_D", c"UNDISTURBED_E"].map(opens) {
        thread.join().expect("it has found what it has set, and nothing later");
    }
}
