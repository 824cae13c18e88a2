//! Running a target over many inputs and reporting the one that broke it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use drumlin_base::rng::Rng;

use crate::Target;
use crate::mutate::input;

/// An input that made a target panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The target.
    pub target: &'static str,
    /// The origin of the input: a seed's index, or the seed and round of a mutation.
    pub origin: String,
    /// The input itself.
    pub input: Vec<u8>,
    /// The message of the panic.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "fuzz target {} failed on {}: {}",
            self.target, self.origin, self.message
        )?;
        write!(f, "input, {} bytes: ", self.input.len())?;
        self.input
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Runs `target` on each of `seeds`, then on `rounds` inputs made from them by `seed`.
///
/// # Errors
/// The first input that made the target panic.
pub fn drive(
    target: Target,
    seeds: &[Vec<u8>],
    rounds: u64,
    seed: u64,
) -> Result<(), Box<Failure>> {
    for (index, bytes) in seeds.iter().enumerate() {
        attempt(target, bytes, || format!("corpus file {index}"))?;
    }
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        let bytes = input(&mut rng, seeds);
        attempt(target, &bytes, || format!("seed {seed} round {round}"))?;
    }
    Ok(())
}

fn attempt(
    (name, body): Target,
    bytes: &[u8],
    origin: impl FnOnce() -> String,
) -> Result<(), Box<Failure>> {
    // A target shares nothing with the next run, so no run sees the state that a panic leaves
    // behind.
    let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(bytes))) else {
        return Ok(());
    };
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Err(Box::new(Failure {
        target: name,
        origin: origin(),
        input: bytes.to_vec(),
        message: text.unwrap_or_else(|| "a panic without text".to_owned()),
    }))
}
