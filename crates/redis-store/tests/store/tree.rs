//! Goal: a counted tree is the sequence that a `Vec` is. Method: random operations against one, with nodes so small that
//! every way of splitting and merging is taken at several levels, entries of all sizes, commands that are taken back, and
//! commits in between: with few nodes kept over them, and with none.

use drumlin_base::coding::Reader;
use drumlin_redis_store::tree::{Limit, Separator, Shape, Tree};
use drumlin_redis_store::{Collection, Direction, Failure, Keyspace, Outcome, Overlay, sub_rest};

use crate::world::World;

/// A part of the nodes of a tree that has grown.
const KEPT_BYTES: usize = 16 << 10;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Mostly short, some long, few distinct first bytes.
    fn entry(&mut self) -> Vec<u8> {
        let len = match self.below(20) {
            0 => 0,
            1 => 40 + self.below(40),
            2..8 => 16 + self.below(8),
            _ => 1 + self.below(6),
        };
        (0..len).map(|_| b'a' + self.below(3) as u8).collect()
    }
}

fn tiny(separator: Option<Separator>) -> Shape {
    Shape {
        leaf: Limit {
            items: 6,
            bytes: 96,
        },
        inner: Limit {
            items: 6,
            bytes: 120,
        },
        inline_bytes_max: 24,
        separator,
    }
}

/// The shortest start of `right` that is above `left`.
fn shortest(left: &[u8], right: &[u8]) -> Vec<u8> {
    let shared = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    right[..right.len().min(shared + 1)].to_vec()
}

struct Twin {
    of: Collection,
    shape: Shape,
    tree: Tree,
    model: Vec<Vec<u8>>,
    random: Random,
    tallest: u8,
    moved: u32,
    found: u32,
}

impl Twin {
    fn new(world: &mut World, shape: Shape, seed: u64) -> Self {
        let of = world.ok(|keyspace| keyspace.new_collection(b"key"));
        Self {
            of,
            shape,
            tree: Tree::new(of, shape),
            model: Vec::new(),
            random: Random(seed),
            tallest: 0,
            moved: 0,
            found: 0,
        }
    }

    /// The handle is stored and read between any two commands.
    fn store_handle(&mut self) {
        let mut bytes = Vec::new();
        self.tree.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        self.tree = Tree::decode(self.of, self.shape, &mut reader).expect("a handle");
        assert!(reader.is_empty());
        assert_eq!(self.tree.len(), self.model.len() as u64);
        self.tallest = self.tallest.max(self.tree.height());
    }

    fn remove_some(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        let len = self.model.len();
        let from = self.random.below(len + 1);
        let most = match self.random.below(40) {
            0 => len,
            1..4 => 60,
            _ => 2,
        };
        let until = len.min(from + self.random.below(most + 1));
        self.model.drain(from..until);
        self.tree.remove(keyspace, from as u64..until as u64)
    }

    /// Moves an entry by a little, if it stays in its leaf.
    fn move_one(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        let from = self.random.below(self.model.len());
        let old = self.model[from].clone();
        let mut new = old.clone();
        if let Some(last) = new.last_mut() {
            *last = b'a' + self.random.below(3) as u8;
        }
        let to = self.model.partition_point(|it| *it < new);
        if self.model.get(to) == Some(&new) && new != old {
            return Ok(());
        }
        let moved = self.tree.move_in_leaf(
            keyspace,
            |it| it.cmp(old.as_slice()),
            &new,
            |it| it < new.as_slice(),
        )?;
        self.moved += u32::from(moved);
        if moved {
            self.model.remove(from);
            self.model.insert(to - usize::from(to > from), new);
        }
        Ok(())
    }

    /// Removes an entry that is found by its order, if its leaf stays.
    fn remove_found(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        let at = self.random.below(self.model.len());
        let entry = self.model[at].clone();
        let removed = self
            .tree
            .remove_found(keyspace, |it| it.cmp(entry.as_slice()))?;
        if removed {
            self.model.remove(at);
            self.found += 1;
        }
        let missing = [&entry[..], b"!"].concat();
        let found = self
            .tree
            .remove_found(keyspace, |it| it.cmp(missing.as_slice()))?;
        assert!(!found, "{missing:?} was no entry");
        Ok(())
    }

