//! Bounds of the protocol, as `hello` tells them.

/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Most writes of one command.
pub(crate) const WRITES_MAX: usize = 100_000;
/// Most bytes of documents in one batch of a cursor.
pub(crate) const BATCH_BYTES_MAX: usize = 16 << 20;
/// Documents of a first batch, where the client does not say.
pub(crate) const FIRST_BATCH: u64 = 101;
/// Most bytes that a sort, a group or the result of a pipeline may have in memory.
pub(crate) const STAGE_BYTES_MAX: usize = 100 << 20;
/// Most cursors that are open, and how long one may be idle.
pub(crate) const CURSORS_MAX: usize = 10_000;
pub(crate) const CURSOR_IDLE_SECONDS: u64 = 600;
/// Most stages of a pipeline.
pub(crate) const STAGES_MAX: usize = 1000;
/// Longest that a greeting waits for news, in milliseconds.
pub(crate) const PAUSE_MS_MAX: u64 = 600_000;
/// The newest version of the protocol: MongoDB 7.0's.
pub(crate) const WIRE_VERSION: i32 = 21;
