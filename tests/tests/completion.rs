//! Completion in the shells: what they offer is what the programs take.

use std::process::Command;

use openlapi_tests::{is_installed, skipped, stage};

/// What a shell prints for a script, with the installed programs first on the PATH.
fn output(shell: &str, arguments: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", stage().join("bin").display());
    let run = Command::new(shell).args(arguments).env("PATH", path).env("HOME", stage()).output();
    let run = run.unwrap_or_else(|error| panic!("{shell}: {error}"));
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    String::from_utf8(run.stdout).expect("text")
}

/// Each command line as far as it is typed, and what is offered then.
const OFFERED: &[(&str, &[&str])] = &[
    ("poe -std", &["-stdinmode", "-stdoutmode"]),
    ("poe -on_death ", &["continue", "end"]),
    ("poe -labelio y", &["yes"]),
    ("poe -np 2 -report", &["-report_bindings"]),
    ("lapi_info --ne", &["--network"]),
    ("mpcc_r -sh", &["-show"]),
];

fn check(complete: impl Fn(&str) -> String) {
    for (typed, expected) in OFFERED {
        let text = complete(typed);
        let mut offered: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        offered.sort_unstable();
        assert_eq!(offered, *expected, "{typed}");
    }
}

#[test]
fn bash_completes() {
    // As bash does it: words, the number of the last one, and the function that is registered.
    let script = r#"
        source "$1" || exit
        read -ra COMP_WORDS <<<"$2"
        [[ $2 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        function=$(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \([a-z_]*\).*/\1/')
        "$function"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let file = stage().join("share/bash-completion/completions/poe");
    let complete =
        |typed: &str| output("bash", &["--norc", "-c", script, "bash", &file.to_string_lossy(), typed]);
    check(complete);
    let programs = complete("poe lapi_inf");
    assert_eq!(programs.trim(), "lapi_info");
    // bash makes = a word.
    assert_eq!(complete("poe -labelio = n").trim(), "no");
}

#[test]
fn fish_completes() {
    if !is_installed("fish") {
        return skipped("completion in fish", "it is not installed");
    }
    let file = stage().join("share/fish/vendor_completions.d/poe.fish");
    check(|typed| {
        let script = format!("source {}; complete -C '{typed}' | cut -f 1", file.display());
        output("fish", &["--no-config", "-c", &script])
    });
}

#[test]
fn zsh_completes() {
    if !is_installed("zsh") {
        return skipped("completion in zsh", "it is not installed");
    }
    // What the function offers, without the line editor: the functions that add matches print them.
    let script = r#"
        compadd() { shift; for match in "$@"; do [[ $match == ${words[CURRENT]}* ]] && print -r -- $match; done }
        _files() { : }
        _alternative() { : }
        words=(${(z)2}); [[ $2 == *" " ]] && words+=("")
        CURRENT=${#words}; service=${words[1]}
        complete_it() { eval "$(cat $file)" }
        file=$1
        complete_it
        true"#;
    let file = stage().join("share/zsh/site-functions/_poe");
    check(|typed| output("zsh", &["-f", "-c", script, "zsh", &file.to_string_lossy(), typed]));
}
