//! A task that reads, at once and later, at moments it keeps.

use drumlin::{ColumnFamily, DbIterator};
use drumlin_base::rng::Rng;

use super::Round;
use super::look::{Moment, walk};
use crate::model::difference;

/// An iterator over the default family, and how many batches it shows once that is known.
struct Held {
    iter: DbIterator,
    moment: Moment,
}

/// A reader's life.
pub(super) fn live(round: &Round, _index: u64, mut rng: Rng) {
    let mut kept: Vec<Moment> = Vec::new();
    let mut held: Vec<Held> = Vec::new();
    for _ in 0..round.setup.ops {
        if round.is_over() {
            return;
        }
        match rng.below(10) {
            0..=3 => {
                if let Some(moment) = round.moment() {
                    look_somewhere(round, &moment, &mut rng);
                    if kept.len() < 3 && rng.one_in(2) {
                        kept.push(moment);
                    }
                }
            }
            4..=5 if !kept.is_empty() => {
                let index = rng.below(kept.len() as u64) as usize;
                look_somewhere(round, &kept[index], &mut rng);
                if rng.one_in(2) {
                    kept.swap_remove(index);
                }
            }
            6 if held.len() < 2 => held.extend(hold(round)),
            7 if !held.is_empty() => look_again(round, &mut held.swap_remove(0), &mut rng),
            8 => round.look_now("a reader"),
            _ => round.nap(&mut rng),
        }
    }
    for mut held in held {
        look_again(round, &mut held, &mut rng);
    }
}

fn look_somewhere(round: &Round, moment: &Moment, rng: &mut Rng) {
    let families: Vec<ColumnFamily> = round.db.families();
    let family = &families[rng.below(families.len() as u64) as usize];
    round.look(moment, family, rng);
}

/// An iterator as of a moment.
fn hold(round: &Round) -> Option<Held> {
    let moment = round.moment()?;
    let log = round.allow("get of the log", moment.read_log(&round.db))?;
    assert_eq!(log.len(), moment.len, "a moment reads its log anew");
    let iter = moment.iter(round.db.default_family());
    Some(Held { iter, moment })
}

fn look_again(round: &Round, held: &mut Held, rng: &mut Rng) {
    let id = round.db.default_family().id();
    let want = round.history.lock().rows(held.moment.len, id);
    let found = walk(&mut held.iter, rng.one_in(2));
    if let Some(found) = round.allow("walk", found)
        && let Some(how) = difference(&found, &want)
    {
        panic!("a held iterator, after {} batches: {how}", held.moment.len);
    }
}
