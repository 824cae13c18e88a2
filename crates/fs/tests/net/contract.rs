//! Goal: a server cannot distinguish the networks. Method: each test asks the sockets of the system and those
//! in memory the same.

use std::io::IoSlice;
use std::thread;
use std::time::Duration;

use drumlin_base::ErrorKind;
use drumlin_base::rng::Rng;
use drumlin_fs::net::{
    Address, Connection, Events, Interest, ListenOptions, NetErrorKind, Received, Sent, Token,
};
use drumlin_fs::{Clock, SystemClock};

use crate::world::{LONG, SHORT, World, events, one_event, readable, tcp, writable};

/// Each test, once for each network.
macro_rules! contract {
    ($($name:ident)*) => {
        mod posix { $(#[test] fn $name() { super::$name(&crate::world::World::posix()); })* }
        mod memory { $(#[test] fn $name() { super::$name(&crate::world::World::memory()); })* }
    };
}

contract! {
    bytes_go_both_ways
    addresses_are_those_of_the_other_side
    many_slices_are_sent_in_order
    empty_reads_and_writes_move_nothing
    readiness_is_told_again_until_it_is_used_up
    a_full_connection_is_writable_again_when_it_was_read_from
    only_directions_asked_for_are_told
    a_reset_is_told_in_the_direction_asked_for
    what_is_deregistered_or_dropped_is_not_told
    nobody_starves_when_more_are_ready_than_there_is_room_for
    registering_is_refused_where_it_makes_no_sense
    a_timeout_passes
    wakes_end_the_wait_under_way_or_the_next
    wakes_before_a_wait_count_once
    a_connection_goes_to_another_thread
    the_end_follows_the_last_byte_and_reading_goes_on
    closing_with_bytes_unread_is_no_silent_loss
    writing_to_who_has_closed_fails_soon
    a_connection_closed_before_it_was_accepted_can_be_read
    connecting_where_nobody_listens_is_refused
    connections_that_nobody_accepted_end_with_the_listener
    an_address_in_use_is_named
    an_address_is_free_again_when_its_listener_is_dropped
    a_full_queue_of_a_unix_socket_is_named
    options_are_taken
}

fn bytes_go_both_ways(world: &World) {
    for address in world.addresses() {
        let (mut client, mut server) = world.pair(&address);
        world.write(&mut *client, b"question");
        assert_eq!(world.read(&mut *server, 8), b"question");
        world.write(&mut *server, b"answer");
        assert_eq!(world.read(&mut *client, 6), b"answer");
        assert_eq!(client.read(&mut [0; 9]).unwrap(), Received::NotNow);
    }
}

fn addresses_are_those_of_the_other_side(world: &World) {
    for address in world.addresses() {
        let mut listener = world.listen(&address);
        let at = listener.local_address().clone();
        let client = world.network.connect(&at).unwrap();
        let server = world.accept(&mut *listener);
        assert_eq!(
            (client.peer_address(), server.local_address().unwrap()),
            (&at, at.clone())
        );
        assert_eq!(&client.local_address().unwrap(), server.peer_address());
        match (at, server.peer_address()) {
            (Address::Tcp(at), Address::Tcp(from)) => {
                assert!(at.port() != 0 && from.port() != at.port() && from.ip() == at.ip());
            }
            (at, from) => assert_eq!((at, from), (address, &Address::Unnamed)),
        }
    }
}

fn many_slices_are_sent_in_order(world: &World) {
    let (mut client, mut server) = world.pair(&tcp());
    let mut rng = Rng::new(3);
    let mut all = vec![0; 3000];
    rng.fill(&mut all);
    let mut rest = &all[..];
    while !rest.is_empty() {
        let slices: Vec<_> = rest.chunks(1).map(IoSlice::new).collect();
        match client.write_vectored(&slices).unwrap() {
            Sent::Bytes(count) => rest = &rest[count..],
            Sent::NotNow => {
                world.until(&*client, Interest::Write);
            }
        }
    }
    assert_eq!(world.read(&mut *server, all.len()), all);
}

fn empty_reads_and_writes_move_nothing(world: &World) {
    let (mut client, mut server) = world.pair(&tcp());
    assert_eq!(client.write(b"").unwrap(), Sent::Bytes(0));
    assert_eq!(client.write_vectored(&[]).unwrap(), Sent::Bytes(0));
    assert_eq!(server.read(&mut []).unwrap(), Received::Bytes(0));
    assert_eq!(server.read(&mut [0]).unwrap(), Received::NotNow);
}

fn readiness_is_told_again_until_it_is_used_up(world: &World) {
    for address in world.addresses() {
        let (mut client, mut server) = world.pair(&address);
        let mut poller = world.network.poller().unwrap();
        poller.register(&*server, Token(1), Interest::Read).unwrap();
        world.write(&mut *client, b"abc");
        for byte in b"abc" {
            assert_eq!(events(&mut *poller, LONG), [readable(1)]);
            assert_eq!(events(&mut *poller, LONG), [readable(1)]);
            assert_eq!(world.read(&mut *server, 1), [*byte]);
        }
        assert_eq!(events(&mut *poller, SHORT), []);
        drop(client);
        for _ in 0..3 {
            assert_eq!(events(&mut *poller, LONG), [readable(1)]);
            assert_eq!(server.read(&mut [0]).unwrap(), Received::End);
        }
    }
}

/// Writes until no more is taken, and returns the number of bytes.
fn fill(world: &World, connection: &mut dyn Connection) -> usize {
    let mut count = 0;
    // The system's buffers grow and settle.
    for _ in 0..20 {
        while let Sent::Bytes(more) = connection.write(&[7; 50_000]).unwrap() {
            count += more;
        }
        let mut poller = world.network.poller().unwrap();
        poller
            .register(&*connection, Token(1), Interest::Write)
            .unwrap();
        if events(&mut *poller, SHORT).is_empty() {
            return count;
        }
    }
    panic!("it takes {count} bytes and more");
}

fn a_full_connection_is_writable_again_when_it_was_read_from(world: &World) {
    for address in world.addresses() {
        let (mut client, mut server) = world.pair(&address);
        let sent = fill(world, &mut *client);
        let mut poller = world.network.poller().unwrap();
        poller
            .register(&*client, Token(5), Interest::ReadWrite)
            .unwrap();
        assert_eq!(events(&mut *poller, SHORT), []);
        assert_eq!(world.read(&mut *server, sent).len(), sent);
        assert_eq!(one_event(&mut *poller), Some(writable(5)));
        assert!(matches!(client.write(b"x").unwrap(), Sent::Bytes(1)));
    }
}

fn only_directions_asked_for_are_told(world: &World) {
    let (mut client, server) = world.pair(&tcp());
    world.write(&mut *client, b"unread");
    world.until(&*server, Interest::Read);
    let mut poller = world.network.poller().unwrap();
    let told = |poller: &mut dyn drumlin_fs::net::Poller| one_event(poller).unwrap();
    poller
        .register(&*server, Token(1), Interest::Write)
        .unwrap();
    assert_eq!(told(&mut *poller), writable(1));
    poller
        .reregister(&*server, Token(2), Interest::Read)
        .unwrap();
    assert_eq!(told(&mut *poller), readable(2));
    poller
        .reregister(&*server, Token(3), Interest::ReadWrite)
        .unwrap();
    let both = told(&mut *poller);
    assert!(both.readable && both.writable && both.token == Token(3));
}

fn a_reset_is_told_in_the_direction_asked_for(world: &World) {
    for interest in [Interest::Read, Interest::Write] {
        let (mut client, mut server) = world.pair(&tcp());
        world.write(&mut *client, b"question");
        fill(world, &mut *client);
        let mut poller = world.network.poller().unwrap();
        poller.register(&*client, Token(1), interest).unwrap();
        assert_eq!(events(&mut *poller, SHORT), []);
        // Unread bytes make this a reset.
        assert_eq!(world.read(&mut *server, 1), b"q");
        drop(server);
        let event = one_event(&mut *poller).unwrap();
        let directions = (event.readable, event.writable);
        assert_eq!(directions, (interest.is_read(), interest.is_write()));
        let error = match interest {
            Interest::Read => client.read(&mut [0; 9]).map(|_| ()).unwrap_err(),
            _ => client.write(b"more").map(|_| ()).unwrap_err(),
        };
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected);
        assert_eq!(events(&mut *poller, LONG), [event]);
    }
}

fn what_is_deregistered_or_dropped_is_not_told(world: &World) {
    let (mut client, server) = world.pair(&tcp());
    let (mut other_client, other_server) = world.pair(&tcp());
    let mut poller = world.network.poller().unwrap();
    for (token, source) in [(1, &server), (2, &other_server)] {
        poller
            .register(&**source, Token(token), Interest::Read)
            .unwrap();
    }
    world.write(&mut *client, b"a");
    world.write(&mut *other_client, b"a");
    while events(&mut *poller, LONG).len() < 2 {}
    poller.deregister(&*server).unwrap();
    assert_eq!(events(&mut *poller, LONG), [readable(2)]);
    drop(other_server);
    assert_eq!(events(&mut *poller, SHORT), []);
    poller.register(&*server, Token(3), Interest::Read).unwrap();
    assert_eq!(events(&mut *poller, LONG), [readable(3)]);
}

fn nobody_starves_when_more_are_ready_than_there_is_room_for(world: &World) {
    let mut pairs: Vec<_> = (0..10).map(|_| world.pair(&tcp())).collect();
    let mut poller = world.network.poller().unwrap();
    for (token, (client, server)) in (0..).zip(&mut pairs) {
        poller
            .register(&**server, Token(token), Interest::Read)
            .unwrap();
        world.write(&mut **client, b"a");
    }
    while events(&mut *poller, LONG).len() < 10 {}
    let mut few = Events::with_capacity(3);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        poller.wait(&mut few, Some(LONG)).unwrap();
        assert_eq!(few.len(), 3);
        seen.extend(few.iter().map(|event| event.token));
    }
    assert_eq!(seen.len(), 10);
}

fn registering_is_refused_where_it_makes_no_sense(world: &World) {
    let (client, server) = world.pair(&tcp());
    let poller = world.network.poller().unwrap();
    let kind = |outcome: drumlin_base::Result<()>| outcome.unwrap_err().kind();
    let invalid = ErrorKind::InvalidArgument;
    let read = Interest::Read;
    poller.register(&*client, Token(1), read).unwrap();
    assert_eq!(kind(poller.register(&*client, Token(2), read)), invalid);
    assert_eq!(kind(poller.reregister(&*server, Token(2), read)), invalid);
    assert_eq!(kind(poller.deregister(&*server)), invalid);
    let large = Token(Token::MAX.0 + 1);
    assert_eq!(kind(poller.register(&*server, large, read)), invalid);
    poller.register(&*server, Token::MAX, read).unwrap();
    for elsewhere in [World::posix(), World::memory()] {
        let poller = elsewhere.network.poller().unwrap();
        let outcome = poller.register(&*client, Token(1), read);
        // Two networks of the system share their sockets.
        if let Err(error) = outcome {
            assert_eq!(error.kind(), invalid);
        }
    }
}

fn a_timeout_passes(world: &World) {
    let mut poller = world.network.poller().unwrap();
    let mut events = Events::with_capacity(1);
    let clock = SystemClock::new();
    poller.wait(&mut events, Some(SHORT)).unwrap();
    let waited = clock.monotonic();
    assert!(waited >= SHORT && waited < LONG, "{waited:?}");
    assert!(events.is_empty() && !events.is_woken());
    poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert!(events.is_empty());
}

fn wakes_end_the_wait_under_way_or_the_next(world: &World) {
    let mut poller = world.network.poller().unwrap();
    let waker = poller.waker();
    let mut events = Events::with_capacity(1);
    for pause in [Duration::ZERO, SHORT] {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(pause);
                waker.wake().unwrap();
            });
            poller.wait(&mut events, None).unwrap();
            assert!(events.is_woken() && events.is_empty());
        });
    }
    drop(poller);
    waker.wake().unwrap();
}

