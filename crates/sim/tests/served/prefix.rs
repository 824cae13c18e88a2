//! What a power cut may leave under `everysec`: all writes up to some moment, transactions whole.
//!
//! Every write has a number of its own and is seen alone: as a key, an element, a member, a field.

use std::collections::BTreeSet;
use std::time::Duration;

/// Longest that an acknowledged write waits for its sync: a second, the look at what is due, and the sync on a slow disk.
const SYNCED_AFTER: Duration = Duration::from_secs(3);

/// The commands of write `number`, and what kind it is.
pub(crate) fn commands(number: u64) -> Vec<Vec<String>> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let set = words(format!("SET s:{number} {number}"));
    let push = words(format!("RPUSH l {number}"));
    let add = words(format!("ZADD z {number} {number}"));
    let field = words(format!("HSET h {number} {number}"));
    match number % 5 {
        0 => vec![set],
        1 => vec![push],
        2 => vec![add],
        3 => vec![field],
        _ => {
            let word = |word: &str| vec![word.to_owned()];
            vec![word("MULTI"), set, push, add, field, word("EXEC")]
        }
    }
}

/// Where write `number` has to be seen: as a key, an element, a member, a field.
fn places(number: u64) -> [bool; 4] {
    std::array::from_fn(|place| number % 5 == place as u64 || number % 5 == 4)
}

/// A write and what is known of it. Moments are places in the order of all beginnings and replies.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) number: u64,
    pub(crate) began: u64,
    /// The moment of the reply, and the time.
    pub(crate) acknowledged: Option<(u64, Duration)>,
}

/// What is there: keys, elements, members, fields.
pub(crate) type Seen = [BTreeSet<u64>; 4];

/// What has to be there, besides all of a prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The time of the power cut; none after an orderly end, which leaves everything.
    pub(crate) cut: Option<Duration>,
    /// The moment of the last SAVE that was answered.
    pub(crate) saved: u64,
}

/// Checks what is there; which of the writes these are.
///
/// # Errors
/// A sentence on what is wrong.
pub(crate) fn check(
    writes: &[Write],
    seen: &Seen,
    demand: Demand,
) -> Result<BTreeSet<u64>, String> {
    let mut there = BTreeSet::new();
    for write in writes {
        let number = write.number;
        let is_seen = |place: usize| seen[place].contains(&number);
        let wanted = places(number);
        let found: [bool; 4] = std::array::from_fn(is_seen);
        if found == wanted {
            there.insert(number);
        } else if found != [false; 4] {
            return Err(format!("write {number} is there in part: {found:?}"));
        }
        let Some((at, time)) = write.acknowledged else {
            continue;
        };
        let must = match demand.cut {
            None => true,
            Some(cut) => at <= demand.saved || time + SYNCED_AFTER < cut,
        };
        if must && !there.contains(&number) {
            return Err(format!("{write:?} is lost, {demand:?}"));
        }
    }
    // The newest beginning of those that are there: who was answered before it is there, too.
    let newest = writes.iter().filter(|it| there.contains(&it.number));
    let newest = newest.max_by_key(|it| it.began);
    let missed = newest.and_then(|newest| {
        let before = |it: &&Write| it.acknowledged.is_some_and(|(at, _)| at < newest.began);
        let mut earlier = writes.iter().filter(before);
        earlier
            .find(|it| !there.contains(&it.number))
            .map(|it| (it, newest))
    });
    match missed {
        None => Ok(there),
        Some((lost, kept)) => Err(format!("{lost:?} is lost, and {kept:?} is there")),
    }
}

#[test]
fn gaps_and_losses_are_seen() {
    let write = |number, began, end: Option<u64>| Write {
        number,
        began,
        acknowledged: end.map(|at| (at, Duration::from_secs(at))),
    };
    let writes = [
        write(0, 0, Some(1)),
        write(5, 2, Some(3)),
        write(10, 2, None),
    ];
    let cut = |seconds| Demand {
        cut: Some(Duration::from_secs(seconds)),
        saved: 0,
    };
    let keys = |keys: &[u64]| {
        let mut seen = Seen::default();
        seen[0] = keys.iter().copied().collect();
        seen
    };
    let found = |keys_there: &[u64], demand| check(&writes, &keys(keys_there), demand);
    found(&[], cut(2)).expect("nothing is a prefix");
    found(&[0], cut(2)).expect("so is one");
    found(&[0, 10], cut(2)).expect("they were written at once");
    found(&[5], cut(2)).expect_err("a gap");
    found(&[0], cut(7)).expect_err("it was written long ago");
    found(&[0], Demand { saved: 3, ..cut(2) }).expect_err("it was saved");
    found(
        &[0],
        Demand {
            cut: None,
            saved: 0,
        },
    )
    .expect_err("it had to be synced at the end");
    let whole = [write(4, 0, Some(1))];
    check(&whole, &keys(&[4]), cut(1)).expect_err("a part of a transaction");
}
