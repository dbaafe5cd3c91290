//! Windows, counters and messages between the tasks of jobs.

mod common;

use common::{code, job, start};
use lapi::{Accept, Attribute, Context, TargetCounter, Window, codes};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn puts_and_gets() {
    job("puts_and_gets", &[1, 3], |context| {
        let (me, tasks) = (context.task(), context.tasks());
        let next = (me + 1) % tasks;
        // Longer than a packet, and of another length at each task.
        let window = Window::<u64>::new(&context, 100_000 + me as usize).unwrap();
        let counter = TargetCounter::new(&context).unwrap();
        let data: Vec<u64> = (0..100_000).map(|number| number << 8 | u64::from(me)).collect();
        window.put_notify(next, 0, &data, &counter).unwrap();
        assert_eq!(counter.wait(1).unwrap(), 0);
        let before = u64::from((me + tasks - 1) % tasks);
        assert_eq!((window.read(0), window.read(99_999)), (before, 99_999 << 8 | before));
        context.gfence().unwrap();
        let mut back = vec![0; data.len()];
        window.get(next, 0, &mut back).unwrap();
        assert!(back == data);
        context.gfence().unwrap();
        window.put_complete(next, 5, &[u64::MAX]).unwrap();
        assert_eq!(window.get_one(next, 5).unwrap(), u64::MAX);
        window.put_owned(next, 6, vec![7; 1000]).unwrap();
        context.fence().unwrap();
        assert_eq!(window.get_one(next, 1005).unwrap(), 7);
        window.free().unwrap();
    });
}

#[test]
fn a_scope_waits() {
    job("a_scope_waits", &[2], |context| {
        let other = 1 - context.task();
        let window = Window::<u8>::new(&context, 1 << 20).unwrap();
        window.fill(0, &[context.task() as u8 + 1; 1000]);
        window.write((1 << 20) - 1, 9);
        context.gfence().unwrap();
        let mut parts = vec![vec![0u8; 100_000]; 10];
        context
            .scope(|scope| {
                for (number, part) in parts.iter_mut().enumerate() {
                    scope.get(&window, other, number * 100_000, part).unwrap();
                }
            })
            .unwrap();
        assert_eq!(parts[0][..1001], [&[other as u8 + 1; 1000][..], &[0]].concat());
        // A panic in it ends the scope no earlier: task 1 does not reply for a while.
        context.set_attribute(Attribute::InterruptSet, 0).unwrap();
        context.gfence().unwrap();
        if context.task() == 1 {
            std::thread::sleep(Duration::from_millis(300));
        } else {
            let mut last = vec![0u8; 1 << 20];
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                context.scope(|scope| {
                    scope.get(&window, other, 0, &mut last).unwrap();
                    panic!("on purpose");
                })
            }));
            assert!(panicked.is_err());
            assert_eq!(last.last(), Some(&9));
        }
        window.free().unwrap();
    });
}

#[test]
fn blocks() {
    job("blocks", &[1, 2], |context| {
        let (me, tasks) = (context.task(), context.tasks());
        let next = (me + 1) % tasks;
        let window = Window::<u16>::new(&context, 40_000).unwrap();
        let (long, short) = (vec![me as u16 + 1; 20_000], [7, 8, 9]);
        window.put_blocks(next, &[(20_000, &long), (5, &short), (0, &[])]).unwrap();
        context.gfence().unwrap();
        let before = ((me + tasks - 1) % tasks) as u16 + 1;
        assert_eq!(window.to_vec(4..9), [0, 7, 8, 9, 0]);
        assert!(window.to_vec(20_000..40_000) == vec![before; 20_000]);
        assert_eq!((window.read(19_999), window.read(0)), (0, 0));
        let (mut first, mut second) = ([0; 4], vec![0; 20_000]);
        window.get_blocks(next, &mut [(4, &mut first), (20_000, &mut second)]).unwrap();
        assert_eq!(first, [0, 7, 8, 9]);
        assert!(second == long);
        window.put_blocks(next, &[]).unwrap();
        window.get_blocks(next, &mut [(0, &mut [])]).unwrap();
        let beyond = window.put_blocks(next, &[(0, &short), (39_998, &short)]);
        assert_eq!(code(beyond), codes::LAPI_ERR_OFFSET_LEN);
        context.gfence().unwrap();
        assert_eq!(window.read(0), 0, "nothing of a refused put is done");
        window.free().unwrap();
    });
}

