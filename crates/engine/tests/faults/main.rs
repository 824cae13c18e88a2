//! Durability: random use against a model, power cuts and errors at every operation, flipped
//! bits, threads, and a killed process.

#![expect(
    clippy::disallowed_methods,
    reason = "threads and damaged files here are the test's own, not the engine's"
)]

#[cfg(test)]
mod backups;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod cold_batches;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod copy;
#[cfg(test)]
mod corruption;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod disk_space;
#[cfg(test)]
mod families;
#[cfg(test)]
mod family_copies;
#[cfg(test)]
mod follower;
#[cfg(test)]
mod history;
#[cfg(test)]
mod io_errors;
#[cfg(test)]
mod kill9;
#[cfg(test)]
mod model;
#[cfg(test)]
mod one_thread;
#[cfg(test)]
mod removal;
#[cfg(test)]
mod set_options;
#[cfg(test)]
mod slow_disk;
#[cfg(test)]
mod stalls;
#[cfg(test)]
mod support;

mod two_phase;
#[cfg(test)]
mod writers;
