//! The handle users hold, and how a directory becomes one.

pub(crate) mod budget;
pub(crate) mod changes;
pub(crate) mod codec;
pub(crate) mod engine;
pub(crate) mod family_copy;
pub(crate) mod family_handle;
pub(crate) mod follow;
pub(crate) mod follower;
pub(crate) mod foreign;
pub(crate) mod handle;
pub(crate) mod history;
pub(crate) mod identity;
pub(crate) mod open;
pub(crate) mod range;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod settle;
pub(crate) mod ttl;
pub(crate) mod typed;
pub(crate) mod view;
pub(crate) mod weak;
