//! Possible reasons why the kernel refused a system call, as far as a process can see them.

use std::fs;
use std::io;
use std::path::Path;

/// The error, and its possible reasons.
pub(super) fn explain(error: &io::Error) -> String {
    let mut text = error.to_string();
    let is_refusal = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS));
    if is_refusal {
        for reason in reasons(&Machine::look()) {
            text += "; ";
            text += reason;
        }
    }
    text
}

use nix::libc;

/// What on this machine may cause a refusal.
#[derive(Clone, Debug, Default)]
struct Machine {
    /// Yama's rule for access to the memory of other processes.
    ptrace_scope: Option<u32>,
    /// Whether a filter of system calls is installed for this process.
    filtered: bool,
    container: bool,
}

impl Machine {
    fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        Self {
            ptrace_scope: read("/proc/sys/kernel/yama/ptrace_scope").trim().parse().ok(),
            filtered: seccomp.is_some_and(|mode| mode.trim() == "2"),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists())
                || std::env::var_os("container").is_some()
                || is_of_container(&read("/proc/1/cgroup")),
        }
    }
}

/// Whether the control groups of the first process are those that container runtimes make.
fn is_of_container(groups: &str) -> bool {
    ["docker", "kubepods", "containerd", "libpod", "lxc"].iter().any(|runtime| groups.contains(runtime))
}

fn reasons(machine: &Machine) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    reasons.extend(match machine.ptrace_scope {
        Some(1) => Some(
            "kernel.yama.ptrace_scope is 1: only a parent may copy, and tasks are siblings; 0 would allow it",
        ),
        Some(2) => Some("kernel.yama.ptrace_scope is 2: only with CAP_SYS_PTRACE; 0 would allow it"),
        Some(3..) => Some("kernel.yama.ptrace_scope is 3: no process may, until the next boot"),
        _ => None,
    });
    if machine.filtered {
        reasons.push("a seccomp filter is installed for this process, as container runtimes do");
    }
    if machine.container {
        reasons.push("this is a container: --cap-add=SYS_PTRACE, or another seccomp profile, may allow it");
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_named() {
        assert!(reasons(&Machine::default()).is_empty());
        assert!(reasons(&Machine { ptrace_scope: Some(0), ..Machine::default() }).is_empty());
        for scope in 1..=3 {
            let machine = Machine { ptrace_scope: Some(scope), filtered: true, container: true };
            let found = reasons(&machine);
            assert_eq!(found.len(), 3);
            assert!(found[0].contains(&format!("ptrace_scope is {scope}")), "{found:?}");
        }
    }

    #[test]
    fn containers_are_known_by_their_control_groups() {
        assert!(is_of_container("0::/kubepods/besteffort/pod1234/abc\n"));
        assert!(is_of_container("12:pids:/docker/0123abcd\n"));
        assert!(!is_of_container("0::/init.scope\n"));
        assert!(!is_of_container("0::/\n"));
    }

    #[test]
    fn only_refusals_are_explained() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        assert_eq!(explain(&error), error.to_string());
    }
}
