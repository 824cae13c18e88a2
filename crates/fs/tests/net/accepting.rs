//! Goal: a loop that cannot accept does not spin. Method: descriptors run out by a rule, and the waits are counted.

use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::net::{
    ACCEPT_PAUSE, Acceptor, Events, NetFault, NetOp, NetRule, Network, Poller, Token,
};
use drumlin_fs::{Clock, SystemClock};

use crate::world::{World, memory, tcp};

/// The loop of a server that accepts, until it has `wanted` connections or `patience` is over. Returns the number
/// of its waits.
fn accept_for(
    (acceptor, poller): (&mut Acceptor, &mut dyn Poller),
    clock: &dyn Clock,
    (wanted, patience): (usize, Duration),
) -> u32 {
    let (mut waits, mut taken) = (0, Vec::new());
    let mut events = Events::with_capacity(8);
    while taken.len() < wanted && clock.monotonic() < patience {
        let left = patience.saturating_sub(clock.monotonic());
        let pause = acceptor.wait_at_most(clock.monotonic());
        let timeout = pause.map_or(left, |pause| pause.min(left));
        poller.wait(&mut events, Some(timeout)).unwrap();
        waits += 1;
        acceptor.resume(poller, clock.monotonic()).unwrap();
        while let Some(connection) = acceptor.accept(poller, clock.monotonic()).unwrap() {
            taken.push(connection);
        }
    }
    assert!(taken.len() == wanted || clock.monotonic() >= patience);
    waits
}

#[test]
fn who_is_out_of_descriptors_waits_before_it_tries_again() {
    let network = memory(1);
    let world = World::of(Arc::new(network.clone()));
    let mut poller = world.network.poller().unwrap();
    let listener = world.listen(&tcp());
    let at = listener.local_address().clone();
    let mut acceptor = Acceptor::new(listener, &*poller, Token(1)).unwrap();
    let clients: Vec<_> = (0..5).map(|_| network.connect(&at).unwrap()).collect();
    network.add_rule(NetRule::always(NetFault::TooManyFiles).on(NetOp::Accept));
    let clock = SystemClock::new();
    let patience = ACCEPT_PAUSE * 3;
    let waits = accept_for((&mut acceptor, &mut *poller), &clock, (5, patience));
    assert!(waits <= 8, "{waits} waits in {patience:?}");
    assert!((1..=4).contains(&acceptor.pauses()));
    network.clear_rules();
    let patience = Duration::from_secs(20);
    let waits = accept_for((&mut acceptor, &mut *poller), &clock, (5, patience));
    assert!(waits <= 8, "{waits} waits for five connections");
    assert!(clock.monotonic() < patience);
    drop(clients);
}

#[test]
fn other_failures_of_accepting_are_told() {
    let network = memory(1);
    let world = World::of(Arc::new(network.clone()));
    let poller = world.network.poller().unwrap();
    let listener = world.listen(&tcp());
    let mut acceptor = Acceptor::new(listener, &*poller, Token(1)).unwrap();
    assert!(acceptor.accept(&*poller, Duration::ZERO).unwrap().is_none());
    assert_eq!(acceptor.wait_at_most(Duration::ZERO), None);
    let elsewhere = World::memory();
    let foreign = elsewhere.network.poller().unwrap();
    let listener = elsewhere.listen(&tcp());
    assert!(Acceptor::new(listener, &*poller, Token(1)).is_err());
    drop(foreign);
}
