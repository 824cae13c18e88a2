//! Commands of sets.

use drumlin_redis_store::types::set::{self, Combination};
use drumlin_redis_store::{Failure, Kind, Outcome};

use super::elements::{at_least, random, random_count, reply_count, reply_page, scan_arguments};
use crate::call::{Call, SYNTAX};
use crate::command::{ALL_KEYS, Command, Flags, NO_KEYS, ONE_KEY, TWO_KEYS};

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = READ.and(Flags::FAST);
const READ_SOME: Flags = READ.and(Flags::MOVABLE_KEYS);
const FAST_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("sadd", -3, GROW.and(Flags::FAST), ONE_KEY, sadd),
    Command::new("scard", 2, FAST_READ, ONE_KEY, scard),
    Command::new("sdiff", -2, READ, ALL_KEYS, sdiff),
    Command::new("sdiffstore", -3, GROW, ALL_KEYS, sdiffstore),
    Command::new("sinter", -2, READ, ALL_KEYS, sinter),
    Command::new("sintercard", -3, READ_SOME, NO_KEYS, sintercard),
    Command::new("sinterstore", -3, GROW, ALL_KEYS, sinterstore),
    Command::new("sismember", 3, FAST_READ, ONE_KEY, sismember),
    Command::new("smembers", 2, READ, ONE_KEY, sunion),
    Command::new("smismember", -3, FAST_READ, ONE_KEY, smismember),
    Command::new("smove", 4, FAST_WRITE, TWO_KEYS, smove),
    Command::new("spop", -2, FAST_WRITE, ONE_KEY, spop),
    Command::new("srandmember", -2, READ, ONE_KEY, srandmember),
    Command::new("srem", -3, FAST_WRITE, ONE_KEY, srem),
    Command::new("sscan", -3, READ, ONE_KEY, sscan),
    Command::new("sunion", -2, READ, ALL_KEYS, sunion),
    Command::new("sunionstore", -3, GROW, ALL_KEYS, sunionstore),
];

fn sadd(call: &mut Call<'_, '_>) -> Outcome<()> {
    let added = set::add(call.keys, call.arg(1), call.args.from(2).iter())?;
    reply_count(call, added);
    Ok(())
}

fn srem(call: &mut Call<'_, '_>) -> Outcome<()> {
    let removed = set::remove(call.keys, call.arg(1), call.args.from(2).iter())?;
    reply_count(call, removed);
    Ok(())
}

fn sismember(call: &mut Call<'_, '_>) -> Outcome<()> {
    let is_member = set::contains(call.keys, call.arg(1), call.arg(2))?;
    reply_count(call, u64::from(is_member));
    Ok(())
}

fn smismember(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = set::contains_each(call.keys, call.arg(1), call.args.from(2).iter())?;
    call.reply.array(found.len());
    for is_member in found {
        reply_count(call, u64::from(is_member));
    }
    Ok(())
}

fn scard(call: &mut Call<'_, '_>) -> Outcome<()> {
    let len = set::len(call.keys, call.arg(1))?;
    reply_count(call, len);
    Ok(())
}

fn smove(call: &mut Call<'_, '_>) -> Outcome<()> {
    let moved = set::move_member(call.keys, call.arg(1), call.arg(2), call.arg(3))?;
    reply_count(call, u64::from(moved));
    Ok(())
}

fn spop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut rng = random(call);
    let key = call.arg(1);
    match call.len() {
        2 => {
            let members = set::pop(call.keys, key, 1, &mut rng)?;
            tell_popped(call, key, &members);
            match members.first() {
                Some(member) => call.reply.bulk(member),
                None => call.reply.null(),
            }
        }
        3 => {
            let count = at_least(call, 2, 0, "ERR value is out of range, must be positive")?;
            let members = set::pop(call.keys, key, count, &mut rng)?;
            tell_popped(call, key, &members);
            reply_set(call, &members);
        }
        _ => return Err(SYNTAX),
    }
    Ok(())
}

/// Members of a command for replicas.
const TOLD_MAX: usize = 1_024;