fn wakes_before_a_wait_count_once(world: &World) {
    let mut poller = world.network.poller().unwrap();
    let waker = poller.waker();
    let mut events = Events::with_capacity(1);
    for _ in 0..3 {
        for _ in 0..3 {
            waker.wake().unwrap();
        }
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(events.is_woken());
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(!events.is_woken());
    }
}

fn a_connection_goes_to_another_thread(world: &World) {
    let (mut client, mut server) = world.pair(&tcp());
    let poller = world.network.poller().unwrap();
    let read = Interest::Read;
    poller.register(&*server, Token(1), read).unwrap();
    poller.deregister(&*server).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut poller = world.network.poller().unwrap();
            poller.register(&*server, Token(9), read).unwrap();
            assert_eq!(one_event(&mut *poller), Some(readable(9)));
            poller.deregister(&*server).unwrap();
            assert_eq!(world.read(&mut *server, 3), b"abc");
            world.write(&mut *server, b"done");
        });
        world.write(&mut *client, b"abc");
        assert_eq!(world.read(&mut *client, 4), b"done");
    });
}

fn the_end_follows_the_last_byte_and_reading_goes_on(world: &World) {
    for address in world.addresses() {
        let (mut client, mut server) = world.pair(&address);
        world.write(&mut *client, b"last");
        client.shutdown_write().unwrap();
        assert_eq!(world.read(&mut *server, 9), b"last");
        assert!(world.is_at_end(&mut *server));
        let error = client.write(b"more").unwrap_err();
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected);
        world.write(&mut *server, b"reply");
        drop(server);
        assert_eq!(world.read(&mut *client, 9), b"reply");
    }
}

