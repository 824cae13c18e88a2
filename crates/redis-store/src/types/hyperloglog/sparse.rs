//! Runs of equal registers in few bytes.

/// Bytes before the registers.
pub(super) const HEADER_BYTES: usize = 16;
/// The highest value that a run can have.
const VALUE_MAX: u8 = 32;
/// Longest run of a value that is not 0.
const VALUE_LEN_MAX: usize = 4;
/// Longest run of zeros in one byte.
const ZEROS_LEN_MAX: usize = 64;
/// Merging looks at so many runs.
const MERGED_MAX: usize = 5;

/// Registers that have the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) value: u8,
    pub(super) len: usize,
    /// Its bytes.
    pub(super) width: usize,
}

/// The run at `at`. A second byte that is missing is 0: so Redis sees it.
pub(super) fn run_at(bytes: &[u8], at: usize) -> Option<Run> {
    let first = *bytes.get(at)?;
    let low = usize::from(first & 0x3f);
    Some(match first >> 6 {
        0 => Run {
            value: 0,
            len: low + 1,
            width: 1,
        },
        1 => {
            let second = bytes.get(at + 1).copied().unwrap_or(0);
            Run {
                value: 0,
                len: (low << 8 | usize::from(second)) + 1,
                width: 2,
            }
        }
        _ => Run {
            value: (first >> 2 & 0x1f) + 1,
            len: usize::from(first & 3) + 1,
            width: 1,
        },
    })
}

/// All runs of a sparse HyperLogLog.
pub(super) fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = HEADER_BYTES;
    std::iter::from_fn(move || {
        let run = run_at(bytes, at)?;
        at += run.width;
        Some(run)
    })
}

/// Appends a run of a value of up to 32.
pub(super) fn put_run(out: &mut Vec<u8>, value: u8, len: usize) {
    let Some(last) = len.checked_sub(1) else {
        return;
    };
    match value.checked_sub(1) {
        Some(value) => out.push(0x80 | value << 2 | last as u8),
        None if len <= ZEROS_LEN_MAX => out.push(last as u8),
        None => out.extend_from_slice(&[0x40 | (last >> 8) as u8, last as u8]),
    }
}

/// The outcome of raising a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// It has that value or a higher one.
    No,
    Yes,
    /// The sparse form cannot hold it, or not in so many bytes.
    Outgrown,
    Damaged,
}

/// Gives the register `index` a value if that is higher than its own. The string is not to be longer than `bytes_max` for it.
pub(super) fn raise(bytes: &mut Vec<u8>, index: usize, value: u8, bytes_max: usize) -> Raised {
    if value > VALUE_MAX {
        return Raised::Outgrown;
    }
    let (mut at, mut first, mut before) = (HEADER_BYTES, 0, None);
    let run = loop {
        let Some(run) = run_at(bytes, at) else {
            return Raised::Damaged;
        };
        if index < first + run.len {
            break run;
        }
        before = Some(at);
        at += run.width;
        first += run.len;
    };
    if at + run.width > bytes.len() {
        return Raised::Damaged;
    }
    if run.value >= value {
        return Raised::No;
    }
    let mut parts = Vec::with_capacity(5);
    put_run(&mut parts, run.value, index - first);
    put_run(&mut parts, value, 1);
    put_run(&mut parts, run.value, first + run.len - 1 - index);
    let grows = parts.len() > run.width;
    if grows && bytes.len() + parts.len() - run.width > bytes_max {
        return Raised::Outgrown;
    }
    bytes.splice(at..at + run.width, parts);
    merge(bytes, before.unwrap_or(HEADER_BYTES));
    Raised::Yes
}

/// Makes one run of neighbours with the same value where they fit into one, from `at` on. Redis does no more than that, and
/// the bytes have to be its own.
fn merge(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGED_MAX {
        let Some(run) = run_at(bytes, at) else {
            return;
        };
        let next = run_at(bytes, at + 1).filter(|next| next.value == run.value);
        match next {
            Some(next) if run.value > 0 && run.len + next.len <= VALUE_LEN_MAX => {
                let mut merged = Vec::with_capacity(1);
                put_run(&mut merged, run.value, run.len + next.len);
                bytes.splice(at..at + 2, merged);
            }
            _ => at += run.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back() {
        for (value, len) in [
            (0, 1),
            (0, 64),
            (0, 65),
            (0, 16_384),
            (1, 1),
            (32, 4),
            (7, 3),
        ] {
            let mut bytes = vec![0; HEADER_BYTES];
            put_run(&mut bytes, value, len);
            let run = run_at(&bytes, HEADER_BYTES).expect("a run");
            assert_eq!((run.value, run.len), (value, len));
            assert_eq!(run.width, bytes.len() - HEADER_BYTES);
        }
    }

    #[test]
    fn a_register_splits_a_run_and_neighbours_are_merged() {
        let mut bytes = vec![0; HEADER_BYTES];
        put_run(&mut bytes, 0, 16_384);
        let told = |bytes: &[u8]| -> Vec<_> { runs(bytes).map(|it| (it.value, it.len)).collect() };
        assert_eq!(raise(&mut bytes, 100, 3, 3_000), Raised::Yes);
        assert_eq!(told(&bytes), [(0, 100), (3, 1), (0, 16_283)]);
        assert_eq!(raise(&mut bytes, 101, 3, 3_000), Raised::Yes);
        assert_eq!(told(&bytes), [(0, 100), (3, 2), (0, 16_282)]);
        assert_eq!(raise(&mut bytes, 100, 2, 3_000), Raised::No);
        assert_eq!(raise(&mut bytes, 5, 33, 3_000), Raised::Outgrown);
        assert_eq!(raise(&mut bytes, 9_000, 1, 20), Raised::Outgrown);
        bytes.truncate(HEADER_BYTES + 3);
        assert_eq!(raise(&mut bytes, 9_000, 1, 3_000), Raised::Damaged);
    }
}
