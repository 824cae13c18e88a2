//! Bounds of values, from the configuration.

use drumlin_redis_store::types::stream::NodeLimits;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Longest string, `proto-max-bulk-len`.
    pub(crate) string_bytes_max: usize,
    /// Longest sparse HyperLogLog, `hll-sparse-max-bytes`.
    pub(crate) hll_sparse_bytes_max: usize,
    /// Nodes of streams, `stream-node-max-entries` and `stream-node-max-bytes`.
    pub(crate) stream_nodes: NodeLimits,
}
