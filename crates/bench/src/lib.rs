//! (filled in by its first commit)
