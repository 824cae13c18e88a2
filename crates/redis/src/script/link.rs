//! The link between the functions of Lua and the script that runs.
//!
//! The functions live as long as the Lua state, and the script borrows the server. So a function leaves its request here
//! and calls the one function that lives as long as the script.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drumlin_resp::{OwnedArgs, Protocol};
use mlua::{Function, Lua, Result, Value};
use parking_lot::Mutex;

use super::flags::ScriptFlags;
use super::lua_error::Ending;
use super::random::Random;

/// Where the function of the script is kept while it runs.
pub(crate) const STEP: &str = "drumlin.step";

/// What a function asks of the script that runs.
#[derive(Debug)]
pub(crate) enum Request {
    /// Run a command; its reply, or the error table that it is.
    Call(OwnedArgs),
    /// Whether the user may run this command; nil if there is none.
    MayCall(OwnedArgs),
    SetProtocol(Protocol),
    /// Some time has passed.
    Tick,
}

/// A function that a library registers.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: ScriptFlags,
    pub(crate) call: Function,
}

/// What the functions of Lua and the server share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) request: Option<Request>,
    pub(crate) random: Random,
    /// The functions of the library that is loaded now.
    pub(crate) loading: Option<Vec<Registered>>,
    /// When loading it takes too long, by the monotonic clock.
    pub(crate) load_until: Option<Duration>,
    /// What scripts have logged, with their levels, and how many lines more.
    pub(crate) said: Vec<(usize, String)>,
    pub(crate) unsaid: u64,
    /// Where the script was when it was ended.
    pub(crate) ended_at: Option<(String, i64)>,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Link {
    pub(crate) shared: Arc<Mutex<Shared>>,
    pub(crate) ending: Ending,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

impl Link {
    /// Whether a script runs.
    pub(crate) fn runs(&self, lua: &Lua) -> Result<bool> {
        Ok(lua
            .named_registry_value::<Option<Function>>(STEP)?
            .is_some())
    }

    /// The answer of the script that runs, and whether it is an error; `None` if there is no script.
    pub(crate) fn ask(&self, lua: &Lua, request: Request) -> Result<Option<(bool, Value)>> {
        let Some(step) = lua.named_registry_value::<Option<Function>>(STEP)? else {
            return Ok(None);
        };
        self.shared.lock().request = Some(request);
        step.call(()).map(Some)
    }
}
