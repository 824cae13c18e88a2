//! Deliberate bugs, to show that the tests see them.
//!
//! Places where a bug would be easy to make ask [`seeded`] by [`crate::bug!`]. In a usual build the
//! answer is a constant `false` and the place vanishes. With the feature `seeded-bugs` it is whether
//! the environment variable `DRUMLIN_BUG` names the place; such a build prints what it is and is
//! good for nothing but tests of tests. `crates/sim/src/bugs` has the catalogue.

/// Whether the bug called `name` is to be made.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub const fn seeded(name: &str) -> bool {
    let _ = name;
    false
}

/// Whether the bug called `name` is to be made.
#[cfg(feature = "seeded-bugs")]
pub fn seeded(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("DRUMLIN_BUG").unwrap_or_default()) == name
}

/// Whether the deliberate bug of this name is to be made here: `false` in every usual build.
#[macro_export]
macro_rules! bug {
    ($name:literal) => {
        $crate::bugs::seeded($name)
    };
}
