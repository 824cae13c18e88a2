//! Waits for keys.

use std::time::Duration;

use drumlin_resp::OwnedArgs;

/// What becomes of a call that wrote no reply: it waits for one of its keys.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The keys, any of which may let it go on. The whole command is run again then.
    pub(crate) keys: Vec<Vec<u8>>,
    /// How long; `None` for ever.
    pub(crate) timeout: Option<Duration>,
    /// The reply once the time is over.
    pub(crate) on_timeout: TimeoutReply,
    /// The arguments that it is run again with, where they are others than those that came.
    pub(crate) args: Option<OwnedArgs>,
}

/// The reply of a wait that ended without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutReply {
    /// A null array.
    NullArray,
    /// A null.
    Null,
    /// How many replicas have run the stream up to an offset; `acked` when the wait began.
    Replicas { offset: u64, acked: u64 },
}