fn closing_with_bytes_unread_is_no_silent_loss(world: &World) {
    for address in world.addresses() {
        let (mut client, server) = world.pair(&address);
        world.write(&mut *client, b"never read");
        world.until(&*server, Interest::Read);
        drop(server);
        world.until(&*client, Interest::Read);
        let error = client.read(&mut [0; 9]).unwrap_err();
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected);
    }
}

fn writing_to_who_has_closed_fails_soon(world: &World) {
    for address in world.addresses() {
        let (mut client, server) = world.pair(&address);
        drop(server);
        assert!(world.is_at_end(&mut *client));
        let outcomes = (0..100_000).map(|_| {
            thread::yield_now();
            client.write(b"x")
        });
        let mut errors = outcomes.filter_map(Result::err);
        let error = errors.next().unwrap();
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected);
    }
}

fn a_connection_closed_before_it_was_accepted_can_be_read(world: &World) {
    for address in world.addresses() {
        let mut listener = world.listen(&address);
        let mut client = world.network.connect(listener.local_address()).unwrap();
        world.finish(&mut *client).unwrap();
        world.write(&mut *client, b"bye");
        drop(client);
        let mut server = world.accept(&mut *listener);
        assert_eq!(world.read(&mut *server, 9), b"bye");
    }
}

