//! LAPI_Msg_string and the library's messages on standard error, in the languages that
//! have catalogues.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use openlapi_tests::{Job, build_dir, compile, hosts, is_on_network, stage, workspace};

const TGT: &str = "LAPI_ERR_TGT (428): the target is not a task of the job";
const TGT_IN_GERMAN: &str = "LAPI_ERR_TGT (428): das Ziel ist keine Task des Jobs";
const SUCCESS: i32 = 0;
const CATALOG_FAIL: i32 = 478;
const CODE_UNKNOWN: i32 = 511;

/// Whether there are catalogues here: gencat makes them.
fn catalogues() -> bool {
    let there = Command::new("gencat").arg("--version").output().is_ok();
    if !there {
        use std::io::Write;
        let _ =
            writeln!(std::io::stderr(), "\nSKIPPED: messages in other languages: gencat is not installed");
    }
    there
}

fn program() -> PathBuf {
    compile("env-language", &["tests/c/env/language.c", "tests/c/common/ltest.c"], &[])
}

fn language(which: &str) -> Job {
    which.split(' ').fold(Job::direct(program()), Job::arg)
}

/// The return code and the text of every code.
fn codes(job: Job) -> BTreeMap<i32, (i32, String)> {
    let outcome = job.run();
    let line = |line: &str| {
        let (code, rest) = line.split_once(' ').expect("a code");
        let (result, text) = rest.split_once(' ').expect("a result");
        (code.parse().expect("a number"), (result.parse().expect("a number"), text.to_owned()))
    };
    outcome.ok().stdout.lines().map(line).collect()
}

/// The return code and the text of LAPI_ERR_TGT.
fn tgt(job: Job) -> (i32, String) {
    codes(job)[&428].clone()
}

/// Compiles a catalogue of a test's own.
fn catalogue(name: &str, source: &str) -> PathBuf {
    let dir = build_dir().join("tests/catalogues").join(name);
    fs::create_dir_all(&dir).expect("the folder can be made");
    fs::write(dir.join("source.msg"), source).expect("the source can be written");
    let _ = fs::remove_file(dir.join("liblapi.cat"));
    let made = Command::new("gencat").args(["liblapi.cat", "source.msg"]).current_dir(&dir).output();
    let made = made.expect("gencat can be run");
    assert!(made.status.success() && made.stderr.is_empty(), "{name}: {made:?}");
    dir
}

#[test]
fn english_is_built_in() {
    for job in [
        language("codes"),
        language("codes").env("LANG", "C"),
        language("codes").env("LANG", "en_GB.UTF-8").env("NLSPATH", "/nowhere/%L/%N"),
        language("codes").env("LANG", "de_DE").env("LC_ALL", "C.UTF-8"),
        language("codes").env("LC_MESSAGES", "POSIX").env("LANG", "de_DE"),
    ] {
        assert_eq!(tgt(job), (SUCCESS, TGT.to_owned()));
    }
}

#[test]
fn every_message_is_there_in_german() {
    if !catalogues() {
        return;
    }
    let english = codes(language("codes"));
    let german = codes(language("codes").env("LANG", "de_DE"));
    assert_eq!(german[&428], (SUCCESS, TGT_IN_GERMAN.to_owned()));
    let mut translated = 0;
    for (code, (result, text)) in &english {
        let (its_result, its_text) = &german[code];
        assert_eq!(result, its_result, "{text}");
        if *code == 0 || (400..600).contains(code) && *result == SUCCESS {
            translated += 1;
            assert_ne!(text, its_text);
            // The name and the number do not change.
            let colon = text.find("): ").expect("a colon after the number");
            assert_eq!(text[..colon + 3], its_text[..colon + 3]);
        } else {
            assert_eq!(text, its_text);
        }
    }
    assert!(translated > 100, "{translated}");
    assert!(german[&438].1.contains("ließ"), "{:?}", german[&438]);
}

#[test]
fn the_language_is_that_of_three_variables() {
    if !catalogues() {
        return;
    }
    for variables in [
        &[("LANG", "de_DE.UTF-8")][..],
        &[("LANG", "de")],
        &[("LANG", "de_AT@euro")],
        &[("LC_MESSAGES", "de_CH.utf8"), ("LANG", "C")],
        &[("LC_ALL", "de_DE"), ("LC_MESSAGES", "C"), ("LANG", "C")],
    ] {
        let job = variables.iter().fold(language("codes"), |job, (name, value)| job.env(name, value));
        assert_eq!(tgt(job), (SUCCESS, TGT_IN_GERMAN.to_owned()), "{variables:?}");
    }
}

