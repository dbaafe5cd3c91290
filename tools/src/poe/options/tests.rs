//! The table of flags and variables, its help, and what is refused.

use super::*;

#[test]
fn flags_and_variables_occur_once() {
    let mut flags: Vec<&str> = TABLE.iter().flat_map(|setting| setting.flags).copied().collect();
    let mut variables: Vec<&str> = TABLE.iter().map(|setting| setting.variable).collect();
    let (all_flags, all_variables) = (flags.len(), variables.len());
    flags.sort_unstable();
    flags.dedup();
    variables.sort_unstable();
    variables.dedup();
    assert_eq!((flags.len(), variables.len()), (all_flags, all_variables));
}

#[test]
fn defaults_are_values_that_the_setting_takes() {
    for setting in TABLE.iter().filter(|setting| !setting.default.is_empty()) {
        setting.check(setting.variable, setting.default).expect(setting.variable);
    }
}

#[test]
fn a_wrong_value_is_named() {
    let procs = Setting::of_flag("procs", false).expect("the flag exists");
    for wrong in ["0", "-1", "+2", "many", "", "1025", "1.5"] {
        let message = procs.check("-procs", wrong).expect_err(wrong).to_string();
        assert!(message.contains("-procs") && message.contains(wrong), "{message}");
    }
    let euilib = Setting::of_flag("euilib", false).expect("the flag exists");
    euilib.check("-euilib", "us").expect("it is one of the words");
    let message = euilib.check("-euilib", "US").expect_err("large letters").to_string();
    assert_eq!(message, "-euilib: \"US\" is not ip or us, in small letters");
}

#[test]
fn the_help_names_every_flag_and_variable() {
    let help = help(true);
    let short = super::help(false);
    assert!(short.len() < help.len() && !short.contains("MP_ACK_THRESH") && short.contains("-procs N"));
    let named: usize = GROUPS.iter().map(|(_, flags)| flags.len()).sum();
    assert_eq!(named, short.matches("  -").count() - 2, "every flag of the groups is one of the table");
    assert!(help.lines().next().is_some_and(|line| line.contains("Parallel Operating Environment")));
    for setting in TABLE {
        assert!(help.contains(setting.variable), "{}", setting.variable);
        assert!(setting.flags.iter().all(|flag| help.contains(&format!("-{flag} "))), "{}", setting.variable);
    }
}
