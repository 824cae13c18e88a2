//! Goal: each fault can be injected and is seen, where its rule says and nowhere else. Method: one scenario each, in
//! real time where it takes none; `crates/sim/tests/network.rs` has those that take minutes.

use std::sync::Arc;

use drumlin_fs::net::{
    Connection, Events, Interest, ListenOptions, MemNetwork, NetErrorKind, NetFault, NetOp,
    NetRule, Network, Received, Sent, Token,
};
use drumlin_fs::{Clock, SystemClock};

use crate::world::{LONG, SHORT, World, events, memory, readable, tcp};

fn calm() -> (MemNetwork, World) {
    let network = memory(5);
    let world = World::of(Arc::new(network.clone()));
    (network, world)
}

type Pair = (Box<dyn Connection>, Box<dyn Connection>);

/// A connection with `bytes` on their way to the server.
fn pair_with(world: &World, bytes: &[u8]) -> Pair {
    let mut pair = world.pair(&tcp());
    world.write(&mut *pair.0, bytes);
    pair
}

fn kind<T: std::fmt::Debug>(outcome: drumlin_base::Result<T>) -> NetErrorKind {
    NetErrorKind::of(&outcome.unwrap_err())
}

#[test]
fn short_reads_and_writes_move_some() {
    let (network, world) = calm();
    let (mut client, mut server) = world.pair(&tcp());
    network.add_rule(NetRule::once(0, NetFault::Short).on(NetOp::Write));
    network.add_rule(NetRule::once(0, NetFault::Short).on(NetOp::Read));
    let bytes = [1; 1000];
    let Sent::Bytes(sent) = client.write(&bytes).unwrap() else {
        panic!("there is room");
    };
    assert!((1..1000).contains(&sent));
    let mut buffer = [0; 1000];
    let Received::Bytes(read) = server.read(&mut buffer).unwrap() else {
        panic!("there are bytes");
    };
    assert!(read >= 1 && read < sent, "{read} of {sent}");
    assert_eq!(
        server.read(&mut buffer).unwrap(),
        Received::Bytes(sent - read)
    );
    assert_eq!(network.injected(), 2);
}

#[test]
fn readiness_that_comes_to_nothing_is_no_harm() {
    let (network, world) = calm();
    let (mut client, mut server) = pair_with(&world, b"abc");
    for op in [NetOp::Read, NetOp::Write, NetOp::Accept] {
        network.add_rule(NetRule::once(0, NetFault::NotNow).on(op));
    }
    world.until(&*server, Interest::Read);
    assert_eq!(server.read(&mut [0; 9]).unwrap(), Received::NotNow);
    assert_eq!(server.read(&mut [0; 9]).unwrap(), Received::Bytes(3));
    assert_eq!(client.write(b"x").unwrap(), Sent::NotNow);
    assert_eq!(client.write(b"x").unwrap(), Sent::Bytes(1));
    let mut listener = world.listen(&tcp());
    let _client = network.connect(listener.local_address()).unwrap();
    assert!(listener.accept().unwrap().is_none());
    assert!(listener.accept().unwrap().is_some());
}

#[test]
fn a_reset_is_heard_on_both_sides() {
    for op in [NetOp::Read, NetOp::Write] {
        let (network, world) = calm();
        let (mut client, mut server) = world.pair(&tcp());
        let (mut bystander, mut other) = world.pair(&tcp());
        network.add_rule(NetRule::once(0, NetFault::Reset).on(op));
        let own = match op {
            NetOp::Read => server.read(&mut [0; 9]).map(|_| ()),
            _ => server.write(b"x").map(|_| ()),
        };
        assert_eq!(kind(own), NetErrorKind::Disconnected);
        let event = world.until(&*client, Interest::ReadWrite);
        assert!(event.readable && event.writable);
        assert_eq!(kind(client.write(b"x")), NetErrorKind::Disconnected);
        assert_eq!(client.read(&mut [0; 9]).unwrap(), Received::End);
        world.write(&mut *bystander, b"fine");
        assert_eq!(world.read(&mut *other, 4), b"fine");
    }
}

