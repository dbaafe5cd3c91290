use super::*;

const CNTR: usize = 0x1000;

fn watch(watched: &mut Watched, tasks: &[Task], statuses: &mut [c_int]) {
    assert_eq!(tasks.len(), statuses.len());
    // SAFETY: the statuses outlive the use of `watched` in these tests, which reads them only
    // between its calls.
    unsafe { watched.watch(CNTR, tasks.to_vec(), statuses.as_mut_ptr().expose_provenance(), |task| task < 3) }
}

#[test]
fn statuses_record_the_tasks_that_have_reported_and_those_that_were_purged() {
    let (mut watched, mut statuses) = (Watched::default(), [77; 5]);
    let at = statuses.as_mut_ptr();
    watch(&mut watched, &[0, 1, 2, 3, 1], &mut statuses);
    // SAFETY: the array lives, and nothing writes to it meanwhile.
    let read = || unsafe { at.cast::<[c_int; 5]>().read() };
    assert_eq!(read(), [0, 0, 0, 4, 0]);
    watched.raised(CNTR, 1);
    watched.raised(CNTR + 4, 0);
    assert_eq!(read(), [0, 1, 0, 4, 0]);
    watched.purged(1);
    assert_eq!(read(), [0, 3, 0, 4, 2]);
    watched.raised(CNTR, 1);
    assert!(!watched.is_settled(CNTR));
    watched.purged(0);
    watched.raised(CNTR, 2);
    assert_eq!(read(), [2, 3, 1, 4, 2]);
    assert!(watched.is_settled(CNTR));
    watched.forget(CNTR);
    watched.purged(2);
    assert_eq!(read(), [2, 3, 1, 4, 2]);
}

/// A program may wait for more messages than its list has entries.
#[test]
fn a_wait_is_hopeless_only_after_a_purge() {
    let (mut watched, mut statuses) = (Watched::default(), [77; 1]);
    watch(&mut watched, &[1], &mut statuses);
    assert!(!watched.is_hopeless(CNTR));
    watched.raised(CNTR, 1);
    assert!(watched.is_settled(CNTR) && !watched.is_hopeless(CNTR));
    watched.purged(1);
    assert!(watched.is_hopeless(CNTR) && !watched.is_hopeless(CNTR + 8));
    let mut statuses = [77; 2];
    watch(&mut watched, &[1, 3], &mut statuses);
    assert!(!watched.is_hopeless(CNTR), "task 1 may raise it");
    watched.raised(CNTR, 1);
    assert!(watched.is_hopeless(CNTR), "task 3 never will");
}

#[test]
fn a_completion_has_an_odd_number_until_it_is_taken_or_its_peer_is_given_up() {
    let mut watched = Watched::default();
    let [one, two, three] = [1, 2, 1].map(|peer| {
        let number = watched.handle(Handled { cntr: CNTR, peer, handler: 8, info: 9 });
        assert!(number & 1 == 1 && watched.address(number) == CNTR && !watched.has_counters());
        number
    });
    assert!(one != two && two != three && one != three && watched.take_handled(CNTR).is_none());
    let done = watched.take_handled(one).unwrap().done();
    assert_eq!((done.handler, done.info, done.peer, done.error, done.user), (8, 9, 1, 0, false));
    assert!(watched.take_handled(one).is_none() && !watched.is_empty());
    assert_eq!(watched.abandon(1).len(), 1);
    assert!(watched.take_handled(three).is_none() && !watched.is_empty());
    assert!(watched.take_handled(two).is_some() && watched.is_empty());
}

#[test]
fn a_purge_wakes_the_threads_that_it_concerns() {
    let (mut watched, mut statuses) = (Watched::default(), [0; 2]);
    watch(&mut watched, &[0, 1], &mut statuses);
    assert!(watched.wait(CNTR) && !watched.wait(CNTR) && watched.wait(CNTR + 8));
    watched.purged(2);
    assert!(!watched.is_purged(CNTR) && watched.is_purged(CNTR + 8));
    watched.purged(1);
    assert!(watched.is_purged(CNTR));
    watched.wait_no_more(CNTR);
    assert!(!watched.is_purged(CNTR) && watched.wait(CNTR));
}
