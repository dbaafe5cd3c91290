use super::*;

fn interface(name: &str, address: &str) -> Interface {
    let address: IpAddr = address.parse().expect("an address");
    let is_loopback = address.is_loopback();
    Interface { name: name.into(), address, network: String::new(), longest: 1472, is_loopback }
}

fn all() -> Vec<Interface> {
    [("lo", "127.0.0.1"), ("eth0", "192.0.2.1"), ("eth1", "198.51.100.1"), ("eth1", "2001:db8::1")]
        .map(|(name, address)| interface(name, address))
        .into()
}

fn config(variables: &[(&str, &str)]) -> Config {
    let env =
        |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    Config::from_env(&env).expect("valid")
}

#[test]
fn candidates_are_all_addresses_or_those_that_the_variables_name() {
    let found = |variables: &[(&str, &str)]| {
        let found = listed(&config(variables), all())?;
        let name = |interface: &Interface| format!("{} {}", interface.name, interface.address);
        Ok::<_, crate::error::Error>(found.iter().map(name).collect::<Vec<_>>())
    };
    let listed = |variables: &[(&str, &str)]| found(variables).expect("some").join(", ");
    let every = "lo 127.0.0.1, eth0 192.0.2.1, eth1 198.51.100.1, eth1 2001:db8::1";
    assert_eq!(listed(&[]), every);
    assert_eq!(listed(&[("MP_EUIDEVICE", "sn_all")]), every);
    assert_eq!(listed(&[("MP_EUIDEVICE", "eth1")]), "eth1 198.51.100.1, eth1 2001:db8::1");
    let stated = ("MP_LAPI_INET_ADDR", "@2:198.51.100.1,eth1:192.0.2.1,eth0");
    assert_eq!(listed(&[stated]), "eth0 192.0.2.1, eth1 198.51.100.1");
    assert_eq!(listed(&[stated, ("MP_EUIDEVICE", "eth1")]), "eth1 198.51.100.1");
    let error = found(&[("MP_EUIDEVICE", "xy7")]).expect_err("no such interface");
    let expected =
        "udp: MP_EUIDEVICE=xy7: no such interface with an address is up; there are: eth0, eth1, lo";
    assert_eq!(error.detail, expected);
    assert_eq!(listed(&[("MP_EUIDEVICE", "lo"), stated]), "", "it is there, and may get the address");
}

#[test]
fn how_many_networks_are_wanted() {
    let wish = |variables: &[(&str, &str)], has_rails| {
        let wish = Wish::of(&config(variables), has_rails);
        (wish.all, wish.each)
    };
    let all = [("MP_EUIDEVICE", "sn_all"), ("MP_INSTANCES", "2")];
    assert_eq!((wish(&all, true), wish(&all, false)), ((true, 2), (false, 1)));
    assert_eq!(wish(&[("MP_INSTANCES", "max")], true), (false, RAILS));
    assert_eq!(wish(&[("MP_EUIDEVICE", "eth0"), ("MP_INSTANCES", "2")], true), (false, 1));
    assert_eq!(wish(&[("LAPI_FABRIC_DOMAIN", "eth0"), ("MP_INSTANCES", "2")], true), (false, 1));
    assert_eq!(wish(&[], true), (false, 1));
}

/// What one task uses all do: the card says it.
#[test]
fn interfaces_take_no_more_than_the_packet_size() {
    let lens = |variables: &[(&str, &str)]| {
        let found = listed(&config(variables), all()).expect("interfaces");
        found.iter().map(|interface| interface.longest).collect::<Vec<_>>()
    };
    assert_eq!(lens(&[("MP_UDP_PACKET_SIZE", "1024")]), [1024; 4]);
    assert_eq!(lens(&[("MP_UDP_PACKET_SIZE", "64k")]), [1472; 4]);
}