#[test]
fn rules_strike_at_the_address_they_name() {
    let (network, world) = calm();
    let mut listener = world.listen(&tcp());
    let address = listener.local_address().clone();
    let clients: Vec<_> = (0..2).map(|_| network.connect(&address).unwrap()).collect();
    let mut servers: Vec<_> = (0..2).map(|_| world.accept(&mut *listener)).collect();
    let second = clients[1].local_address().unwrap().to_string();
    network.add_rule(
        NetRule::always(NetFault::Reset)
            .on(NetOp::Write)
            .at(&second),
    );
    assert_eq!(servers[1].write(b"x").unwrap(), Sent::Bytes(1));
    for (client, reset) in clients.into_iter().zip([false, true]) {
        let mut client = client;
        assert_eq!(client.write(b"x").is_err(), reset);
    }
    assert!(servers[1].read(&mut [0; 9]).is_err());
    assert_eq!(servers[0].read(&mut [0; 9]).unwrap(), Received::Bytes(1));
}

#[test]
fn listening_connecting_and_accepting_run_out_of_descriptors() {
    let (network, world) = calm();
    let mut listener = world.listen(&tcp());
    let address = listener.local_address().clone();
    network.add_rule(NetRule::once(1, NetFault::TooManyFiles));
    let _client = network.connect(&address).unwrap();
    assert_eq!(kind(listener.accept()), NetErrorKind::OutOfResources);
    world.until(&*listener, Interest::Read);
    let _server = world.accept(&mut *listener);
    network.clear_rules();
    network.add_rule(NetRule::from(0, NetFault::TooManyFiles));
    let options = ListenOptions::default();
    let listened = network.listen(&tcp(), options);
    assert_eq!(kind(listened), NetErrorKind::OutOfResources);
    assert_eq!(
        kind(network.connect(&address)),
        NetErrorKind::OutOfResources
    );
}

#[test]
fn connecting_is_refused_or_takes_its_time() {
    let (network, world) = calm();
    let listener = world.listen(&tcp());
    network.add_rule(NetRule::once(0, NetFault::Refused).on(NetOp::Connect));
    let mut refused = network.connect(listener.local_address()).unwrap();
    assert_eq!(kind(world.finish(&mut *refused)), NetErrorKind::Refused);
    network.add_rule(NetRule::always(NetFault::slow(SHORT)).on(NetOp::Connect));
    let clock = SystemClock::new();
    let mut slow = network.connect(listener.local_address()).unwrap();
    assert!(!slow.connected().unwrap());
    assert_eq!(slow.write(b"early").unwrap(), Sent::NotNow);
    assert_eq!(slow.read(&mut [0]).unwrap(), Received::NotNow);
    world.finish(&mut *slow).unwrap();
    assert!(clock.monotonic() >= SHORT);
    assert_eq!(slow.write(b"now").unwrap(), Sent::Bytes(3));
}

#[test]
fn bytes_and_readiness_come_late() {
    for op in [NetOp::Write, NetOp::Ready] {
        let (network, world) = calm();
        let (mut client, mut server) = world.pair(&tcp());
        network.add_rule(NetRule::once(0, NetFault::slow(SHORT)).on(op));
        let clock = SystemClock::new();
        let mut poller = network.poller().unwrap();
        poller.register(&*server, Token(1), Interest::Read).unwrap();
        world.write(&mut *client, b"abc");
        let early = server.read(&mut [0]).unwrap();
        let is_late = early == Received::NotNow;
        assert_eq!(is_late, op == NetOp::Write);
        assert_eq!(events(&mut *poller, LONG), [readable(1)]);
        assert!(clock.monotonic() >= SHORT);
        // Readiness was reported late once; while it lasts it is reported at once.
        let clock = SystemClock::new();
        assert_eq!(events(&mut *poller, LONG), [readable(1)]);
        assert!(clock.monotonic() < LONG);
    }
}

#[test]
fn a_peer_that_vanishes_is_silence() {
    let (network, world) = calm();
    let (mut client, mut server) = world.pair(&tcp());
    network.add_rule(NetRule::once(0, NetFault::Vanish).on(NetOp::Write));
    assert_eq!(client.write(b"lost").unwrap(), Sent::Bytes(4));
    let mut poller = network.poller().unwrap();
    poller.register(&*server, Token(1), Interest::Read).unwrap();
    assert_eq!(server.write(b"lost too").unwrap(), Sent::Bytes(8));
    drop(client);
    assert_eq!(events(&mut *poller, SHORT), []);
    assert_eq!(server.read(&mut [0; 9]).unwrap(), Received::NotNow);
    // Bytes for nobody fill the buffer.
    while server.write(&[0; 10_000]).unwrap() != Sent::NotNow {}
    poller
        .reregister(&*server, Token(1), Interest::ReadWrite)
        .unwrap();
    assert_eq!(events(&mut *poller, SHORT), []);
}

