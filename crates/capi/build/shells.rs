//! The functions that C calls. Each is a shell: it checks its handles, makes slices of pointers and lengths, and hands on to the safe
//! function of the same name in the module that `calls` lists. The forms in `functions.tsv`:
//!
//! - `call`: as above; `call=NAME` hands on to another function's, without a family where that has one;
//! - `create`, `destroy`, `set`, `get`: of an object, and of one of its options;
//!   `set=OPTION` and `get=OPTION` where the function calls it otherwise;
//! - `ignored`: takes what it is given, and steers nothing;
//! - `refused`: always answers that it is not implemented;
//! - `raw`: written by hand, because of callbacks or arrays.

use std::fmt::Write as _;

use crate::c::{
    Function, OptionRow, Parameter, Tables, Version, handle, number, object_of, rust_type,
};
use crate::fields::field;

pub(crate) fn shells(tables: &Tables, version: Version) -> String {
    let mut text = String::new();
    for function in tables.functions.iter().filter(|f| f.versions.has(version)) {
        let shell = Shell { function, tables };
        match function.form.as_str() {
            "raw" => {}
            "ignored" => shell.ignored(&mut text),
            "create" => shell.create(&mut text),
            "destroy" => shell.destroy(&mut text),
            "set" => shell.set(&mut text),
            "get" => shell.get(&mut text),
            "refused" => shell.refused(&mut text),
            "call" => shell.call(&mut text, function.short()),
            form => match form.split_once('=') {
                Some(("call", name)) => shell.call(&mut text, name),
                Some(("set", _)) => shell.set(&mut text),
                Some(("get", _)) => shell.get(&mut text),
                _ => panic!("{}: the form {form:?}", function.name),
            },
        }
    }
    text
}

struct Shell<'a> {
    function: &'a Function,
    tables: &'a Tables,
}

/// Objects of which functions may return none.
const MAY_BE_NONE: [&str; 5] = [
    "rocksdb_pinnable_handle_t*",
    "rocksdb_pinnableslice_t*",
    "rocksdb_level_metadata_t*",
    "rocksdb_sst_file_metadata_t*",
    "const rocksdb_snapshot_t*",
];

/// Objects of which null is nothing to destroy, beside those that hold options.
const NULL_IS_NOTHING: [&str; 11] = [
    "compactionjobinfo_t",
    "livefile_t",
    "logger_t",
    "pinnableslice_t",
    "pinnable_handle_t",
    "pinnable_multi_get_t",
    "sst_file_manager_t",
    "statistics_histogram_data_t",
    "wal_file_t",
    "wal_files_t",
    "write_buffer_manager_t",
];

const PROMISE: &str = "    // SAFETY: the C program's promise.\n";