    fn look(&mut self, keyspace: &Keyspace<'_>) -> Outcome<()> {
        let rank = self.random.below(self.model.len() + 2);
        let found = self.tree.get(keyspace, rank as u64)?;
        assert_eq!(found.as_ref(), self.model.get(rank));
        let direction = match self.random.below(2) {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let mut walk = self.tree.walk(keyspace, rank as u64, direction);
        let mut at = Some(rank);
        for _ in 0..self.random.below(30) {
            let wanted = at.and_then(|at| self.model.get(at));
            assert_eq!(walk.next()?, wanted.map(Vec::as_slice));
            at = match direction {
                Direction::Forward => at.map(|at| at + 1),
                Direction::Backward => at
                    .filter(|at| *at < self.model.len())
                    .and_then(|at| at.checked_sub(1)),
            };
        }
        Ok(())
    }

    fn compare_whole(&self, keyspace: &Keyspace<'_>) -> Outcome<()> {
        let mut walk = self.tree.walk(keyspace, 0, Direction::Forward);
        for entry in &self.model {
            assert_eq!(walk.next()?, Some(entry.as_slice()));
        }
        assert_eq!(walk.next()?, None);
        Ok(())
    }

    fn empty(&mut self, keyspace: &mut Keyspace<'_>) -> Outcome<()> {
        let len = self.model.len() as u64;
        self.model.clear();
        self.tree.remove(keyspace, 0..len)
    }
}

/// Some commands that are taken back together.
fn fail(
    world: &mut World,
    twin: &mut Twin,
    step: &impl Fn(&mut Twin, &mut Keyspace<'_>) -> Outcome<()>,
) {
    let (tree, model) = (twin.tree.clone(), twin.model.clone());
    let outcome = world.run(|keyspace| {
        for _ in 0..=twin.random.below(5) {
            step(twin, keyspace)?;
            twin.look(keyspace)?;
        }
        Err::<(), _>(Failure::WrongType)
    });
    assert!(matches!(outcome, Err(Failure::WrongType)), "{outcome:?}");
    (twin.tree, twin.model) = (tree, model);
}

/// Commits now and then, and compares everything; at the end nothing is left under the collection.
fn run(seed: u64, ordered: bool, step: impl Fn(&mut Twin, &mut Keyspace<'_>) -> Outcome<()>) {
    let mut world = World::new();
    let mut twin = Twin::new(&mut world, tiny(ordered.then_some(shortest)), seed);
    world.overlay.bound_nodes(KEPT_BYTES);
    for round in 0..50_000 {
        if twin.random.below(20) == 0 {
            fail(&mut world, &mut twin, &step);
        }
        world.ok(|keyspace| {
            step(&mut twin, keyspace)?;
            twin.store_handle();
            if round % 1_000 == 0 {
                twin.compare_whole(keyspace)?;
            }
            twin.look(keyspace)
        });
        match twin.random.below(400) {
            0 | 1 => world.commit(),
            2 => {
                world.commit();
                world.overlay = Overlay::new();
                world.overlay.bound_nodes(KEPT_BYTES);
            }
            3..40 => world.overlay.keep(),
            _ => {}
        }
    }
    assert!(
        twin.tallest >= 4,
        "the tree grew to {} levels",
        twin.tallest
    );
    assert!(!ordered || twin.moved > 1_000, "{} moved", twin.moved);
    assert!(!ordered || twin.found > 1_000, "{} found", twin.found);
    world.ok(|keyspace| twin.empty(keyspace));
    world.commit();
    assert_eq!(world.entries("sub"), 0, "nodes and long entries are gone");
}

#[test]
fn a_list_is_a_vector() {
    run(1, false, |twin, keyspace| {
        let len = twin.model.len();
        let entry = twin.random.entry();
        match twin.random.below(12) {
            0..3 => {
                let rank = twin.random.below(len + 1);
                twin.model.insert(rank, entry.clone());
                twin.tree.insert_at(keyspace, rank as u64, &entry)
            }
            3..5 => {
                twin.model.push(entry.clone());
                twin.tree.insert_at(keyspace, len as u64, &entry)
            }
            5..7 => {
                twin.model.insert(0, entry.clone());
                twin.tree.insert_at(keyspace, 0, &entry)
            }
            7 if len > 0 => {
                let rank = twin.random.below(len);
                twin.model[rank].clone_from(&entry);
                twin.tree.replace_at(keyspace, rank as u64, &entry)
            }
            8 if len > 0 => {
                let rank = twin.random.below(2) * (len - 1);
                let taken = twin.tree.take_at(keyspace, rank as u64)?;
                assert_eq!(taken, twin.model.remove(rank));
                Ok(())
            }
            _ => twin.remove_some(keyspace),
        }
    });
}

#[test]
fn an_ordered_tree_finds_its_places() {
    run(2, true, |twin, keyspace| {
        let entry = twin.random.entry();
        let place = twin.model.partition_point(|it| *it < entry);
        let rank = twin.tree.rank(keyspace, |it| it < entry.as_slice())?;
        assert_eq!(rank, place as u64);
        let behind = twin.model.partition_point(|it| *it <= entry);
        let rank = twin.tree.rank(keyspace, |it| it <= entry.as_slice())?;
        assert_eq!(rank, behind as u64);
        if twin.random.below(4) == 0 && !twin.model.is_empty() {
            return twin.move_one(keyspace);
        }
        match twin.random.below(8) {
            0..6 if place == behind => {
                twin.model.insert(place, entry.clone());
                twin.tree
                    .insert(keyspace, &entry, |it| it < entry.as_slice())
            }
            6 if !twin.model.is_empty() => twin.remove_found(keyspace),
            6 | 7 => twin.remove_some(keyspace),
            _ => Ok(()),
        }
    });
}

#[test]
fn a_tree_that_is_built_at_once_is_one_that_grew() {
    for len in [0usize, 1, 6, 7, 500] {
        let mut world = World::new();
        let mut twin = Twin::new(&mut world, tiny(Some(shortest)), 3);
        let mut model: Vec<Vec<u8>> = (0..len).map(|_| twin.random.entry()).collect();
        model.sort();
        model.dedup();
        world.ok(|keyspace| {
            twin.tree = twin.tree.clone().build(keyspace, &model)?;
            twin.model.clone_from(&model);
            twin.compare_whole(keyspace)?;
            for (at, entry) in model.iter().enumerate() {
                let rank = twin.tree.rank(keyspace, |it| it < entry.as_slice())?;
                assert_eq!(rank, at as u64);
            }
            twin.empty(keyspace)
        });
        world.commit();
        assert_eq!(world.entries("sub"), 0);
    }
}

#[test]
fn queues_keep_their_nodes_full() {
    let mut world = World::new();
    let place = world.ok(|keyspace| keyspace.new_collection(b"key"));
    let mut tree = Tree::new(place, Shape::BY_RANK);
    for end in [false, true] {
        world.ok(|keyspace| {
            for at in 0..12_800u64 {
                let rank = if end { tree.len() } else { 0 };
                tree.insert_at(keyspace, rank, &at.to_be_bytes())?;
            }
            Ok(())
        });
    }
    world.commit();
    assert!(
        world.entries("sub") <= 410,
        "{} nodes",
        world.entries("sub")
    );
    assert_eq!(tree.height(), 3);
    world.ok(|keyspace| {
        while !tree.is_empty() {
            tree.remove_at(keyspace, 0)?;
        }
        Ok(())
    });
    world.commit();
    assert_eq!(world.entries("sub"), 0);
}

/// Goal: damage is an error. Method: every byte of every node is changed, every node cut and removed, and all is read and
/// removed; it fails or it does not, but it ends.
#[test]
fn damaged_nodes_are_refused_or_read_but_never_panic() {
    let mut world = World::new();
    let mut twin = Twin::new(&mut world, tiny(Some(shortest)), 4);
    let mut model: Vec<Vec<u8>> = (0..60).map(|_| twin.random.entry()).collect();
    model.sort();
    model.dedup();
    world.ok(|keyspace| {
        twin.tree = twin.tree.clone().build(keyspace, &model)?;
        Ok(())
    });
    world.commit();
    let of = twin.of;
    let nodes: Vec<(Vec<u8>, Vec<u8>)> = world.ok(|keyspace| {
        let mut walk = keyspace.sub_walk(of, b"n", b"o", Direction::Forward);
        let mut nodes = Vec::new();
        while let Some((key, value)) = walk.next()? {
            nodes.push((sub_rest(key).to_vec(), value.to_vec()));
        }
        Ok(nodes)
    });
    assert!(nodes.len() > 10);
    let mut refused = 0;
    let mut attempt = |damage: &dyn Fn(&mut Keyspace<'_>)| {
        let tree = &twin.tree;
        let outcome = world.run(|keyspace| {
            damage(keyspace);
            let mut walk = tree.walk(keyspace, 0, Direction::Forward);
            while walk.next()?.is_some() {}
            tree.rank(keyspace, |it| it < b"bb".as_slice())?;
            let mut tree = tree.clone();
            tree.insert(keyspace, b"bbb", |it| it < b"bbb".as_slice())?;
            tree.remove(keyspace, 3..30)?;
            Err::<(), _>(Failure::WrongType)
        });
        let wrong = matches!(outcome, Err(Failure::WrongType));
        refused += usize::from(!wrong);
    };
    for (key, value) in &nodes {
        attempt(&|keyspace| keyspace.sub_delete(of, key));
        for at in 0..value.len() {
            attempt(&|keyspace| keyspace.sub_put(of, key, value[..at].to_vec()));
            for bit in [0x01, 0x02, 0x80] {
                let mut changed = value.clone();
                changed[at] ^= bit;
                attempt(&|keyspace| keyspace.sub_put(of, key, changed.clone()));
            }
        }
    }
    assert!(
        refused > nodes.len() * 10,
        "{refused} of {} nodes",
        nodes.len()
    );
}

/// Goal: damaged nodes end a command with an error, and never the process. Method: each node of a tree of four levels with
/// bytes changed, cut or added, and every operation on it.
#[test]
fn damaged_nodes_are_errors() {
    let mut world = World::new();
    for separator in [None, Some(shortest as Separator)] {
        let mut twin = Twin::new(&mut world, tiny(separator), 7);
        let mut model: Vec<Vec<u8>> = (0..400).map(|_| twin.random.entry()).collect();
        model.sort();
        model.dedup();
        twin.tree = world.ok(|keyspace| twin.tree.clone().build(keyspace, &model));
        world.commit();
        let mut errors = 0;
        for round in 0..4_000 {
            let rest = [&b"n"[..], &(1 + round % 90u32).to_be_bytes()].concat();
            let outcome: Outcome<()> = world.run(|keyspace| {
                let Some(page) = keyspace.sub_get(twin.of, &rest)? else {
                    return Ok(());
                };
                let mut page = page.to_vec();
                let at = twin.random.below(page.len());
                match twin.random.below(4) {
                    0 => page.truncate(at),
                    1 => page.push(twin.random.next() as u8),
                    _ => page[at] = twin.random.next() as u8,
                }
                keyspace.sub_put(twin.of, &rest, page);
                let mut tree = twin.tree.clone();
                let rank = twin.random.below(model.len()) as u64;
                let entry = twin.random.entry();
                match round / 90 % 6 {
                    0 => drop(tree.get(keyspace, rank)?),
                    1 => drop(tree.rank(keyspace, |it| it < entry.as_slice())?),
                    2 => tree.remove(keyspace, rank / 2..rank)?,
                    3 => tree.insert(keyspace, &entry, |it| it < entry.as_slice())?,
                    4 => tree.insert_at(keyspace, rank, &entry)?,
                    _ => tree.remove(keyspace, 0..tree.len())?,
                }
                let mut walk = tree.walk(keyspace, 0, Direction::Forward);
                while walk.next()?.is_some() {}
                Err(Failure::refused("the damage is taken back"))
            });
            match outcome {
                Err(Failure::Engine(_)) => errors += 1,
                Err(Failure::Refused(_)) | Ok(()) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert!(errors > 1_000, "{errors} were seen");
    }
}
