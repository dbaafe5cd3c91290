use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::poe::streams::pipe;

fn ends() -> (File, File) {
    pipe().map(|(read, write)| (File::from(read), File::from(write))).expect("a pipe")
}

fn copier<K: Read + Write + Seek>(input: File, writes: Vec<File>, kept: K) -> Copier<File, K> {
    Copier::new(input, Pipes::new(writes).expect("they are watched"), kept)
}

/// Copies from a pipe, and returns its other end, and the ends of the tasks.
fn copies(
    (input, typed): (File, File),
    tasks: usize,
    short: bool,
) -> (File, Vec<File>, thread::JoinHandle<()>) {
    let (reads, writes): (Vec<File>, Vec<File>) = (0..tasks).map(|_| ends()).unzip();
    if short {
        writes.iter().for_each(make_short);
    }
    let mut copier = copier(input, writes, SpooledTempFile::new(1 << 16));
    (typed, reads, thread::spawn(move || copier.run()))
}

#[test]
fn a_task_that_does_not_read_keeps_no_input_from_the_others() {
    let (typed, reads, thread) = copies(ends(), 3, false);
    let bytes: Vec<u8> = (0..4_000_000_u32).map(|at| (at * 7 % 256) as u8).collect();
    let (written, typing) = (bytes.clone(), typed);
    let typing = thread::spawn(move || (&typing).write_all(&written));
    // One after another.
    for mut read in reads {
        let mut copy = Vec::new();
        read.read_to_end(&mut copy).expect("it ends");
        assert!(copy == bytes, "{} of {} bytes", copy.len(), bytes.len());
    }
    typing.join().expect("no panic").expect("all is read");
    thread.join().expect("nothing fails");
}

/// What is typed while no task reads is the shell's.
#[test]
fn what_no_task_reads_is_not_read_ahead() {
    for tasks in [1, 3] {
        let (input, typed) = ends();
        let waiting = input.try_clone().expect("a descriptor");
        let is_waiting = || poll(&mut [PollFd::new(waiting.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO);
        let (mut typed, mut reads, thread) = copies((input, typed), tasks, true);
        let (keys, shell) = (b"first\n", b"second\n");
        typed.write_all(keys).expect("it has room");
        let mut line = [0; 6];
        for read in &reads {
            while !poll(&mut [PollFd::new(read.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)
                .is_ok_and(|ready| ready > 0)
            {}
        }
        typed.write_all(shell).expect("it has room");
        thread::sleep(Duration::from_millis(50));
        assert_eq!(is_waiting(), Ok(1));
        reads[0].read_exact(&mut line).expect("it was typed");
        assert_eq!(&line, keys);
        let mut line = [0; 7];
        reads[0].read_exact(&mut line).expect("it was typed");
        assert_eq!(&line, shell);
        drop(reads);
        thread.join().expect("nothing fails");
    }
}

#[test]
fn without_readers_there_is_nothing_to_wait_for() {
    let (mut typed, reads, thread) = copies(ends(), 2, false);
    typed.write_all(b"line\n").expect("it has room");
    drop(reads);
    thread.join().expect("nothing fails");
}

#[test]
fn a_file_is_passed_on_from_its_place() {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"one two").and_then(|()| file.seek(SeekFrom::Start(4))).expect("a file");
    let ((input, _typed), (one, other)) = (ends(), (ends(), ends()));
    let pipes = Pipes::new(vec![one.1, other.1]).expect("they are watched");
    Copier::of_file(input, pipes, file).run();
    for mut read in [one.0, other.0] {
        let mut text = String::new();
        read.read_to_string(&mut text).expect("it ends");
        assert_eq!(text, "two");
    }
}

/// A file of /proc has the length 0.
#[test]
fn a_file_is_passed_on_to_its_end_whatever_its_length() {
    let file = File::open("/proc/self/limits").expect("it is there");
    assert_eq!(file.metadata().expect("it is a file").len(), 0);
    let ((input, _typed), mut one) = (ends(), ends());
    let pipes = Pipes::new(vec![one.1]).expect("they are watched");
    Copier::of_file(input, pipes, file).run();
    let mut text = String::new();
    one.0.read_to_string(&mut text).expect("it ends");
    assert!(text.starts_with("Limit "), "{text}");
}

/// A place to keep things that notes how large it has become.
struct Measured(SpooledTempFile, Arc<AtomicU64>);

impl Read for Measured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for Measured {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.0.seek(place)
    }
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.fetch_max(self.0.stream_position()?, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The second of two never has all that the first one has: its pipe is shorter.
#[test]
fn what_is_kept_does_not_grow_with_the_input() {
    const PIECE: usize = 8 << 10;
    const PIECES: usize = 12_000;
    let ((input, mut typed), (mut first, ahead), (mut second, behind)) = (ends(), ends(), ends());
    make_short(&behind);
    let most = Arc::new(AtomicU64::new(0));
    let kept = Measured(SpooledTempFile::new(KEPT_IN_MEMORY), most.clone());
    let mut copier = copier(input, vec![ahead, behind], kept);
    let copying = thread::spawn(move || copier.run());
    let piece = |number: usize| [number as u8; PIECE];
    let typing = thread::spawn(move || (0..PIECES).try_for_each(|number| typed.write_all(&piece(number))));
    let take = |from: &mut File, number: usize| {
        let mut taken = [0; PIECE];
        from.read_exact(&mut taken).expect("there is more");
        assert!(taken == piece(number), "piece {number}");
    };
    take(&mut first, 0);
    for number in 0..PIECES {
        if number + 1 < PIECES {
            take(&mut first, number + 1);
        }
        take(&mut second, number);
    }
    typing.join().expect("no panic").expect("all is read");
    copying.join().expect("nothing fails");
    let most = most.load(Ordering::Relaxed);
    assert!(most <= KEPT_IN_MEMORY as u64, "{most} bytes were kept");
}

/// What the tasks of one step have not read, and what they have, is there for the next one.
#[test]
fn each_step_gets_all_of_a_pipe() {
    let (input, mut typed) = ends();
    let text = "line\n".repeat(50_000);
    let written = text.clone();
    let typing = thread::spawn(move || typed.write_all(written.as_bytes()));
    let (mut read, write) = ends();
    let mut copier = copier(input, vec![write], SpooledTempFile::new(1 << 16));
    copier.keeps_all = true;
    let copying = thread::spawn(move || {
        copier.run();
        copier
    });
    let mut line = [0; 5];
    read.read_exact(&mut line).expect("it was typed");
    drop(read);
    let copier = copying.join().expect("nothing fails");
    let (mut read, write) = ends();
    let mut copier = copier.of_step(Pipes::new(vec![write]).expect("they are watched"));
    let copying = thread::spawn(move || copier.run());
    let mut copy = String::new();
    read.read_to_string(&mut copy).expect("it ends");
    assert!(copy == text, "{} of {} bytes", copy.len(), text.len());
    typing.join().expect("no panic").expect("all is read");
    copying.join().expect("nothing fails");
}
