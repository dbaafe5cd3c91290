use super::*;

#[test]
fn every_byte_is_announced_once() {
    let (mut accessed, mut announced) = (OneSided::default(), [0; 3]);
    let mut take = |accessed: &mut OneSided| {
        for Access { target, written } in accessed.take() {
            announced[target as usize] += written;
        }
    };
    for put in 0..1000 {
        accessed.note(Access { target: [2, 0, 1][put % 3], written: put as u64 }, 0);
        if put % 100 == 0 {
            take(&mut accessed);
        }
        if put % 100 == 50 {
            accessed.take().into_iter().for_each(|access| accessed.note(access, 0));
        }
    }
    accessed.abandon(1, 0);
    take(&mut accessed);
    assert!(!accessed.are_active());
    let bytes = |first: usize| (first..1000).step_by(3).sum::<usize>() as u64;
    assert_eq!((announced[2], announced[0]), (bytes(0), bytes(1)));
    assert!(announced[1] < bytes(2), "the rest was forgotten");
}

#[test]
fn it_is_announced_when_no_other_follows_or_when_there_are_many() {
    let access = Access { target: 1, written: 1 };
    let is_due = |accessed: &mut OneSided, goes_on: bool, now| {
        accessed.under_way = usize::from(goes_on);
        accessed.announcement_is_due(now)
    };
    let mut accessed = OneSided::default();
    accessed.note(access, 1000);
    assert!(!is_due(&mut accessed, false, 1000) && !is_due(&mut accessed, false, 999 + QUIET));
    assert!(is_due(&mut accessed, false, 1000 + QUIET));
    assert!(!is_due(&mut accessed, true, 1000 + 2 * QUIET), "another one is under way");
    assert!(is_due(&mut accessed, true, 1000 + LONGEST));
    // One follows the other.
    let (mut accessed, mut now, mut puts) = (OneSided::default(), 0, 0);
    while !is_due(&mut accessed, false, now) {
        accessed.note(access, now);
        (now, puts) = (now + QUIET / 2, puts + 1);
    }
    assert_eq!(puts, LONGEST / (QUIET / 2));
    let mut accessed = OneSided::default();
    (0..MOST).for_each(|_| accessed.note(access, 0));
    assert!(is_due(&mut accessed, true, 0));
    accessed.take();
    accessed.note(access, 1);
    assert!(!is_due(&mut accessed, true, 1), "the count begins again");
}
