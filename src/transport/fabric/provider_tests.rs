use super::*;

fn traits(provider: &str, domain: &str, address: [u8; 4]) -> Traits {
    Traits {
        provider: provider.into(),
        fabric: format!("net of {domain}"),
        domain: domain.into(),
        format: FI_SOCKADDR_IN,
        source: [&[2, 0, 0, 0], &address[..], &[0; 8]].concat(),
        max_message: 1 << 20,
    }
}

fn all() -> Vec<Traits> {
    let six = |address: [u8; 16]| Traits {
        format: FI_SOCKADDR_IN6,
        source: [&[10, 0, 0, 0, 0, 0, 0, 0], &address[..], &[0; 4]].concat(),
        ..traits("tcp;ofi_rxm", "eth0", [0; 4])
    };
    vec![
        traits("udp;ofi_rxd", "eth0", [10, 0, 0, 1]),
        six([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        six([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        traits("tcp;ofi_rxm", "lo", [127, 0, 0, 1]),
        traits("tcp;ofi_rxm", "eth0", [10, 0, 0, 1]),
        traits("other", "x0", [10, 0, 0, 1]),
        traits("sockets", "eth0", [10, 0, 0, 1]),
    ]
}

/// What opens an endpoint of the best provider.
pub(in crate::transport::fabric) fn choose(preferences: &Preferences) -> Result<(Info, Choice), String> {
    let mut infos = ofi::list(None, preferences.provider.as_deref())?;
    let traits: Vec<Traits> = infos.iter().map(Traits::of).collect();
    let (best, choice) = pick(&traits, preferences)?;
    Ok((injecting(infos.swap_remove(best))?, choice))
}

fn chosen(list: &[Traits], preferences: &Preferences) -> String {
    pick(list, preferences).expect("a provider").1.chosen
}

#[test]
fn hardware_comes_before_sockets() {
    let mut list = all();
    assert_eq!(chosen(&list, &Preferences::default()), "tcp;ofi_rxm, domain eth0, fabric net of eth0");
    list.push(traits("verbs;ofi_rxm", "mlx5_0", [10, 0, 0, 9]));
    assert_eq!(chosen(&list, &Preferences::default()), "verbs;ofi_rxm, domain mlx5_0, fabric net of mlx5_0");
    list.push(Traits { max_message: 100, ..traits("psm3", "hfi", [10, 0, 0, 9]) });
    let (_, choice) = pick(&list, &Preferences::default()).expect("a provider");
    assert!(choice.chosen.starts_with("verbs"));
    assert!(choice.passed_over.contains(&("psm3, domain hfi, fabric net of hfi".into(), SHORT)));
    assert!(choice.passed_over.contains(&("tcp;ofi_rxm, domain lo, fabric net of lo".into(), LOOPBACK)));
    assert!(
        choice.passed_over.iter().any(|(name, why)| name.starts_with("sockets") && why.contains("named"))
    );
}

#[test]
fn psm3_without_a_card_does_not_come_before_tcp() {
    let psm3 = |fabric: &str| Traits { fabric: fabric.into(), ..traits("psm3", "eth0", [10, 0, 0, 1]) };
    for (fabric, expected) in
        [("TCP-10.0.0.0/24", "tcp;ofi_rxm"), ("UDP-10.0.0.0/24", "tcp;ofi_rxm"), ("RoCE-10.0.0.0/24", "psm3")]
    {
        let mut list = all();
        list.insert(0, psm3(fabric));
        let (_, choice) = pick(&list, &Preferences::default()).expect("a provider");
        assert_eq!(choice.provider, expected, "fabric {fabric}");
    }
    let named = Preferences { provider: Some("psm3".into()), ..Preferences::default() };
    assert!(chosen(&[psm3("TCP-10.0.0.0/24")], &named).starts_with("psm3"), "what is named is used");
    assert!(chosen(&[psm3("TCP-10.0.0.0/24")], &Preferences::default()).starts_with("psm3"), "it alone");
}

#[test]
fn what_is_named_is_used() {
    let preferences = |provider: Option<&str>, domain: Option<&str>| Preferences {
        provider: provider.map(Into::into),
        domain: domain.map(Into::into),
        ..Preferences::default()
    };
    let list = all();
    assert!(chosen(&list, &preferences(Some("udp;ofi_rxd"), None)).starts_with("udp"));
    assert!(chosen(&list, &preferences(None, Some("x0"))).starts_with("other"));
    let one = Preferences { one_machine: true, ..preferences(None, Some("lo")) };
    assert!(chosen(&list, &one).contains("domain lo"));
    for (preferences, expected) in [
        (
            preferences(Some("psm9"), None),
            "libfabric has no provider psm9; it has other, sockets, tcp;ofi_rxm, udp;ofi_rxd",
        ),
        (preferences(Some("sockets"), Some("ib0")), "provider sockets has no domain ib0; it has eth0"),
        (preferences(None, Some("ib0")), "libfabric has no domain ib0; it has eth0, lo, x0"),
    ] {
        assert_eq!(pick(&list, &preferences).err().as_deref(), Some(expected));
    }
    assert!(pick(&list[3..4], &Preferences::default()).is_err(), "loopback alone");
    assert!(pick(&[], &Preferences::default()).is_err());
}
