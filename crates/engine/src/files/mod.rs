//! The directory: names, room on the disk, files that go and files written in their place.

pub(crate) mod disk_watch;
pub(crate) mod held_files;
pub mod names;
pub(crate) mod reuse;
pub(crate) mod space;
pub(crate) mod trash;
