//! The target that must fail: if a run of it reports nothing, no run of any target means anything.

/// Panics on inputs that begin with `tweet`, one bit at most away from its only seed.
pub(crate) fn run(data: &[u8]) {
    assert!(!data.starts_with(b"tweet"), "the canary sings");
}
