//! levels: a picture of the tree.
//!
//! One strip for each sorted run (every L0 table is one) shows the part of the keys that each table
//! covers. The axis is the rank of the tables' boundary keys, so that every boundary is visible
//! however the keys are distributed. The MANIFEST is read directly: no lock is taken, memtables do
//! not show.

use drumlin::internals::version::NewFile;
use drumlin_fs::Env;
use serde_json::Value;

use crate::args::Place;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::inspect::table_object;
use crate::manifest::{FamilyTables, Tree};
use crate::output::Output;
use crate::units;

/// Columns of a strip.
const WIDTH: usize = 64;
/// L0 strips drawn before the rest is only counted.
const RUNS_MAX: usize = 16;

/// Draws the tree of the family.
pub(crate) fn levels(place: &Place, out: &mut Output) -> Outcome {
    let tree = Tree::read(&Env::system(), place.dir()?);
    let tree = tree.map_err(|failure| place.explain(failure))?;
    let family = tree.family(&place.family).ok_or_else(|| {
        Failure::NotFound(format!("there is no column family '{}'", place.family))
    })?;
    if out.is_json() {
        for (level, files) in &family.levels {
            for file in files.values() {
                let mut object = table_object(file, place.form());
                object.insert("level".to_owned(), (*level).into());
                out.text(Value::Object(object).to_string())?;
            }
        }
        return Ok(());
    }
    for line in draw(family, place.form()) {
        out.text(line)?;
    }
    Ok(())
}

fn draw(family: &FamilyTables, form: Form) -> Vec<String> {
    let files: Vec<&NewFile> = family
        .levels
        .values()
        .flat_map(|files| files.values())
        .collect();
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    let mut lines = vec![format!(
        "family {}: {} tables, {}",
        family.name,
        files.len(),
        units::bytes(bytes)
    )];
    let axis = Axis::new(&files);
    for (level, files) in &family.levels {
        if !files.is_empty() {
            draw_level(
                *level,
                &files.values().collect::<Vec<_>>(),
                &axis,
                &mut lines,
            );
        }
    }
    if let (Some(first), Some(last)) = (axis.keys.first(), axis.keys.last()) {
        lines.push(format!("keys {} .. {}", form.show(first), form.show(last)));
    }
    lines
}

fn draw_level(level: u32, files: &[&NewFile], axis: &Axis<'_>, lines: &mut Vec<String>) {
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    let size = units::bytes(bytes);
    let head = format!("L{level} {:>6} tables {size:>9} ", files.len());
    if level > 0 {
        lines.push(format!("{head}|{}|", axis.strip(files)));
        return;
    }
    // Newest on top, as a read meets them.
    let mut runs = files.to_vec();
    runs.sort_by_key(|file| std::cmp::Reverse((file.epoch, file.largest_seqno, file.number)));
    for (index, run) in runs.iter().take(RUNS_MAX).enumerate() {
        let head = if index == 0 {
            head.clone()
        } else {
            " ".repeat(head.len())
        };
        lines.push(format!("{head}|{}|", axis.strip(&[*run])));
    }
    if runs.len() > RUNS_MAX {
        let more = runs.len() - RUNS_MAX;
        lines.push(format!("{}  and {more} older ones", " ".repeat(head.len())));
    }
}

/// The boundary keys of all tables, in order.
struct Axis<'f> {
    keys: Vec<&'f [u8]>,
}

impl<'f> Axis<'f> {
    fn new(files: &[&'f NewFile]) -> Self {
        let both = |file: &&'f NewFile| [file.smallest_user_key(), file.largest_user_key()];
        let mut keys: Vec<&[u8]> = files.iter().flat_map(both).collect();
        keys.sort_unstable();
        keys.dedup();
        Self { keys }
    }

    fn column(&self, key: &[u8]) -> usize {
        let rank = self.keys.partition_point(|known| *known < key);
        let last = self.keys.len().saturating_sub(1).max(1);
        (rank * (WIDTH - 1) / last).min(WIDTH - 1)
    }

    /// Neighbouring tables are drawn in two shades.
    fn strip(&self, files: &[&NewFile]) -> String {
        let mut cells = [' '; WIDTH];
        let mut sorted = files.to_vec();
        sorted.sort_by_key(|file| file.smallest_user_key());
        for (index, file) in sorted.iter().enumerate() {
            let shade = if index % 2 == 0 { '#' } else { '=' };
            let first = self.column(file.smallest_user_key());
            let last = self.column(file.largest_user_key()).max(first);
            if let Some(covered) = cells.get_mut(first..=last) {
                covered.fill(shade);
            }
        }
        cells.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;

    use super::*;

    fn file(number: u64, smallest: &str, largest: &str) -> NewFile {
        NewFile {
            number,
            size: 1_000_000,
            epoch: number,
            smallest: internal_key(smallest.as_bytes(), 1, ValueKind::Value),
            largest: internal_key(largest.as_bytes(), 1, ValueKind::Value),
            ..NewFile::default()
        }
    }

    #[test]
    fn tables_are_drawn_over_the_keys_they_cover() {
        let mut family = FamilyTables {
            name: "default".to_owned(),
            ..FamilyTables::default()
        };
        let level_0 = [file(9, "c", "g"), file(8, "a", "j")];
        let level_6 = [file(1, "a", "c"), file(2, "d", "g"), file(3, "h", "j")];
        family.levels.insert(
            0,
            level_0
                .into_iter()
                .map(|file| (file.number, file))
                .collect(),
        );
        family.levels.insert(
            6,
            level_6
                .into_iter()
                .map(|file| (file.number, file))
                .collect(),
        );
        let lines = draw(&family, Form::Plain);
        assert_eq!(lines[0], "family default: 5 tables, 5.00 MB");
        assert_eq!(lines.last().map(String::as_str), Some("keys a .. j"));
        let strip = |line: &str| line.split('|').nth(1).unwrap_or_default().to_owned();
        // The newest L0 table comes first and covers the middle.
        assert!(strip(&lines[1]).trim_end().starts_with(' '));
        assert_eq!(strip(&lines[2]), "#".repeat(WIDTH));
        let deepest = strip(&lines[3]);
        assert!(deepest.starts_with('#') && deepest.contains('=') && deepest.ends_with('#'));
        assert!(
            lines[3].starts_with("L6      3 tables   3.00 MB |"),
            "{}",
            lines[3]
        );
    }
}
