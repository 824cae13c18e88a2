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
#[path = "build/statistics.rs"]
mod statistics;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The versions of RocksDB whose arguments and numbers the library may have: `DRUMLIN_ABI` says which, the first where it does
/// not. The names are those of all of them.
const ABIS: [&str; 5] = ["7.8", "8.11", "9.11", "10.10", "11.8"];

fn main() {
    let abi = env::var("DRUMLIN_ABI").unwrap_or_else(|_| ABIS[0].to_owned());
    assert!(
        ABIS.contains(&abi.as_str()),
        "DRUMLIN_ABI={abi}: there are tables of {ABIS:?} only"
    );
    let version = c::Version::of(&abi);
    println!(
        "cargo:rustc-check-cfg=cfg(abi_since, values({}))",
        ABIS.map(|abi| format!("{abi:?}")).join(", ")
    );
    for before in ABIS
        .into_iter()
        .filter(|abi| c::Version::of(abi) <= version)
    {
        println!("cargo:rustc-cfg=abi_since={before:?}");
    }
    println!("cargo:rustc-env=DRUMLIN_ABI_SERVED={abi}");
    println!("cargo:rerun-if-env-changed=DRUMLIN_ABI");
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocksdb.so.{abi}");
    // The background threads outlive a dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");

    let tables = c::Tables {
        functions: [read("abi/functions.tsv"), read("abi/later.tsv")]
            .iter()
            .flat_map(|table| c::functions(table))
            .collect(),
        options: c::options(&read("abi/options.tsv")),
        handles: c::handles(&read("abi/handles.tsv")),
    };
    write("shells.rs", &shells::shells(&tables, version));
    write("fields.rs", &fields::fields(&tables, version));
    let numbers = statistics::numbers(&read("abi/statistics.tsv"), &abi);
    write("statistics.rs", &numbers);
    write("perf.rs", &statistics::perf(&read("abi/perf.tsv")));
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
