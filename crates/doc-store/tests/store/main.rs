//! Goal: collections are what their documents say: every query finds what the filter alone finds, indexes and counts are true, and
//! so they are after a power cut or a failing disk. Method: random operations beside a naive model in memory.

#[path = "../../../doc/tests/doc/json.rs"]
mod json;

mod builds;
mod capped;
mod crash;
mod model;
mod operations;
mod places;
mod plans;
mod world;
