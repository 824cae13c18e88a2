//! A table's encoding and its cost, in lines for people.

use super::coded::expansion;
use super::format::PAGE_BYTES;
use super::page::row_range;
use super::table::SearchableTable;
use crate::options::TableReadOptions;

/// Pages whose rows are looked at, taken from the whole file.
const PAGES_LOOKED_AT: usize = 64;

/// Rows of one form.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    rows: usize,
    bytes: usize,
}

impl SearchableTable {
    /// How keys and values are encoded, and the bytes they take, encoded and not. Cost: decodes some blocks of
    /// keys and reads some pages; one that cannot be read is left out.
    pub fn describe(&self) -> Vec<String> {
        let keys = self.keys.len();
        let mut lines = vec![format!("different keys: {keys}")];
        let of_keys = self.keys.describe();
        lines.extend(of_keys.into_iter().map(|line| format!("keys: {line}")));
        let each = |bytes: u64| bytes as f64 / keys.max(1) as f64;
        let places = self.locator.stored_bytes() as u64;
        lines.push(format!(
            "rows: {} bytes in pages, {:.2} a row, and {places} to find them, {:.2} a row",
            self.properties.data_size,
            each(self.properties.data_size),
            each(places),
        ));
        lines.push(format!(
            "values: {:.2} bytes each, {:.1} times their codes",
            self.properties.raw_value_size as f64 / self.properties.num_entries.max(1) as f64,
            expansion(&self.properties),
        ));
        lines.push(format!(
            "resident: {} bytes while the table is open",
            self.resident_bytes
        ));
        lines.push(match self.shared_model {
            Some(id) => format!(
                "values: model {id:016x}, shared, {} bytes in memory",
                self.model.memory()
            ),
            None => format!(
                "values: a model of the table's own, {} bytes in memory",
                self.model.memory()
            ),
        });
        let model = self.model.describe();
        lines.extend(model.lines().map(|line| format!("values: {line}")));
        lines.extend(
            self.forms()
                .into_iter()
                .map(|line| format!("values: {line}")),
        );
        lines
    }

    /// The share of each form among some of the rows, and the bytes of its codes.
    fn forms(&self) -> Vec<String> {
        let pages = u32::try_from(self.properties.num_data_blocks).unwrap_or(u32::MAX);
        let step = (pages as usize).div_ceil(PAGES_LOOKED_AT).max(1);
        let options = TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        };
        let mut taken: Vec<(Option<usize>, Taken)> = Vec::new();
        // Rows that may be lists of versions can be told apart only by their keys.
        let pages = if self.locator.has_versions() {
            0..0
        } else {
            0..pages
        };
        for page in pages.step_by(step) {
            let Ok(page) = self.page(page, &options, None) else {
                continue;
            };
            let bytes = page.get().bytes();
            for row in 0..PAGE_BYTES {
                let Some(code) = row_range(bytes, row).and_then(|range| bytes.get(range)) else {
                    break;
                };
                let form = self.model.form_of(code);
                let place = taken.iter().position(|(known, _)| *known == form);
                let place = place.unwrap_or_else(|| {
                    taken.push((form, Taken::default()));
                    taken.len() - 1
                });
                if let Some((_, taken)) = taken.get_mut(place) {
                    taken.rows += 1;
                    taken.bytes += code.len();
                }
            }
        }
        // Raw ones last, as the model's own lines have them.
        taken.sort_by_key(|(form, _)| form.unwrap_or(usize::MAX));
        let all: usize = taken.iter().map(|(_, taken)| taken.rows).sum();
        let line = |(form, taken): (Option<usize>, Taken)| {
            let name = form.map_or_else(|| "raw".to_owned(), |form| format!("form {}", form + 1));
            let share = taken.rows as f64 * 100.0 / all.max(1) as f64;
            let each = taken.bytes as f64 / taken.rows.max(1) as f64;
            format!("{name}: {share:.2} % of {all} rows looked at, {each:.2} bytes each")
        };
        taken.into_iter().map(line).collect()
    }
}
