//! shell: commands on one open store, typed or from standard input.
//!
//! [`words`] cuts a line as shells do, [`line`](mod@line) carries one out, [`editor`] has the completion and the history, and
//! [`run`] is the loop.

mod editor;
mod line;
mod run;
mod words;

pub(crate) use run::{ShellTask, shell};
