//! The output of Qenv_senv.

use crate::folder::assert_complaints;
use crate::support::{Outcome, sharing};

/// The output of Qenv_senv for the attributes: all of them, and those with the manual's value
/// that have one.
pub fn check_attributes(outcome: &Outcome, tasks: usize) {
    assert_complaints(outcome, "Qenv_senv", tasks);
    let values: Vec<(&str, &str)> = outcome
        .stdout
        .lines()
        .take_while(|line| *line != "--- what can be set")
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let value_of = |name: &str| {
        let found = values.iter().find(|(found, _)| *found == name);
        found.unwrap_or_else(|| panic!("{name} is not among what was printed\n{outcome}")).1
    };
    let number = |name: &str| -> i64 {
        value_of(name).parse().unwrap_or_else(|_| panic!("{name} is not a number\n{outcome}"))
    };

    assert_eq!(number("TASK_ID"), 0, "{outcome}");
    assert_eq!(number("NUM_TASKS"), tasks as i64, "{outcome}");
    let here = sharing(tasks);
    assert_eq!(number("QUERY_SHM_NUM_TASKS"), here as i64, "{outcome}");
    let here_by_number: Vec<String> = (0..here).map(|task| task.to_string()).collect();
    assert_eq!(value_of("QUERY_SHM_TASKS"), here_by_number.join(" "), "{outcome}");
    for (name, value) in [
        ("ERROR_CHK", 0),
        ("TIMEOUT", 900),
        ("MIN_TIMEOUT", 10),
        ("MAX_TIMEOUT", 86_400),
        ("INTERRUPT_SET", 1),
        ("NUM_REX_BUFS", 128),
        ("REX_BUF_SZ", 16_384),
        ("BUF_CP_SIZE", 128),
        ("ACK_THRESHOLD", 30),
        ("MAX_DATA_SZ", i64::from(i32::MAX)),
        ("BULK_XFER", 0),
        ("BULK_MIN_MSG_SIZE", 150 * 1024),
    ] {
        assert_eq!(number(name), value, "{name}\n{outcome}");
    }
    for (name, least) in [
        ("MAX_UHDR_SZ", 1024),
        ("MAX_PORTS", 0),
        ("MAX_PKT_SZ", 1024),
        ("LOC_ADDRTBL_SZ", 8),
        ("MAX_ATOM_SIZE", 1),
        ("MAX_PKTS_OUT", 1),
        ("EPOCH_NUM", 0),
        ("USE_THRESH", 0),
        ("RCV_FIFO_SIZE", 0),
        ("QUERY_SHM_ENABLED", i64::from(here > 1)),
    ] {
        assert!(number(name) >= least, "{name} is below {least}\n{outcome}");
    }
    for name in ["QUERY_STATISTICS", "QUERY_SHM_STATISTICS", "QUERY_LOCAL_SEND_STATISTICS"] {
        assert!(value_of(name).ends_with("bytes received"), "{name}\n{outcome}");
    }
    value_of("PRINT_STATISTICS");
    let mut lines: Vec<String> = set_and_refused(tasks);
    lines.extend((0..tasks).map(|task| format!("task {task}: all attributes behave")));
    for line in lines {
        let times = outcome.stdout.lines().filter(|printed| *printed == line).count();
        assert_eq!(times, 1, "\"{line}\"\n{outcome}");
    }
    for way in ["network", "shared memory", "local"] {
        let begin = format!("task 0: {way}: packets sent ");
        assert!(outcome.stdout.lines().any(|line| line.starts_with(&begin)), "{begin}\n{outcome}");
    }
}

/// The output of Qenv_senv for setting attributes.
pub fn set_and_refused(tasks: usize) -> Vec<String> {
    vec![
        "ACK_THRESHOLD                30, set to 10, set back to 30".to_owned(),
        "ERROR_CHK                    0, set to 1, set back to 0".to_owned(),
        "INTERRUPT_SET                1, set to 0, set back to 1".to_owned(),
        "TIMEOUT                      900, set to 600, set back to 900".to_owned(),
        "TIMEOUT                      to 9: LAPI_ERR_SET_VAL".to_owned(),
        format!("NUM_TASKS                    to {}: LAPI_ERR_QUERY_TYPE", tasks + 1),
    ]
}
