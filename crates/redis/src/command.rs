//! A command: its facts and the function that carries it out.

use drumlin_redis_store::Outcome;

use crate::call::Call;
use crate::facts::Facts;
pub(crate) use crate::facts::{ALL_KEYS, Flags, KeyPositions, NO_KEYS, ONE_KEY, TWO_KEYS};

/// Carries a command out. Replies are written to the call; an error is the only reply, and leaves no change.
pub(crate) type Handler = fn(&mut Call<'_, '_>) -> Outcome<()>;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) facts: Facts,
    pub(crate) handler: Handler,
}

impl Command {
    /// A command called `name`, in lower case.
    pub(crate) const fn new(
        name: &'static str,
        arity: i32,
        flags: Flags,
        keys: KeyPositions,
        handler: Handler,
    ) -> Self {
        let facts = Facts {
            name,
            arity,
            flags,
            keys,
            index: 0,
        };
        Self { facts, handler }
    }
}
