//! The cheapest clock there is, for hints and for comparing one way with another.

/// Time in ticks of a constant rate that is not known exactly: between one and five for a nanosecond. The same clock in
/// all processes of a machine.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn goes_forward() {
        let before = super::ticks();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(super::ticks() > before);
    }
}
