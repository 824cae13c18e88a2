//! RESP, the protocol of Redis, in both its versions. A library without I/O: whoever has a socket hands in what it
//! read and sends what was written.
//!
//! The server's side:
//!
//! - [`RequestParser`] finds one command at a time in a read buffer; its arguments are slices of the buffer.
//! - [`ReplyWriter`] appends replies in the version that the connection speaks.
//!
//! The client's side:
//!
//! - [`encode_command`] writes a command, [`ReplyParser`] makes a [`Value`] of each reply.
//!
//! Between the two: [`split_words`] has the quoting of inline commands, [`integer`] and [`push_integer`] the texts of
//! integers.
//!
//! # Like which server
//!
//! Requests are judged as Redis 7.0 judges them, with its words for what is wrong. One case differs: Redis takes a
//! line of more than 64 KiB if it arrives in one read, and refuses it otherwise. Here it is always refused, so that
//! the outcome never depends on how the bytes were cut.
//!
//! # Hostile input
//!
//! Nothing is allocated for what is announced, only for what arrived. The time is linear, however the input is cut into
//! pieces. Nothing recurses on foreign data.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod ahead;
mod error;
mod number;
mod reply;
mod reply_parser;
mod request;
mod value;
mod words;

pub use ahead::look_ahead;
pub use error::{ProtocolError, ReplyError};
pub use number::{integer, push_integer};
pub use reply::{Mark, Protocol, ReplyWriter};
pub use reply_parser::{Attributes, ReplyLimits, ReplyParser};
pub use request::{Args, OwnedArgs, Request, RequestLimits, RequestParser, encode_command};
pub use value::Value;
pub use words::split_words;
