//! The report as files.

use std::path::Path;

use drumlin_base::Result;
use drumlin_fs::{CreateOptions, Env, FileKind};

use super::report::Report;
use super::table::{json, markdown};

/// Writes `report` of the load `name` beside `path`: a table with `.md`, everything with `.json`.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn save(env: &Env, path: &Path, name: &str, report: &Report) -> Result<()> {
    let table = markdown(&[(name, report)]);
    write(env, &path.with_extension("md"), &table)?;
    write(env, &path.with_extension("json"), &json(report))
}

fn write(env: &Env, path: &Path, text: &str) -> Result<()> {
    let mut file = env
        .files
        .create(path, CreateOptions::new(FileKind::Other))?;
    file.append(text.as_bytes())?;
    file.close()
}
