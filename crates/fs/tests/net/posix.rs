//! Properties that only the system has: modes of paths, stale sockets, limits of descriptors, forks.

use core::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use drumlin_base::ErrorKind;
use drumlin_fs::net::{
    Acceptor, Address, Events, Interest, ListenOptions, NetErrorKind, Network, PosixNetwork, Token,
};
use drumlin_fs::process::in_forked_child;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

use crate::world::{LONG, World, memory, one_event, tcp};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path)
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

fn with_mode(unix_mode: u32) -> ListenOptions {
    ListenOptions {
        unix_mode,
        ..ListenOptions::default()
    }
}

#[test]
fn a_unix_path_gets_its_mode_whatever_the_mask_is() {
    let world = World::posix();
    let address = Address::Unix(world.path());
    for wanted in [0o600, 0o700, 0o660, 0o777, 0o000] {
        // The mask belongs to all threads, so a process of its own sets it.
        let child = in_forked_child(|| {
            umask(rustix::fs::Mode::from_raw_mode(0o077));
            let listener = world.network.listen(&address, with_mode(wanted)).unwrap();
            let fits = mode(&world.path()) == wanted;
            drop(listener);
            u8::from(!fits || world.path().exists())
        });
        assert_eq!(child.unwrap(), 0, "{wanted:o}");
    }
    let memory = memory(1);
    let _listener = memory.listen(&address, with_mode(0o620)).unwrap();
    assert_eq!(memory.unix_mode(&world.path()), Some(0o620));
}

#[test]
fn who_may_not_write_to_the_path_may_not_connect() {
    let world = World::posix();
    let address = Address::Unix(world.path());
    let dir = world.path().parent().unwrap().to_owned();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let _listener = world.network.listen(&address, with_mode(0o600)).unwrap();
    if !rustix::process::geteuid().is_root() {
        return; // Only root can become somebody else.
    }
    let child = in_forked_child(|| {
        // SAFETY: it takes a number, and the child has no other thread that could disagree.
        assert_eq!(unsafe { libc::setuid(65_534) }, 0);
        let error = PosixNetwork::new().connect(&address).unwrap_err();
        u8::from(NetErrorKind::of(&error) != NetErrorKind::PermissionDenied)
    });
    assert_eq!(child.unwrap(), 0);
}

#[test]
fn a_stale_socket_is_replaced_and_no_other_file_is() {
    let world = World::posix();
    let address = Address::Unix(world.path());
    // A killed process leaves such a path.
    drop(std::os::unix::net::UnixListener::bind(world.path()).unwrap());
    assert!(world.path().exists());
    let first = world.listen(&address);
    // It is removed by its owner only: the second's is not the first's.
    std::fs::remove_file(world.path()).unwrap();
    let second = world.listen(&address);
    drop(first);
    assert!(world.path().exists());
    drop(second);
    assert!(!world.path().exists());
    std::fs::write(world.path(), "precious").unwrap();
    let refused = world.network.listen(&address, ListenOptions::default());
    let kind = NetErrorKind::of(&refused.unwrap_err());
    assert_eq!(kind, NetErrorKind::AddressInUse);
    assert_eq!(std::fs::read(world.path()).unwrap(), b"precious");
}

#[test]
fn paths_that_cannot_be_are_refused() {
    let world = World::posix();
    let long = world.path().join("x".repeat(200));
    let missing = world.path().join("no/such/dir");
    for (path, wanted) in [
        (long, NetErrorKind::Other),
        (missing, NetErrorKind::NotFound),
        ("".into(), NetErrorKind::Other),
    ] {
        let outcome = world
            .network
            .listen(&Address::Unix(path), ListenOptions::default());
        assert_eq!(NetErrorKind::of(&outcome.unwrap_err()), wanted);
    }
}

/// Has no more descriptors than are open now. For a process of its own.
fn no_more_descriptors() {
    let open = std::fs::File::open("/dev/null").unwrap();
    let next = std::os::fd::AsRawFd::as_raw_fd(&open);
    let limit = getrlimit(Resource::Nofile);
    let current = Some(u64::try_from(next).unwrap());
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}

