//! The command `drumlin`.

fn main() {}
