//! JSON schemas, as `$jsonSchema` has them: draft 4 with MongoDB's `bsonType`.

mod holds;
mod parse;
mod tree;

pub use tree::Schema;
