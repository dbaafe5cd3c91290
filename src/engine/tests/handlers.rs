//! What handlers are given, what they may do, and the order of events.

use super::calls::{
    Extras, as_the_header_says, counter, enter, fence, forever, get, gfence, put, send, wait,
};
use super::job::{self, Habits, Report, SLEEPY, Task, in_threads};
use super::recovery::settle;
use crate::abi::*;
use crate::api::{progress, put_get};
use crate::base::known_threads::this_thread;
use crate::engine::context::request::{Get, Hint, Places, Preference};
use crate::proto::tests::seeds;
use crate::transport::testing::faults::FaultPlan;
use libc::{c_int, c_uint, c_ulong, c_void};
use parking_lot::Mutex;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a test's handlers have in common: a function that runs in each of them.
type Script = fn(&Task, &Call<'_>);

/// What a header handler was given.
struct Call<'a> {
    header: &'a [u8],
    len: usize,
    info: Mutex<&'a mut lapi_return_info_t>,
    completion: Mutex<&'a mut compl_hndlr_p>,
}

unsafe extern "C" fn scripted(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void {
    let task = job::task(hndl);
    let script = task.play.get().and_then(|play| play.downcast_ref::<Script>().copied()).expect("a script");
    // SAFETY: the library gives these for the time of the call; a header of no length may
    // have no address.
    let call = unsafe {
        *uinfo = ptr::without_provenance_mut(5);
        let info = &mut *msg_len.cast::<lapi_return_info_t>();
        let header = match *uhdr_len as usize {
            0 => &[][..],
            len => std::slice::from_raw_parts(uhdr.cast::<u8>(), len),
        };
        Call {
            header,
            len: info.msg_len as usize,
            info: Mutex::new(info),
            completion: Mutex::new(&mut *comp_h),
        }
    };
    script(&task, &call);
    ptr::null_mut()
}

fn play(tasks: &[Arc<Task>], script: Script) {
    tasks.iter().for_each(|task| assert!(task.play.set(Arc::new(script)).is_ok()));
}

fn note(task: &Task, what: usize) {
    task.reported.lock().push((what, 0));
}

#[test]
fn a_message_of_nothing_runs_its_handler_and_moves_its_counters() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::THREADED);
    play(&tasks, |task, call| {
        assert!(call.header.is_empty() && call.len == 0);
        note(task, 1);
    });
    in_threads(&tasks, 1, |task, _| {
        let [org, tgt, cmpl] = [(); 3].map(|()| counter());
        for peer in [1 - task.me, task.me] {
            let extras = Extras {
                org_cntr: Some(org),
                tgt_cntr: Some(tgt),
                cmpl_cntr: Some(cmpl),
                ..Extras::default()
            };
            send(task, peer, scripted, &[], &[], extras).expect("a message");
        }
        assert_eq!([org, tgt, cmpl].map(|counter| wait(task, counter, 2)), [Ok(0), Ok(0), Ok(0)]);
        gfence(task).expect("a fence");
    });
    tasks.iter().for_each(|task| assert_eq!(task.reported.lock().len(), 2));
    job::close(tasks);
}

#[test]
fn a_handler_that_is_not_set_is_reported_and_the_counters_move_nevertheless() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::THREADED);
    in_threads(&tasks, 1, |task, _| {
        if task.me == 0 {
            let cmpl = counter();
            let data = &*forever(job::MAX_BODY * 3);
            let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
            // SAFETY: index 9, which is never called as a function.
            let unset = unsafe { std::mem::transmute::<usize, hdr_hndlr_t>(9) };
            send(task, 1, unset, &[], data, extras).expect("a message");
            wait(task, cmpl, 1).expect("its completion");
        }
        gfence(task).expect("a fence");
    });
    let report = Report { code: LAPI_ERR_HDR_HNDLR_NULL, kind: AM_ERR, task: 1, src: 0 };
    assert_eq!((tasks[0].reports(), tasks[1].reports()), (vec![], vec![report]));
    job::close(tasks);
}

