//! LCS: the longest common subsequence of two strings.

use drumlin_redis_store::{Failure, Kind, Outcome, Record};

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, TWO_KEYS};

pub(crate) const COMMANDS: &[Command] = &[Command::new("lcs", -3, Flags::READONLY, TWO_KEYS, lcs)];

const NO_STRINGS: Failure = Failure::refused("ERR The specified keys must contain string values");
const LEN_AND_IDX: Failure =
    Failure::refused("ERR If you want both the length and indexes, please just use IDX.");
const TOO_LONG: Failure = Failure::refused(
    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
);

#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// `IDX`
    ranges: bool,
    /// `LEN`
    only_len: bool,
    /// `WITHMATCHLEN`
    with_lens: bool,
    /// `MINMATCHLEN`
    least: u64,
}

fn options(call: &Call<'_, '_>) -> Outcome<Options> {
    let mut options = Options::default();
    let mut at = 3;
    while at < call.len() {
        match () {
            () if call.is(at, "idx") => options.ranges = true,
            () if call.is(at, "len") => options.only_len = true,
            () if call.is(at, "withmatchlen") => options.with_lens = true,
            () if call.is(at, "minmatchlen") && at + 1 < call.len() => {
                at += 1;
                options.least = u64::try_from(call.integer(at)?).unwrap_or(0);
            }
            () => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn lcs(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = [
        call.keys.lookup(call.arg(1))?,
        call.keys.lookup(call.arg(2))?,
    ];
    if found.iter().flatten().any(|it| it.kind() != Kind::String) {
        return Err(NO_STRINGS);
    }
    let [one, other] = &found;
    let one = one.as_ref().map_or(&[][..], Record::payload);
    let other = other.as_ref().map_or(&[][..], Record::payload);
    let options = options(call)?;
    if options.only_len && options.ranges {
        return Err(LEN_AND_IDX);
    }
    let cells = (one.len() as u64 + 1).saturating_mul(other.len() as u64 + 1);
    if cells.saturating_mul(4) > call.limits.string_bytes_max as u64 {
        return Err(TOO_LONG);
    }
    let lens = Lens::new(one, other);
    let len = i64::from(lens.of(one.len(), other.len()));
    if options.only_len {
        call.reply.integer(len);
        return Ok(());
    }
    let matches = lens.matches(one, other);
    if !options.ranges {
        let bytes: Vec<_> = matches
            .iter()
            .rev()
            .flat_map(|it| one.get(it.at..it.at + it.len).unwrap_or(&[]))
            .copied()
            .collect();
        call.reply.bulk(&bytes);
        return Ok(());
    }
    let told: Vec<_> = matches
        .iter()
        .filter(|it| it.len as u64 >= options.least)
        .collect();
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(told.len());
    for it in told {
        call.reply.array(2 + usize::from(options.with_lens));
        for start in [it.at, it.other_at] {
            call.reply.array(2);
            call.reply.integer(start as i64);
            call.reply.integer((start + it.len - 1) as i64);
        }
        if options.with_lens {
            call.reply.integer(it.len as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.integer(len);
    Ok(())
}

/// Bytes that both strings have, from these places on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    at: usize,
    other_at: usize,
    len: usize,
}

/// The lengths of the longest common subsequences of all pairs of beginnings.
struct Lens {
    cells: Vec<u32>,
    /// Cells of a row: one for each beginning of the second string.
    width: usize,
}

impl Lens {
    fn new(one: &[u8], other: &[u8]) -> Self {
        let width = other.len() + 1;
        let mut cells = vec![0; width];
        cells.reserve_exact(width * one.len());
        let mut above = vec![0; width];
        for byte in one {
            // The cell to the left, and the one above that.
            let (mut left, mut corner) = (0, 0);
            cells.push(0);
            for (above, with) in above.iter_mut().skip(1).zip(other) {
                let cell = match byte == with {
                    true => corner + 1,
                    false => left.max(*above),
                };
                cells.push(cell);
                (left, corner) = (cell, *above);
                *above = cell;
            }
        }
        Self { cells, width }
    }

    /// The length for the beginnings of so many bytes.
    fn of(&self, one: usize, other: usize) -> u32 {
        let cell = self.cells.get(one * self.width + other);
        cell.copied().unwrap_or(0)
    }

    /// A longest common subsequence, the last piece first. Of several it is Redis's: where both ways are as good, the second
    /// string is shortened.
    fn matches(&self, one: &[u8], other: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        let (mut at, mut other_at) = (one.len(), other.len());
        let mut goes_on = false;
        while at > 0 && other_at > 0 {
            if one.get(at - 1) == other.get(other_at - 1) {
                (at, other_at) = (at - 1, other_at - 1);
                match matches.last_mut() {
                    Some(last) if goes_on => {
                        *last = Match {
                            at,
                            other_at,
                            len: last.len + 1,
                        };
                    }
                    _ => matches.push(Match {
                        at,
                        other_at,
                        len: 1,
                    }),
                }
                goes_on = true;
            } else {
                goes_on = false;
                match self.of(at - 1, other_at) > self.of(at, other_at - 1) {
                    true => at -= 1,
                    false => other_at -= 1,
                }
            }
        }
        matches
    }
}
