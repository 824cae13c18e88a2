//! Makes, from the tables in `abi`, what is the same for hundreds of functions: the shells that C calls, the objects that only
//! hold options, and the header. Where programs find the library is chosen here too.

#![expect(clippy::disallowed_methods, reason = "it runs where the compiler does")]

#[path = "build/c.rs"]
mod c;
#[path = "build/fields.rs"]
mod fields;
#[path = "build/header.rs"]
mod header;
#[path = "build/shells.rs"]
mod shells;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The version of RocksDB whose names, arguments and numbers the library has.
const ABIS: [&str; 1] = ["7.8"];

fn main() {
    let abi = env::var("DRUMLIN_ABI").unwrap_or_else(|_| ABIS[0].to_owned());
    assert!(
        ABIS.contains(&abi.as_str()),
        "DRUMLIN_ABI={abi}: there are tables of {ABIS:?} only"
    );
    println!("cargo:rerun-if-env-changed=DRUMLIN_ABI");
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocksdb.so.{abi}");
    // The background threads outlive a dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");

    let tables = c::Tables {
        functions: c::functions(&read("abi/functions.tsv")),
        options: c::options(&read("abi/options.tsv")),
        handles: c::handles(&read("abi/handles.tsv")),
    };
    write("shells.rs", &shells::shells(&tables));
    write("fields.rs", &fields::fields(&tables));
    write("c.h", &header::header(&tables, &read("abi/head.h")));
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn write(name: &str, text: &str) {
    let dir = env::var_os("OUT_DIR").map(PathBuf::from);
    let path = dir
        .as_deref()
        .map(Path::new)
        .expect("cargo sets OUT_DIR")
        .join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
