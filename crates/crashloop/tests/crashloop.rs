//! Goal: after any death of a process, the writes acknowledged to it are present. Method: the program
//! itself, for a few deaths; `crashloop run --cycles N` does the same for as long as one likes.

use std::process::Command;

#[test]
fn a_store_outlives_a_few_power_cuts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crashloop"));
    let output = command
        .args(["run", "--cycles", "6", "--seed", "5", "--power"])
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\"power\":true,\"cycles\":6"), "{said}");
}

#[test]
fn a_store_outlives_a_few_deaths() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crashloop"));
    let output = command
        .args(["run", "--cycles", "8", "--seed", "3"])
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\"cycles\":8"), "{said}");
}
