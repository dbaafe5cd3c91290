use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::*;
use crate::base::this_program::this_program;

impl CrossMemory {
    /// Processes that are all declared to have this process's landmark.
    fn of(pids: &[i32], denied: bool) -> Self {
        let mut memory = Self::new(pids.len() as u32, denied, None);
        for (task, &pid) in pids.iter().enumerate() {
            memory.moved(task as Task, Some((pid, landmark())));
        }
        memory
    }

    unsafe fn read(&mut self, peer: Task, remote: u64, local: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.copy(Access::Read, peer, &[Copy { local, remote, len }]) }
    }

    unsafe fn write(&mut self, peer: Task, remote: u64, local: *const u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise; the place is only read.
        unsafe { self.copy(Access::Write, peer, &[Copy { local: local.cast_mut(), remote, len }]) }
    }
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn to_and_from_oneself() {
    let mut memory = CrossMemory::of(&[own_pid()], false);
    for len in [0, 1, 8, 4095, 4097, 1 << 20] {
        let (from, mut to) = (bytes(len), vec![0; len]);
        // SAFETY: both are as long as this, and `to` is writable.
        unsafe { memory.read(0, from.as_ptr() as u64, to.as_mut_ptr(), len).unwrap() };
        assert_eq!(to, from);
        to.fill(0);
        // SAFETY: both are as long as this, and readable and writable.
        unsafe { memory.write(0, to.as_mut_ptr() as u64, from.as_ptr(), len).unwrap() };
        assert_eq!(to, from);
    }
}

#[test]
fn more_than_one_call_takes() {
    let (from, mut to) = (bytes(100_000), vec![0; 100_000]);
    for call_max in [1000, 4096, 99_999, 100_000] {
        to.fill(0);
        // SAFETY: both are as long as this, and `to` is writable.
        unsafe {
            copy(Access::Read, own_pid(), from.as_ptr() as u64, to.as_mut_ptr(), from.len(), call_max)
                .unwrap();
        }
        assert_eq!(to, from);
    }
}

#[test]
fn memory_that_ends_in_the_middle() {
    // SAFETY: it takes a number and gives a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    // SAFETY: new memory that nothing else uses; only the kernel touches its second
    // page after this.
    let start = unsafe {
        let start = mmap_anonymous(
            std::ptr::null_mut(),
            2 * page,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
        .unwrap()
        .cast::<u8>();
        start.write_bytes(9, page);
        mprotect(start.add(page).cast(), page, MprotectFlags::empty()).unwrap();
        start
    };
    let mut memory = CrossMemory::of(&[own_pid()], false);
    let mut to = vec![0; 2 * page];
    // SAFETY: `to` is as long as this.
    let error = unsafe { memory.read(0, start as u64, to.as_mut_ptr(), 2 * page).unwrap_err() };
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    assert!(to[..page].iter().all(|byte| *byte == 9), "what can be copied is copied");
    // SAFETY: `to` is longer than this.
    unsafe { memory.read(0, start as u64, to.as_mut_ptr(), page).unwrap() };
    // SAFETY: `to` is readable.
    let error = unsafe { memory.write(0, start as u64 + page as u64, to.as_ptr(), 1).unwrap_err() };
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    // SAFETY: nothing uses the memory any more.
    unsafe { munmap(start.cast(), 2 * page).unwrap() };
}

#[test]
fn what_the_kernel_refuses() {
    let mut byte = 0_u8;
    // SAFETY: in all of these, `byte` is as long as the length.
    let read = |memory: &mut CrossMemory, peer, remote: u64, byte: &mut u8| unsafe {
        memory.read(peer, remote, byte, 1).unwrap_err().raw_os_error()
    };
    let mut memory = CrossMemory::of(&[own_pid(), 0, i32::MAX], false);
    assert_eq!(read(&mut memory, 0, 0, &mut byte), Some(libc::EFAULT));
    assert_eq!(read(&mut memory, 0, u64::MAX, &mut byte), Some(libc::EFAULT));
    assert!(memory.reaches(0), "a wrong address says nothing of the next one");
    assert_eq!(read(&mut memory, 1, 0, &mut byte), Some(libc::ESRCH), "a process that is not visible");
    assert!(memory.reaches(2));
    assert!(read(&mut memory, 2, 0, &mut byte).is_none_or(|code| code == libc::ESRCH));
    assert!(!memory.reaches(2), "a peer that is out of reach is tried once");
    assert_eq!(read(&mut memory, 3, 0, &mut byte), Some(libc::ESRCH), "a task that is not there");
}

#[test]
fn denied_means_every_call() {
    let mut memory = CrossMemory::of(&[own_pid()], true);
    let mut byte = 0_u8;
    let remote = &raw mut byte as u64;
    // SAFETY: no length is longer than `byte`.
    let errors = unsafe {
        [
            memory.read(0, remote, &mut byte, 1).unwrap_err(),
            memory.write(0, remote, &byte, 1).unwrap_err(),
            memory.read(0, remote, &mut byte, 0).unwrap_err(),
        ]
    };
    for error in errors {
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }
}

#[test]
fn a_landmark_distinguishes_processes() {
    let own = landmark();
    own.look_up(own_pid()).unwrap();
    assert_eq!(own, landmark());
    // Another program in the same process would have another number.
    let other = Landmark { mark: own.mark + 1, ..own };
    assert_eq!(other.look_up(own_pid()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    let mut memory = CrossMemory::new(1, false, None);
    memory.moved(0, Some((own_pid(), other)));
    let (from, mut to) = (7_u8, 0_u8);
    // SAFETY: one byte each.
    unsafe { memory.read(0, &raw const from as u64, &mut to, 1).unwrap_err() };
    assert_eq!(to, 0, "nothing is copied from a process that is not the peer");
    assert!(!memory.reaches(0));
}

const ROLE: &str = "TEST_ATTACH_PEER";
const LETTER: u64 = 0x0123_4567_89ab_cdef;
static MAILBOX: AtomicU64 = AtomicU64::new(0);

#[test]
fn another_process() {
    let name = format!("{}::the_other_process", module_path!().split_once("::").unwrap().1);
    let mut child = this_program()
        .args(["--exact", "--ignored", "--nocapture", &name])
        .env(ROLE, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut address = || lines.next().unwrap().unwrap().parse::<u64>().unwrap();
    let landmark = Landmark { address: address(), mark: address() };
    let mailbox = address();

    let pid = child.id() as i32;
    let mut memory = CrossMemory::new(2, false, None);
    memory.moved(1, Some((pid, landmark)));
    landmark.look_up(pid).unwrap();
    // SAFETY: the constant is as long as this.
    unsafe { memory.write(1, mailbox, LETTER.to_ne_bytes().as_ptr(), 8).unwrap() };
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(landmark.look_up(pid).unwrap_err().raw_os_error(), Some(libc::ESRCH));
}

#[test]
#[ignore = "the other process of the test above"]
fn the_other_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let own = landmark();
    eprintln!("{}\n{}\n{}", own.address, own.mark, MAILBOX.as_ptr() as u64);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(MAILBOX.load(Ordering::Relaxed), LETTER);
}
