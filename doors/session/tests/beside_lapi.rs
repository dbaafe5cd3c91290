//! LAPI itself and two sessions in one process.

#[path = "peer/talk.rs"]
mod talk;

use lapi::session::{Error, Routes, Settings, accept, connect};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn ends() -> [[OwnedFd; 2]; 2] {
    let (one, other) = UnixStream::pair().expect("sockets");
    [one, other].map(|end| [end.try_clone().expect("a socket").into(), end.into()])
}

#[test]
fn a_task_of_a_job_has_sessions_with_others() {
    let context = lapi::Context::open().expect("a job of one task");
    let port = context.port();
    let late = || Some(Instant::now() + Duration::from_secs(300));
    let settings = |routes| Settings { routes, patience: Duration::from_secs(100), ..Settings::default() };
    std::thread::scope(|scope| {
        for routes in [Routes::SHARED_MEMORY, Routes::UDP] {
            let [here, there] = ends();
            scope.spawn(move || {
                let [read, write] = here;
                let session = accept(read, write, &settings(routes)).expect("a session");
                assert_eq!(talk::serve(&session, late()).expect("an orderly end"), 7);
                session.close().expect("nothing was under way");
            });
            scope.spawn(move || {
                let [read, write] = there;
                let session = connect(read, write, &settings(routes)).expect("a session");
                talk::call(&session, late()).expect("all of it");
                session.close().expect("an orderly end");
            });
        }
        // LAPI goes on beside them.
        for turn in 0_u64..100 {
            let (mut at, value) = (0_u64, turn);
            let address = (&raw mut at).expose_provenance() as u64;
            // SAFETY: the number lives until the fence, and nothing else uses it.
            unsafe { port.put_at(0, address, &[value]).expect("a put") };
            port.fence().expect("a fence");
            // SAFETY: the same.
            assert_eq!(unsafe { (&raw const at).read_volatile() }, turn);
        }
    });
    // A session that ends without a word is lost for the other side alone.
    let [here, there] = ends();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let [read, write] = there;
            drop(connect(read, write, &settings(Routes::ALL)).expect("a session"));
        });
        let [read, write] = here;
        let session = accept(read, write, &settings(Routes::ALL)).expect("a session");
        assert!(matches!(session.receive(late()), Err(Error::Lost(_))));
    });
    port.fence().expect("LAPI goes on");
    drop(context);
}
