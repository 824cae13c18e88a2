//! Goal: the bytes sent arrive, in order, and all of them unless the connection broke. Method: random schedules of
//! reads and writes of random sizes, on calm networks and on those with faults, by seed.

use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::net::{
    Address, Connection, MemNetwork, NetErrorKind, NetFault, NetOp, NetRule, Received, Sent,
};
use std::io::IoSlice;
use std::sync::Arc;

use crate::world::{World, memory, tcp};

/// One direction, as both of its sides know it.
#[derive(Default)]
struct Direction {
    sent: Vec<u8>,
    heard: Vec<u8>,
    wrote_end: bool,
    heard_end: bool,
    broken: bool,
}

impl Direction {
    fn write(&mut self, from: &mut dyn Connection, rng: &mut Rng) {
        if self.wrote_end || self.broken {
            return;
        }
        if rng.one_in(200) {
            self.wrote_end = from.shutdown_write().is_ok();
            return;
        }
        let max = [3, 100, 5000, 100_000][rng.below(4) as usize];
        let mut bytes = vec![0; rng.below(max) as usize];
        rng.fill(&mut bytes);
        let slices: Vec<_> = bytes
            .chunks(1 + rng.below(3000) as usize)
            .map(IoSlice::new)
            .collect();
        match from.write_vectored(&slices) {
            Ok(Sent::Bytes(count)) => self.sent.extend_from_slice(&bytes[..count]),
            Ok(Sent::NotNow) => {}
            Err(error) => self.break_off(&error),
        }
    }

    fn read(&mut self, to: &mut dyn Connection, rng: &mut Rng) {
        if self.heard_end || self.broken {
            return;
        }
        let max = [3, 100, 5000, 100_000][rng.below(4) as usize];
        let mut buffer = vec![0; 1 + rng.below(max) as usize];
        match to.read(&mut buffer) {
            Ok(Received::Bytes(count)) => self.heard.extend_from_slice(&buffer[..count]),
            Ok(Received::End) => self.heard_end = true,
            Ok(Received::NotNow) => {}
            Err(error) => self.break_off(&error),
        }
    }

    fn break_off(&mut self, error: &drumlin_base::Error) {
        assert_eq!(NetErrorKind::of(error), NetErrorKind::Disconnected);
        self.broken = true;
    }

    fn check(&self, seed: u64) {
        assert!(self.sent.starts_with(&self.heard), "seed {seed}");
    }
}

/// Lets both sides speak as drawn; both directions, and whether the connection broke.
fn talk(world: &World, address: &Address, seed: u64) -> ([Direction; 2], bool) {
    let mut rng = Rng::new(seed);
    let (mut client, mut server) = world.pair(address);
    let (mut there, mut back) = (Direction::default(), Direction::default());
    for _ in 0..400 {
        match rng.below(4) {
            0 => there.write(&mut *client, &mut rng),
            1 => there.read(&mut *server, &mut rng),
            2 => back.write(&mut *server, &mut rng),
            _ => back.read(&mut *client, &mut rng),
        }
        there.check(seed);
        back.check(seed);
    }
    let broken = there.broken || back.broken;
    if !broken {
        // The rest, and the end.
        let _ = client.shutdown_write();
        let _ = server.shutdown_write();
        let mut spent = 0;
        let is_over = |direction: &Direction| direction.heard_end || direction.broken;
        while !is_over(&there) || !is_over(&back) {
            there.read(&mut *server, &mut rng);
            back.read(&mut *client, &mut rng);
            spent += 1;
            assert!(spent < 5_000_000, "seed {seed}: it does not end");
        }
    }
    let broken = there.broken || back.broken;
    ([there, back], broken)
}

#[test]
fn every_byte_arrives_in_order() {
    for seed in 0..60 {
        let network = memory(seed);
        network.set_capacity(1 + Rng::new(seed).below(100_000) as usize);
        let ([there, back], broken) = talk(&World::of(Arc::new(network)), &tcp(), seed);
        assert!(!broken, "seed {seed}");
        assert!(
            there.sent == there.heard && back.sent == back.heard,
            "seed {seed}"
        );
    }
}

#[test]
fn the_systems_sockets_do_the_same() {
    let world = World::posix();
    for seed in 0..20 {
        for address in world.addresses() {
            let ([there, back], broken) = talk(&world, &address, seed);
            assert!(!broken, "seed {seed}");
            assert!(
                there.sent == there.heard && back.sent == back.heard,
                "seed {seed}"
            );
        }
    }
}

fn add_small_faults(network: &MemNetwork, seed: u64) {
    for (op, fault) in [
        (NetOp::Read, NetFault::Short),
        (NetOp::Write, NetFault::Short),
        (NetOp::Read, NetFault::NotNow),
        (NetOp::Write, NetFault::NotNow),
    ] {
        network.add_rule(NetRule::one_in(3, seed, fault).on(op));
    }
    let slow = NetFault::Slow {
        least: Duration::ZERO,
        most: Duration::from_micros(100),
    };
    network.add_rule(NetRule::one_in(2, seed, slow).on(NetOp::Write).seeded(seed));
}

#[test]
fn short_slow_and_refused_transfers_lose_nothing() {
    for seed in 0..60 {
        let network = memory(seed);
        add_small_faults(&network, seed);
        let world = World::of(Arc::new(network.clone()));
        let ([there, back], broken) = talk(&world, &tcp(), seed);
        assert!(!broken && network.injected() > 20, "seed {seed}");
        assert!(
            there.sent == there.heard && back.sent == back.heard,
            "seed {seed}"
        );
    }
}

#[test]
fn a_reset_loses_the_tail_and_nothing_else() {
    let (mut resets, mut lost) = (0, 0);
    for seed in 0..100 {
        let network = memory(seed);
        add_small_faults(&network, seed);
        let index = Rng::new(seed).below(200);
        network.add_rule(
            NetRule::once(index, NetFault::Reset)
                .on(NetOp::Read)
                .on(NetOp::Write),
        );
        let (directions, broken) = talk(&World::of(Arc::new(network)), &tcp(), seed);
        resets += u32::from(broken);
        let is_short = |direction: &Direction| direction.heard.len() < direction.sent.len();
        lost += u32::from(directions.iter().any(is_short));
    }
    assert!(
        resets > 50 && lost > 20,
        "{resets} resets, {lost} lost bytes"
    );
}
