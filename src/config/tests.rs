use std::collections::HashSet;

use super::*;
use crate::abi::{
    LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_MSG_API, LAPI_ERR_NO_ENV_VAR, LAPI_ERR_NO_NETSTR_SET,
    LAPI_ERR_SHM_SETUP, LAPI_ERR_UDP_PKT_SZ, LAPI_ERR_UNKNOWN,
};

fn read(vars: &[(&str, &str)]) -> Result<Config> {
    Config::from_env(&|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

fn with(name: &str, value: &str) -> Config {
    read(&[(name, value)]).unwrap_or_else(|error| panic!("{name}={value}: {error:?}"))
}

#[test]
fn defaults() {
    let config = read(&[]).unwrap();
    assert_eq!(
        config,
        Config {
            euilib: None,
            euidevice: None,
            fabric_provider: None,
            fabric_domain: None,
            fabric_polls: false,
            use_shm: UseShm::Yes,
            bulk_min_msg_size: 150 * 1024,
            rdma_count: 0,
            use_bulk_xfer: false,
            no_timeout: false,
            ack_thresh: 30,
            polling_interval: Duration::from_millis(400),
            retransmit_interval: 1_000_000,
            rexmit_buf_cnt: 128,
            rexmit_limit: None,
            rexmit_buf_size: 16_384,
            buf_cp_size: 128,
            net_security: NetSecurity::Auth,
            udp_packet_size: 8192,
            info_level: 1,
            instances: Instances::Count(1),
            inet_addr: None,
            coalesce: true,
            shm_attach: ShmAttach::Yes,
            shm_bulk: ShmBulk::Auto,
            spin: None,
            init_timeout: Duration::from_secs(300),
            stall_seconds: 300,
            report_signal: Some(libc::SIGUSR2),
            backtrace: false,
            attach: None,
            job_secret: None,
        }
    );
}

#[test]
fn blank_is_unset() {
    let blank = Config::from_env(&|_| Some("  ".to_owned())).unwrap();
    assert_eq!(blank, read(&[]).unwrap());
}

#[test]
fn words_and_numbers() {
    for without_effect in ["LAPI", "Mpi,Lapi", "lapi,mpi", "mpi_lapi"] {
        assert_eq!(with("MP_MSG_API", without_effect), Config::default());
    }
    assert_eq!(with("MP_EUILIB", "us").euilib, Some(Euilib::Us));
    assert_eq!(with("LAPI_USE_SHM", "ONLY").use_shm, UseShm::Only);
    assert_eq!(with("LAPI_USE_SHM", " no ").use_shm, UseShm::No);
    assert_eq!(with("MP_BULK_MIN_MSG_SIZE", "1000").bulk_min_msg_size, 4096);
    for less in ["-5", "0", "-4K", "-9223372036854775808", "4095"] {
        assert_eq!(with("MP_BULK_MIN_MSG_SIZE", less).bulk_min_msg_size, 4096, "{less}");
    }
    assert_eq!(with("MP_BULK_MIN_MSG_SIZE", "4097").bulk_min_msg_size, 4097);
    assert_eq!(with("MP_BULK_MIN_MSG_SIZE", "2M").bulk_min_msg_size, 2 << 20);
    assert!(with("MP_USE_BULK_XFER", "yes").use_bulk_xfer);
    for (count, number) in [("0", 0), ("3", 3), ("4,2", 4), (" 2 , 17 ", 2)] {
        assert_eq!(with("MP_RDMA_COUNT", count).rdma_count, number, "{count}");
    }
    assert!(with("MP_DEBUG_NOTIMEOUT", "1").no_timeout);
    assert!(!with("MP_DEBUG_NOTIMEOUT", "no").no_timeout);
    assert_eq!(with("MP_LAPI_TRACE_LEVEL", "5"), Config::default());
    assert_eq!((with("MP_ACK_THRESH", "1").ack_thresh, with("MP_ACK_THRESH", "31").ack_thresh), (1, 31));
    assert_eq!(with("MP_POLLING_INTERVAL", "10001").polling_interval, Duration::from_micros(10_001));
    assert_eq!(with("MP_RETRANSMIT_INTERVAL", "1000").retransmit_interval, 1000);
    assert_eq!(with("MP_REXMIT_BUF_CNT", "7").rexmit_buf_cnt, 7);
    assert_eq!(with("MP_UDP_PACKET_SIZE", "64k").udp_packet_size, 65_536);
    assert_eq!(with("MP_INFOLEVEL", "6").info_level, 6);
    assert_eq!(with("MP_INSTANCES", "MAX").instances, Instances::Max);
    assert_eq!(with("MP_INSTANCES", "4").instances, Instances::Count(4));
    assert_eq!(with("LAPI_SHM_ATTACH", "deny").shm_attach, ShmAttach::Deny);
    assert_eq!(with("LAPI_SHM_ATTACH", "no").shm_attach, ShmAttach::No);
    assert!(!with("LAPI_COALESCE", "no").coalesce);
    assert_eq!(with("LAPI_SHM_BULK", "pipeline").shm_bulk, ShmBulk::Packets);
    assert_eq!(with("LAPI_SHM_BULK", "attach").shm_bulk, ShmBulk::Attach);
    assert_eq!(with("LAPI_SPIN", "0").spin, Some(0));
    assert_eq!(with("LAPI_SPIN", "Auto").spin, None);
    assert_eq!(with("LAPI_INIT_TIMEOUT", "5").init_timeout, Duration::from_secs(5));
}

#[test]
fn one_buffer_size_for_two_attributes() {
    let config = with("MP_REXMIT_BUF_SIZE", "4000");
    assert_eq!((config.buf_cp_size, config.rexmit_buf_size), (4000, 4000));
    assert_eq!(config.rexmit_limit, Some(128));
    assert_eq!(with("MP_REXMIT_BUF_CNT", "4").rexmit_limit, Some(4));
}

#[test]
fn wrong_values_name_variable_value_and_range() {
    let cases = [
        ("MP_MSG_API", "mpi", LAPI_ERR_MSG_API, "lapi,mpi"),
        ("MP_MSG_API", "pvm", LAPI_ERR_MSG_API, "mpi_lapi"),
        ("MP_EUILIB", "IP", LAPI_ERR_CSS_LOAD_FAILED, "ip | us"),
        ("LAPI_USE_SHM", "maybe", LAPI_ERR_SHM_SETUP, "yes | no | only"),
        ("LAPI_VERIFY_DGSP", "2", LAPI_ERR_UNKNOWN, "yes | no"),
        ("MP_BULK_MIN_MSG_SIZE", "-x", LAPI_ERR_UNKNOWN, "bytes"),
        ("MP_BULK_MIN_MSG_SIZE", "K", LAPI_ERR_UNKNOWN, "bytes"),
        ("MP_BULK_MIN_MSG_SIZE", "99999999999G", LAPI_ERR_UNKNOWN, "bytes"),
        ("MP_USE_BULK_XFER", "on", LAPI_ERR_UNKNOWN, "yes | no"),
        ("MP_RDMA_COUNT", "-1", LAPI_ERR_UNKNOWN, "N, or N,M"),
        ("MP_RDMA_COUNT", "1,2,3", LAPI_ERR_UNKNOWN, "N, or N,M"),
        ("MP_RDMA_COUNT", ",2", LAPI_ERR_UNKNOWN, "N, or N,M"),
        ("MP_RDMA_COUNT", "99999999999", LAPI_ERR_UNKNOWN, "N, or N,M"),
        ("MP_LAPI_TRACE_LEVEL", "6", LAPI_ERR_UNKNOWN, "0 to 5"),
        ("MP_ACK_THRESH", "0", LAPI_ERR_UNKNOWN, "1 to 31"),
        ("MP_ACK_THRESH", "32", LAPI_ERR_UNKNOWN, "1 to 31"),
        ("MP_ACK_THRESH", "+3", LAPI_ERR_UNKNOWN, "1 to 31"),
        ("MP_POLLING_INTERVAL", "10000", LAPI_ERR_UNKNOWN, "10001"),
        ("MP_RETRANSMIT_INTERVAL", "999", LAPI_ERR_UNKNOWN, "1000"),
        ("MP_RETRANSMIT_INTERVAL", "2147483648", LAPI_ERR_UNKNOWN, "2147483647"),
        ("MP_REXMIT_BUF_CNT", "0", LAPI_ERR_UNKNOWN, "1 to"),
        ("MP_REXMIT_BUF_SIZE", "0", LAPI_ERR_UNKNOWN, "1 to"),
        ("MP_UDP_PACKET_SIZE", "1023", LAPI_ERR_UDP_PKT_SZ, "1024 to 65536"),
        ("MP_UDP_PACKET_SIZE", "65537", LAPI_ERR_UDP_PKT_SZ, "1024 to 65536"),
        ("MP_UDP_PACKET_SIZE", "big", LAPI_ERR_UDP_PKT_SZ, "1024 to 65536"),
        ("MP_INFOLEVEL", "7", LAPI_ERR_UNKNOWN, "0 to 6"),
        ("MP_INSTANCES", "0", LAPI_ERR_UNKNOWN, "max"),
        ("MP_LAPI_NETWORK", "@2:164,sn0", LAPI_ERR_NO_NETSTR_SET, "@COUNT"),
        ("MP_LAPI_INET_ADDR", "192.0.2.1", LAPI_ERR_NO_NETSTR_SET, "@COUNT"),
        ("MP_CHILD", "-1", LAPI_ERR_NO_ENV_VAR, "0 to"),
        ("MP_CHILD", "x", LAPI_ERR_NO_ENV_VAR, "0 to"),
        ("MP_PROCS", "0", LAPI_ERR_NO_ENV_VAR, "1 to 16384"),
        ("MP_COMMON_TASKS", "2:1", LAPI_ERR_SHM_SETUP, "COUNT"),
        ("LAPI_SHM_ATTACH", "never", LAPI_ERR_SHM_SETUP, "deny"),
        ("LAPI_SHM_BULK", "fast", LAPI_ERR_SHM_SETUP, "pipeline"),
        ("LAPI_SPIN", "-5", LAPI_ERR_UNKNOWN, "auto"),
        ("LAPI_INIT_TIMEOUT", "0", LAPI_ERR_UNKNOWN, "1 to"),
    ];
    for (name, value, code, range) in cases {
        let error = read(&[(name, value)]).expect_err(name);
        assert_eq!(error.code, code, "{name}={value}");
        for part in [name, value, range] {
            assert!(error.detail.contains(part), "{name}={value}: {} lacks {part}", error.detail);
        }
    }
}

#[test]
fn every_value_is_checked_in_every_mode() {
    let error = read(&[("LAPI_USE_SHM", "only"), ("MP_UDP_PACKET_SIZE", "1")]).unwrap_err();
    assert_eq!(error.code, LAPI_ERR_UDP_PKT_SZ);
}

#[test]
fn network_statements() {
    assert_eq!(with("MP_LAPI_NETWORK", "@1:164,sn0"), Config::default());
    assert!(with("MP_LAPI_INET_ADDR", "@2:192.0.2.1,eth0:192.0.2.2,eth1").inet_addr.is_some());
    let both = read(&[("MP_LAPI_NETWORK", "@1:164,sn0"), ("MP_LAPI_INET_ADDR", "@1:192.0.2.1,eth0")]);
    assert_eq!(both.unwrap_err().code, LAPI_ERR_BOTH_NETSTR_SET);
    for bad in ["@1", "@:", "@0:", "1:164,sn0", "@1:164", "@1:164,", "@1:1,a,b", "@2:1,a:"] {
        assert!(read(&[("MP_LAPI_NETWORK", bad)]).is_err(), "{bad}");
    }
}

#[test]
fn lists_of_common_tasks() {
    assert_eq!(common_tasks("3:0:2:3"), Some(vec![0, 2, 3]));
    assert_eq!(common_tasks("0"), Some(vec![]));
    assert_eq!(common_tasks("0:"), Some(vec![]));
    assert_eq!(common_tasks("2:9:1:"), Some(vec![1, 9]));
    for bad in ["", ":", "1", "2:1", "1:1:2", "2:1:1", "1:x", "1:-1", "1:4294967296"] {
        assert_eq!(common_tasks(bad), None, "{bad}");
    }
}

#[test]
fn a_secret_is_taken_and_never_shown() {
    let digits = "00112233445566778899aabbccddeeff";
    let config = with("LAPI_JOB_SECRET", digits);
    let secret = config.job_secret.as_ref().unwrap();
    assert_eq!(secret.as_bytes()[..4], [0x00, 0x11, 0x22, 0x33]);
    assert_eq!(secret.as_bytes()[15], 0xff);
    assert!(!format!("{config:?}").contains("0011"));

    let bad = "secret-of-the-wrong-form";
    let error = read(&[("LAPI_JOB_SECRET", bad)]).unwrap_err();
    assert!(!error.detail.contains(bad) && error.detail.contains("LAPI_JOB_SECRET"));

    let shown =
        settings(&|name| (name == "LAPI_JOB_SECRET").then(|| digits.to_owned()), &files::Files::default());
    let shown = shown.iter().find(|setting| setting.name == "LAPI_JOB_SECRET").unwrap();
    assert!(shown.origin == Origin::Environment && !shown.value.contains("0011"));
}

#[test]
fn unknown_names_of_ours_only() {
    let names = ["LAPI_USE_SHN", "LAPI_USE_SHM", "MP_NONSENSE", "PATH", "LAPI_A", "XLAPI_B", "LAPI_A"];
    assert_eq!(unknown_names(names.iter()), ["LAPI_A", "LAPI_USE_SHN"]);
    assert_eq!(misspelt_names(names.iter()), [("LAPI_USE_SHN".to_owned(), "LAPI_USE_SHM")]);
    for others in ["LAPI_RUNCMD", "LAPI_ROOT", "LAPI_HOME", "LAPI_DIR", "LAPI_DEBUG", "LAPI_VERSION"] {
        assert_eq!(misspelt_names([others].iter()), []);
    }
}

#[test]
fn verification_is_looked_up_each_time() {
    assert!(verify_dgsp(&|_| Some("YES".to_owned())));
    assert!(!verify_dgsp(&|_| Some("nonsense".to_owned())));
    assert!(!verify_dgsp(&|_| None));
}

#[test]
fn the_table_is_sound() {
    let names: HashSet<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    assert_eq!(names.len(), VARIABLES.len(), "a name twice");
    for variable in VARIABLES {
        assert!(variable.meaning.ends_with('.'), "{}", variable.name);
        if !variable.default.is_empty() {
            let default = |name: &str| (name == variable.name).then(|| variable.default.to_owned());
            value::check(variable, &default).expect("a default that its own kind refuses");
        }
    }
    for setting in settings(&|_| None, &files::Files::default()) {
        assert_eq!(setting.origin, Origin::Default);
        assert_eq!(setting.value, variable(setting.name).unwrap().default);
    }
}

#[test]
fn only_variables_of_the_table_are_read() {
    Config::from_env(&|name| {
        assert!(variable(name).is_some(), "{name} is not in the table");
        None
    })
    .unwrap();
}

#[test]
fn signals_for_reports() {
    let of = |text: &str| super::form::report_signal(text);
    for (text, signal) in [("USR2", libc::SIGUSR2), ("sigurg", libc::SIGURG), ("10", 10), ("40", 40)] {
        assert_eq!(of(text), Some(Some(signal)), "{text}");
    }
    assert_eq!(of("None"), Some(None));
    for wrong in ["", "KILL", "9", "SEGV", "11", "19", "0", "33", "65", "-10", "USR3"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}