#[test]
fn a_half_open_connection_is_silence_until_it_is_written_to() {
    let (network, world) = calm();
    let (mut client, mut server) = world.pair(&tcp());
    network.add_rule(NetRule::once(0, NetFault::HalfOpen).on(NetOp::Read));
    assert_eq!(server.read(&mut [0; 9]).unwrap(), Received::NotNow);
    assert_eq!(kind(client.read(&mut [0; 9])), NetErrorKind::Disconnected);
    let mut poller = network.poller().unwrap();
    poller.register(&*server, Token(1), Interest::Read).unwrap();
    assert_eq!(events(&mut *poller, SHORT), []);
    assert_eq!(server.write(b"hello?").unwrap(), Sent::Bytes(6));
    assert_eq!(events(&mut *poller, LONG), [readable(1)]);
    assert_eq!(kind(server.read(&mut [0; 9])), NetErrorKind::Disconnected);
}

#[test]
fn events_come_in_another_order() {
    let (network, world) = calm();
    let pairs: Vec<_> = (0..8).map(|_| pair_with(&world, b"a")).collect();
    let mut poller = network.poller().unwrap();
    for (token, (_, server)) in (0..).zip(&pairs) {
        poller
            .register(&**server, Token(token), Interest::Read)
            .unwrap();
    }
    network.add_rule(NetRule::always(NetFault::Reorder).on(NetOp::Wait));
    let mut orders = std::collections::BTreeSet::new();
    let mut list = Events::with_capacity(8);
    for _ in 0..20 {
        poller.wait(&mut list, Some(LONG)).unwrap();
        let order: Vec<_> = list.iter().map(|event| event.token).collect();
        let mut sorted = order.clone();
        sorted.sort();
        assert!(sorted.into_iter().eq((0..8).map(Token)));
        orders.insert(order);
    }
    assert!(orders.len() > 10, "{} orders", orders.len());
}

#[test]
fn a_wait_that_ends_early_tells_nothing_and_loses_nothing() {
    let (network, world) = calm();
    let (_client, server) = pair_with(&world, b"a");
    let mut poller = network.poller().unwrap();
    poller.register(&*server, Token(1), Interest::Read).unwrap();
    network.add_rule(NetRule::once(0, NetFault::Interrupted).on(NetOp::Wait));
    let mut list = Events::with_capacity(8);
    poller.wait(&mut list, Some(LONG)).unwrap();
    assert!(list.is_empty());
    poller.wait(&mut list, Some(LONG)).unwrap();
    assert!(list.iter().eq([readable(1)]));
}

#[test]
fn clients_beyond_the_backlog_are_connected_when_there_is_room() {
    let (network, world) = calm();
    let options = ListenOptions {
        backlog: 2,
        ..ListenOptions::default()
    };
    let mut listener = network.listen(&tcp(), options).unwrap();
    let address = listener.local_address().clone();
    let mut clients: Vec<_> = (0..4).map(|_| network.connect(&address).unwrap()).collect();
    let connected = |clients: &mut [Box<dyn Connection>]| {
        let done = clients.iter_mut().map(|client| client.connected().unwrap());
        done.filter(|done| *done).count()
    };
    assert_eq!(connected(&mut clients), 2);
    let mut servers = Vec::new();
    for wanted in [3, 4, 4, 4] {
        servers.push(world.accept(&mut *listener));
        assert_eq!(connected(&mut clients), wanted);
    }
    assert!(listener.accept().unwrap().is_none());
    assert_eq!(network.open_sources(), 9);
    drop((clients, servers, listener));
    assert_eq!(network.open_sources(), 0);
}

#[test]
fn the_same_seed_does_the_same() {
    let run = |seed: u64| {
        let network = memory(seed);
        let world = World::of(Arc::new(network.clone()));
        network.add_rule(NetRule::one_in(2, seed, NetFault::Short));
        network.add_rule(NetRule::once(60, NetFault::Reset));
        let (mut client, mut server) = world.pair(&tcp());
        let mut story = Vec::new();
        for _ in 0..100 {
            story.push(format!("{:?}", client.write(&[0; 777])));
            story.push(format!("{:?}", server.read(&mut [0; 555])));
        }
        story
    };
    assert_eq!(run(9), run(9));
    assert_ne!(run(9), run(10));
}
