//! Listeners, connections and waiting for them: the door to sockets.
//!
//! A server takes an `Arc<dyn Network>` beside its [`Env`](crate::Env). The same code then runs on the sockets of the
//! system ([`PosixNetwork`]) and on a network in memory ([`MemNetwork`]), whose faults, delays and order follow from a
//! seed. The network is no part of `Env`, because a store needs none. Nothing here blocks but [`Poller::wait`].
//!
//! # Readiness
//! Both networks keep one contract, and one suite (`tests/net/contract.rs`) tests both.
//!
//! - Readiness is *level-triggered*. A source is ready for reading when a read gives bytes, the end or an error, or an
//!   accept gives a connection or an error; for writing when a write takes bytes or gives an error. As long as a source
//!   is ready, every wait reports it. A loop may therefore stop reading anywhere and loses nothing. A loop that ignores
//!   a direction must give up its interest in it: its waits would return at once.
//! - A wait may report room for writing late: when a good part of the buffer is free, at the latest when the peer has
//!   read everything.
//! - Readiness is a hint: after an event the operation may still say "not now".
//! - An event names only directions that were asked for. A connection that failed, or that both sides closed, is ready
//!   in each of them, so a loop that waits for either direction meets the error.
//! - Nobody starves: when more sources are ready than the event buffer has room for, the others come first in the next
//!   waits. The order within one buffer is not defined.
//! - A wait may end early and report nothing.
//! - A registration ends with [`Poller::deregister`] or with its source. Events that a wait has collected stay in the
//!   buffer. A process that starts others deregisters before it drops: a child has a copy of every descriptor until it
//!   executes its program, and the copy keeps the registration alive.
//! - A source is registered with at most one poller at a time.
//!
//! The alternative is edges. A server reads a bounded part of each connection per round, so with edges it must remember
//! which connections still have bytes, and one edge lost in that bookkeeping is a client that hangs. Levels cost two
//! `epoll_ctl` calls for each time that output has to wait for a slow client.
//!
//! # Errors
//! Errors carry the system's code, also those of the network in memory; [`NetErrorKind::of`] names them.

mod acceptor;
mod address;
mod error_kind;
mod fault;
mod mem;
mod mem_end;
mod mem_listen;
mod mem_poll;
mod mem_ready;
mod mem_source;
mod mem_state;
mod mem_stream;
mod mem_transfer;
mod network;
mod posix;
mod posix_poll;
mod readiness;
mod transfer;

pub use acceptor::{ACCEPT_PAUSE, Acceptor};
pub use address::Address;
pub use error_kind::NetErrorKind;
pub use fault::{NetFault, NetOp, NetRule};
pub use mem::MemNetwork;
pub use network::{Connection, Handle, ListenOptions, Listener, Network, Poller, Source, Waker};
pub use posix::PosixNetwork;
pub use readiness::{Event, Events, Interest, Token};
pub use transfer::{Received, Sent};
