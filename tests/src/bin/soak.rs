//! `make soak`: soak SEED=n SECONDS=n TASKS=n HOSTS=n RAILS=n NETWORK=fabric|udp LOSS=percent

use std::process::ExitCode;

use openlapi_tests::{Soak, SoakNetwork};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(soak) = parsed(&arguments) else {
        eprintln!(
            "usage: soak [SEED=n] [SECONDS=n] [TASKS=n] [HOSTS=n] [RAILS=n] [NETWORK=fabric|udp] [LOSS=percent]"
        );
        return ExitCode::from(2);
    };
    println!("{soak:?}");
    match soak.run() {
        Ok(totals) => {
            println!("{totals}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("soak: failed: {what}");
            ExitCode::FAILURE
        }
    }
}

fn parsed(arguments: &[String]) -> Option<Soak> {
    let network = SoakNetwork::Fabric;
    let mut soak = Soak { seed: 1, seconds: 60, tasks: 8, hosts: 1, rails: 1, network };
    let mut loss = 0;
    for argument in arguments {
        let (name, value) = argument.split_once('=')?;
        match name {
            "SEED" => soak.seed = value.parse().ok()?,
            "SECONDS" => soak.seconds = value.parse().ok()?,
            "TASKS" => soak.tasks = value.parse().ok()?,
            "HOSTS" => soak.hosts = value.parse().ok()?,
            "RAILS" => soak.rails = value.parse().ok()?,
            "LOSS" => loss = value.parse().ok().filter(|loss| *loss <= 100)?,
            "NETWORK" if value == "fabric" => {}
            "NETWORK" if value == "udp" => soak.network = SoakNetwork::Udp { loss: 0 },
            _ => return None,
        }
    }
    match &mut soak.network {
        SoakNetwork::Udp { loss: lost } => *lost = loss,
        SoakNetwork::Fabric if loss != 0 => return None,
        SoakNetwork::Fabric => {}
    }
    Some(soak)
}
