//! The past that is kept, as the MANIFEST has it: moments. Values: any thread.
//!
//! On disk ([manifest](../../../../docs/format/manifest.md)) they are the body of a tag that other engines skip, and lose when
//! they write a new MANIFEST: what they compact does not keep the past, and the moments are gone with it.

use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::{Error, Result, SEQNO_MAX, SeqNo};

/// History that are kept at most.
pub const MOMENTS_MAX: usize = 1000;

/// A moment that can be read at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastMoment {
    /// When it was, in seconds since 1970.
    pub unix_seconds: u64,
    /// The newest sequence number that was there.
    pub seqno: SeqNo,
}

/// How long the past is kept, and the moments of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// For how many seconds; 0 where nothing is kept.
    pub keep_seconds: u64,
    /// Seconds between two moments.
    pub every_seconds: u64,
    /// Ascending by time and by number, each once.
    pub marked: Vec<PastMoment>,
}

impl History {
    /// Whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.keep_seconds > 0
    }

    /// Reads the body of the tag.
    ///
    /// # Errors
    /// `Corruption`.
    pub(super) fn decode(body: &[u8]) -> Result<Self> {
        let mut from = Reader::new(body);
        let mut number = |what: &str| {
            let cut = || Error::corruption(format!("the moments of history end in the {what}"));
            from.varint64().ok_or_else(cut)
        };
        let mut moments = Self {
            keep_seconds: number("retention")?,
            every_seconds: number("pause")?,
            marked: Vec::new(),
        };
        let count = number("count")?;
        if count > MOMENTS_MAX as u64 {
            let message = format!("{count} moments of history, more than {MOMENTS_MAX}");
            return Err(Error::corruption(message));
        }
        let (mut unix_seconds, mut seqno) = (0_u64, 0_u64);
        for at in 0..count {
            let (later, more) = (number("time")?, number("number")?);
            let next = unix_seconds.checked_add(later).zip(seqno.checked_add(more));
            let is_first = at == 0;
            (unix_seconds, seqno) = next
                .filter(|(_, seqno)| *seqno <= SEQNO_MAX && (is_first || later > 0 && more > 0))
                .ok_or_else(|| Error::corruption("the moments of history do not ascend"))?;
            moments.marked.push(PastMoment {
                unix_seconds,
                seqno,
            });
        }
        match from.is_empty() {
            true => Ok(moments),
            false => Err(Error::corruption("bytes behind the moments of history")),
        }
    }

    /// The body of the tag: retention, pause and count, then of each moment what it has more than the one before, each a
    /// varint64.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(32 + 8 * self.marked.len());
        put_varint64(&mut body, self.keep_seconds);
        put_varint64(&mut body, self.every_seconds);
        put_varint64(&mut body, self.marked.len() as u64);
        let (mut unix_seconds, mut seqno) = (0, 0);
        for moment in &self.marked {
            put_varint64(&mut body, moment.unix_seconds - unix_seconds);
            put_varint64(&mut body, moment.seqno - seqno);
            (unix_seconds, seqno) = (moment.unix_seconds, moment.seqno);
        }
        body
    }

    /// Marks the present as `moment`, unless nothing was written since the last one or its second is not over.
    pub(crate) fn mark(&mut self, moment: PastMoment) {
        let is_later = |last: &PastMoment| {
            moment.unix_seconds > last.unix_seconds && moment.seqno > last.seqno
        };
        if self.marked.last().is_none_or(is_later) {
            self.marked.push(moment);
        }
    }

    /// Lets go of what is older than the retention at the time `now`: the moment that the oldest time within it is read at
    /// stays.
    pub(crate) fn expire(&mut self, now: u64) {
        let from = match drumlin_base::bug!("history-forgets-the-oldest") {
            true => now,
            false => now.saturating_sub(self.keep_seconds),
        };
        let older = self.marked.partition_point(|it| it.unix_seconds <= from);
        let beyond = self.marked.len().saturating_sub(MOMENTS_MAX);
        self.marked.drain(..older.saturating_sub(1).max(beyond));
    }

    /// The moment that the time `unix_seconds` is read at: the newest that is not later.
    pub(crate) fn at(&self, unix_seconds: u64) -> Option<PastMoment> {
        let upto = self
            .marked
            .partition_point(|it| it.unix_seconds <= unix_seconds);
        self.marked.get(upto.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(pairs: &[(u64, u64)]) -> Vec<PastMoment> {
        let moment = |&(unix_seconds, seqno): &(u64, u64)| PastMoment {
            unix_seconds,
            seqno,
        };
        pairs.iter().map(moment).collect()
    }

    fn kept(pairs: &[(u64, u64)]) -> History {
        History {
            keep_seconds: 100,
            every_seconds: 10,
            marked: marked(pairs),
        }
    }

    #[test]
    fn moments_are_read_as_they_were_written_and_nothing_else_is() {
        let moments = kept(&[
            (1_800_000_000, 0),
            (1_800_000_010, 5),
            (1_800_000_300, 1 << 40),
        ]);
        let body = moments.encode();
        assert_eq!(History::decode(&body).expect("sound"), moments);
        for len in 0..body.len() {
            assert!(History::decode(&body[..len]).is_err(), "{len}");
        }
        let more = [&body[..], &[0]].concat();
        assert!(History::decode(&more).is_err());
        // The same time, the same number, one past the last, one too many.
        for body in [&[9, 1, 2, 5, 5, 0, 1][..], &[9, 1, 2, 5, 5, 1, 0]] {
            assert!(History::decode(body).is_err());
        }
        let mut body = vec![9, 1, 1, 5];
        put_varint64(&mut body, SEQNO_MAX + 1);
        assert!(History::decode(&body).is_err());
        let mut body = vec![9, 1];
        put_varint64(&mut body, MOMENTS_MAX as u64 + 1);
        assert!(History::decode(&body).is_err());
    }

    #[test]
    fn every_time_within_the_retention_has_its_moment() {
        let mut moments = kept(&[]);
        assert_eq!(moments.at(u64::MAX), None);
        for (now, seqno) in (1000..1500).step_by(10).zip((1..).step_by(3)) {
            moments.mark(PastMoment {
                unix_seconds: now,
                seqno,
            });
            moments.expire(now);
            for time in now.saturating_sub(100).max(1000)..=now {
                let found = moments.at(time).expect("it is kept");
                assert_eq!(found.unix_seconds, time / 10 * 10);
            }
            assert!(moments.marked.len() <= 12);
        }
        // Nothing written, or a clock that went back: the last one stays the last.
        let before = moments.clone();
        for (unix_seconds, seqno) in [(1490, 900), (2000, 148), (1480, 900)] {
            moments.mark(PastMoment {
                unix_seconds,
                seqno,
            });
        }
        assert_eq!(moments, before);
        moments.expire(1_000_000);
        assert_eq!(moments.marked.len(), 1);
        assert_eq!(moments.at(1489), None);
    }

    #[test]
    fn there_are_never_more_than_the_format_allows() {
        let mut moments = kept(&[]);
        moments.keep_seconds = 1_000_000;
        for second in 1..=1500 {
            moments.mark(PastMoment {
                unix_seconds: second,
                seqno: second,
            });
            moments.expire(second);
        }
        assert_eq!(moments.marked.len(), MOMENTS_MAX);
        assert!(History::decode(&moments.encode()).is_ok());
    }
}
