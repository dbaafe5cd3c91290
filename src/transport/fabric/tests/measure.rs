//! Times of this transport beside those of bare libfabric on the same provider. Two threads, one
//! for each task.

use super::network::open;
use crate::transport::conformance::Calls;
use crate::transport::fabric::ofi::{Device, Slot};
use crate::transport::fabric::{BUFFERS, FabricTransport, longest, provider};
use crate::transport::{
    Access, Copy, Endpoint, Exposure, Key, Outgoing, Piece, RemoteAccess, SendOutcome, Started, Task,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const ROUNDS: u32 = 20_000;

pub(super) fn all(provider: &str) {
    for turn in 0..3 {
        println!(
            "{turn}: {provider} 8 bytes, µs: bare {:.2}, transport {:.2}",
            bare(provider),
            ours(provider)
        );
        for len in [64 << 10, 256 << 10, 1 << 20, 4 << 20] {
            let (bare, ours) = (bare_reads(provider, len), reads(provider, len));
            println!("   {len} bytes read, MB/s: bare {bare:.0}, transport {ours:.0}, {:.2}", ours / bare);
        }
    }
}

fn pair(provider: &str) -> Vec<FabricTransport> {
    let (own, published): (Vec<_>, Vec<_>) = open(2, provider).expect("endpoints").into_iter().unzip();
    let published = std::sync::Arc::new(published);
    let directory = || Box::new(super::network::Published(published.clone()));
    own.into_iter()
        .map(|own| FabricTransport::new(own, &[7; 16], directory()).expect("a transport"))
        .collect()
}

fn ours(provider: &str) -> f64 {
    let mut ends = pair(provider);
    let play = |end: &mut FabricTransport, me: Task| {
        let packet = Outgoing {
            head: &[1; 24],
            first: Piece::EMPTY,
            second: Piece::of(&[1; 8]).into(),
            copy_limit: usize::MAX,
        };
        let send = |end: &mut FabricTransport| {
            // SAFETY: the pieces live.
            while unsafe { end.try_send(1 - me, &packet) } != SendOutcome::Sent {}
        };
        let take = |end: &mut FabricTransport| {
            loop {
                if let Some(packet) = end.recv() {
                    return end.release(packet);
                }
            }
        };
        let mut start = Instant::now();
        for round in 0..ROUNDS + 1000 {
            if round == 1000 {
                start = Instant::now();
            }
            if me == 0 {
                send(end);
                take(end);
            } else {
                take(end);
                send(end);
            }
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS) / 2.0
    };
    let (mut second, mut first) = (ends.pop().expect("two"), ends.pop().expect("two"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            play(&mut second, 1);
            second.close();
        });
        let time = play(&mut first, 0);
        first.close();
        time
    })
}

/// A bare endpoint with one buffer for many messages.
struct Bare {
    device: Device,
    buffer: Vec<u64>,
    slot: Slot,
}

fn bare_pair(provider: &str) -> [Bare; 2] {
    let preferences =
        provider::Preferences { provider: Some(provider.into()), one_machine: true, ..Default::default() };
    [0, 1].map(|_| {
        let (info, _) = provider::tests::choose(&preferences).expect("the provider");
        let longest = longest(&info);
        let device =
            Device::open(info, BUFFERS, longest, true).map_err(|(what, _)| what).expect("an endpoint");
        let mut bare = Bare { device, buffer: vec![0; 1 << 20], slot: 0 };
        bare.post();
        bare
    })
}

impl Bare {
    fn post(&mut self) {
        let len = self.buffer.len() * 8;
        // SAFETY: the buffer lives as long as the endpoint.
        unsafe { self.device.post(self.buffer.as_mut_ptr().cast(), len, None, self.slot) }.expect("a buffer");
    }

    fn receive(&mut self) {
        loop {
            let count = self.device.poll().expect("no failure");
            if count != 0 {
                if self.device.completion(0).used_up {
                    self.post();
                }
                return;
            }
        }
    }
}

