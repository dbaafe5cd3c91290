use super::*;

fn listed(text: &str) -> Result<Addresses> {
    let parsed = |address: &str| Address(address.parse().expect("an address"));
    let all: Vec<Address> = text.split(' ').map(parsed).collect();
    let here: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().expect("an address"));
    Addresses::new(&all, |ip| ip.is_loopback() || here.contains(&ip))
}

fn why(result: Result<impl Sized>) -> String {
    let Err(error) = result else { panic!("it was accepted") };
    assert_eq!(error.code, LAPI_ERR_UDP_PORT_INFO);
    error.detail
}

#[test]
fn tasks_with_one_address_share_a_host() {
    let some = listed("192.0.2.1:1 192.0.2.9:1 192.0.2.1:2").expect("sound");
    let [one, other] = [[192, 0, 2, 1], [192, 0, 2, 9]].map(IpAddr::from);
    assert_eq!((some.are_on_one_host(), some.hosts()), (false, vec![one, other, one]));
    assert_eq!((some.of(2), some.of(3)), (Some(SocketAddr::new(one, 2)), None));
    let some = listed("[2001:db8::1]:1 [2001:db8::9]:1 [2001:db8::1]:2").expect("sound");
    let [one, other] = ["2001:db8::1", "2001:db8::9"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
    assert_eq!((some.are_on_one_host(), some.hosts()), (false, vec![one, other, one]));
    let mapped = listed("[::ffff:192.0.2.9]:1 192.0.2.1:1").expect("both of IPv4");
    assert_eq!(mapped.of(0), Some("192.0.2.9:1".parse().expect("an address")));
    let all = listed("192.0.2.1:1 127.0.0.1:1 127.0.0.2:1").expect("all of this host");
    assert_eq!((all.are_on_one_host(), all.hosts()), (true, vec![IpAddr::from(Ipv4Addr::LOCALHOST); 3]));
}

#[test]
fn addresses_are_those_of_the_program() {
    let four = lapi_udp_t { ip_addr: u32::from_ne_bytes([192, 0, 2, 1]), port_no: 0x1234 };
    let known = Address::of_four(four);
    assert_eq!((known.0.to_string().as_str(), known.four()), ("192.0.2.1:4660", four));
    assert_eq!(Address::of_any(0, &known.any()).expect("of IPv4"), known);
    let six = Address("[2001:db8::1]:4660".parse().expect("an address"));
    assert_eq!(Address::of_any(0, &six.any()).expect("of IPv6"), six);
    assert_eq!(six.four(), lapi_udp_t { ip_addr: 0, port_no: 0 });
    let mut other = six.any();
    other.ss_family = libc::AF_UNIX as _;
    assert!(why(Address::of_any(3, &other)).contains("task 3 has an address of family 1"));
}

#[test]
fn what_no_job_can_have_is_refused() {
    for (list, text) in [
        ("192.0.2.1:1 192.0.2.2:0", "task 1 has 192.0.2.2:0"),
        ("0.0.0.0:1 192.0.2.2:1", "task 0 has 0.0.0.0:1"),
        ("192.0.2.1:1 224.0.0.1:1", "task 1 has 224.0.0.1:1"),
        ("192.0.2.1:1 255.255.255.255:1", "task 1 has 255.255.255.255:1"),
        ("192.0.2.1:1 192.0.2.9:1 192.0.2.1:1", "tasks 0 and 2 have the same address 192.0.2.1:1"),
        ("[::]:1 [2001:db8::9]:1", "task 0 has [::]:1"),
        ("[2001:db8::9]:1 [ff02::1]:1", "task 1 has [ff02::1]:1"),
        ("[fe80::9]:1 [2001:db8::9]:1", "task 0 has [fe80::9]:1: no task can receive there"),
        (
            "192.0.2.1:1 [2001:db8::9]:1",
            "task 0 has 192.0.2.1:1, and task 1 has [2001:db8::9]:1: a task reaches",
        ),
        ("[2001:db8::9]:1 [::1]:1", "task 1 has [::1]:1, which its own host alone reaches"),
        ("192.0.2.9:1 127.0.0.1:1", "task 1 has 127.0.0.1:1, which its own host alone reaches"),
    ] {
        let why = why(listed(list));
        assert!(why.contains(text), "{list}: {why}");
    }
}

#[test]
fn a_task_is_replaced_where_the_same_tasks_share_its_host() {
    let some = listed("192.0.2.1:1 192.0.2.9:1 192.0.2.1:2").expect("sound");
    let copy = some.clone();
    let to = |text: &str| Address(text.parse().expect("an address"));
    for (task, address) in [(0, "192.0.2.1:7"), (1, "192.0.2.9:2"), (1, "192.0.2.77:2")] {
        some.change(task, to(address)).expect("allowed");
        assert_eq!(copy.of(task), Some(to(address).0));
    }
    for (task, address, text) in [
        (0, "192.0.2.5:7", "task 0 was on 192.0.2.1"),
        (1, "192.0.2.1:8", "task 1 was on 192.0.2.77"),
        (1, "127.0.0.1:7", "task 1 was on 192.0.2.77"),
        (1, "[2001:db8::9]:8", "task 1 was on 192.0.2.77, and [2001:db8::9]:8 is of another family"),
        (0, "192.0.2.1:2", "task 2 has the address 192.0.2.1:2"),
        (0, "192.0.2.1:0", "task 0 has 192.0.2.1:0"),
    ] {
        let why = why(some.change(task, to(address)));
        assert!(why.contains(text), "{task} {address}: {why}");
    }
    assert_eq!(some.of(0), Some(to("192.0.2.1:7").0));
    let one = listed("192.0.2.1:1 127.0.0.1:1").expect("all of this host");
    one.change(0, to("127.0.0.1:9")).expect_err("the task had an address that others reach");
    one.change(1, to("192.0.2.1:9")).expect("of this host");
    one.change(1, to("192.0.2.2:9")).expect_err("not known to be of this host");
}