#[test]
fn remote_atomics() {
    job("remote_atomics", &[1, 3], |context| {
        let tasks = context.tasks();
        let mut small = Window::<i32>::new(&context, 3).unwrap();
        let wide = Window::<u64>::new(&context, 1).unwrap();
        for _ in 0..50 {
            small.fetch_add(0, 0, -1).unwrap();
            wide.fetch_add(tasks - 1, 0, 1 << 40).unwrap();
            loop {
                let current = small.get_one(0, 1).unwrap();
                if small.compare_and_swap(0, 1, current, current + 2).unwrap() {
                    break;
                }
            }
        }
        small.fetch_or(0, 2, 1 << context.task()).unwrap();
        let mine = small.exclusive(|numbers| numbers.to_vec()).unwrap();
        if context.task() == 0 {
            let tasks = tasks as i32;
            assert_eq!(mine, [-50 * tasks, 100 * tasks, (1 << tasks) - 1]);
            assert_eq!(small.swap(0, 0, 5).unwrap(), -50 * tasks);
            assert_eq!(small.read(0), 5);
        }
        assert_eq!(wide.get_one(tasks - 1, 0).unwrap(), (50 * u64::from(tasks)) << 40);
        small.free().unwrap();
        wide.free().unwrap();
    });
}

#[test]
fn messages() {
    job("messages", &[1, 3], |context| {
        let (me, tasks) = (context.task(), context.tasks());
        let (sender, received) = mpsc::channel();
        context
            .on_message(7, move |port, arrival| {
                let (sender, source, header) = (sender.clone(), arrival.source, arrival.header.to_vec());
                // The dispatcher runs it: what would wait is refused, and what need
                // not wait is done.
                assert_eq!(code(port.fence()), codes::LAPI_ERR_UNKNOWN);
                assert_eq!(code(port.exchange(1)), codes::LAPI_ERR_UNKNOWN);
                assert_eq!(code(port.send(source, 8, &[], &[])), codes::LAPI_ERR_UNKNOWN);
                assert_eq!(code(port.scope(|_| ())), codes::LAPI_ERR_UNKNOWN);
                port.send_owned(source, 8, header.clone(), vec![3; 5000]).unwrap();
                Accept::then(move |_, data| sender.send((source, header, data)).unwrap())
            })
            .unwrap();
        let replies = Arc::new(AtomicU32::new(0));
        let count = replies.clone();
        context
            .on_message(8, move |_, arrival| {
                assert_eq!((arrival.header, arrival.len), (&[1, 2, 3, 4][..], 5000));
                count.fetch_add(1, Ordering::SeqCst);
                Accept::done()
            })
            .unwrap();
        context.gfence().unwrap();
        for len in [0, 1, 200_000] {
            let data = vec![me as u8; len];
            context.send_complete((me + 1) % tasks, 7, &[1, 2, 3, 4], &data).unwrap();
            let (source, header, data) = received.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!((source, header), ((me + tasks - 1) % tasks, vec![1, 2, 3, 4]));
            assert!(data == vec![source as u8; len]);
        }
        context.gfence().unwrap();
        while replies.load(Ordering::SeqCst) < 3 {
            context.probe().unwrap();
        }
    });
}

/// The others add to a number of task 0 all the time, and see nothing of its absences.
#[test]
fn a_task_leaves_and_comes_back() {
    const ROUNDS: u64 = 200;
    job("a_task_leaves_and_comes_back", &[1, 3], |context| {
        let tasks = context.tasks();
        let window = Window::<u64>::new(&context, 1).unwrap();
        let counter = TargetCounter::new(&context).unwrap();
        assert_eq!(code(context.checkpoint_after()), codes::LAPI_ERR_CKPT);
        if context.task() != 0 {
            for _ in 0..ROUNDS {
                window.fetch_add(0, 0, 1).unwrap();
                window.put_notify(0, 0, &[], &counter).unwrap();
            }
        } else {
            for _ in 0..5 {
                // SAFETY: this process comes back.
                unsafe { context.checkpoint_before() }.unwrap();
                let before = window.read(0);
                if tasks > 1 {
                    assert_eq!(code(window.get_one(1, 0)), codes::LAPI_ERR_TGT_PURGED);
                    assert_eq!(code(context.gfence()), codes::LAPI_ERR_TGT_PURGED);
                }
                // SAFETY: as above.
                assert_eq!(code(unsafe { context.checkpoint_before() }), codes::LAPI_ERR_CKPT);
                std::thread::sleep(Duration::from_millis(20));
                context.probe().unwrap();
                assert_eq!(window.read(0), before);
                context.checkpoint_after().unwrap();
            }
            if tasks > 1 {
                counter.wait(ROUNDS as u32 * (tasks - 1)).unwrap();
            }
        }
        context.gfence().unwrap();
        assert_eq!(window.get_one(0, 0).unwrap(), ROUNDS * u64::from(tasks - 1));
        window.free().unwrap();
    });
}

