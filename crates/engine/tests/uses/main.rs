//! The engine's features as programs use them, a file for each. One program, as each would link all of the engine; tests
//! that want a process of their own are beside this folder.

#[cfg(test)]
mod backups;
#[cfg(test)]
mod blobs;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod checkpoints;
#[cfg(test)]
mod compact_files;
#[cfg(test)]
mod compaction_filters;
#[cfg(test)]
mod counting;
#[cfg(test)]
mod dead_spans;
#[cfg(test)]
mod direct_io;
#[cfg(test)]
mod due;
#[cfg(test)]
mod events;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod families;
#[cfg(test)]
mod family_copies;
#[cfg(test)]
mod family_handles;
#[cfg(test)]
mod handles;
#[cfg(test)]
mod history;
#[cfg(test)]
mod indexed_batch;
#[cfg(test)]
mod leftovers;
#[cfg(test)]
mod links;
#[cfg(test)]
mod moment_files;
#[cfg(test)]
mod optimistic;
#[cfg(test)]
mod options_kept;
#[cfg(test)]
mod prefix_walk;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod read_compaction;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod repaired;
#[cfg(test)]
mod set_options;
#[cfg(test)]
mod sizes_and_removal;
#[cfg(test)]
mod styles;
#[cfg(test)]
mod timestamps;
#[cfg(test)]
mod transaction_ranges;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod ttl;
#[cfg(test)]
mod two_phase;
#[cfg(test)]
mod version_set;
#[cfg(test)]
mod views;
#[cfg(test)]
mod wal_dir;
