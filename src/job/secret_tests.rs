use super::*;
use crate::job::exchange::memory::{InMemory, Table};

fn agreed(configured: &[Option<Secret>]) -> Vec<Result<Secret>> {
    let table = Table::default();
    let tasks = configured.len() as u32;
    let identity = |task| Identity { task, tasks, ..Identity::alone() };
    let mut offers = Vec::new();
    for (task, configured) in configured.iter().enumerate() {
        let mut exchange = InMemory(task as u32, table.clone());
        let offer = Offer::publish(&mut exchange, &identity(task as u32), *configured, false);
        offers.push((exchange, offer.expect("memory takes it")));
    }
    for value in table.lock().unwrap().values() {
        for secret in configured.iter().flatten() {
            assert!(!value.windows(4).any(|part| part == &secret[..4]), "the user's secret is not shown");
        }
    }
    let agree = |(task, (mut exchange, offer)): (usize, (InMemory, Offer))| {
        offer.agree(&mut exchange, &identity(task as u32))
    };
    offers.into_iter().enumerate().map(agree).collect()
}

#[test]
fn one_that_task_0_makes() {
    let (one, other) = (agreed(&[None; 4]), agreed(&[None; 4]));
    let secret = one[0].clone().expect("they agree");
    assert!(one.iter().all(|own| own.as_ref() == Ok(&secret)));
    assert_ne!(other[0], Ok(secret));
}

/// Each opening has its own.
#[test]
fn one_that_follows_from_what_the_user_has_set() {
    let of = |configured| {
        let found = agreed(&[Some(configured); 3]);
        assert!(found[0].is_ok() && found.iter().all(|own| *own == found[0]), "{found:?}");
        found[0].clone().expect("they agree")
    };
    let found = [of([7; 16]), of([7; 16]), of([8; 16])];
    assert!(found[0] != found[1] && found[0] != found[2] && !found.contains(&[7; 16]));
}

#[test]
fn a_process_that_takes_the_place_of_task_0_has_the_same() {
    for configured in [None, Some([7; 16])] {
        let table = Table::default();
        let [identity, other] = [0, 1].map(|task| Identity { task, tasks: 2, ..Identity::alone() });
        let (mut first, mut second) = (InMemory(0, table.clone()), InMemory(1, table));
        let offer = |exchange: &mut InMemory, identity, replaces| {
            Offer::publish(exchange, identity, configured, replaces).expect("memory takes it")
        };
        let offers = [offer(&mut first, &identity, false), offer(&mut second, &other, false)];
        let [one, two] = offers;
        let secret = one.agree(&mut first, &identity).expect("they agree");
        assert_eq!(two.agree(&mut second, &other), Ok(secret));
        let successor = offer(&mut first, &identity, true);
        assert_eq!(successor.agree(&mut first, &identity), Ok(secret), "{configured:?}");
    }
}

#[test]
fn disagreement_is_an_error() {
    let (a, b) = (Some([7; 16]), Some([8; 16]));
    for (configured, text) in [
        (&[a, b][..], "differs between tasks"),
        (&[a, None], "it is set in task 0, but not in task 1"),
        (&[None, b], "it is set in task 1, but not in task 0"),
        (&[a, a, b], "differs between tasks"),
        (&[None, None, b], "it is set in task 2, but not in task"),
    ] {
        let found: Vec<Error> = agreed(configured).into_iter().filter_map(Result::err).collect();
        assert!(found.len() >= 2, "{configured:?}: {found:?}");
        for error in found {
            assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR);
            assert!(error.detail.contains(text) && error.detail.len() < 100, "{}", error.detail);
        }
    }
}