fn connecting_where_nobody_listens_is_refused(world: &World) {
    for address in world.addresses() {
        let listener = world.listen(&address);
        let at = listener.local_address().clone();
        drop(listener);
        let outcome = world.network.connect(&at);
        let error = match outcome {
            Ok(mut connection) => world.finish(&mut *connection).unwrap_err(),
            Err(error) => error,
        };
        let wanted = match at {
            Address::Tcp(_) => NetErrorKind::Refused,
            _ => NetErrorKind::NotFound,
        };
        assert_eq!(NetErrorKind::of(&error), wanted, "{error}");
        assert!(error.to_string().contains(&at.to_string()), "{error}");
    }
}

fn connections_that_nobody_accepted_end_with_the_listener(world: &World) {
    for address in world.addresses() {
        let listener = world.listen(&address);
        let mut client = world.network.connect(listener.local_address()).unwrap();
        world.finish(&mut *client).unwrap();
        drop(listener);
        world.until(&*client, Interest::Read);
        match client.read(&mut [0; 9]) {
            Ok(outcome) => assert_eq!(outcome, Received::End),
            Err(error) => assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected),
        }
    }
}

fn an_address_in_use_is_named(world: &World) {
    for address in world.addresses() {
        let listener = world.listen(&address);
        let at = listener.local_address();
        let again = world.network.listen(at, ListenOptions::default());
        let error = again.unwrap_err();
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::AddressInUse);
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("cannot listen on {at}: ")),
            "{text}"
        );
    }
    let unnamed = world
        .network
        .listen(&Address::Unnamed, ListenOptions::default());
    assert_eq!(unnamed.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn an_address_is_free_again_when_its_listener_is_dropped(world: &World) {
    for address in world.addresses() {
        let mut listener = world.listen(&address);
        let at = listener.local_address().clone();
        // A connection that outlives its listener keeps nobody from listening.
        let client = world.network.connect(&at).unwrap();
        let server = world.accept(&mut *listener);
        drop(listener);
        let mut listener = world.listen(&at);
        drop((server, client));
        let mut client = world.network.connect(&at).unwrap();
        let mut server = world.accept(&mut *listener);
        world.finish(&mut *client).unwrap();
        world.write(&mut *client, b"new");
        assert_eq!(world.read(&mut *server, 3), b"new");
    }
}

fn a_full_queue_of_a_unix_socket_is_named(world: &World) {
    let options = ListenOptions {
        backlog: 2,
        ..ListenOptions::default()
    };
    let address = Address::Unix(world.path());
    let mut listener = world.network.listen(&address, options).unwrap();
    let mut clients = Vec::new();
    let error = loop {
        match world.network.connect(&address) {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
        assert!(clients.len() < 9);
    };
    assert_eq!(NetErrorKind::of(&error), NetErrorKind::QueueFull);
    assert!(clients.len() >= 2);
    let _server = world.accept(&mut *listener);
    let mut client = world.network.connect(&address).unwrap();
    world.finish(&mut *client).unwrap();
}

fn options_are_taken(world: &World) {
    for address in world.addresses() {
        let (mut client, mut server) = world.pair(&address);
        for connection in [&mut client, &mut server] {
            connection.set_nodelay(true).unwrap();
            connection.set_nodelay(false).unwrap();
            connection
                .set_keepalive(Some(Duration::from_secs(300)))
                .unwrap();
            connection.set_keepalive(None).unwrap();
            let short = connection.set_keepalive(Some(Duration::from_secs(1)));
            assert_eq!(short.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
}
