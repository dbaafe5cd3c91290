//! `lapi_info NAME`.

use openlapi_tests::{Job, stage};
use serde_json::Value;

fn ask(words: &[&str]) -> Job {
    words.iter().fold(Job::direct(stage().join("bin/lapi_info")), Job::arg)
}

#[test]
fn a_variable_a_call_and_an_error_are_described() {
    for (words, lines) in [
        (
            &["LAPI_SPIN"][..],
            &[
                "LAPI_SPIN (variable)",
                "  meaning  How many times a waiting call polls before it yields.",
                "  value    9",
                "  from     environment",
                "  default  auto",
                "  allowed  auto, or a whole number from 0 to 2147483647",
            ][..],
        ),
        (&["lapi_put"], &["LAPI_Put (call)", "  manual   man LAPI_Put"]),
        (&["428"], &["LAPI_ERR_TGT (error)", "  number   428"]),
        (&["MP_LABELIO"], &["MP_LABELIO (variable)", "  flag of poe  -labelio", "  allowed      yes or no"]),
    ] {
        let outcome = ask(words).env("LAPI_SPIN", "9").run();
        for line in lines {
            assert!(outcome.ok().stdout.lines().any(|said| said == *line), "{line}\n{outcome}");
        }
    }
    let put = ask(&["LAPI_Put"]).run();
    assert!(put.stdout.contains("int LAPI_Put(hndl, tgt, len, "), "{put}");
    assert!(put.stdout.contains("call LAPI_PUT(hndl, tgt, len, "), "{put}");
}

#[test]
fn words_are_searched_for_and_misspelt_names_get_a_hint() {
    let found = ask(&["waitcntr"]).run();
    assert!(found.ok().stdout.contains("LAPI_Waitcntr"), "{found}");
    let found = ask(&["--json", "retransmission"]).run();
    let list: Value = serde_json::from_str(&found.ok().stdout).expect("JSON");
    let names: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|topic| topic["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["MP_REXMIT_BUF_CNT", "MP_REXMIT_BUF_SIZE"]);
    for (word, words) in [
        ("LAPI_SIPN", "did you mean LAPI_SPIN?"),
        ("LAPI_Wiatcntr", "did you mean LAPI_Waitcntr?"),
        ("xyzzyxyzzy", "nothing is known of xyzzyxyzzy"),
        ("12", "Cannot allocate memory"),
    ] {
        ask(&[word]).run().exited(1).says(words);
    }
    ask(&["--verbos"]).run().exited(2).says("did you mean --verbose?");
    ask(&["--short", "LAPI_SPIN"]).run().exited(2).says("names are given alone");
}

/// A key is made where nothing else is asked for.
#[test]
fn a_key_is_made_by_its_flag_alone() {
    let home = crate::scratch("make-key");
    let info = |arguments: &[&str]| {
        let job = Job::direct(stage().join("bin/lapi_info")).env("HOME", &home);
        arguments.iter().fold(job, Job::arg).run()
    };
    let key = home.join(".openlapi/key");
    for more in
        ["--help", "--version", "--json", "--short", "--network", "--verbose", "MP_PROCS", "--nothing"]
    {
        for arguments in [["--make-key", more], [more, "--make-key"]] {
            let outcome = info(&arguments);
            let status = if ["--help", "--version"].contains(&more) { 0 } else { 2 };
            outcome.exited(status);
            assert!(!key.exists(), "{arguments:?}");
        }
    }
    info(&["--make-key"]).ok();
    assert!(key.exists());
}
