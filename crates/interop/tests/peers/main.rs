//! Directories to and fro between us, RocksDB and LevelDB, a file for each matter. One program, as each would link all three.

#[cfg(test)]
mod backups;
#[cfg(test)]
mod blobs;
#[cfg(test)]
mod blobs_written;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod family_copies;
#[cfg(test)]
mod followers;
#[cfg(test)]
mod hash_index;
#[cfg(test)]
mod history;
#[cfg(test)]
mod leveldb;
#[cfg(test)]
mod options;
#[cfg(test)]
mod ours_to_theirs;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod searchable;
#[cfg(test)]
mod styles;
#[cfg(test)]
mod theirs_special;
#[cfg(test)]
mod theirs_to_ours;
#[cfg(test)]
mod two_phase;
