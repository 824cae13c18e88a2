//! The project's own rules, checked by `cargo test -p drumlin-tidy` (see `tests/rules.rs`).
//!
//! This crate reads source files as text; it depends on nothing, so that no change elsewhere can
//! break the check of the rules.

pub mod graph;

use std::path::{Path, PathBuf};

/// A source file of the project.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the root of the repository, with `/` between its parts.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file under `crates`, `docs` and the root whose name ends in one of `endings`.
///
/// # Panics
/// When the repository cannot be read.
pub fn sources(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("the repository is readable") {
            let path = entry.expect("the repository is readable").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "data" | "node_modules") {
                    dirs.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let path_text = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy();
                found.push(Source {
                    path: path_text.replace('\\', "/"),
                    text: String::from_utf8_lossy(
                        &read(&path).expect("the repository is readable"),
                    )
                    .into_owned(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

#[expect(
    clippy::disallowed_methods,
    reason = "the rules are read from the source tree itself"
)]
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// The text of a Rust file before its unit tests.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}
