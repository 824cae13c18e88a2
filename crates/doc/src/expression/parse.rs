//! Expressions, made from values.

use crate::code::Code;
use crate::path::Path;
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::sort::Sort;
use crate::validate::DEPTH_MAX;

use super::function::{Function, Shape};
use super::table::function_of;
use super::tree::{ArrayOrder, Convert, Expression, Over, Random, Special};

/// What is known where an expression is parsed.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// `$$NOW`, in milliseconds since 1970.
    pub now_ms: i64,
    /// Where numbers by chance begin.
    pub seed: u64,
    /// Names that have values when it runs; those of `let` of a command are values already.
    pub names: Vec<String>,
    /// Variables that have a value for all documents.
    pub values: Vec<(String, OwnedValue)>,
}

impl Scope {
    /// The variables that `let` of a command names, each a constant.
    ///
    /// # Errors
    /// Of expressions.
    pub fn with_values(mut self, of: Document<'_>) -> Outcome<Self> {
        for element in of {
            let name = element.name_str();
            check_name(name)?;
            let value = Expression::parse(element.value, &self)?.eval(Document::EMPTY)?;
            let value = value.unwrap_or_else(OwnedValue::null);
            self.values.retain(|(known, _)| known != name);
            self.values.push((name.to_owned(), value));
        }
        Ok(self)
    }

    fn and(&self, name: &str) -> Self {
        let mut inner = self.clone();
        inner.values.retain(|(known, _)| known != name);
        inner.names.push(name.to_owned());
        inner
    }
}

/// Refuses names that a variable may not have.
fn check_name(name: &str) -> Outcome<()> {
    let wrong = |code, text: &str| Err(Refusal::new(code, format!("'{name}' {text}")));
    let Some(first) = name.chars().next() else {
        return wrong(Code::VariableEmpty, "is an empty name of a variable");
    };
    if !first.is_ascii_lowercase() && first.is_ascii() && name != "CURRENT" {
        return wrong(
            Code::VariableStart,
            "starts with an invalid character for a user variable name",
        );
    }
    let is_wrong = |char: char| char.is_ascii() && !(char.is_ascii_alphanumeric() || char == '_');
    match name.contains(is_wrong) {
        true => wrong(
            Code::VariableCharacter,
            "contains an invalid character for a variable name",
        ),
        false => Ok(()),
    }
}

impl Expression {
    /// The expression that `value` is.
    ///
    /// # Errors
    /// `InvalidPipelineOperator` for unknown operators, by name; those of their arguments.
    pub fn parse(value: Value<'_>, scope: &Scope) -> Outcome<Self> {
        Parser { scope, depth: 0 }.value(value)
    }
}

#[derive(Clone, Copy)]
struct Parser<'s> {
    scope: &'s Scope,
    depth: usize,
}

fn refuse<T>(code: Code, text: impl Into<String>) -> Outcome<T> {
    Err(Refusal::new(code, text))
}

