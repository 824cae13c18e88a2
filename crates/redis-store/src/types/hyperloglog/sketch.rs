//! One HyperLogLog: its bytes, in either form.

use std::borrow::Cow;

use super::dense;
use super::estimate::{Histogram, REGISTERS, cardinality, register_of};
use super::sparse::{self, HEADER_BYTES, Raised};
use crate::failure::{Failure, Outcome};

/// Bytes of a dense one.
const DENSE_BYTES: usize = HEADER_BYTES + dense::BYTES;
const MAGIC: &[u8] = b"HYLL";
/// Where the form is told.
const FORM_AT: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The bytes of the cardinality, and the bit of the last one that says that it is out of date.
const CARDINALITY: std::ops::Range<usize> = 8..HEADER_BYTES;
const OUT_OF_DATE: u8 = 1 << 7;

/// The error of a string that is no HyperLogLog.
const NONE: Failure = Failure::refused("WRONGTYPE Key is not a valid HyperLogLog string value.");

/// The error of bytes that begin as a HyperLogLog and are none.
const CORRUPT: Failure = Failure::refused("INVALIDOBJ Corrupted HLL object detected");

/// The value of each register.
pub(super) type Registers = Vec<u8>;

/// See the module. Bytes that are lent are copied when they are changed.
#[derive(Clone, Debug)]
pub(super) struct Sketch<'b> {
    bytes: Cow<'b, [u8]>,
}

impl Sketch<'_> {
    /// One without elements, sparse.
    pub(super) fn new() -> Self {
        let mut bytes = [MAGIC, &[SPARSE], &[0; HEADER_BYTES - FORM_AT - 1]].concat();
        sparse::put_run(&mut bytes, 0, REGISTERS);
        Self {
            bytes: Cow::Owned(bytes),
        }
    }
}

