//! Scripts: the Lua state, what it offers to them, and how one is run.
//!
//! ```text
//! run -> busy -> running -> loading -> scripts -> api, json, msgpack, layout, bits -> link -> lua_error
//! ```

pub(crate) mod api;
mod bits;
mod busy;
pub(crate) mod dump;
pub(crate) mod flags;
mod json;
mod json_decode;
mod layout;
pub(crate) mod library;
mod limits;
mod link;
mod loading;
mod lua_error;
mod msgpack;
mod random;
pub(crate) mod reply;
pub(crate) mod run;
mod running;
pub(crate) mod scripts;
