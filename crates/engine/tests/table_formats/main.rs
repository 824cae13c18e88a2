//! Goal: tables of every format serve a family, beside each other and in place of each other.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;
mod models;
mod plain;
mod prefixes;
mod scopes;

mod searchable;
mod work;