impl Shell<'_> {
    /// The head of the function, as C sees it.
    fn open(&self, text: &mut String) {
        let parameters = self.function.parameters.iter();
        let parameters: Vec<_> = parameters
            .map(|p| {
                format!(
                    "{}: {}",
                    rust_name(&p.name),
                    rust_type(&p.kind, self.tables)
                )
            })
            .collect();
        let result = match self.function.result.as_str() {
            "void" => String::new(),
            kind => format!(" -> {}", rust_type(kind, self.tables)),
        };
        let _ = writeln!(
            text,
            "#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {}({}){result} {{\n    const NAME: &str = \"{}\";",
            self.function.name,
            parameters.join(", "),
            self.function.name,
        );
    }

    fn create(&self, text: &mut String) {
        self.open(text);
        text.push_str("    guard_infallible(NAME, || handle::create(Default::default()))\n}\n");
    }

    /// Null is nothing to destroy where RocksDB says so: for what holds options or bytes.
    fn destroy(&self, text: &mut String) {
        self.open(text);
        let parameter = &self.function.parameters[0];
        let name = rust_name(&parameter.name);
        let object = object_of(&parameter.kind).expect("what is destroyed is an object");
        if object.ends_with("options_t") || NULL_IS_NOTHING.contains(&object) {
            let _ = writeln!(text, "    if {name}.is_null() {{\n        return;\n    }}");
        }
        let mutable = if parameter.kind.starts_with("const") {
            ".cast_mut()"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{PROMISE}    guard_infallible(NAME, || unsafe {{ handle::destroy({name}{mutable}, NAME) }});\n}}"
        );
    }

    fn option(&self) -> (&OptionRow, String) {
        let object =
            object_of(&self.function.parameters[0].kind).expect("options are in an object");
        let rows = self
            .tables
            .options
            .iter()
            .filter(|row| row.object == object);
        let name = &self.function.name;
        let other = self.function.form.split_once('=').map(|(_, option)| option);
        let is_of = |row: &OptionRow| match other {
            Some(option) => row.name == option,
            None => {
                name.ends_with(&format!("_set_{}", row.name))
                    || name.ends_with(&format!("_get_{}", row.name))
            }
        };
        let mut fits: Vec<_> = rows.filter(|row| is_of(row)).collect();
        fits.sort_by_key(|row| row.name.len());
        let row = fits
            .pop()
            .unwrap_or_else(|| panic!("{name}: options.tsv has no such option"));
        (row, handle(object, self.tables).options_in.clone())
    }

    fn set(&self, text: &mut String) {
        self.open(text);
        let (row, within) = self.option();
        let [object, value] = &self.function.parameters[..] else {
            panic!(
                "{}: a setter takes an object and a value",
                self.function.name
            )
        };
        let (object, value) = (rust_name(&object.name), rust_name(&value.name));
        let value = match row.kind.as_str() {
            "flag" => format!("{value} != 0"),
            _ => value,
        };
        let _ = writeln!(
            text,
            "{PROMISE}    let object = unsafe {{ handle::get_mut({object}, NAME) }};\n    object{within}.{} = Some({value});\n}}",
            field(row)
        );
    }

    fn get(&self, text: &mut String) {
        self.open(text);
        let (row, within) = self.option();
        let object = rust_name(&self.function.parameters[0].name);
        let result = number(&self.function.result);
        let convert = match row.kind.as_str() {
            "flag" => ".into()",
            "byte" if matches!(result, Some("u8" | "c_uchar")) => "",
            "byte" | "int8" => ".into()",
            kind if number(kind) == result => "",
            _ => ".try_into().unwrap_or_default()",
        };
        let _ = writeln!(
            text,
            "{PROMISE}    let object = unsafe {{ handle::get({object}, NAME) }};\n    object{within}.{}(){convert}\n}}",
            field(row)
        );
    }

    /// The object is looked at all the same.
    fn ignored(&self, text: &mut String) {
        self.open(text);
        let parameters = &self.function.parameters;
        for parameter in &parameters[1..] {
            let _ = writeln!(text, "    let _ = {};", rust_name(&parameter.name));
        }
        let object = rust_name(&parameters[0].name);
        let _ = writeln!(
            text,
            "{PROMISE}    unsafe {{ handle::get({object}, NAME) }};\n}}"
        );
    }

    fn refused(&self, text: &mut String) {
        self.open(text);
        let parameters = &self.function.parameters;
        let has = |kind: &str| parameters.iter().find(|p| p.kind == kind);
        if let Some(errptr) = parameters.iter().find(|p| p.name == "errptr") {
            let _ = writeln!(
                text,
                "{PROMISE}    unsafe {{ refuse(NAME, {}) }};",
                errptr.name
            );
        } else if let Some(object) = has("rocksdb_writebatch_t*")
            .or(has("rocksdb_readoptions_t*"))
            .or(self.refuses_committing())
            .or(self.refuses_opening())
        {
            let _ = writeln!(
                text,
                "{PROMISE}    let object = unsafe {{ handle::get_mut({}, NAME) }};\n    object.refuse({});",
                rust_name(&object.name),
                match self.refuses_opening() {
                    Some(_) => format!("\"{} is not served by this library\"", self.function.name),
                    None => "NAME".to_owned(),
                }
            );
        } else {
            let _ = writeln!(text, "    let _ = NAME;");
        }
        for parameter in parameters {
            let _ = writeln!(text, "    let _ = {};", rust_name(&parameter.name));
        }
        match self.function.result.as_str() {
            "void" => {}
            kind if number(kind).is_some() => text.push_str("    Default::default()\n"),
            kind if kind.starts_with("const ") => text.push_str("    std::ptr::null()\n"),
            _ => text.push_str("    std::ptr::null_mut()\n"),
        }
        text.push_str("}\n");
    }

    /// The transaction, which is not committed without what this function adds.
    fn refuses_committing(&self) -> Option<&Parameter> {
        let first = self.function.parameters.first()?;
        let adds = self.function.result == "void" && first.kind == "rocksdb_transaction_t*";
        adds.then_some(first)
    }

    /// The options of a database, which is not opened with what this function sets.
    fn refuses_opening(&self) -> Option<&Parameter> {
        let first = self.function.parameters.first()?;
        let sets = self.function.result == "void" && self.function.short().starts_with("options_");
        (sets && first.kind == "rocksdb_options_t*").then_some(first)
    }

    /// Arguments are read, the function is called, and its result is given back.
    fn call(&self, text: &mut String, callee: &str) {
        self.open(text);
        let mut arguments = self.arguments(text);
        let full = format!("rocksdb_{callee}");
        let called = self.tables.functions.iter().find(|f| f.name == full);
        let called = called.unwrap_or_else(|| panic!("{full} is in no table"));
        let is_family = |p: &Parameter| p.kind.ends_with("rocksdb_column_family_handle_t*");
        let family_at = called.parameters.iter().position(is_family);
        if let Some(at) = family_at
            && !self.function.parameters.iter().any(is_family)
        {
            arguments.insert(at, "None".to_owned());
        }
        let call = format!("calls::{}({})", callee.to_lowercase(), arguments.join(", "));
        let has_errptr = self.function.parameters.iter().any(|p| p.name == "errptr");
        let value = match has_errptr {
            true => format!("unsafe {{ guard(NAME, errptr, || {call}) }}"),
            false => format!("guard_infallible(NAME, || {call})"),
        };
        self.give(text, &value, has_errptr);
        text.push_str("}\n");
    }

    /// Binds the parameters as the callee takes them, and names them.
    fn arguments(&self, text: &mut String) -> Vec<String> {
        let parameters = &self.function.parameters;
        let (mut arguments, mut count, mut at) = (Vec::new(), None, 0);
        while let Some(parameter) = parameters.get(at) {
            let name = rust_name(&parameter.name);
            let next = parameters.get(at + 1);
            let next_is = |kind: &str| next.is_some_and(|next| next.kind == kind);
            at += 1;
            match parameter.kind.as_str() {
                _ if name == "errptr" => {}
                "size_t*" if self.lends_or_copies() => {}
                "const char*" if next_is("size_t") => {
                    let len = rust_name(&next.expect("there is one").name);
                    let there = match parameter.may_be_null {
                        true => format!("(!{name}.is_null()).then(|| "),
                        false => String::new(),
                    };
                    let end = if parameter.may_be_null { ")" } else { "" };
                    let _ = writeln!(
                        text,
                        "{PROMISE}    let {name} = {there}unsafe {{ bytes::slice({name}, {len}, NAME) }}{end};"
                    );
                    arguments.push(name);
                    at += 1;
                }
                "const char*" => {
                    let _ = writeln!(
                        text,
                        "{PROMISE}    let {name} = unsafe {{ bytes::text({name}, NAME) }};"
                    );
                    arguments.push(name);
                }
                "const char* const*" if next_is("const size_t*") => {
                    let lens = rust_name(&next.expect("there is one").name);
                    let count: &String = count.as_ref().expect("a count comes before an array");
                    let _ = writeln!(
                        text,
                        "    let count = usize::try_from({count}).unwrap_or(0);\n{PROMISE}    let {name} = unsafe {{ \
                         bytes::array({name}, {lens}, count, NAME) }};"
                    );
                    arguments.push(format!("&{name}"));
                    at += 1;
                }
                "int" | "size_t" if next_is("const char* const*") => count = Some(name),
                "unsigned char" => arguments.push(format!("{name} != 0")),
                kind if object_of(kind).is_some() => {
                    arguments.push(self.object(text, parameter, &name));
                }
                _ => arguments.push(name),
            }
        }
        arguments
    }

    fn object(&self, text: &mut String, parameter: &Parameter, name: &str) -> String {
        let object = object_of(&parameter.kind).expect("the caller looked");
        let row = handle(object, self.tables);
        let is_const = parameter.kind.starts_with("const ");
        let get = match row.is_own && !is_const {
            true => "get_mut",
            false => "get",
        };
        if parameter.is_taken {
            let _ = writeln!(
                text,
                "{PROMISE}    let {name} = (!{name}.is_null()).then(|| unsafe {{ handle::take({name}, NAME) }});"
            );
        } else if parameter.may_be_null {
            let _ = writeln!(
                text,
                "{PROMISE}    let {name} = (!{name}.is_null()).then(|| unsafe {{ handle::{get}({name}, NAME) }});"
            );
        } else {
            let _ = writeln!(
                text,
                "{PROMISE}    let {name} = unsafe {{ handle::{get}({name}, NAME) }};"
            );
        }
        match object {
            "column_family_handle_t" => format!("Some({name})"),
            _ => name.to_owned(),
        }
    }

    /// Whether the result is bytes whose length goes to a parameter.
    fn lends_or_copies(&self) -> bool {
        matches!(self.function.result.as_str(), "char*" | "const char*")
    }

    fn give(&self, text: &mut String, value: &str, has_errptr: bool) {
        let len = self
            .function
            .parameters
            .iter()
            .find(|p| p.kind == "size_t*");
        let flat = if has_errptr { ".flatten()" } else { "" };
        let note = if has_errptr { PROMISE } else { "" };
        let _ = match (self.function.result.as_str(), len) {
            ("void", _) => writeln!(text, "{note}    {value};"),
            ("unsigned char", _) if has_errptr => {
                writeln!(text, "{note}    {value}.unwrap_or_default().into()")
            }
            ("unsigned char", _) => writeln!(text, "    {value}.into()"),
            ("char*", Some(len)) => writeln!(
                text,
                "{note}    let found = {value}{flat};\n{PROMISE}    unsafe {{ give(found, {}) }}",
                rust_name(&len.name)
            ),
            ("const char*", Some(len)) => writeln!(
                text,
                "{note}    let found = {value}{flat};\n{PROMISE}    unsafe {{ lend(found, {}) }}",
                rust_name(&len.name)
            ),
            ("char*", None) => writeln!(
                text,
                "{note}    {value}{flat}.map_or(std::ptr::null_mut(), |text: String| bytes::to_c_text(&text))"
            ),
            (kind, _) if MAY_BE_NONE.contains(&kind) => {
                writeln!(
                    text,
                    "{note}    {value}{flat}.map_or(std::ptr::null_mut(), |made| handle::create(made))"
                )
            }
            (kind, _) if object_of(kind).is_some() && has_errptr => {
                writeln!(
                    text,
                    "{note}    {value}.map_or(std::ptr::null_mut(), handle::create)"
                )
            }
            (kind, _) if object_of(kind).is_some() => writeln!(text, "    handle::create({value})"),
            _ if has_errptr => writeln!(text, "{note}    {value}.unwrap_or_default()"),
            _ => writeln!(text, "    {value}"),
        };
    }
}

/// Names that are Rust's own words, or none in its style, are changed.
fn rust_name(name: &str) -> String {
    match name {
        "type" | "move" | "ref" | "in" | "override" => format!("{name}_"),
        name => name.to_lowercase(),
    }
}
