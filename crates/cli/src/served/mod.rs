//! Servers as engines of the laboratory: sessions are clients, each with a connection of its own over the loopback.

mod link;
mod mongo;
mod redis;

pub(crate) use mongo::{MongoPeer, MongoStore, PEER};
pub(crate) use redis::ServedStore;