impl Parser<'_> {
    fn value(self, value: Value<'_>) -> Outcome<Expression> {
        if self.depth > DEPTH_MAX {
            return Err(Refusal::bad_value("an expression is nested too deep"));
        }
        let inner = Self {
            depth: self.depth + 1,
            ..self
        };
        match (value.kind, value.as_str()) {
            (Kind::String, Some(text)) => match text.strip_prefix("$$") {
                Some(variable) => inner.variable(variable),
                None => match text.strip_prefix('$') {
                    Some(path) => path_of(path).map(Expression::Field),
                    None => Ok(Expression::Literal(value.to_owned())),
                },
            },
            (Kind::Document, _) => inner.document(Document(value.bytes)),
            (Kind::Array, _) => {
                let items = Document(value.bytes).iter();
                let items: Vec<_> = items
                    .map(|item| inner.value(item.value))
                    .collect::<Outcome<_>>()?;
                Ok(constant(Expression::Array(items)))
            }
            _ => Ok(Expression::Literal(value.to_owned())),
        }
    }

    fn variable(self, text: &str) -> Outcome<Expression> {
        let (name, path) = match text.split_once('.') {
            Some((name, path)) => (name, Some(path_of(path)?)),
            None => (text, None),
        };
        let value = self.scope.values.iter().find(|(known, _)| known == name);
        let with_path = |made: OwnedValue| match &path {
            None => Expression::Literal(made),
            Some(path) => {
                let mut names = vec![b"v".as_slice().into()];
                names.extend(path.parts().iter().cloned());
                let mut holder = crate::build::Builder::new();
                holder.value("v", made.get());
                let path = Path::of(names);
                let found = Expression::Field(path).eval(Document(&holder.finish()));
                match found {
                    Ok(Some(found)) => Expression::Literal(found),
                    _ => Expression::Missing,
                }
            }
        };
        if let Some((_, value)) = value {
            return Ok(with_path(value.clone()));
        }
        if self.scope.names.iter().any(|known| known == name) {
            return Ok(Expression::Variable(name.to_owned(), path));
        }
        match (name, path) {
            ("ROOT" | "CURRENT", None) => Ok(Expression::Root),
            ("ROOT" | "CURRENT", Some(path)) => Ok(Expression::Field(path)),
            ("REMOVE", _) => Ok(Expression::Missing),
            ("NOW", None) => Ok(Expression::Literal(OwnedValue::date(self.scope.now_ms))),
            ("", _) => refuse(Code::VariableEmpty, "empty variable names are not allowed"),
            ("CLUSTER_TIME" | "SEARCH_META" | "USER_ROLES" | "JS_SCOPE" | "IS_MR", _) => {
                Err(Refusal::not_supported(format!("the variable $${name}")))
            }
            _ => refuse(
                Code::VariableUnknown,
                format!("Use of undefined variable: {name}"),
            ),
        }
    }

    fn document(self, document: Document<'_>) -> Outcome<Expression> {
        let mut fields = Vec::new();
        let count = document.iter().count();
        for element in document {
            let name = element.name_str();
            if name.starts_with('$') {
                return match count {
                    1 => self.operator(name, element.value),
                    _ => refuse(
                        Code::ExpressionShape,
                        format!(
                            "an object representing an expression must have exactly one field: {}",
                            crate::show(document.as_value())
                        ),
                    ),
                };
            }
            if name.contains('.') {
                return refuse(
                    Code::FieldNameDot,
                    format!(
                        "FieldPath field names may not contain '.', and '{name}' does. Consider using $getField or $setField."
                    ),
                );
            }
            fields.push((name.to_owned(), self.value(element.value)?));
        }
        Ok(constant(Expression::Document(fields)))
    }

    fn operator(self, name: &str, value: Value<'_>) -> Outcome<Expression> {
        if let Some(function) = function_of(name) {
            return self.call(function, value);
        }
        let special = match name {
            "$literal" | "$const" => return Ok(Expression::Literal(value.to_owned())),
            "$expr" => return self.value(value),
            "$and" => Special::And(self.list(value)?),
            "$or" => Special::Or(self.list(value)?),
            "$cond" => self.cond(value)?,
            "$ifNull" => {
                let parts = self.list(value)?;
                if parts.len() < 2 {
                    return refuse(
                        Code::IfNullArity,
                        format!("$ifNull needs at least two arguments, had: {}", parts.len()),
                    );
                }
                Special::IfNull(parts)
            }
            "$switch" => self.switch(value)?,
            "$let" => self.bind(value)?,
            "$map" => {
                let codes = [Code::MapShape, Code::MapUnknown, Code::MapMissing];
                let [input, named, inner] = fields(
                    name,
                    value,
                    [("input", true), ("as", false), ("in", true)],
                    codes,
                )?;
                let over = self.over(input, named)?;
                let inner = self.inside(&over.name, inner)?;
                Special::Map(over, inner)
            }
            "$filter" => {
                let codes = [Code::FilterShape, Code::FilterUnknown, Code::FilterMissing];
                let wanted = [
                    ("input", true),
                    ("as", false),
                    ("cond", true),
                    ("limit", false),
                ];
                let [input, named, condition, limit] = fields(name, value, wanted, codes)?;
                let over = self.over(input, named)?;
                let condition = self.inside(&over.name, condition)?;
                Special::Filter(over, condition, self.optional(limit)?)
            }
            "$reduce" => {
                let codes = [Code::ReduceShape, Code::ReduceUnknown, Code::ReduceMissing];
                let wanted = [("input", true), ("initialValue", true), ("in", true)];
                let [input, initial, inner] = fields(name, value, wanted, codes)?;
                let scope = self.scope.and("this").and("value");
                let within = Parser {
                    scope: &scope,
                    ..self
                };
                Special::Reduce(
                    self.optional(input)?,
                    self.optional(initial)?,
                    within.optional(inner)?,
                )
            }
            "$sortArray" => {
                let codes = [
                    Code::SortArrayShape,
                    Code::SortArrayUnknown,
                    Code::SortArrayMissing,
                ];
                let [input, order] =
                    fields(name, value, [("input", true), ("sortBy", true)], codes)?;
                let order = order.unwrap_or(Value::NULL);
                let order = match (order.as_whole(), order.as_document()) {
                    (Some(1), _) => ArrayOrder::Whole(false),
                    (Some(-1), _) => ArrayOrder::Whole(true),
                    (_, Some(fields)) if order.kind == Kind::Document => {
                        ArrayOrder::Fields(Sort::new(fields)?)
                    }
                    _ => {
                        return Err(Refusal::bad_value(
                            "Illegal sort value for $sortArray: it has to be 1, -1 or a document",
                        ));
                    }
                };
                Special::SortArray(self.optional(input)?, order)
            }
            "$convert" => {
                let codes = [Code::FailedToParse; 3];
                let wanted = [
                    ("input", true),
                    ("to", true),
                    ("onError", false),
                    ("onNull", false),
                ];
                let [input, to, on_error, on_null] = fields(name, value, wanted, codes)?;
                let some = |part: Option<Value<'_>>| part.map(|part| self.value(part)).transpose();
                Special::Convert(Convert {
                    input: self.optional(input)?,
                    to: self.optional(to)?,
                    on_error: some(on_error)?,
                    on_null: some(on_null)?,
                })
            }
            "$rand" => {
                let seed = self.scope.seed;
                Special::Random(Random(std::sync::Arc::new(seed.into())))
            }
            _ => {
                return refuse(
                    Code::InvalidPipelineOperator,
                    format!("Unrecognized expression '{name}': it is not supported by this server"),
                );
            }
        };
        Ok(Expression::Special(Box::new(special)))
    }

    /// The arguments of an operator: an array, or one that is none.
    fn list(self, value: Value<'_>) -> Outcome<Vec<Expression>> {
        match value.as_array() {
            Some(items) => items.iter().map(|item| self.value(item.value)).collect(),
            None => Ok(vec![self.value(value)?]),
        }
    }

    fn optional(self, value: Option<Value<'_>>) -> Outcome<Expression> {
        value.map_or(Ok(Expression::Missing), |value| self.value(value))
    }

    fn over(self, input: Option<Value<'_>>, named: Option<Value<'_>>) -> Outcome<Over> {
        let name = match named {
            Some(named) => {
                let wrong = || Refusal::type_mismatch("'as' has to be a string");
                named.as_str().ok_or_else(wrong)?
            }
            None => "this",
        };
        check_name(name)?;
        Ok(Over {
            input: self.optional(input)?,
            name: name.to_owned(),
        })
    }

    /// An expression in which one more name is known.
    fn inside(self, name: &str, value: Option<Value<'_>>) -> Outcome<Expression> {
        let scope = self.scope.and(name);
        let within = Parser {
            scope: &scope,
            ..self
        };
        within.optional(value)
    }

    fn cond(self, value: Value<'_>) -> Outcome<Special> {
        if value.kind == Kind::Document {
            let mut parts = [None; 3];
            for element in Document(value.bytes) {
                let at = ["if", "then", "else"]
                    .iter()
                    .position(|name| *name == element.name_str());
                match at.and_then(|at| parts.get_mut(at)) {
                    Some(part) => *part = Some(element.value),
                    None => {
                        return refuse(
                            Code::CondUnknown,
                            format!("Unrecognized parameter to $cond: {}", element.name_str()),
                        );
                    }
                }
            }
            let names = [
                ("if", Code::CondIf),
                ("then", Code::CondThen),
                ("else", Code::CondElse),
            ];
            for ((name, code), part) in names.into_iter().zip(&parts) {
                if part.is_none() {
                    return refuse(code, format!("Missing '{name}' parameter to $cond"));
                }
            }
            let [condition, then, other] = parts;
            return Ok(Special::Cond([
                self.optional(condition)?,
                self.optional(then)?,
                self.optional(other)?,
            ]));
        }
        let parts = self.list(value)?;
        let count = parts.len();
        match <[Expression; 3]>::try_from(parts) {
            Ok(parts) => Ok(Special::Cond(parts)),
            Err(_) => Err(arity("$cond", "exactly 3 arguments", count, Code::Arity)),
        }
    }

    fn switch(self, value: Value<'_>) -> Outcome<Special> {
        let codes = [Code::SwitchShape, Code::SwitchUnknown, Code::SwitchEmpty];
        let [branches, other] = fields(
            "$switch",
            value,
            [("branches", true), ("default", false)],
            codes,
        )?;
        let branches = branches.and_then(Value::as_array);
        let Some(branches) = branches else {
            return refuse(
                Code::SwitchBranches,
                "$switch expected an array for 'branches'",
            );
        };
        let one = |branch: Value<'_>| {
            let codes = [
                Code::SwitchBranch,
                Code::SwitchCaseUnknown,
                Code::SwitchCase,
            ];
            let wanted = [("case", true), ("then", true)];
            let [case, then] = fields("a branch of $switch", branch, wanted, codes)?;
            Ok((self.optional(case)?, self.optional(then)?))
        };
        let branches: Vec<_> = branches
            .iter()
            .map(|branch| one(branch.value))
            .collect::<Outcome<_>>()?;
        if branches.is_empty() {
            return refuse(Code::SwitchEmpty, "$switch requires at least one branch.");
        }
        let other = other.map(|other| self.value(other)).transpose()?;
        Ok(Special::Switch(branches, other))
    }

    fn bind(self, value: Value<'_>) -> Outcome<Special> {
        let codes = [Code::LetShape, Code::LetUnknown, Code::LetMissing];
        let [variables, inner] = fields("$let", value, [("vars", true), ("in", true)], codes)?;
        let variables = variables.filter(|it| it.kind == Kind::Document);
        let Some(variables) = variables.and_then(Value::as_document) else {
            return refuse(
                Code::LetShape,
                "invalid parameter: expected an object (vars)",
            );
        };
        let mut bound = Vec::new();
        let mut scope = self.scope.clone();
        for element in variables {
            let name = element.name_str();
            check_name(name)?;
            bound.push((name.to_owned(), self.value(element.value)?));
            scope = scope.and(name);
        }
        let within = Parser {
            scope: &scope,
            ..self
        };
        Ok(Special::Let(bound, within.optional(inner)?))
    }

    fn call(self, function: &'static Function, value: Value<'_>) -> Outcome<Expression> {
        let name = function.name;
        let arguments = match function.shape {
            Shape::Exactly(count) => {
                let arguments = self.list(value)?;
                if arguments.len() != count {
                    let wanted = format!("exactly {count} arguments");
                    return Err(arity(name, &wanted, arguments.len(), Code::Arity));
                }
                arguments
            }
            Shape::Between(least, most) => {
                let arguments = self.list(value)?;
                if !(least..=most).contains(&arguments.len()) {
                    let wanted = match most {
                        usize::MAX => format!("at least {least} arguments"),
                        _ => format!("at least {least} arguments, and at most {most},"),
                    };
                    return Err(arity(name, &wanted, arguments.len(), Code::ArityRange));
                }
                arguments
            }
            Shape::Named(wanted, codes) => {
                let found = fields_of(name, value, wanted, codes)?;
                let found = found.into_iter().map(|value| self.optional(value));
                found.collect::<Outcome<_>>()?
            }
            // A path of the document, or an expression with options.
            Shape::OneOrNamed(wanted, codes) => match value.kind {
                Kind::Document
                    if wanted
                        .iter()
                        .any(|(first, _)| Document(value.bytes).get(first).is_some()) =>
                {
                    let found = fields_of(name, value, wanted, codes)?;
                    let found = found.into_iter().map(|value| self.optional(value));
                    found.collect::<Outcome<_>>()?
                }
                _ => {
                    let mut arguments = self.list(value)?;
                    if arguments.len() != 1 {
                        return Err(arity(
                            name,
                            "exactly 1 arguments",
                            arguments.len(),
                            codes[0],
                        ));
                    }
                    arguments.resize(wanted.len(), Expression::Missing);
                    arguments
                }
            },
        };
        Ok(constant(Expression::Call(function, arguments)))
    }
}