/// Tells replicas which members were popped.
fn tell_popped(call: &mut Call<'_, '_>, key: &[u8], members: &[Vec<u8>]) {
    if !call.collects || drumlin_base::bug!("redis-pop-told-as-it-came") {
        return;
    }
    for members in members.chunks(TOLD_MAX) {
        let mut command = vec![b"SREM".as_slice(), key];
        command.extend(members.iter().map(Vec::as_slice));
        call.tell_replicas(&command);
    }
}

fn srandmember(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut rng = random(call);
    let key = call.arg(1);
    let count = match call.len() {
        2 => {
            let member = match set::draw(call.keys, key)? {
                Some(mut drawn) => drawn.next(call.keys, &mut rng)?,
                None => None,
            };
            match member {
                Some((member, _)) => call.reply.bulk(&member),
                None => call.reply.null(),
            }
            return Ok(());
        }
        3 => random_count(call, 2)?,
        _ => return Err(SYNTAX),
    };
    let wanted = count.unsigned_abs();
    if count >= 0 {
        let members = set::sample(call.keys, key, wanted, &mut rng)?;
        call.reply.array(members.len());
        members.iter().for_each(|member| call.reply.bulk(member));
        return Ok(());
    }
    let Some(mut drawn) = set::draw(call.keys, key)? else {
        call.reply.array(0);
        return Ok(());
    };
    call.reply
        .array(usize::try_from(wanted).unwrap_or(usize::MAX));
    for _ in 0..wanted {
        if let Some((member, _)) = drawn.next(call.keys, &mut rng)? {
            call.reply.bulk(&member);
        }
    }
    Ok(())
}

fn sscan(call: &mut Call<'_, '_>) -> Outcome<()> {
    let scan = scan_arguments(call, |call| {
        Ok(call.keys.lookup_as(call.arg(1), Kind::Set)?.is_some())
    })?;
    let (next, mut members) = set::scan(call.keys, call.arg(1), scan.cursor, scan.count)?;
    members.retain(|member| scan.wants(member));
    reply_page(call, next, members.iter().map(Vec::as_slice));
    Ok(())
}

fn reply_set(call: &mut Call<'_, '_>, members: &[Vec<u8>]) {
    call.reply.set(members.len());
    members.iter().for_each(|member| call.reply.bulk(member));
}

fn reply_combined(call: &mut Call<'_, '_>, combination: Combination) -> Outcome<()> {
    let keys: Vec<_> = call.args.from(1).iter().collect();
    let members = set::combine(call.keys, combination, &keys)?;
    reply_set(call, &members);
    Ok(())
}

fn sunion(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_combined(call, Combination::Union)
}

fn sinter(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_combined(call, Combination::Intersection)
}

fn sdiff(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_combined(call, Combination::Difference)
}

fn store_combined(
    call: &mut Call<'_, '_>,
    combination: Combination,
    event: &'static str,
) -> Outcome<()> {
    let keys: Vec<_> = call.args.from(2).iter().collect();
    let members = set::combine(call.keys, combination, &keys)?;
    let stored = set::store(call.keys, call.arg(1), &members, event)?;
    reply_count(call, stored);
    Ok(())
}

fn sunionstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    store_combined(call, Combination::Union, "sunionstore")
}

fn sinterstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    store_combined(call, Combination::Intersection, "sinterstore")
}

fn sdiffstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    store_combined(call, Combination::Difference, "sdiffstore")
}

fn sintercard(call: &mut Call<'_, '_>) -> Outcome<()> {
    let count = at_least(call, 1, 1, "ERR numkeys should be greater than 0")?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > call.len() - 2 {
        return Err(Failure::refused(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    let (mut at, mut most) = (2 + count, 0);
    while at < call.len() {
        if !call.is(at, "limit") || at + 1 == call.len() {
            return Err(SYNTAX);
        }
        most = at_least(call, at + 1, 0, "ERR LIMIT can't be negative")?;
        at += 2;
    }
    let keys: Vec<_> = call.args.from(2).iter().take(count).collect();
    let found = set::intersection_len(call.keys, &keys, most)?;
    reply_count(call, found);
    Ok(())
}