/// The catalogue of the staged installation, found by NLSPATH alone: the library is a copy
/// somewhere else.
#[test]
fn nlspath_says_where_catalogues_are() {
    if !catalogues() {
        return;
    }
    let elsewhere = build_dir().join("tests/catalogues/elsewhere/lib");
    fs::create_dir_all(&elsewhere).expect("the folder can be made");
    let program = program();
    let copy = elsewhere.join(format!("liblapi_r.so.1-{}", std::process::id()));
    fs::copy(stage().join("lib/liblapi_r.so.1"), &copy).expect("the library can be copied");
    let preloaded = || Job::direct(&program).arg("codes").env("LD_PRELOAD", &copy).env("LANG", "de_DE");
    assert_eq!(tgt(preloaded()), (SUCCESS, TGT.to_owned()));
    assert_eq!(tgt(preloaded().env("NLSPATH", "/nowhere/%N")), (CATALOG_FAIL, TGT.to_owned()));
    let nls = format!("/nowhere/%L/%N:{}/share/locale/%l/LC_MESSAGES/%N", stage().display());
    assert_eq!(tgt(preloaded().env("NLSPATH", nls)), (SUCCESS, TGT_IN_GERMAN.to_owned()));
    fs::remove_file(copy).expect("the copy can be removed");
}

#[test]
fn nlspath_comes_before_the_installed_catalogue() {
    if !catalogues() {
        return;
    }
    let dir = catalogue("own", "$quote \"\n$set 1\n428 \"a text of our own\"\n");
    let texts = codes(language("codes").env("LANG", "de_DE").env("NLSPATH", dir.join("%N")));
    assert_eq!(texts[&428], (SUCCESS, "LAPI_ERR_TGT (428): a text of our own".to_owned()));
    // Missing texts are in English: the catalogue was opened.
    assert_eq!(texts[&458], (SUCCESS, "LAPI_ERR_CNTR_NULL (458): the counter pointer is null".to_owned()));
}

#[test]
fn a_language_without_a_catalogue_gets_english() {
    let english = codes(language("codes"));
    for locale in ["fr_FR.UTF-8", "tlh"] {
        assert_eq!(codes(language("codes").env("LANG", locale)), english);
    }
}

#[test]
fn a_catalogue_that_nlspath_lacks_gives_english_and_its_code() {
    for locale in ["fr_FR.UTF-8", "tlh"] {
        let texts = codes(language("codes").env("LANG", locale).env("NLSPATH", "/nowhere/%L/%N"));
        let english = codes(language("codes"));
        for (code, (result, text)) in &texts {
            let (its_result, its_text) = &english[code];
            assert_eq!(text, its_text);
            let is_ours = *code == 0 || (400..600).contains(code) && *its_result == SUCCESS;
            assert_eq!(*result, if is_ours { CATALOG_FAIL } else { *its_result }, "{text}");
        }
        assert_eq!(texts[&428].0, CATALOG_FAIL);
        assert_eq!(texts[&483].0, CODE_UNKNOWN);
    }
}

#[test]
fn a_catalogue_in_another_codeset_is_as_none() {
    if !catalogues() {
        return;
    }
    let latin = || language("codes").env("LANG", "de_DE.ISO-8859-1");
    assert_eq!(tgt(latin()), (SUCCESS, TGT.to_owned()));
    assert_eq!(tgt(latin().env("NLSPATH", "/nowhere/%L/%N")), (CATALOG_FAIL, TGT.to_owned()));
}

/// One with bytes that are not text, one with texts that do not fit, one of random bytes.
#[test]
fn a_broken_catalogue_does_no_harm() {
    if !catalogues() {
        return;
    }
    let endless = "x".repeat(4000);
    let dir = catalogue("endless", &format!("$quote \"\n$set 1\n428 \"{endless}\"\n"));
    let job = || language("codes").env("LANG", "de_DE");
    let (result, text) = tgt(job().env("NLSPATH", dir.join("%N")));
    assert_eq!((result, text.len()), (SUCCESS, 159));
    let dir = catalogue("lines", "$quote \"\n$set 1\n428 \"two\\nlines\"\n");
    assert_eq!(tgt(job().env("NLSPATH", dir.join("%N"))), (SUCCESS, TGT.to_owned()));
    let heap = build_dir().join("tests/catalogues/heap");
    fs::write(&heap, [0x5a; 5000]).expect("a file");
    assert_eq!(tgt(job().env("NLSPATH", heap)), (SUCCESS, TGT_IN_GERMAN.to_owned()));
}