fn arity(name: &str, wanted: &str, count: usize, code: Code) -> Refusal {
    let text = format!("Expression {name} takes {wanted}. {count} were passed in.");
    Refusal::new(code, text)
}

/// It as a value, where all of it is known. What is wrong is told when it runs, if it does.
fn constant(expression: Expression) -> Expression {
    let is_literal = |part: &Expression| matches!(part, Expression::Literal(_));
    let is_known = match &expression {
        Expression::Array(items) => items.iter().all(is_literal),
        Expression::Document(fields) => fields.iter().all(|(_, value)| is_literal(value)),
        Expression::Call(_, arguments) => arguments.iter().all(is_literal),
        _ => false,
    };
    match is_known.then(|| expression.eval(Document::EMPTY)) {
        Some(Ok(Some(value))) => Expression::Literal(value),
        _ => expression,
    }
}

fn path_of(path: &str) -> Outcome<Path> {
    if path.is_empty() {
        return refuse(Code::PathAlone, "'$' by itself is not a valid FieldPath");
    }
    if path.ends_with('.') {
        return refuse(Code::PathDot, "FieldPath must not end with a '.'.");
    }
    for part in path.split('.') {
        if part.is_empty() {
            return refuse(
                Code::PathEmpty,
                "FieldPath field names may not be empty strings.",
            );
        }
        if part.starts_with('$') {
            return refuse(
                Code::PathDollar,
                format!(
                    "FieldPath field names may not start with '$', given '{part}'. Consider using $getField or $setField."
                ),
            );
        }
        if part.contains('\0') {
            return refuse(
                Code::PathNull,
                "FieldPath field names may not contain '\\0'.",
            );
        }
    }
    Ok(Path::new(path))
}