impl<'b> Sketch<'b> {
    /// That in `bytes`. Its registers are looked at later.
    pub(super) fn of(bytes: &'b [u8]) -> Outcome<Self> {
        let form = bytes.get(FORM_AT).copied();
        let is_one = bytes.starts_with(MAGIC)
            && match form {
                Some(DENSE) => bytes.len() == DENSE_BYTES,
                Some(SPARSE) => bytes.len() >= HEADER_BYTES,
                _ => false,
            };
        let bytes = Cow::Borrowed(bytes);
        is_one.then_some(Self { bytes }).ok_or(NONE)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_dense(&self) -> bool {
        self.bytes.get(FORM_AT) == Some(&DENSE)
    }

    fn dense_registers(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or(&[])
    }

    // The cardinality that it keeps.

    /// The cardinality, if it is up to date.
    pub(super) fn kept_cardinality(&self) -> Option<u64> {
        let kept = self.bytes.get(CARDINALITY)?.first_chunk::<8>()?;
        let is_out_of_date = kept.last().is_some_and(|last| last & OUT_OF_DATE != 0);
        (!is_out_of_date).then_some(u64::from_le_bytes(*kept))
    }

    pub(super) fn keep_cardinality(&mut self, cardinality: u64) {
        if let Some(kept) = self.bytes.to_mut().get_mut(CARDINALITY) {
            kept.copy_from_slice(&cardinality.to_le_bytes());
        }
    }

    /// Notes that registers have changed.
    pub(super) fn forget_cardinality(&mut self) {
        if drumlin_base::bug!("redis-cardinality-outlives-a-change") {
            return;
        }
        if let Some(last) = self.bytes.to_mut().get_mut(CARDINALITY.end - 1) {
            *last |= OUT_OF_DATE;
        }
    }

    // Registers.

    /// Adds an element; whether a register changed.
    pub(super) fn add(&mut self, element: &[u8], sparse_bytes_max: usize) -> Outcome<bool> {
        let (index, value) = register_of(element);
        self.raise(index, value, sparse_bytes_max)
    }

    /// Gives the register `index` a value if that is higher than its own; whether it is.
    pub(super) fn raise(
        &mut self,
        index: usize,
        value: u8,
        sparse_bytes_max: usize,
    ) -> Outcome<bool> {
        if !self.is_dense() {
            match sparse::raise(self.bytes.to_mut(), index, value, sparse_bytes_max) {
                Raised::No => return Ok(false),
                Raised::Yes => {
                    self.forget_cardinality();
                    return Ok(true);
                }
                Raised::Damaged => return Err(CORRUPT),
                Raised::Outgrown => self.make_dense()?,
            }
        }
        if dense::get(self.dense_registers(), index) >= value {
            return Ok(false);
        }
        let registers = self.bytes.to_mut().get_mut(HEADER_BYTES..);
        dense::set(registers.unwrap_or_default(), index, value);
        Ok(true)
    }

    /// Makes a sparse one dense. The cardinality stays.
    pub(super) fn make_dense(&mut self) -> Outcome<()> {
        if self.is_dense() {
            return Ok(());
        }
        let mut registers = vec![0; REGISTERS];
        self.raise_each(&mut registers)?;
        let mut bytes = self.bytes.get(..HEADER_BYTES).unwrap_or(&[]).to_vec();
        if let Some(form) = bytes.get_mut(FORM_AT) {
            *form = DENSE;
        }
        bytes.resize(DENSE_BYTES, 0);
        let place = bytes.get_mut(HEADER_BYTES..).unwrap_or_default();
        for (index, value) in registers.iter().enumerate() {
            dense::set(place, index, *value);
        }
        self.bytes = Cow::Owned(bytes);
        Ok(())
    }

    /// Raises each of `registers` to this one's.
    pub(super) fn raise_each(&self, registers: &mut Registers) -> Outcome<()> {
        if self.is_dense() {
            for (index, register) in registers.iter_mut().enumerate() {
                *register = dense::get(self.dense_registers(), index).max(*register);
            }
            return Ok(());
        }
        let mut next = 0;
        for run in sparse::runs(&self.bytes) {
            let end = next + run.len;
            for register in registers.get_mut(next..end).ok_or(CORRUPT)? {
                *register = run.value.max(*register);
            }
            next = end;
        }
        match next == REGISTERS {
            true => Ok(()),
            false => Err(CORRUPT),
        }
    }

    /// The cardinality that the registers make.
    pub(super) fn cardinality(&self) -> Outcome<u64> {
        let mut histogram: Histogram = [0; 64];
        let mut count = |value: u8, len: usize| {
            if let Some(place) = histogram.get_mut(usize::from(value)) {
                *place = place.saturating_add(len as u32);
            }
        };
        if self.is_dense() {
            let registers = self.dense_registers();
            (0..REGISTERS).for_each(|index| count(dense::get(registers, index), 1));
        } else {
            let mut registers = 0usize;
            for run in sparse::runs(&self.bytes) {
                count(run.value, run.len);
                registers += run.len;
            }
            if registers != REGISTERS {
                return Err(CORRUPT);
            }
        }
        Ok(cardinality(&histogram))
    }
}

/// The cardinality that registers make.
pub(super) fn cardinality_of(registers: &Registers) -> u64 {
    let mut histogram: Histogram = [0; 64];
    for value in registers {
        if let Some(place) = histogram.get_mut(usize::from(*value)) {
            *place += 1;
        }
    }
    cardinality(&histogram)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    const SPARSE_BYTES_MAX: usize = 3_000;

    /// Goal: both forms have the same registers and count the same. Method: the same elements in a sparse one that becomes
    /// dense by itself, in one that was dense from the beginning, and in plain registers.
    #[test]
    fn both_forms_agree() {
        let mut sketch = Sketch::new();
        let mut dense = Sketch::new();
        dense.make_dense().expect("whole");
        let mut model = vec![0u8; REGISTERS];
        let mut rng = Rng::new(1);
        for added in 1..=20_000u32 {
            let element = rng.next_u64().to_le_bytes();
            let (index, value) = register_of(&element);
            let rises = model[index] < value;
            model[index] = value.max(model[index]);
            assert_eq!(
                sketch.add(&element, SPARSE_BYTES_MAX).expect("whole"),
                rises
            );
            assert_eq!(dense.add(&element, SPARSE_BYTES_MAX).expect("whole"), rises);
            if added.is_power_of_two() || added == 20_000 {
                for sketch in [&sketch, &dense] {
                    let mut registers = vec![0; REGISTERS];
                    sketch.raise_each(&mut registers).expect("whole");
                    assert_eq!(registers, model);
                    let counted = sketch.cardinality().expect("whole");
                    assert_eq!(counted, cardinality_of(&model));
                    assert!(counted.abs_diff(u64::from(added)) <= u64::from(added / 20 + 1));
                }
            }
        }
        assert!(
            sketch.is_dense() && sketch.bytes()[HEADER_BYTES..] == dense.bytes()[HEADER_BYTES..]
        );
    }

    #[test]
    fn a_change_leaves_no_cardinality() {
        let mut sketch = Sketch::new();
        assert_eq!(sketch.kept_cardinality(), Some(0));
        sketch.keep_cardinality(1_234_567);
        assert_eq!(sketch.kept_cardinality(), Some(1_234_567));
        assert!(sketch.add(b"a", SPARSE_BYTES_MAX).expect("whole"));
        assert_eq!(sketch.kept_cardinality(), None);
    }

    /// Goal: no bytes end the process, and none that are told to be whole are not. Method: random bytes behind a header, and
    /// whole ones with bytes changed, cut and added; all that can be done with them.
    #[test]
    fn hostile_bytes_are_refused_or_read() {
        let mut rng = Rng::new(7);
        let mut whole = Sketch::new();
        for number in 0..300u32 {
            whole
                .add(&number.to_le_bytes(), SPARSE_BYTES_MAX)
                .expect("whole");
        }
        let mut refused = 0;
        for round in 0..20_000 {
            let mut bytes = match round % 3 {
                0 => {
                    let mut bytes = vec![0; HEADER_BYTES + rng.below(600) as usize];
                    rng.fill(&mut bytes);
                    bytes[..4].copy_from_slice(MAGIC);
                    bytes[FORM_AT] = SPARSE;
                    bytes
                }
                _ => whole.bytes().to_vec(),
            };
            for _ in 0..rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] = rng.next_u64() as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            let Ok(sketch) = Sketch::of(&bytes) else {
                refused += 1;
                continue;
            };
            let mut registers = vec![0; REGISTERS];
            let is_whole = sketch.raise_each(&mut registers).is_ok();
            assert!(registers.iter().all(|value| *value <= dense::MAX));
            refused += usize::from(sketch.cardinality().is_err());
            let mut changed = sketch.clone();
            for number in 0..20u64 {
                let element = (number ^ rng.next_u64()).to_le_bytes();
                let limit = rng.below(1_000) as usize;
                if changed.add(&element, limit).is_err() {
                    refused += 1;
                    break;
                }
                changed.forget_cardinality();
            }
            let mut dense = sketch.clone();
            assert_eq!(dense.make_dense().is_ok(), is_whole);
        }
        assert!(refused > 10_000, "{refused}");
    }

    #[test]
    fn strings_that_are_none_are_told_so() {
        for bytes in [
            &b""[..],
            b"HYLL",
            b"HYLL\x01\0\0\0\0\0\0\0\0\0\0",
            b"HYLX\x01\0\0\0\0\0\0\0\0\0\0\0",
            b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0",
            b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            assert!(Sketch::of(bytes).is_err(), "{bytes:?}");
        }
        assert!(Sketch::of(Sketch::new().bytes()).is_ok());
    }
}
