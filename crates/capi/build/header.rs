//! The header.

use std::fmt::Write as _;

use crate::c::{Function, Tables, Versions};

/// `head` with the objects and the functions in place of its two marks.
pub(crate) fn header(tables: &Tables, head: &str) -> String {
    let mut objects = String::new();
    for object in tables.handles.keys() {
        let _ = writeln!(objects, "typedef struct rocksdb_{object} rocksdb_{object};");
    }
    let mut functions = String::new();
    for function in &tables.functions {
        declare(&mut functions, function);
    }
    head.replace("@OBJECTS@\n", &objects)
        .replace("@FUNCTIONS@\n", &functions)
}

fn declare(text: &mut String, function: &Function) {
    let parameters =
        function
            .parameters
            .iter()
            .map(|parameter| match parameter.kind.contains("(*") {
                true => parameter.kind.clone(),
                false => format!("{} {}", parameter.kind, parameter.name),
            });
    let parameters: Vec<_> = parameters.collect();
    let parameters = match parameters.is_empty() {
        true => "void".to_owned(),
        false => parameters.join(", "),
    };
    let condition = match function.versions {
        Versions::All => None,
        Versions::Before(first) => Some(format!("< {}", first.number())),
        Versions::Since(first) => Some(format!(">= {}", first.number())),
    };
    if let Some(condition) = &condition {
        let _ = writeln!(text, "#if DRUMLIN_ROCKSDB_ABI {condition}");
    }
    if function.form == "refused" {
        text.push_str("/* Not implemented: it says so. */\n");
    }
    let _ = writeln!(
        text,
        "ROCKSDB_LIBRARY_API {} {}({parameters});",
        function.result, function.name
    );
    if condition.is_some() {
        text.push_str("#endif\n");
    }
}
