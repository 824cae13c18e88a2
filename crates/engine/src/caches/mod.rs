//! Open files and the parts of them kept in memory, all charged to one budget.
//!
//! The budget covers memtables, cached blocks, indexes and filters of open tables, and job buffers. The block cache
//! gets what the others leave. Blocks are in a slab of huge pages (`drumlin_base::bytes`), which is charged with the
//! chunks it has mapped, holes included; on the allocator's heap, freed blocks of many sizes left holes that nobody
//! was charged with (128 MiB of budget held up to 222 MiB). When others charge the budget, chunks are emptied and
//! unmapped at once by the charging thread; those in which readers hold a value go when they are released. Tables are
//! closed, the longest open first and with a second chance, when their indexes take more than their share;
//! compactions read ahead less of each run the more runs they merge.

pub(crate) mod blob_cache;
pub(crate) mod models;
pub(crate) mod table_cache;