#[test]
fn without_descriptors_accepting_pauses_and_goes_on_when_there_are_some() {
    let child = in_forked_child(|| {
        let world = World::posix();
        let mut poller = world.network.poller().unwrap();
        let listener = world.listen(&tcp());
        let at = listener.local_address().clone();
        let mut acceptor = Acceptor::new(listener, &*poller, Token(1)).unwrap();
        let mut client = world.network.connect(&at).unwrap();
        let limit = getrlimit(Resource::Nofile);
        no_more_descriptors();
        let more = world.network.connect(&at).unwrap_err();
        assert_eq!(NetErrorKind::of(&more), NetErrorKind::OutOfResources);
        let now = Duration::from_secs(1);
        assert!(one_event(&mut *poller).is_some());
        assert!(acceptor.accept(&*poller, now).unwrap().is_none());
        assert_eq!(acceptor.pauses(), 1);
        let mut events = Events::with_capacity(4);
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(events.is_empty());
        setrlimit(Resource::Nofile, limit).unwrap();
        let then = now + acceptor.wait_at_most(now).unwrap();
        acceptor.resume(&*poller, then).unwrap();
        assert!(one_event(&mut *poller).is_some());
        let server = acceptor.accept(&*poller, then).unwrap();
        world.finish(&mut *client).unwrap();
        u8::from(server.is_none())
    });
    assert_eq!(child.unwrap(), 0);
}

#[test]
fn a_forked_child_has_no_part_in_its_parents_sockets() {
    let world = World::posix();
    let address = Address::Unix(world.path());
    let mut listener = world.listen(&address);
    let mut client = world.network.connect(&address).unwrap();
    let mut server = world.accept(&mut *listener);
    let mut poller = world.network.poller().unwrap();
    poller.register(&*server, Token(1), Interest::Read).unwrap();
    world.write(&mut *client, b"for the parent");
    let path = world.path();
    let child = in_forked_child(|| {
        let refused = |outcome: Option<ErrorKind>| outcome == Some(ErrorKind::InvalidArgument);
        let mut events = Events::with_capacity(1);
        let outcomes = [
            listener.accept().err(),
            server.read(&mut [0; 99]).err(),
            poller.wait(&mut events, None).err(),
            poller.waker().wake().err(),
        ];
        let all = outcomes
            .into_iter()
            .all(|error| refused(error.map(|error| error.kind())));
        drop(listener);
        u8::from(!all || !path.exists())
    });
    assert_eq!(child.unwrap(), 0);
    assert!(one_event(&mut *poller).is_some());
    assert_eq!(world.read(&mut *server, 14), b"for the parent");
}

#[test]
fn bytes_of_many_connections_pass_through_few_threads() {
    // As a server has them: one poller, connections that speak when they like.
    let world = World::posix();
    let mut pairs: Vec<_> = (0..300_u64).map(|_| world.pair(&tcp())).collect();
    let mut poller = world.network.poller().unwrap();
    for (token, (_, server)) in (0..).zip(&pairs) {
        poller
            .register(&**server, Token(token), Interest::Read)
            .unwrap();
    }
    for (client, _) in &mut pairs {
        world.write(&mut **client, b"hi");
    }
    let mut events = Events::with_capacity(1000);
    let mut heard = 0;
    while heard < 300 {
        poller.wait(&mut events, Some(LONG)).unwrap();
        assert!(!events.is_empty());
        for event in events.iter() {
            let (_, server) = &mut pairs[event.token.0 as usize];
            assert_eq!(world.read(&mut **server, 2), b"hi");
            heard += 1;
        }
    }
}

#[test]
fn names_have_addresses_where_names_are_known() {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let system = PosixNetwork::new();
    assert!(
        system
            .resolve("localhost")
            .unwrap()
            .iter()
            .all(IpAddr::is_loopback)
    );
    assert!(system.resolve("bad..name").is_err());
    let in_memory = memory(1);
    for network in [&system as &dyn Network, &in_memory] {
        assert_eq!(network.resolve("127.0.0.1").unwrap(), [loopback]);
    }
    let error = in_memory.resolve("localhost").unwrap_err().to_string();
    assert!(error.contains("\"localhost\" is not found"), "{error}");
}
