//! Deliberate bugs, to show that the tests find them.
//!
//! Places where a bug would be easy to make call [`seeded`] through [`crate::bug!`]. In a usual build that is a
//! constant `false` and compiles to nothing. With the feature `seeded-bugs` it is true if the environment
//! variable `DRUMLIN_BUG` names the place; such a build announces itself and is only for testing tests.
//! `crates/sim/src/seeded.rs` has the catalogue.

/// Whether the bug `name` is switched on.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub const fn seeded(name: &str) -> bool {
    let _ = name;
    false
}

/// Whether the bug `name` is switched on.
#[cfg(feature = "seeded-bugs")]
pub fn seeded(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("DRUMLIN_BUG").unwrap_or_default()) == name
}

/// Whether the deliberate bug of this name is switched on: `false` in every usual build.
#[macro_export]
macro_rules! bug {
    ($name:literal) => {
        $crate::bugs::seeded($name)
    };
}
