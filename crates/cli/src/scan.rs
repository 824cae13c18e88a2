//! scan: entries in key order.

use drumlin::{DbIterator, ReadOptions};
use drumlin_base::key::after_prefix;

use crate::args::{Place, Scan};
use crate::failure::{Failure, Outcome};
use crate::formats::write::EntryWriter;
use crate::history;
use crate::output::Output;
use crate::progress::Progress;

/// Prints the entries `scan` asks for.
pub(crate) fn scan(place: &Place, scan: &Scan, out: &mut Output) -> Outcome {
    let bounds = Bounds::new(place, scan)?;
    let format = scan.format.unwrap_or(out.format());
    let writer = EntryWriter::new(format, place.form()).map_err(Failure::Usage)?;
    let (db, family) = place.open_to_read()?;
    if scan.timestamp && family.ttl().is_none() {
        let text = format!("family '{}' has no times behind its values", place.family);
        return Err(Failure::Usage(text));
    }
    let options = ReadOptions {
        snapshot: history::at(&db, scan.at)?,
        lower_bound: bounds.lower,
        upper_bound: bounds.upper,
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut entries = db.iter_cf(&family, options);
    let written_at = |entries: &DbIterator| entries.written_at().filter(|_| scan.timestamp);
    let limit = scan.limit.unwrap_or(u64::MAX);
    let mut progress = Progress::new("scanning", None);
    let mut printed = 0;
    step_to_first(&mut entries, scan.reverse);
    while printed < limit && entries.valid() {
        if scan.count {
            // Counted below.
        } else if scan.keys_only {
            out.entry(writer.at(written_at(&entries)), entries.key(), None)?;
        } else {
            let value = entries.try_value()?;
            out.entry(writer.at(written_at(&entries)), entries.key(), Some(value))?;
            progress.advance(value.len() as u64);
        }
        progress.advance(entries.key().len() as u64);
        printed += 1;
        if scan.reverse {
            entries.prev();
        } else {
            entries.next();
        }
    }
    progress.finish();
    entries.status()?;
    if scan.count {
        out.count("count", printed)?;
    }
    Ok(())
}

fn step_to_first(entries: &mut DbIterator, reverse: bool) {
    if reverse {
        entries.seek_to_last();
    } else {
        entries.seek_to_first();
    }
}

/// The half-open range of a scan: --from and --to, narrowed by --prefix.
#[derive(Debug, Default, PartialEq, Eq)]
struct Bounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Bounds {
    fn new(place: &Place, scan: &Scan) -> Outcome<Self> {
        let bytes = |argument: &Option<String>| {
            argument
                .as_deref()
                .map(|text| place.bytes(text))
                .transpose()
        };
        let mut bounds = Self {
            lower: bytes(&scan.from)?,
            upper: bytes(&scan.to)?,
        };
        if let Some(prefix) = bytes(&scan.prefix)? {
            if let Some(end) = after_prefix(&prefix) {
                bounds.upper = Some(bounds.upper.map_or(end.clone(), |upper| upper.min(end)));
            }
            bounds.lower = Some(
                bounds
                    .lower
                    .map_or(prefix.clone(), |lower| lower.max(prefix)),
            );
        }
        Ok(bounds)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn bounds(line: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let words = ["drumlin", "scan"]
            .into_iter()
            .chain(line.split_whitespace());
        let arguments = Arguments::try_parse_from(words).expect("sound arguments");
        let Command::Scan(scan) = arguments.command else {
            panic!("scan");
        };
        let bounds = Bounds::new(&arguments.place, &scan).expect("sound bounds");
        (bounds.lower, bounds.upper)
    }

    #[test]
    fn a_prefix_narrows_the_range() {
        let some = |text: &[u8]| Some(text.to_vec());
        assert_eq!(bounds(""), (None, None));
        assert_eq!(bounds("--prefix ab"), (some(b"ab"), some(b"ac")));
        assert_eq!(
            bounds("--prefix ab --from abc --to b"),
            (some(b"abc"), some(b"ac"))
        );
        assert_eq!(
            bounds("--prefix ab --from a --to abz"),
            (some(b"ab"), some(b"abz"))
        );
        assert_eq!(bounds("--prefix a\\xff"), (some(b"a\xff"), some(b"b")));
        assert_eq!(bounds("--prefix \\xff\\xff"), (some(b"\xff\xff"), None));
        assert_eq!(
            bounds("--hex --from 0x00ff --to 01"),
            (some(b"\0\xff"), some(b"\x01"))
        );
    }
}
