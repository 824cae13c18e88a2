//! Goal: backups in a store of objects are those of a directory: whole or not there whatever request fails, none taken
//! for another's, nothing sent twice. Method: a store in memory that fails, loses the answer to, or never sees any request
//! after a chosen one; the same for two writers, and for objects that are missing, short or others'.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod faulty;
#[cfg(test)]
mod files;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod support;
