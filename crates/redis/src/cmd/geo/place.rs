//! GEOADD, and what is known of single members.

use drumlin_redis_store::types::geo;
use drumlin_redis_store::types::zset::{self, AddOptions};
use drumlin_redis_store::{Kind, Outcome};

use super::args::{point, reply_distance, reply_point, unit_m};
use crate::call::{Call, SYNTAX};

pub(super) fn geoadd(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mut options, mut counts_changes) = (AddOptions::default(), false);
    let mut at = 2;
    while at < call.len() {
        match () {
            () if call.is(at, "nx") => options.only_new = true,
            () if call.is(at, "xx") => options.only_present = true,
            () if call.is(at, "ch") => counts_changes = true,
            () => break,
        }
        at += 1;
    }
    let rest = call.len() - at;
    if rest == 0 || !rest.is_multiple_of(3) || (options.only_new && options.only_present) {
        return Err(SYNTAX);
    }
    let item = |at| Ok((geo::score_of(point(call, at)?), call.arg(at + 2)));
    let items = (at..call.len()).step_by(3).map(item);
    let items: Vec<_> = items.collect::<Outcome<_>>()?;
    let effects = zset::add(call.keys, call.arg(1), &items, options)?;
    let counted = match counts_changes {
        true => effects.added + effects.updated,
        false => effects.added,
    };
    call.reply
        .integer(i64::try_from(counted).unwrap_or(i64::MAX));
    Ok(())
}

/// The scores of the members that are the arguments from the third on.
fn scores(call: &Call<'_, '_>) -> Outcome<Vec<Option<f64>>> {
    zset::scores(call.keys, call.arg(1), call.args.from(2).iter())
}

pub(super) fn geohash(call: &mut Call<'_, '_>) -> Outcome<()> {
    let scores = scores(call)?;
    call.reply.array(scores.len());
    for score in scores {
        match score {
            Some(score) => call.reply.bulk(&geo::geohash(geo::point_of(score))),
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn geopos(call: &mut Call<'_, '_>) -> Outcome<()> {
    let scores = scores(call)?;
    call.reply.array(scores.len());
    for score in scores {
        match score {
            Some(score) => reply_point(call, geo::point_of(score)),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

pub(super) fn geodist(call: &mut Call<'_, '_>) -> Outcome<()> {
    let unit_m = match call.len() {
        4 => 1.0,
        5 => unit_m(call, 4)?,
        _ => return Err(SYNTAX),
    };
    let key = call.arg(1);
    if call.keys.lookup_as(key, Kind::SortedSet)?.is_none() {
        call.reply.null();
        return Ok(());
    }
    let one = zset::score(call.keys, key, call.arg(2))?;
    let other = zset::score(call.keys, key, call.arg(3))?;
    match one.zip(other) {
        Some((one, other)) => {
            let distance_m = geo::distance_m(geo::point_of(one), geo::point_of(other));
            reply_distance(call, distance_m / unit_m);
        }
        None => call.reply.null(),
    }
    Ok(())
}
