//! Commands of ranges.

use drumlin_redis_store::types::zset::{self, Page, Selection};
use drumlin_redis_store::{Direction, Failure, Outcome};

use super::args::{members, ranks, reply_count, reply_members, scores};
use crate::call::{Call, SYNTAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// The options of a range, and whether the replies tell scores.
struct Options {
    by: Option<By>,
    direction: Option<Direction>,
    page: Page,
    with_scores: bool,
}

impl Options {
    /// What the name of the command says.
    fn of(by: Option<By>, direction: Option<Direction>) -> Self {
        let page = Page {
            offset: 0,
            count: -1,
        };
        Self {
            by,
            direction,
            page,
            with_scores: false,
        }
    }

    /// The options from argument `at` on.
    fn read(&mut self, call: &Call<'_, '_>, mut at: usize, stores: bool) -> Outcome<()> {
        while at < call.len() {
            if !stores && call.is(at, "withscores") {
                self.with_scores = true;
            } else if call.is(at, "limit") && at + 2 < call.len() {
                self.page.offset = call.integer(at + 1)?;
                self.page.count = call.integer(at + 2)?;
                at += 2;
            } else if self.direction.is_none() && call.is(at, "rev") {
                self.direction = Some(Direction::Backward);
            } else if self.by.is_none() && call.is(at, "bylex") {
                self.by = Some(By::Member);
            } else if self.by.is_none() && call.is(at, "byscore") {
                self.by = Some(By::Score);
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        let by = self.by.unwrap_or(By::Rank);
        if self.page.count != -1 && by == By::Rank {
            return Err(Failure::refused(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if self.with_scores && by == By::Member {
            return Err(Failure::refused(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        Ok(())
    }

    /// The range whose ends are argument `at` and the next: the higher one first where it is walked backward.
    fn selection<'a>(&self, call: &Call<'a, '_>, at: usize) -> Outcome<Selection<'a>> {
        let direction = self.direction.unwrap_or(Direction::Forward);
        let (min, max) = match direction {
            Direction::Forward => (call.arg(at), call.arg(at + 1)),
            Direction::Backward => (call.arg(at + 1), call.arg(at)),
        };
        let (select, page) = match self.by.unwrap_or(By::Rank) {
            By::Rank => (ranks(call, at)?, None),
            By::Score => (scores(min, max)?, Some(self.page)),
            By::Member => (members(min, max)?, Some(self.page)),
        };
        Ok(Selection {
            select,
            direction,
            page,
        })
    }
}

fn reply_range(call: &mut Call<'_, '_>, mut options: Options) -> Outcome<()> {
    options.read(call, 4, false)?;
    let selection = options.selection(call, 2)?;
    let items = zset::range(call.keys, call.arg(1), &selection)?;
    reply_members(call, &items, options.with_scores);
    Ok(())
}

pub(super) fn zrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(call, Options::of(None, None))
}

pub(super) fn zrevrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(call, Options::of(Some(By::Rank), Some(Direction::Backward)))
}

pub(super) fn zrangebyscore(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(call, Options::of(Some(By::Score), Some(Direction::Forward)))
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(
        call,
        Options::of(Some(By::Score), Some(Direction::Backward)),
    )
}

pub(super) fn zrangebylex(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(
        call,
        Options::of(Some(By::Member), Some(Direction::Forward)),
    )
}

pub(super) fn zrevrangebylex(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_range(
        call,
        Options::of(Some(By::Member), Some(Direction::Backward)),
    )
}

pub(super) fn zrangestore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut options = Options::of(None, None);
    options.read(call, 5, true)?;
    let selection = options.selection(call, 3)?;
    let stored = zset::store_range(call.keys, call.arg(1), call.arg(2), &selection)?;
    reply_count(call, stored);
    Ok(())
}
