//! Objects that hold options: a field for each row of `options.tsv`, and who is who among handles.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::c::{OptionRow, Tables, Version, number};

/// With the defaults of `version`.
pub(crate) fn fields(tables: &Tables, version: Version) -> String {
    let mut text = String::new();
    let mut objects: BTreeMap<&str, Vec<&OptionRow>> = BTreeMap::new();
    for row in &tables.options {
        objects.entry(&row.object).or_default().push(row);
    }
    for (object, rows) in objects {
        object_text(&mut text, object, &rows, version);
    }
    for (object, row) in &tables.handles {
        let name = row.rust.strip_prefix("fields::");
        if let Some(name) = name
            && !tables.options.iter().any(|option| option.object == *object)
        {
            let _ = writeln!(
                text,
                "/// `rocksdb_{object}`, which no function makes.\n#[derive(Debug)]\npub(crate) struct {name};"
            );
        }
        let mut tag = 0xcbf2_9ce4_8422_2325u64;
        // Programs cast databases with transactions to plain ones, which RocksDB's have the shape of.
        let kind = match object.as_str() {
            "transactiondb_t" | "optimistictransactiondb_t" => "t",
            other => other,
        };
        for byte in kind.bytes() {
            tag = (tag ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        let _ = writeln!(
            text,
            "impl drumlin_ffi::handle::Tagged for {} {{\n    const TAG: u64 = {tag:#x};\n    \
             const NAME: &'static str = \"rocksdb_{object}\";\n}}",
            match row.rust.strip_prefix("fields::") {
                Some(own) => own.to_owned(),
                None => format!("crate::{}", row.rust),
            }
        );
    }
    text
}

/// `lru_cache_options_t` is `LruCacheOptions`.
pub(crate) fn type_name(object: &str) -> String {
    let words = object.trim_end_matches("_t").split('_');
    let capital = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
    words.map(capital).collect()
}

/// The type of an option.
fn option_type(row: &OptionRow) -> &str {
    match row.kind.as_str() {
        "flag" => "bool",
        "byte" => "u8",
        "int8" => "i8",
        kind => number(kind).unwrap_or_else(|| panic!("the option type {kind:?}")),
    }
}

/// The default of an option in `version`: in the table the first one, then `;9.11=6` for each version that changed it.
fn default_of(row: &OptionRow, version: Version) -> String {
    let mut told = row.default.split(';');
    let first = told.next().unwrap_or_default();
    let mut later = told.filter_map(|change| {
        let (since, value) = change
            .split_once('=')
            .unwrap_or_else(|| panic!("the default {change:?}"));
        (Version::of(since) <= version).then_some(value)
    });
    let value = later.next_back().unwrap_or(first);
    match option_type(row) {
        "bool" => (value != "0").to_string(),
        "f64" if !value.contains('.') => format!("{value}.0"),
        _ => value.to_owned(),
    }
}

fn object_text(text: &mut String, object: &str, rows: &[&OptionRow], version: Version) {
    let name = type_name(object);
    let _ = writeln!(
        text,
        "/// The options in a `rocksdb_{object}`; those that were not set are `None`.\n\
         #[derive(Clone, Debug, Default)]\npub(crate) struct {name} {{"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "    pub(crate) {}: Option<{}>,",
            field(row),
            option_type(row)
        );
    }
    let _ = writeln!(text, "}}\nimpl {name} {{");
    for row in rows {
        let (kind, default) = (option_type(row), default_of(row, version));
        let _ = writeln!(
            text,
            "    pub(crate) fn {}(&self) -> {kind} {{\n        self.{}.unwrap_or({default})\n    }}",
            field(row),
            field(row)
        );
    }
    text.push_str("}\n");
    if ["options_t", "block_based_table_options_t"].contains(&object) {
        by_name(text, &name, rows);
    }
}

/// Options by the names that texts have for them.
fn by_name(text: &mut String, name: &str, rows: &[&OptionRow]) {
    let _ = writeln!(
        text,
        "impl {name} {{\n    /// Sets the option called `name`; false where there is none, or `value` is not of its type.\n    \
         pub(crate) fn set_by_name(&mut self, name: &str, value: &str) -> Option<bool> {{\n        match name {{"
    );
    for row in rows {
        let parse = match option_type(row) {
            "bool" => "flag_of(value)",
            "f64" => "value.parse().ok()",
            _ => "number_of(value)",
        };
        let _ = writeln!(
            text,
            "            \"{}\" => {{\n                self.{} = {parse};\n                Some(self.{}.is_some())\n            }}",
            row.name,
            field(row),
            field(row)
        );
    }
    text.push_str("            _ => None,\n        }\n    }\n");
    let _ = writeln!(
        text,
        "    /// Names and values, and whether each was set.\n    \
         pub(crate) fn listed(&self) -> Vec<(&'static str, String, bool)> {{\n        vec!["
    );
    for row in rows {
        let shown = match option_type(row) {
            "bool" => format!("u8::from(self.{}()).to_string()", field(row)),
            "f64" => format!("format!(\"{{:.6}}\", self.{}())", field(row)),
            _ => format!("self.{}().to_string()", field(row)),
        };
        let _ = writeln!(
            text,
            "            (\"{}\", {shown}, self.{}.is_some()),",
            row.name,
            field(row)
        );
    }
    text.push_str("        ]\n    }\n}\n");
}

/// The field of an option: names in Rust have no capitals.
pub(crate) fn field(row: &OptionRow) -> String {
    row.name.to_lowercase()
}
