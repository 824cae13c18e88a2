//! The memory of the server beside the engine's: charged to the one budget, and bounded.

pub(crate) mod bounds;
pub(crate) mod crowd;
pub(crate) mod purse;
pub(crate) mod refusal;
pub(crate) mod tend;
