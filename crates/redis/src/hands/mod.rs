//! Threads that help the loop with clients that only read: `io-threads` less the loop itself.
//!
//! The loop lends the connection of such a client to a hand, which reads, runs and answers plain reads at the newest moment of the
//! store, without the loop. At the first command of another kind the connection comes home with all bytes that were not run. Before
//! anything that looks at other clients or at what was counted, the loop calls all connections home, and waits for them: no hand
//! waits for anything but its sockets, and it holds no lock while it reads or writes one.
//!
//! ```text
//! lend -> crew -> post -> lent, tally
//! start -> crew
//! start -> hand -> quick -> post
//! ```

pub(crate) mod crew;
mod hand;
pub(crate) mod lend;
mod lent;
mod post;
mod quick;
pub(crate) mod start;
mod tally;
