//! Goal: commands and replies are read as Redis reads them, whatever pieces they come in, and written so that they read
//! back. Method: corpora cut at every place, random ones from seeds, limits met and passed by one, and a redis-server that
//! gets the same bytes.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod replies;
mod requests;
mod server;
