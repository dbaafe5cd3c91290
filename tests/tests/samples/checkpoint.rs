//! The samples of a task that leaves its job and comes back: started again by a script, and saved
//! from outside.

use super::folder::{Folder, check_lines};
use super::support::Job;

/// What task `me` of `tasks` has got in this many steps of the ring.
fn sum(me: usize, tasks: usize, steps: usize) -> usize {
    let before = (me + tasks - 1) % tasks;
    (0..steps).map(|step| 10 * (before + 1) + step).sum()
}

fn restarted(me: usize, tasks: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if me == tasks - 1 {
        lines.push(format!("task {me}: leaves after step 4"));
        lines.push(format!("task {me}: comes back with the sum {}", sum(me, tasks, 4)));
    }
    lines.push(format!("task {me}: the sum of 8 steps is {}", sum(me, tasks, 8)));
    lines
}

fn saved(me: usize, tasks: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if me == tasks - 1 {
        lines.push(format!("task {me}: is back"));
    }
    lines.push(format!("task {me}: has taken all steps"));
    lines
}

#[test]
fn checkpoint() {
    let folder = Folder::build("checkpoint", &["Outside", "Restart"]);
    let script = |job: Job| job.dir(folder.path()).deadline(60);
    for tasks in [1, 2, 3] {
        let again = Job::new(folder.path().join("again.sh")).arg("./Restart").procs(tasks);
        let outcome = script(again).run();
        assert!(outcome.ok().complaints().is_empty(), "{outcome}");
        check_lines(&outcome, "Restart", tasks, restarted);

        let job = script(Job::new(folder.path().join("Outside")).procs(tasks)).start();
        let checkpointer = ["sh", "-c", "test -d /proc/$0 && echo saved process $0"];
        let direct = Job::direct(folder.path().join("checkpoint.sh"));
        let saving = script(checkpointer.into_iter().fold(direct, Job::arg)).run();
        assert!(saving.ok().stdout.starts_with("saved process "), "{saving}");
        let outcome = job.wait();
        assert!(outcome.ok().complaints().is_empty(), "{outcome}");
        check_lines(&outcome, "Outside", tasks, saved);
    }
    for lines in [restarted, saved] {
        for line in (0..2).flat_map(|task| lines(task, 2)) {
            assert!(folder.promises(&line), "the README does not show \"{line}\"");
        }
    }
    folder.clean();
}