#[test]
fn mistakes_are_errors() {
    job("mistakes_are_errors", &[2], |context| {
        let me = context.task();
        let mut window = Window::<u16>::new(&context, 10).unwrap();
        assert_eq!(code(window.put(2, 0, &[1])), codes::LAPI_ERR_TGT);
        assert_eq!(code(window.put(1, 8, &[1, 2, 3])), codes::LAPI_ERR_OFFSET_LEN);
        assert_eq!(code(window.get(0, usize::MAX, &mut [0, 0])), codes::LAPI_ERR_OFFSET_LEN);
        assert_eq!(code(context.send(0, 0, &[], &[])), codes::LAPI_ERR_ADDR_HNDL_RANGE);
        assert_eq!(code(context.send(0, 1, &[1, 2, 3], &[])), codes::LAPI_ERR_HDR_LEN);
        assert_eq!(code(context.send(0, 1, &[0; 1028], &[])), codes::LAPI_ERR_UHDR_LEN);
        context.on_message(1, |_, _| Accept::done()).unwrap();
        assert_eq!(code(context.on_message(1, |_, _| Accept::done())), codes::LAPI_ERR_ADDR_HNDL_RANGE);
        assert_eq!(code(context.on_message(64, |_, _| Accept::done())), codes::LAPI_ERR_ADDR_HNDL_RANGE);
        // Collective calls that differ: no task continues.
        let differs = if me == 0 { context.exchange(1).map(drop) } else { window.exclusive(|_| ()) };
        assert_eq!(code(differs), codes::LAPI_ERR_UNKNOWN);
        let types = if me == 0 {
            Window::<u32>::new(&context, 1).map(drop)
        } else {
            Window::<u64>::new(&context, 1).map(drop)
        };
        let error = types.expect_err("windows of different types").to_string();
        assert!(error.contains("another collective call"), "{error}");
        // Task 1 was in an exclusive access that has failed.
        assert_eq!(window.put(0, 0, &[1]).is_err(), me == 1);
        let port = context.port();
        drop(context);
        assert_eq!(code(port.probe()), codes::LAPI_ERR_HNDL_INVALID);
        assert_eq!(code(window.get_one(0, 0)), if me == 1 { 400 } else { codes::LAPI_ERR_HNDL_INVALID });
    });
}

#[test]
fn a_lost_task_is_an_error() {
    let Some(outcome) = start("a_lost_task_is_an_error", 3) else {
        let (sender, failures) = mpsc::channel();
        let context = Context::builder()
            .on_error(move |_, failure| sender.send(failure.clone()).unwrap())
            .open()
            .unwrap();
        let window = Window::<u32>::new(&context, 1 << 20).unwrap();
        context.gfence().unwrap();
        match context.task() {
            1 => {
                // It dies while the others wait for it.
                std::thread::sleep(Duration::from_millis(300));
                std::process::exit(0);
            }
            _ => {
                let mut data = vec![0; 1 << 20];
                // Sooner or later one of these is under way.
                let error = loop {
                    if let Err(error) = window.get(1, 0, &mut data) {
                        break error;
                    }
                };
                assert_eq!(error.code, codes::LAPI_ERR_NO_CONNECTIVITY, "{error}");
                let failure = failures.recv_timeout(Duration::from_secs(20)).unwrap();
                assert_eq!((failure.task, failure.error.code), (1, codes::LAPI_ERR_NO_CONNECTIVITY));
                assert_eq!(code(window.fetch_add(1, 0, 1)), codes::LAPI_ERR_NO_CONNECTIVITY);
                context.purge(1).unwrap();
                assert_eq!(code(window.get(1, 0, &mut data)), codes::LAPI_ERR_TGT_PURGED);
                let other = 2 - context.task();
                window.get(other, 0, &mut data).unwrap();
                println!("survived");
                // Neither leaves while the other one may still get.
                window.fetch_add(other, 1, 1).unwrap();
                while window.get_one(context.task(), 1).unwrap() == 0 {
                    std::thread::yield_now();
                }
                return;
            }
        }
    };
    assert_eq!(outcome.stdout.matches("survived").count(), 2, "{outcome}");
}

#[test]
fn a_panic_in_a_handler_ends_the_task() {
    let Some(outcome) = start("a_panic_in_a_handler_ends_the_task", 1) else {
        let context = Context::open().unwrap();
        context.on_message(1, |_, _| panic!("in the header handler")).unwrap();
        let _ =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| context.send_complete(0, 1, &[], &[])));
        println!("still here");
        return;
    };
    assert!(outcome.stderr.contains("in the header handler"), "{outcome}");
    assert!(!outcome.stdout.contains("still here"), "{outcome}");
}

