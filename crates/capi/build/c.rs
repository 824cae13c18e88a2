//! The tables, and C's types in Rust.

use std::collections::BTreeMap;

/// All tables.
pub(crate) struct Tables {
    /// Of all versions.
    pub(crate) functions: Vec<Function>,
    pub(crate) options: Vec<OptionRow>,
    pub(crate) handles: BTreeMap<String, HandleRow>,
}

/// A row of `functions.tsv`.
pub(crate) struct Function {
    pub(crate) name: String,
    /// See `shells.rs`.
    pub(crate) form: String,
    pub(crate) result: String,
    pub(crate) parameters: Vec<Parameter>,
    /// The versions that have it so.
    pub(crate) versions: Versions,
}

/// Versions of RocksDB, as `8.11` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Version {
    pub(crate) fn of(text: &str) -> Self {
        let parts = text
            .split_once('.')
            .unwrap_or_else(|| panic!("the version {text:?}"));
        let number = |part: &str| {
            part.parse()
                .unwrap_or_else(|_| panic!("the version {text:?}"))
        };
        Self {
            major: number(parts.0),
            minor: number(parts.1),
        }
    }

    /// As the header has it: 811 for 8.11.
    pub(crate) fn number(self) -> u32 {
        self.major * 100 + self.minor
    }
}

/// Which versions have a function as its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    All,
    Before(Version),
    Since(Version),
}

impl Versions {
    fn of(text: Option<&str>) -> Self {
        match text {
            None => Self::All,
            Some(text) => match (text.strip_prefix('<'), text.strip_prefix(">=")) {
                (Some(version), _) => Self::Before(Version::of(version)),
                (_, Some(version)) => Self::Since(Version::of(version)),
                _ => panic!("the versions {text:?}"),
            },
        }
    }

    pub(crate) fn has(self, version: Version) -> bool {
        match self {
            Self::All => true,
            Self::Before(first) => version < first,
            Self::Since(first) => version >= first,
        }
    }
}

/// A parameter. In the table `?` behind its type says that it may be null, and `!` that the callee takes it over.
pub(crate) struct Parameter {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) may_be_null: bool,
    pub(crate) is_taken: bool,
}

/// A row of `options.tsv`.
pub(crate) struct OptionRow {
    pub(crate) object: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) default: String,
}

/// A row of `handles.tsv`.
pub(crate) struct HandleRow {
    pub(crate) rust: String,
    pub(crate) is_own: bool,
    pub(crate) options_in: String,
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split('\t').collect())
}

pub(crate) fn functions(text: &str) -> Vec<Function> {
    rows(text)
        .map(|row| Function {
            name: row[0].to_owned(),
            form: row[1].to_owned(),
            result: row[2].to_owned(),
            parameters: row[3]
                .split("; ")
                .filter(|p| !p.is_empty())
                .map(parameter)
                .collect(),
            versions: Versions::of(row.get(4).copied()),
        })
        .collect()
}

fn parameter(text: &str) -> Parameter {
    if let Some(at) = text.find("(*") {
        let name = text[at + 2..].split(')').next().unwrap_or_default();
        return Parameter {
            kind: text.to_owned(),
            name: name.to_owned(),
            may_be_null: false,
            is_taken: false,
        };
    }
    let (kind, name) = text
        .rsplit_once(' ')
        .unwrap_or_else(|| panic!("{text:?} has no name"));
    Parameter {
        kind: kind.trim_end_matches(['?', '!']).to_owned(),
        name: name.to_owned(),
        may_be_null: kind.ends_with('?'),
        is_taken: kind.ends_with('!'),
    }
}

pub(crate) fn options(text: &str) -> Vec<OptionRow> {
    rows(text)
        .map(|row| OptionRow {
            object: format!("{}_t", row[0]),
            name: row[1].to_owned(),
            kind: row[2].to_owned(),
            default: row[3].to_owned(),
        })
        .collect()
}

pub(crate) fn handles(text: &str) -> BTreeMap<String, HandleRow> {
    rows(text)
        .map(|row| {
            let handle = HandleRow {
                rust: row[1].to_owned(),
                is_own: row[2] == "own",
                options_in: row.get(3).copied().unwrap_or_default().to_owned(),
            };
            (row[0].to_owned(), handle)
        })
        .collect()
}

impl Function {
    /// Its name without the library's.
    pub(crate) fn short(&self) -> &str {
        self.name.strip_prefix("rocksdb_").unwrap_or(&self.name)
    }
}

/// The name of the object that `kind` points to, if it points to one.
pub(crate) fn object_of(kind: &str) -> Option<&str> {
    let kind = kind.strip_prefix("const ").unwrap_or(kind);
    let object = kind.strip_prefix("rocksdb_")?.strip_suffix('*')?;
    (!object.contains('*')).then_some(object)
}

/// A number of C's in Rust.
pub(crate) fn number(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "int" | "int32_t" => "i32",
        "unsigned int" | "uint32_t" => "u32",
        "size_t" => "usize",
        "uint64_t" => "u64",
        "int64_t" => "i64",
        "double" => "f64",
        "char" => "c_char",
        "unsigned char" => "c_uchar",
        "uint8_t" => "u8",
        "bool" => "bool",
        _ => return None,
    })
}

/// Any type of C's in Rust.
pub(crate) fn rust_type(kind: &str, tables: &Tables) -> String {
    if let Some(number) = number(kind) {
        return number.to_owned();
    }
    if kind.contains("(*") || kind.ends_with("_cb") {
        return "*const c_void".to_owned();
    }
    match kind {
        "void" => return "()".to_owned(),
        "void*" => return "*mut c_void".to_owned(),
        _ => {}
    }
    if let Some(inner) = kind.strip_suffix("* const*") {
        return format!("*const {}", rust_type(&format!("{inner}*"), tables));
    }
    if let Some(object) = object_of(kind) {
        let access = if kind.starts_with("const ") {
            "const"
        } else {
            "mut"
        };
        return format!("*{access} Handle<crate::{}>", handle(object, tables).rust);
    }
    let (is_const, bare) = match kind.strip_prefix("const ") {
        Some(bare) => (true, bare),
        None => (false, kind),
    };
    let inner = bare
        .strip_suffix('*')
        .unwrap_or_else(|| panic!("the type {kind:?}"));
    if inner.ends_with('*') {
        let inner = if is_const {
            format!("const {inner}")
        } else {
            inner.to_owned()
        };
        return format!("*mut {}", rust_type(&inner, tables));
    }
    let access = if is_const { "const" } else { "mut" };
    format!("*{access} {}", rust_type(inner, tables))
}

pub(crate) fn handle<'a>(object: &str, tables: &'a Tables) -> &'a HandleRow {
    let found = tables.handles.get(object);
    found.unwrap_or_else(|| panic!("handles.tsv has no {object}"))
}
