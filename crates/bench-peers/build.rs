//! Compiles the calls into WiredTiger, whose handles are structures of function pointers.

fn main() {
    #[cfg(feature = "wiredtiger")]
    {
        const SHIM: &str = "src/engines/wiredtiger/shim.c";
        cc::Build::new().file(SHIM).opt_level(2).compile("peers_wt");
        println!("cargo::rerun-if-changed={SHIM}");
        println!("cargo::rustc-link-lib=wiredtiger");
    }
}