/// A length that another task names is no order to take memory: the task ends, and says for what.
#[test]
fn a_message_without_memory_for_it_is_named() {
    let bytes = 2 << 30;
    let Some(outcome) = start("a_message_without_memory_for_it_is_named", 2) else {
        let context = Context::open().unwrap();
        context.on_message(1, |_, _| Accept::then(|_, _| unreachable!("it has no place"))).unwrap();
        context.gfence().unwrap();
        if context.task() == 1 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
            let size: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
            let most = libc::rlimit { rlim_cur: (size << 10) + (1 << 30), rlim_max: libc::RLIM_INFINITY };
            // SAFETY: it reads the structure.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) }, 0);
        }
        context.gfence().unwrap();
        if context.task() == 0 {
            let data = vec![0; bytes];
            let _ = context.send_complete(1, 1, &[], &data);
        }
        let _ = context.gfence();
        return;
    };
    assert!(!outcome.timed_out && outcome.status != Some(0), "{outcome}");
    outcome.says(&format!("there is no memory for the {bytes} bytes of a message of task 0"));
}

/// Otherwise a task that still has a window of it would take another instance than the others, and
/// not find them.
#[test]
fn the_instance_of_an_ended_context_is_free() {
    job("the_instance_of_an_ended_context_is_free", &[1, 2], |context| {
        let window = Window::<u8>::new(&context, 4).unwrap();
        context.gfence().unwrap();
        drop(context);
        let again = Context::builder().instance(1).open().unwrap();
        assert_eq!(code(window.put(0, 0, &[1])), codes::LAPI_ERR_HNDL_INVALID);
        // The end of the last object of the first context does not free it for a third one.
        drop(window);
        assert_eq!(code(Context::builder().instance(1).open()), codes::LAPI_ERR_ALL_HNDL_IN_USE);
        again.gfence().unwrap();
    });
}

/// Fences of one context do not wait for operations of another one, which would write to a window
/// that is freed or lent out.
#[test]
fn contexts_do_not_share_windows_and_counters() {
    let Some(outcome) = start("contexts_do_not_share_windows_and_counters", 2) else {
        let one = Context::builder().instance(1).open().unwrap();
        let two = Context::builder().instance(2).open().unwrap();
        let (window, counter) =
            (Window::<u64>::new(&one, 1 << 17).unwrap(), TargetCounter::new(&two).unwrap());
        let (other, data) = (1 - one.task(), vec![1u64; 1 << 17]);
        let mut into = [0];
        two.scope(|scope| {
            assert_eq!(code(scope.put(&window, other, 0, &data)), codes::LAPI_ERR_HNDL_INVALID);
            assert_eq!(code(scope.get(&window, other, 0, &mut into)), codes::LAPI_ERR_HNDL_INVALID);
        })
        .unwrap();
        one.scope(|scope| {
            let refused = scope.put_notify(&window, other, 0, &data, &counter);
            assert_eq!(code(refused), codes::LAPI_ERR_HNDL_INVALID);
        })
        .unwrap();
        assert_eq!(code(window.put_notify(other, 0, &data, &counter)), codes::LAPI_ERR_HNDL_INVALID);
        one.gfence().unwrap();
        two.gfence().unwrap();
        assert!((window.read(0), counter.get().unwrap()) == (0, 0));
        return;
    };
    outcome.ok();
}

/// The task that is resumed may be another process, whose memory is another one, too.
#[test]
fn a_window_is_refused_after_a_lost_task_is_resumed() {
    let Some(outcome) = start("a_window_is_refused_after_a_lost_task_is_resumed", 2) else {
        let context = Context::builder().on_error(|_, _| ()).open().unwrap();
        let window = Window::<u32>::new(&context, 1 << 20).unwrap();
        let counter = TargetCounter::new(&context).unwrap();
        context.gfence().unwrap();
        if context.task() == 1 {
            std::process::exit(0);
        }
        let mut data = vec![0; 1 << 20];
        while window.get(1, 0, &mut data).is_ok() {}
        context.resume(1).unwrap();
        assert_eq!(code(window.put_owned(1, 0, vec![1])), codes::LAPI_ERR_TGT_PURGED);
        assert_eq!(code(window.put_notify(1, 0, &[1], &counter)), codes::LAPI_ERR_TGT_PURGED);
        assert_eq!(code(window.get(1, 0, &mut data)), codes::LAPI_ERR_TGT_PURGED);
        println!("refused");
        return;
    };
    assert!(outcome.stdout.contains("refused"), "{outcome}");
}

/// The others would wait for it.
#[test]
fn all_tasks_learn_that_one_has_no_memory() {
    job("all_tasks_learn_that_one_has_no_memory", &[2], |context| {
        let len = if context.task() == 1 { 1 << 60 } else { 10 };
        let error = Window::<u8>::new(&context, len).expect_err("a window without memory");
        assert_eq!(error.code, codes::LAPI_ERR_MEMORY_EXHAUSTED);
        assert!(error.to_string().contains("a window of task 1 of 1152921504606846976 elements"), "{error}");
        Window::<u8>::new(&context, 10).unwrap().free().unwrap();
    });
}
