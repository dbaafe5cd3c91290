//! What a task and its launcher write, the other one reads.

use super::*;

#[test]
fn messages_of_tasks_are_read_as_they_were_written() {
    let report = Report {
        cause: Cause::Asked(7),
        pid: 42,
        clauses: vec!["waits in LAPI_Gfence for task 3".into()],
        awaited: vec![3],
        collectives: vec![Collective { instance: 0, entered: 5, inside: true }],
        traffic: Traffic { packets: (1, 2), bytes: (3, u64::MAX) },
        text: "task 0 of 4\n\n  more".into(),
    };
    for message in [
        FromTask::Enter { pid: 4, task: 1, tasks: 3 },
        FromTask::Ready { pid: 4 },
        FromTask::Leave { pid: 4 },
        FromTask::Report(report.clone()),
        FromTask::Report(Report { cause: Cause::Looked(9), ..report.clone() }),
        FromTask::Report(Report { cause: Cause::Stall, text: String::new(), ..report.clone() }),
    ] {
        assert_eq!(FromTask::decode(&message.encode()), Some(message));
    }
    let long = Report { text: "ä".repeat(LONGEST), ..report }.encode();
    assert!(long.len() <= LONGEST && long.ends_with("(cut off)"));
}

#[test]
fn messages_of_the_launcher_are_read_as_they_were_written() {
    let every = STAGES.iter().flat_map(|(stage, ..)| {
        [How::Exit(0), How::Exit(255), How::Signal(9)].map(|how| Ended { stage: *stage, how })
    });
    for ended in every.clone() {
        assert_eq!(Ended::from_word(ended.to_word()), Some(ended));
    }
    assert_eq!(Ended::from_word(0), None);
    let ended = FromLauncher::Ended(ALL, (0..).zip(every).collect());
    for message in [FromLauncher::Ask(3), FromLauncher::Ended(ALL, Vec::new()), ended] {
        assert_eq!(FromLauncher::decode(&message.encode()), Some(message));
    }
}

/// The longest list that there can be: each message fits into a datagram, and together they say of
/// each task how it ended.
#[test]
fn a_long_list_of_ended_tasks_goes_in_several_messages() {
    let killed = Ended { stage: Stage::Failed, how: How::Signal(255) };
    let all: Vec<(u32, Ended)> =
        (0..1 << 14).filter(|task| task % 7 != 0).map(|task| (task, killed)).collect();
    let messages = FromLauncher::ended(all.clone());
    let (mut next, mut found) = (0, Vec::new());
    for message in &messages {
        let text = message.encode();
        assert!(text.len() <= LONGEST, "{} bytes", text.len());
        assert_eq!(FromLauncher::decode(&text).as_ref(), Some(message));
        let FromLauncher::Ended(among, tasks) = message else { panic!("{message:?}") };
        assert!(among.start == next && tasks.iter().all(|(task, _)| among.contains(task)));
        next = among.end;
        found.extend(tasks);
    }
    assert_eq!((next, &found), (u32::MAX, &all));
    assert_eq!(FromLauncher::decode("LAPI-REPORT 1 ended\namong 3"), None);
}

#[test]
fn unknown_forms_are_refused_and_unknown_words_skipped() {
    for message in [
        "",
        "LAPI-REPORT 2 stall",
        "LAPI-REPORT 1 bored",
        "LAPI-REPORT 1 asked x",
        "hello\nfor 3",
        "LAPI-REPORT 1 enter\npid 3",
        "LAPI-REPORT 1 ready",
    ] {
        assert_eq!(FromTask::decode(message), None, "{message}");
    }
    for line in ["for me", "pid -", "collective 1", "collective x 2 in"] {
        assert_eq!(FromTask::decode(&format!("LAPI-REPORT 1 stall\n{line}\n\n")), None, "{line}");
    }
    let Some(FromTask::Report(report)) = FromTask::decode("LAPI-REPORT 1 signal\nnew word\npid 3") else {
        panic!("a report");
    };
    assert_eq!((report.pid, report.cause), (3, Cause::Signal));
    for message in ["LAPI-REPORT 1 ask", "LAPI-REPORT 1 ask x", "LAPI-REPORT 1 ended\n1 never", "x"] {
        assert_eq!(FromLauncher::decode(message), None, "{message}");
    }
}

#[test]
fn the_end_of_a_task_is_a_clause() {
    let never = Ended { stage: Stage::Never, how: How::Exit(1) };
    assert_eq!(never.to_string(), "exited with status 1 before it called LAPI_Init");
    let ready = Ended { stage: Stage::Ready, how: How::Exit(0) };
    assert_eq!(ready.to_string(), "exited with status 0 without calling LAPI_Term");
}
