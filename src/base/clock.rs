//! Time. What is simulated (`proto`, `engine`, `transport::udp`) reads a clock, and sleeps, by
//! these functions alone: in a test the calling thread may be one of a simulation, whose time is
//! virtual (`simulation`). Other builds have none of that.
//!
//! [`ticks`] is the cheapest clock there is, for hints and for comparing one path with another. Its
//! rate is not measured: nothing that is promised is counted in ticks, what is may be too long or
//! too short by a factor of five, and each LAPI_Init would wait for the measurement.

#[cfg(test)]
#[cfg(not(loom))]
use super::simulation;
use std::time::{Duration, Instant};

/// The present moment.
#[inline]
pub fn now() -> Instant {
    #[cfg(all(test, not(loom)))]
    if let Some(now) = simulation::now() {
        return now;
    }
    Instant::now()
}

/// The time since a moment.
#[inline]
pub fn elapsed(since: Instant) -> Duration {
    now().saturating_duration_since(since)
}

/// Lets the calling thread sleep.
pub fn sleep(time: Duration) {
    #[cfg(all(test, not(loom)))]
    if simulation::pause(time) {
        return;
    }
    std::thread::sleep(time);
}

/// Lets another thread have the processor.
pub fn yield_now() {
    #[cfg(all(test, not(loom)))]
    if simulation::pause(Duration::from_micros(1)) {
        return;
    }
    std::thread::yield_now();
}

/// Time in ticks of a constant rate that is not known exactly: between one and five for a
/// nanosecond. The same clock in all processes of a machine.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(all(test, not(loom)))]
    if let Some(ticks) = simulation::ticks() {
        return ticks;
    }
    counter::read()
}

/// The processor's counter of time.
mod counter {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    #[cfg(target_arch = "x86")]
    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: programs of 32 bits run on the same processors.
        unsafe { core::arch::x86::_rdtsc() }
    }

    /// The generic timer has a rate of 1 MHz to 1 GHz, which it tells: each of its ticks counts as
    /// so many that there are one or two for a nanosecond.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(super) fn read() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static EACH: AtomicU64 = AtomicU64::new(0);
        #[cold]
        fn each() -> u64 {
            let rate: u64;
            // SAFETY: Linux lets programs read the register, which has no effect.
            unsafe {
                core::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack, preserves_flags));
            }
            let each = 1_000_000_000_u64.div_ceil(rate.max(1_000_000));
            EACH.store(each, Ordering::Relaxed);
            each
        }
        let count: u64;
        // SAFETY: programs may read this register too, which has no effect.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count.wrapping_mul(match EACH.load(Ordering::Relaxed) {
            0 => each(),
            known => known,
        })
    }

    /// The time base has a rate of 512 MHz on all processors since POWER6.
    #[cfg(target_arch = "powerpc64")]
    #[inline(always)]
    pub(super) fn read() -> u64 {
        let count: u64;
        // SAFETY: every program may read the register, which has no effect.
        unsafe {
            core::arch::asm!("mfspr {}, 268", out(reg) count, options(nomem, nostack, preserves_flags))
        };
        count.wrapping_mul(2)
    }

    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "powerpc64"
    )))]
    pub(super) fn read() -> u64 {
        super::read(libc::CLOCK_MONOTONIC).as_nanos() as u64
    }
}

/// Whether a moment has come that was chosen as at most `pause` ticks later, in ticks. A machine
/// that has hibernated counts its ticks from the beginning: a moment that is farther away than that
/// belongs to the time before.
#[inline]
pub fn has_come(moment: u64, pause: u64, now: u64) -> bool {
    let left = moment.wrapping_sub(now);
    left == 0 || left > pause
}

/// The time since the start of the machine, also while it slept: of two moments of one process the
/// later one is greater.
pub fn since_boot() -> Duration {
    #[cfg(all(test, not(loom)))]
    if let Some(ticks) = simulation::ticks() {
        return Duration::from_nanos(ticks / 2);
    }
    read(libc::CLOCK_BOOTTIME)
}

/// A moment in milliseconds, of a coarse clock: a few milliseconds old, never 0, and starting again
/// every 49 days. For ages, by [`since`]; not for the path of a message.
pub fn moment() -> u32 {
    #[cfg(all(test, not(loom)))]
    if let Some(ticks) = simulation::ticks() {
        return ((ticks / 2_000_000) as u32).max(1);
    }
    (read(libc::CLOCK_MONOTONIC_COARSE).as_millis() as u32).max(1)
}

/// The processor time of the calling thread until now: what it does is bounded by this where a
/// busy machine must not cut it short.
pub fn thread_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// A clock of the system, by the C library: rustix looks for the kernel's function itself, in
/// memory that a program under valgrind does not have.
pub(super) fn read(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which cannot fail for a clock that
    // every Linux has.
    unsafe { libc::clock_gettime(clock, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// How long ago a moment was.
pub fn since(moment: u32) -> Duration {
    Duration::from_millis(self::moment().wrapping_sub(moment).into())
}

/// How long anything may take before a test fails, far more than it needs on the slowest machine: a
/// minute, times `TEST_PATIENCE` in the environment, as an instrumented library is slow.
#[cfg(test)]
pub fn test_deadline() -> Duration {
    let times = std::env::var("TEST_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    Duration::from_secs(60) * times
}

#[cfg(test)]
mod tests {
    use super::has_come;

    #[test]
    fn a_moment_of_before_a_hibernation_has_come() {
        let (moment, pause) = (5_000_000_000, 300_000_000);
        assert!(!has_come(moment, pause, moment - pause) && !has_come(moment, pause, moment - 1));
        assert!(has_come(moment, pause, moment) && has_come(moment, pause, moment + 1));
        assert!(has_come(moment, pause, 1000), "the ticks have begun again");
        assert!(has_come(0, pause, moment), "at once");
    }

    #[test]
    fn goes_forward() {
        let before = super::ticks();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(super::ticks() > before);
    }
}