fn bare(provider: &str) -> f64 {
    let [mut first, mut second] = bare_pair(provider);
    let to_second = first.device.insert(&second.device.name().expect("a name")).expect("an address");
    let to_first = second.device.insert(&first.device.name().expect("a name")).expect("an address");
    let message = [7_u8; 8];
    let play = |end: &mut Bare, peer, starts: bool| {
        let mut start = Instant::now();
        for round in 0..ROUNDS + 1000 {
            if round == 1000 {
                start = Instant::now();
            }
            if !starts {
                end.receive();
            }
            while end.device.inject(&message, peer).is_err() {
                let _ = end.device.poll();
            }
            if starts {
                end.receive();
            }
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS) / 2.0
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            play(&mut second, to_first, false);
            while !over.load(Ordering::Relaxed) {
                let _ = second.device.poll();
            }
        });
        let time = play(&mut first, to_second, true);
        over.store(true, Ordering::Relaxed);
        time
    })
}

/// Reads of `len` bytes, one after the other.
fn count_of(len: usize) -> usize {
    (512 << 20) / len
}

fn reads(provider: &str, len: usize) -> f64 {
    let mut ends = pair(provider);
    let (mut second, mut first) = (ends.pop().expect("two"), ends.pop().expect("two"));
    let (there, mut here) = (vec![3_u8; len], vec![0_u8; len]);
    let exposure = Exposure { access: Access::Read, one_rail: false };
    // SAFETY: the memory lives until both are closed.
    let key: Key = unsafe { second.expose(0, Piece::of(&there), exposure) }.expect("a registration");
    let remote = there.as_ptr().expose_provenance() as u64;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                second.serve();
            }
        });
        let copy = Copy { local: here.as_mut_ptr(), remote, len };
        let mut once = || {
            // SAFETY: the memory lives.
            match unsafe { first.start(Access::Read, 1, Some(key), &[copy]) }.expect("a read") {
                Started::Done => {}
                Started::Pending(_) => loop {
                    first.serve();
                    if let Some((_, outcome)) = first.accessed() {
                        break outcome.expect("a read");
                    }
                },
            }
        };
        once();
        let start = Instant::now();
        (0..count_of(len)).for_each(|_| once());
        let seconds = start.elapsed().as_secs_f64();
        first.close();
        over.store(true, Ordering::Relaxed);
        (count_of(len) * len) as f64 / seconds / 1e6
    })
}

fn bare_reads(provider: &str, len: usize) -> f64 {
    let [mut first, second] = bare_pair(provider);
    let second = Mutex::new(second);
    let (there, mut here) = (vec![3_u8; len], vec![0_u8; len]);
    let (peer, key) = {
        let mut second = second.lock().expect("the lock");
        // SAFETY: the memory outlives the endpoints' use.
        let region = unsafe { second.device.register(there.as_ptr(), len, Some(false)) }.expect("a region");
        let name = second.device.name().expect("a name");
        (first.device.insert(&name).expect("an address"), second.device.key(region))
    };
    let start_of = if first.device.info().has_virtual_addresses() { there.as_ptr().addr() as u64 } else { 0 };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = second.lock().expect("the lock");
            while !over.load(Ordering::Relaxed) {
                let _ = second.device.poll();
            }
        });
        let at = here.as_mut_ptr();
        let mut once = || {
            // SAFETY: the memory outlives the read.
            while unsafe { first.device.access(Access::Read, (at, len), None, peer, (start_of, key), 1) }
                .is_err()
            {
                let _ = first.device.poll();
            }
            while first.device.poll().expect("no failure") == 0 {}
        };
        once();
        let start = Instant::now();
        (0..count_of(len)).for_each(|_| once());
        let seconds = start.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        (count_of(len) * len) as f64 / seconds / 1e6
    })
}