/// Messages for an index that is not set yet wait for LAPI_Addr_set. Those of several packets do as
/// well as short ones, and the messages of other handlers are not held up.
#[test]
fn a_message_waits_until_its_handler_is_set() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::STEPPED);
    // SAFETY: an index, which is never called as a function.
    let later = unsafe { std::mem::transmute::<usize, hdr_hndlr_t>(9) };
    let mut places = [(); 3].map(|()| forever(job::MAX_BODY * 3));
    let data = forever(job::MAX_BODY * 3);
    data.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7) as u8 | 1);
    let (data, done) = (&*data, counter());
    let extras = Extras { cmpl_cntr: Some(done), ..Extras::default() };
    let headers = places.each_mut().map(|place| place.as_mut_ptr().expose_provenance().to_ne_bytes());
    for (at, len) in [(0, 10), (1, data.len())] {
        send(&tasks[0], 1, later, &headers[at], &data[..len], extras).expect("a message");
    }
    send(&tasks[0], 1, as_the_header_says, &headers[2], data, extras).expect("a message");
    let steps = || (0..100).for_each(|step| _ = tasks[step % 2].step());
    steps();
    assert_eq!((done.load(Ordering::SeqCst), enter(&tasks[1]).core().senders_of_kept().count()), (1, 2));
    enter(&tasks[1]).register_function(9, as_the_header_says as *const () as usize).expect("an index");
    settle(&tasks);
    assert_eq!((done.load(Ordering::SeqCst), enter(&tasks[1]).core().senders_of_kept().count()), (3, 0));
    tasks.iter().for_each(|task| assert_eq!(task.reports(), vec![]));
    assert!((*places[0])[..10] == data[..10] && *places[1] == *data && *places[2] == *data);
    job::close(tasks);
}

/// Each message carries the number of generations that follow; handlers send the next
/// one to all tasks.
fn flood(task: &Task, call: &Call<'_>) {
    let generations = call.header[0];
    note(task, generations.into());
    if generations > 0 {
        flood_all(task, generations - 1);
    }
    if call.len > 0 && generations.is_multiple_of(2) {
        unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, _: *mut c_void) {
            note(&job::task(hndl), 100);
        }
        **call.completion.lock() = Some(completed);
        call.info.lock().ret_flags = LAPI_SEND_REPLY;
    }
}

const FLOODERS: u32 = 4;
const GENERATIONS: u8 = 3;

fn flood_all(task: &Task, generations: u8) {
    static HEADERS: [[u8; 8]; 4] = [[0; 8], [1; 8], [2; 8], [3; 8]];
    static DATA: [u8; job::MAX_BODY * 2] = [7; job::MAX_BODY * 2];
    for peer in 0..FLOODERS {
        let data = &DATA[..[0, 10, job::MAX_BODY * 2][(peer as usize + usize::from(generations)) % 3]];
        send(task, peer, scripted, &HEADERS[usize::from(generations)], data, Extras::default())
            .expect("a message");
    }
}

/// Every generation has as many messages as tasks, for each message of the one before.
fn flooded(task: &Task) -> bool {
    let reported = task.reported.lock();
    let count = |what: usize| reported.iter().filter(|(seen, _)| *seen == what).count();
    let all = |generation: u8| (FLOODERS as usize).pow(u32::from(GENERATIONS - generation) + 1);
    (0..=GENERATIONS).all(|generation| {
        assert!(count(generation.into()) <= all(generation), "more messages than were sent");
        count(generation.into()) == all(generation)
    })
}

#[test]
fn handlers_flood_all_tasks_through_room_for_one_packet() {
    for preference in [Preference::Packets, Preference::Attach] {
        let habits = Habits { preference, ..Habits::STEPPED };
        let tasks = job::open(job::mem(FLOODERS, 1, true), &habits);
        play(&tasks, flood);
        tasks.iter().for_each(|task| flood_all(task, GENERATIONS));
        let mut steps = 0;
        while !tasks.iter().all(|task| flooded(task)) {
            tasks.iter().for_each(|task| _ = task.step());
            steps += 1;
            assert!(
                steps < 20_000,
                "{}",
                tasks.iter().map(|task| task.standing()).collect::<Vec<_>>().join("\n")
            );
        }
        job::close(tasks);
    }
}

