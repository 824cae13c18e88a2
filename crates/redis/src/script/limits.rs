//! Bounds of the Lua state.

/// Most memory of the Lua state, whatever the budget is; a script that needs more ends with an error.
pub(crate) const MEMORY_BYTES_MAX: usize = 256 << 20;
/// With this part of it in use the cached scripts of EVAL are dropped.
pub(crate) const MEMORY_SHARE_HIGH: usize = 2;
/// A state of up to so many bytes is tidied before its memory is told, which takes a millisecond.
pub(crate) const SMALL_STATE_BYTES: usize = 1 << 20;
/// Instructions between looks at the time.
pub(crate) const TICK_INSTRUCTIONS: u32 = 100_000;
/// Tables within tables of a reply.
pub(crate) const REPLY_DEPTH_MAX: usize = 200;
/// How long a library may take to be loaded.
pub(crate) const LOAD_MS_MAX: u64 = 500;
/// Lines that scripts log between two looks at them, and bytes of one; as many bytes as Redis writes.
pub(crate) const LOG_LINES_MAX: usize = 1_000;
pub(crate) const LOG_LINE_BYTES_MAX: usize = 1_024;
