//! An outcome as one HTML page that needs no network, as JSON, and as a table for terminals.

mod page;
mod terminal;

pub use page::html;
pub use terminal::table;

#[cfg(test)]
pub(crate) use terminal::tests::outcome as sample;

use crate::outcome::Outcome;

/// `outcome` as JSON.
pub fn json(outcome: &Outcome) -> String {
    serde_json::to_string_pretty(outcome).expect("an outcome is plain data with text keys")
}