#[test]
fn handlers_flood_all_tasks_while_threads_sleep() {
    seeds(2, |seed| {
        let ends = job::faulty_mem(FLOODERS, true, &FaultPlan::rough(seed));
        let tasks = job::open(ends, &Habits { wait_policy: SLEEPY, ..Habits::THREADED });
        play(&tasks, flood);
        in_threads(&tasks, 1, |task, _| {
            flood_all(task, GENERATIONS);
            gfence(task).expect("a fence");
            while !flooded(task) {
                progress::probe(&mut enter(task));
                std::thread::yield_now();
            }
            gfence(task).expect("a fence");
        });
        tasks.iter().for_each(|task| assert_eq!(task.reports(), []));
        job::close(tasks);
    });
}

#[test]
fn calls_that_would_wait_for_their_own_handler_return_an_error() {
    let tasks = job::open(job::mem(2, 8, false), &Habits::THREADED);
    play(&tasks, |task, _| {
        let never = AtomicI32::new(0);
        let outcomes = [gfence(task).err(), wait(task, &never, 1).err(), fence(task).err()];
        // Nothing of this task is under way, so a fence has nothing to wait for.
        let codes = outcomes.map(|error| error.map_or(0, |error| error.code));
        note(task, usize::from(codes == [LAPI_ERR_UNKNOWN, LAPI_ERR_UNKNOWN, 0]));
        // What does not wait is allowed.
        // SAFETY: a counter that lives during the calls.
        unsafe { progress::setcntr(&task.context, never.as_ptr().addr(), 3) };
        // SAFETY: the counter lives during the call.
        let value = unsafe { progress::getcntr(&mut enter(task), never.as_ptr().addr()) };
        note(task, value as usize);
        assert_eq!(wait(task, &never, 2), Ok(1));
    });
    in_threads(&tasks, 1, |task, _| {
        if task.me == 0 {
            send(task, 1, scripted, &[], &[], Extras::default()).expect("a message");
        }
        (0..3).for_each(|_| gfence(task).expect("a fence after a refused one"));
    });
    assert_eq!(tasks[1].reported.lock()[..], [(1, 0), (3, 0)]);
    job::close(tasks);
}

static TARGET: AtomicI32 = AtomicI32::new(0);
static COMPLETION: AtomicI32 = AtomicI32::new(0);

#[test]
fn completion_handler_then_target_counter_then_completion_counter() {
    unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, parameter: *mut c_void) {
        let counters = [&TARGET, &COMPLETION].map(|counter| counter.load(Ordering::SeqCst));
        job::task(hndl).reported.lock().push((parameter.addr(), u32::from(counters == [0, 0])));
    }
    for inline in [true, false] {
        for peer in 0..2 {
            [&TARGET, &COMPLETION].iter().for_each(|counter| counter.store(0, Ordering::SeqCst));
            let tasks = job::open(job::mem(2, 8, false), &Habits::THREADED);
            play(
                &tasks,
                if inline {
                    |_, call| {
                        **call.completion.lock() = Some(completed);
                        call.info.lock().ret_flags = LAPI_LOCAL_STATE;
                    }
                } else {
                    |_, call| **call.completion.lock() = Some(completed)
                },
            );
            in_threads(&tasks, 1, move |task, _| {
                if task.me == 0 {
                    let extras =
                        Extras { tgt_cntr: Some(&TARGET), cmpl_cntr: Some(&COMPLETION), ..Extras::default() };
                    send(task, peer, scripted, &[], &*forever(5000), extras).expect("a message");
                    wait(task, &COMPLETION, 1).expect("its completion");
                    assert_eq!(TARGET.load(Ordering::SeqCst), 1, "the target counter comes before");
                }
                gfence(task).expect("a fence");
            });
            assert_eq!(tasks[peer as usize].reported.lock()[..], [(5, 1)]);
            job::close(tasks);
        }
    }
}