/// The arguments of an operator that names them.
fn fields<'v, const N: usize>(
    name: &str,
    value: Value<'v>,
    wanted: [(&str, bool); N],
    codes: [Code; 3],
) -> Outcome<[Option<Value<'v>>; N]> {
    let found = fields_of(name, value, &wanted, codes)?;
    let wrong = |_| Refusal::bad_value("an operator has other arguments");
    found.try_into().map_err(wrong)
}

/// As `fields`; codes are for what is no document, for unknown names, and for missing ones.
fn fields_of<'v>(
    name: &str,
    value: Value<'v>,
    wanted: &[(&str, bool)],
    codes: [Code; 3],
) -> Outcome<Vec<Option<Value<'v>>>> {
    let [shape, unknown, missing] = codes;
    if value.kind != Kind::Document {
        let text = format!(
            "{name} only supports an object as its argument, and found {}",
            value.kind.name()
        );
        return refuse(shape, text);
    }
    let mut found = vec![None; wanted.len()];
    for element in Document(value.bytes) {
        let at = wanted
            .iter()
            .position(|(known, _)| *known == element.name_str());
        match at.and_then(|at| found.get_mut(at)) {
            Some(place) => *place = Some(element.value),
            None => {
                let text = format!("{name} found an unknown argument: {}", element.name_str());
                return refuse(unknown, text);
            }
        }
    }
    for ((known, is_needed), value) in wanted.iter().zip(&found) {
        if *is_needed && value.is_none() {
            let text = format!("Missing '{known}' parameter to {name}");
            return refuse(missing, text);
        }
    }
    Ok(found)
}
