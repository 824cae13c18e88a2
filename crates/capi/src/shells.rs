//! The generated functions that C calls.

#![expect(clippy::redundant_closure, reason = "one text serves all functions")]

use std::ffi::{c_char, c_uchar, c_void};

use drumlin_ffi::bytes;
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::calls;
use crate::error::{give, guard, lend, refuse};

include!(concat!(env!("OUT_DIR"), "/shells.rs"));