#[test]
fn completion_handlers_run_in_order_and_may_wait() {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, _: *mut c_void) {
        let task = job::task(hndl);
        let here = counter();
        let extras = Extras { org_cntr: Some(here), ..Extras::default() };
        get(&task, 0, &*forever(9000), forever(9000).as_mut_ptr(), extras).expect("a get");
        wait(&task, here, 1).expect("its reply");
        note(&task, SERIAL.fetch_add(1, Ordering::SeqCst) as usize);
    }
    const MESSAGES: usize = 50;
    let tasks = job::open(job::mem(2, 4, false), &Habits { wait_policy: SLEEPY, ..Habits::THREADED });
    play(&tasks, |task, call| {
        **call.completion.lock() = Some(completed);
        note(task, 1000 + call.len);
    });
    in_threads(&tasks, 1, |task, _| {
        if task.me == 0 {
            let cmpl = counter();
            for len in 0..MESSAGES {
                let extras = Extras { cmpl_cntr: Some(cmpl), ..Extras::default() };
                send(task, 1, scripted, &[], &forever(MESSAGES)[..len], extras).expect("a message");
            }
            wait(task, cmpl, MESSAGES as c_int).expect("all completions");
        }
        gfence(task).expect("a fence");
    });
    let reported = tasks[1].reported.lock().clone();
    let (arrived, completed): (Vec<_>, Vec<_>) =
        reported.iter().map(|(what, _)| *what).partition(|&what| what >= 1000);
    assert_eq!(arrived, (1000..1000 + MESSAGES).collect::<Vec<_>>());
    assert_eq!(completed, (0..MESSAGES).collect::<Vec<_>>());
    job::close(tasks);
}

unsafe extern "C" fn forwards(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    info: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    unsafe extern "C" fn forward(hndl: *mut lapi_handle_t, _: *mut c_void) {
        let task = job::task(hndl);
        put(&task, 2, forever(SHARE).as_mut_ptr(), forever(SHARE), Extras::default()).expect("a put");
        task.reported.lock().push((this_thread(), 0));
    }
    // SAFETY: the library gives these for the time of the call.
    unsafe {
        *comp_h = Some(forward);
        (*info.cast::<lapi_return_info_t>()).ret_flags = LAPI_SEND_REPLY;
    }
    ptr::null_mut()
}

/// What the handler of the next test sends: after four of these no more may wait.
const SHARE: usize = 64 << 10;

/// The manual, figure 9: a handler that may send runs inline while it gets a send token, and in a
/// completion thread otherwise.
#[test]
fn handlers_that_send_run_elsewhere_when_too_much_waits_for_room() {
    let habits = Habits { copy_limit: SHARE, completion_threads: 1, ..Habits::STEPPED };
    let tasks = job::open(job::mem(3, 1, false), &habits);
    let own = this_thread();
    let end = Instant::now() + Duration::from_secs(60);
    for round in 0..12 {
        send(&tasks[0], 1, forwards, &[], &[], Extras::default()).expect("a message");
        tasks[1].step();
        // Task 2 never looks.
        while tasks[1].reported.lock().len() <= round {
            assert!(Instant::now() < end, "the handler of message {round} does not run");
            std::thread::yield_now();
        }
    }
    let inline: Vec<bool> = tasks[1].reported.lock().iter().map(|(thread, _)| *thread == own).collect();
    assert!(inline[..3].iter().all(|inline| *inline), "{inline:?}");
    assert!(inline[6..].iter().all(|inline| !*inline), "{inline:?}");
    job::close(tasks);
}

/// Without a thread for it the handler of a get runs in a round of the dispatcher, also where the
/// data could be copied in the call.
#[test]
fn the_handler_of_a_get_that_could_be_copied_at_once_runs_in_a_round() {
    static RAN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn ran(_: *mut lapi_handle_t, _: *mut c_void) {
        RAN.fetch_add(1, Ordering::Relaxed);
    }
    let (ends, _) = job::mortal_mem(2, 8, true);
    let tasks = job::open(ends, &Habits { preference: Preference::Attach, ..Habits::STEPPED });
    // Long enough for that way, and short enough for one slice.
    let (data, buffer) = (forever(20_000), forever(20_000));
    data.fill(7);
    let get = Get {
        tgt: 1,
        places: Places::Contiguous {
            local: buffer.as_mut_ptr().addr(),
            remote: data.as_ptr().expose_provenance() as u64,
            len: data.len(),
        },
        tgt_cntr: 0,
        org_cntr: 0,
        handler: Some(ran),
        parameter: 0,
        hint: Hint::None,
    };
    // SAFETY: both places live until the get is complete.
    unsafe { put_get::get(&mut enter(&tasks[0]), &get) }.expect("a get");
    settle(&tasks);
    assert_eq!((RAN.load(Ordering::Relaxed), &buffer[..]), (1, &data[..]));
    job::close(tasks);
}
