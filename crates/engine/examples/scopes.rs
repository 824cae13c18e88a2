//! What kinds of records under prefixes of one family take, with a model for all of them and with one each.
//!
//! ```text
//! cargo run --release -p drumlin --example scopes -- DIR FILE...
//! ```
//!
//! Each file has lines `key TAB value`, as `drumlin gen` prints them, and goes under a prefix of its own. DIR gets two
//! databases, and must not have them yet.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "reads files and prints its measurements"
)]

use std::error::Error;
use std::path::Path;

use drumlin::{Db, FamilyOptions, Options, TableFormat};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const PREFIX_BYTES: usize = size_of::<u32>();

/// The bytes of each file's rows, compacted, and those of all tables and models.
fn stored(dir: &Path, files: &[String], scope_bytes: usize) -> Outcome<(Vec<u64>, u64)> {
    let options = Options {
        family: FamilyOptions {
            table_format: Some(TableFormat::Searchable),
            scope_bytes: Some(scope_bytes),
            ..FamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Db::open(dir, options)?;
    let prefixes: Vec<[u8; PREFIX_BYTES]> =
        (1..).map(u32::to_be_bytes).take(files.len() + 1).collect();
    for (file, prefix) in files.iter().zip(&prefixes) {
        let text = std::fs::read(file)?;
        for line in text.split(|byte| *byte == b'\n') {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let (key, value) = (&line[..tab], &line[tab + 1..]);
            db.put([prefix, key].concat(), value)?;
        }
    }
    db.compact_range(db.default_family(), None, None)?;
    let ranges: Vec<_> = prefixes
        .windows(2)
        .map(|pair| (&pair[0][..], &pair[1][..]))
        .collect();
    let sizes = db.approximate_sizes(db.default_family(), &ranges)?;
    db.close()?;
    let mut all = 0;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        if matches!(kind, Some("sst" | "model")) {
            all += std::fs::metadata(&path)?.len();
        }
    }
    Ok((sizes, all))
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("scopes DIR FILE...")?;
    let files: Vec<String> = arguments.collect();
    let (one, one_all) = stored(&Path::new(&dir).join("one"), &files, 0)?;
    let (own, own_all) = stored(&Path::new(&dir).join("own"), &files, PREFIX_BYTES)?;
    for (file, (one, own)) in files.iter().zip(one.into_iter().zip(own)) {
        println!("{file}: {one} bytes under one model, {own} under its own");
    }
    println!("all, models too: {one_all}, {own_all}");
    Ok(())
}
