//! Shared memory where pages have 4, 16 or 64 KiB. Larger pages than those of this machine are
//! whole numbers of its pages, so that any machine can have them.

use super::*;
use crate::transport::shm::in_process::ends_with_pages;
use crate::transport::shm::segment::MAX_TASKS;
use rustix::fs::fstat;

fn page_sizes() -> impl Iterator<Item = usize> {
    [4, 16, 64].into_iter().map(|kib| kib << 10).filter(|size| *size >= page())
}

/// With its own pages each machine conforms anyway.
#[test]
fn conforms_with_larger_pages() {
    for size in page_sizes().filter(|size| *size > page()) {
        println!("pages of {size} bytes");
        conformance::suite(|tasks| ends_with_pages(tasks, size));
    }
}

#[test]
fn sizes_are_the_fewest_whole_pages() {
    for tasks in [1, 2, 8, 9, 32, 33, MAX_TASKS] {
        let exact = Sizes::of(tasks, 1);
        for size in page_sizes() {
            let sizes = Sizes::of(tasks, size);
            for (whole, exact) in [(sizes.segment, exact.segment), (sizes.ring, exact.ring)] {
                assert!(whole.is_multiple_of(size) && (0..size).contains(&(whole - exact)), "{sizes:?}");
            }
        }
    }
}

/// Each file is as long as its place, and a task that counts in other pages is refused.
#[test]
fn files_are_whole_pages_and_others_are_refused() {
    for size in page_sizes() {
        let (_own, site) = Own::with_pages(0, Group::all(2), size).expect("shared memory");
        let (_other, other_site) = Own::with_pages(1, Group::all(2), 2 * size).expect("shared memory");
        let offer = site.offer(1).expect("a ring");
        let [segment, event, ring] = site.descriptors(&offer);
        for file in [segment, ring] {
            let bytes = fstat(file).expect("a file").st_size as usize;
            assert!(bytes > 0 && bytes.is_multiple_of(size), "{bytes} bytes");
        }
        let passed = [segment, event, ring].map(|file| file.try_clone_to_owned().expect("a descriptor"));
        let refused = other_site.accept(0, passed.into()).err().expect("other pages");
        assert!(refused.code == LAPI_ERR_SHM_SETUP && refused.detail.contains("bytes, not"), "{refused}");
    }
}
