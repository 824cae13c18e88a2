//! A check of the registers and of the estimate, for `PFSELFTEST`.

use drumlin_base::rng::Rng;

use super::dense;
use super::estimate::REGISTERS;
use super::sketch::Sketch;
use crate::failure::{Failure, Outcome};

/// Elements that are added. Redis adds ten million, and answers nobody else meanwhile.
const ELEMENTS: u64 = 100_000;
/// Bound of the error, in standard errors.
const ERRORS_MAX: f64 = 6.0;

/// Writes and reads registers, and adds elements to a sparse and a dense HyperLogLog, which must agree and be near to the
/// truth.
///
/// # Errors
/// A difference.
pub fn self_test(random: &mut Rng, sparse_bytes_max: usize) -> Outcome<()> {
    registers(random)?;
    let mut sketch = Sketch::new();
    let mut other = Sketch::new();
    other.make_dense()?;
    let seed = random.next_u64();
    let mut check_at = 1;
    for added in 1..=ELEMENTS {
        let element = (added ^ seed).to_le_bytes();
        sketch.add(&element, sparse_bytes_max)?;
        other.add(&element, sparse_bytes_max)?;
        if added != check_at {
            continue;
        }
        check_at *= 10;
        let (one, other) = (sketch.cardinality()?, other.cardinality()?);
        if one != other {
            return Err(Failure::refused("ERR TESTFAILED dense/sparse disagree"));
        }
        let standard = 1.04 / (REGISTERS as f64).sqrt();
        let allowed = (standard * ERRORS_MAX * added as f64).ceil() as u64;
        let error = one.abs_diff(added);
        if error > allowed {
            return Err(Failure::because(format!(
                "ERR TESTFAILED Too big error. card:{added} abserr:{error}"
            )));
        }
    }
    Ok(())
}

fn registers(random: &mut Rng) -> Outcome<()> {
    let mut registers = vec![0; dense::BYTES];
    let values: Vec<_> = (0..REGISTERS)
        .map(|_| random.next_u64() as u8 & dense::MAX)
        .collect();
    for (index, value) in values.iter().enumerate() {
        dense::set(&mut registers, index, *value);
    }
    for (index, value) in values.iter().enumerate() {
        let read = dense::get(&registers, index);
        if read != *value {
            return Err(Failure::because(format!(
                "ERR TESTFAILED Register {index} should be {value} but is {read}"
            )));
        }
    }
    Ok(())
}