#[test]
fn the_language_may_change_while_a_program_runs() {
    if !catalogues() {
        return;
    }
    let outcome = language("change de_DE C fr_FR de_DE").run();
    let lines: Vec<&str> = outcome.ok().stdout.lines().collect();
    let expected = [
        format!("428 0 {TGT_IN_GERMAN}"),
        format!("428 0 {TGT}"),
        format!("428 0 {TGT}"),
        format!("428 0 {TGT_IN_GERMAN}"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn threads_may_ask_at_the_same_time() {
    if !catalogues() {
        return;
    }
    let outcome = language("threads").env("LANG", "de_DE").run();
    assert_eq!(outcome.ok().stdout, format!("{TGT_IN_GERMAN}\n"));
}

#[test]
fn what_is_said_on_standard_error_is_english_as_its_details_are() {
    if !catalogues() {
        return;
    }
    for other in ["C", "de_DE", "fr_FR"] {
        let outcome = language("complain").env("MP_INFOLEVEL", "1").env("LANG", other).run();
        let text = "LAPI_Senv: LAPI_ERR_SET_VAL (464): the value is out of the attribute's range: TIMEOUT 1";
        outcome.ok().says(text);
    }
}

/// Every source in catalogs/ is one that gencat takes.
#[test]
fn gencat_takes_every_source() {
    if !catalogues() {
        return;
    }
    for file in fs::read_dir(workspace().join("packaging/catalogs")).expect("the sources") {
        let path = file.expect("the sources").path();
        let source = fs::read_to_string(&path).expect("a source");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(catalogue(&format!("source-{name}"), &source).join("liblapi.cat").exists());
    }
}

/// A program of `said.c`, as one task without a launcher.
fn said(case: &str) -> Job {
    let program = compile("env-said", &["tests/c/env/said.c"], &[]);
    Job::direct(program).arg(case)
}

#[test]
fn messages_name_the_task() {
    let program = compile("env-said", &["tests/c/env/said.c"], &[]);
    let outcome = Job::new(program).arg("ended").procs(2).env("MP_INFOLEVEL", "1").run();
    // poe shows the message of the task that was first, and which other task had the same.
    let message = |task: u32| format!("LAPI: task {task}: LAPI_Fence: LAPI_ERR_HNDL_INVALID (417): ");
    let first = u32::from(!outcome.stderr.contains(&message(0)));
    outcome.says(&message(first)).says(&format!("poe: the same from task {} (", 1 - first));
}

/// A launcher other than poe sets no level.
#[test]
fn messages_are_written_without_poe_too() {
    said("ended").run().ok().says("LAPI: task 0: LAPI_Fence: ");
    let refused = said("nothing").env("MP_ACK_THRESH", "0").run();
    refused.says("LAPI: task 0: LAPI_Init: LAPI_ERR_UNKNOWN (400): MP_ACK_THRESH is \"0\"; allowed: ");
    let secret = said("nothing").env("LAPI_JOB_SECRET", "sesame").run();
    secret.says("LAPI_JOB_SECRET has a wrong value (not shown); allowed: 32 hexadecimal digits");
    said("nothing").env("MP_INFOLEVEL", "much").run().says("MP_INFOLEVEL is \"much\"");
    let quiet = said("ended").env("MP_INFOLEVEL", "0").run();
    assert_eq!(quiet.ok().stderr, "", "{quiet}");
}

/// A thread that calls while another one ends the handle has made no mistake.
#[test]
fn a_handle_that_was_ended_a_moment_ago_is_no_news() {
    let quiet = said("ended").env("MP_INFOLEVEL", "1").run();
    assert_eq!(quiet.ok().stderr.lines().count(), 1, "LAPI_Fence alone, with another handle\n{quiet}");
    let more = said("ended").env("MP_INFOLEVEL", "2").run();
    more.ok().says("LAPI_Probe: LAPI_ERR_HNDL_INVALID").says("LAPI_Term: LAPI_ERR_HNDL_INVALID");
}

/// A program that asks which requests there are has made no mistake.
#[test]
fn a_request_that_there_is_not_is_no_news() {
    let quiet = said("probe").env("MP_INFOLEVEL", "1").run();
    assert_eq!(quiet.ok().stderr, "", "{quiet}");
    let more = said("probe").env("MP_INFOLEVEL", "2").run();
    more.ok().says("LAPI_Util: LAPI_ERR_UTIL_CMD (").says("utility type 9999 is unknown or not implemented");
}

/// What the program does with SIGPIPE is not changed.
#[test]
fn a_message_that_nobody_reads_does_not_end_the_program() {
    let outcome = said("unread").env("MP_INFOLEVEL", "1").run();
    assert_eq!(outcome.ok().stdout, "goes on\n", "{outcome}");
}

/// As node and ssh leave a pipe that others have inherited.
#[test]
fn a_message_waits_where_standard_error_is_non_blocking_and_full() {
    let outcome = said("full").env("MP_INFOLEVEL", "1").run();
    let said = "LAPI: task 0: LAPI_Fence: LAPI_ERR_HNDL_INVALID (417): ";
    assert!(outcome.ok().stdout.starts_with(said) && outcome.stdout.ends_with('\n'), "{outcome}");
}

#[test]
fn an_error_without_a_handler_is_said_once() {
    for level in ["0", "1"] {
        let outcome = said("unhandled").env("MP_INFOLEVEL", level).run();
        assert_eq!(outcome.status, Some(134), "{outcome}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{outcome}");
        assert!(lines[0].starts_with("LAPI: task 0: LAPI_ERR_HDR_HNDLR_NULL (409): "), "{outcome}");
        assert!(lines[0].ends_with("no error handler is registered: this task ends"), "{outcome}");
    }
}

/// Without poe the kernel places each task's memory elsewhere. That concerns a user whose program's
/// own addresses differ.
#[test]
fn address_maps_that_differ_are_warned_of_where_the_program_moves() {
    let files = ["tests/c/env/diagnosed.c"];
    let (fixed, moving) =
        (compile("env-diagnosed", &files, &[]), compile("env-diagnosed-pie", &files, &["-fPIE", "-pie"]));
    let run = |program: &Path, level: &str| {
        let one = |task: u32| format!("MP_CHILD={task} MP_COMMON_TASKS=1:{} {}", 1 - task, program.display());
        let script = format!("{} & {} && wait $!", one(0), one(1));
        let key = format!("maps-{level}-{}", std::process::id());
        let job = Job::direct("/bin/sh").arg("-c").arg(script).env("MP_PROCS", "2").env("MP_PARTITION", key);
        job.env("LAPI_USE_SHM", "only").env("MP_INFOLEVEL", level).run()
    };
    let (program, libraries) = ("attention: the address maps of tasks", "libraries, heap and stacks are not");
    // This one uses addresses of the other task, and so cannot end well.
    run(&moving, "1").says(program);
    assert_eq!(run(&fixed, "1").ok().complaints(), "");
    let more = run(&fixed, "2");
    more.ok().says(libraries);
    assert!(!more.stderr.contains(program), "{more}");
}

/// What a task has, and what it has moved.
#[test]
fn level_3_describes_each_task() {
    let plain = compile("env-said", &["tests/c/env/said.c"], &[]);
    let quiet = Job::new(plain).arg("nothing").procs(2).env("MP_INFOLEVEL", "2").run();
    assert!(!quiet.ok().stderr.contains("uses processors"), "{quiet}");
    let program = compile("env-diagnosed", &["tests/c/env/diagnosed.c"], &[]);
    let outcome = Job::new(program).procs(2).env("MP_INFOLEVEL", "3").run();
    outcome.ok();
    for task in 0..2 {
        outcome
            .says(&format!("LAPI: task {task}: process "))
            .says(&format!("LAPI: task {task}: a wait polls "))
            .says(&format!("LAPI: task {task}: limits: "));
    }
    let here = 2 / hosts();
    outcome.says(" uses processors ").says(&format!("; {here} of 2 tasks on this machine"));
    let way = if is_on_network() { "over the network" } else { "by shared memory" };
    outcome
        .says(&format!("LAPI: task 0: {way}: 1000 bytes sent and 0 received, in "))
        .says(&format!("LAPI: task 1: {way}: 0 bytes sent and 1000 received, in "));
}

/// Other software's variables may begin with LAPI_.
#[test]
fn only_misspelt_variables_are_warned_of_and_once_a_job() {
    let program = compile("env-said", &["tests/c/env/said.c"], &[]);
    let job = || Job::new(&program).arg("nothing").procs(2).env("MP_INFOLEVEL", "1");
    let others = job().env("LAPI_RUNCMD", "poe").env("LAPI_HOME", "/opt").run();
    assert_eq!(others.ok().complaints(), "", "{others}");
    let misspelt = job().env("LAPI_SIPN", "5").run();
    let warning = "LAPI: task 0: attention: the environment variable LAPI_SIPN has no effect; did you mean LAPI_SPIN?\n";
    assert_eq!(misspelt.ok().complaints(), warning, "{misspelt}");
}
