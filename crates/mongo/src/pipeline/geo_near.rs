//! `$geoNear`: documents around a point, the nearest first, with how far they are. The query finds them in that order; what stays of the
//! stage writes the distance into each.

use drumlin_doc::{
    Builder, Code, Document, Expression, Filter, Kind, Near, Outcome, OwnedValue, Path, Predicate,
    Refusal, Test, Value, to_f64,
};
use drumlin_doc_store::Collection;

use super::running::Running;

/// Most names of a path, of the key's too.
const NAMES_MAX: usize = 200;
const KEY_NAMES_MAX: usize = 180;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct GeoNear {
    near: Near,
    query: Filter,
    /// The field of the place, as it was said or as the collection's indexes have it.
    key: Option<Path>,
    distance: Option<Vec<String>>,
    place: Option<Vec<String>>,
    multiplier: f64,
}

impl GeoNear {
    /// # Errors
    /// `Location10065` for what is no document, and those of its fields.
    pub(super) fn parse(of: Value<'_>, running: &Running<'_>) -> Result<Self, Refusal> {
        if !matches!(of.kind, Kind::Document | Kind::Array) {
            let text = "the $geoNear stage specification must be an object";
            return Err(Refusal::new(Code::NearShape, text));
        }
        let of = Document(of.bytes);
        let center = of.get("near").ok_or_else(|| {
            let text = "$geoNear requires a 'near' option as an Object or Array";
            Refusal::new(Code::NearRequired, text)
        })?;
        if let Some(other) = of.iter().find(|it| !KNOWN.contains(&it.name_str())) {
            let text = format!("Unknown argument to $geoNear: {}", other.name_str());
            return Err(Refusal::bad_value(text));
        }
        let text = |name, code| text_of(of, name, code);
        let key = text("key", Code::TypeMismatch)?;
        let key = key.map(|key| names_of("key", key)).transpose()?;
        if key.as_ref().is_some_and(|it| it.len() > KEY_NAMES_MAX) {
            let text = "the key of $geoNear has too many names";
            return Err(Refusal::new(Code::NearKeyDepth, text));
        }
        let names = |name, code| {
            let text = text(name, code)?;
            text.map(|it| names_of(name, it)).transpose()
        };
        let center = known(center, Code::NearConstant, "near", running)?;
        if !matches!(center.kind, Kind::Document | Kind::Array) {
            let text = "$geoNear requires a 'near' option as an Object or Array";
            return Err(Refusal::new(Code::NearType, text));
        }
        let limit = |name, code| match of.get(name) {
            Some(value) => {
                let value = known(value, code, name, running)?;
                distance_of(name, value.get()).map(Some)
            }
            None => Ok(None),
        };
        let min = limit("minDistance", Code::MinDistanceConstant)?;
        let max = limit("maxDistance", Code::MaxDistanceConstant)?;
        let is_sphere = of.get("spherical").is_some_and(Value::is_truthy);
        let multiplier = of.get("distanceMultiplier");
        let multiplier = multiplier.map(|it| distance_of("distanceMultiplier", it));
        Ok(Self {
            near: Near::of_stage(center.get(), is_sphere, min, max)?,
            query: query_of(of, running)?,
            key: key.map(|names| Path::new(&names.join("."))),
            distance: names("distanceField", Code::DistanceFieldType)?,
            place: names("includeLocs", Code::IncludeLocsType)?,
            multiplier: multiplier.transpose()?.unwrap_or(1.0),
        })
    }

    /// Takes the field of the only index of places, where none is named: of a `2d` index first.
    ///
    /// # Errors
    /// `NamespaceNotFound`; `IndexNotFound` where there is none, or several.
    pub(super) fn find_key(&mut self, collection: Option<&Collection>) -> Result<(), Refusal> {
        let collection = collection.ok_or_else(|| {
            let text = "$geoNear is of a collection that does not exist";
            Refusal::new(Code::NamespaceNotFound, text)
        })?;
        if self.key.is_some() {
            return Ok(());
        }
        let of_kind = |is_flat| {
            let places = collection.indexes.iter().map(|it| it.place_field());
            let all = places.flatten().filter(move |(_, it)| *it == is_flat);
            all.map(|(path, _)| path.clone()).collect::<Vec<Path>>()
        };
        let refuse = |text: &str| Err(Refusal::new(Code::IndexNotFound, text));
        for (is_flat, kind) in [(true, "2d"), (false, "2dsphere")] {
            let mut all = of_kind(is_flat);
            match (all.pop(), all.is_empty()) {
                (Some(key), true) => {
                    self.key = Some(key);
                    return Ok(());
                }
                (Some(_), false) => {
                    return refuse(&format!(
                        "There is more than one {kind} index; unsure which to use for $geoNear"
                    ));
                }
                (None, _) => {}
            }
        }
        refuse("$geoNear requires a 2d or 2dsphere index, but none were found")
    }

    /// What the query has to find, in what order.
    pub(super) fn filter(&self) -> Filter {
        let near = Test::Any(Predicate::Near(Box::new(self.near.clone())));
        let key = self.key.clone().map(|key| Filter::Field(key, near));
        Filter::And(key.into_iter().chain([self.query.clone()]).collect())
    }

    /// A document with its distance.
    ///
    /// # Errors
    /// Of the watch.
    pub(super) fn measured(&self, document: Document<'_>) -> Outcome<Vec<u8>> {
        let nearest = match &self.key {
            Some(key) => self.near.nearest(document, key)?,
            None => None,
        };
        let Some((distance, place)) = nearest else {
            return Ok(document.0.to_vec());
        };
        let distance = OwnedValue::double(distance * self.multiplier);
        let mut made = document.0.to_vec();
        let wanted = [(&self.distance, distance.get()), (&self.place, place)];
        for (names, value) in wanted {
            if let Some(names) = names {
                let mut out = Builder::with_room(made.len() + value.bytes.len() + 32);
                put(Document(&made), names, value, &mut out);
                made = out.finish();
            }
        }
        Ok(made)
    }
}

const KNOWN: &[&str] = &[
    "near",
    "distanceField",
    "distanceMultiplier",
    "includeLocs",
    "key",
    "maxDistance",
    "minDistance",
    "query",
    "spherical",
];

/// Copies a document with a value at a path; what is on the way and no document goes. Recurses once a name, of which there are few.
fn put(document: Document<'_>, names: &[String], value: Value<'_>, out: &mut Builder) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    let write = |of: Option<Value<'_>>, out: &mut Builder| {
        if rest.is_empty() {
            out.value(name, value);
            return;
        }
        let inner = of.filter(|it| it.kind == Kind::Document);
        out.open(Kind::Document, name);
        put(
            inner.map_or(Document::EMPTY, |it| Document(it.bytes)),
            rest,
            value,
            out,
        );
        out.close();
    };
    let mut is_put = false;
    for element in document {
        match element.name == name.as_bytes() {
            true => {
                is_put = true;
                write(Some(element.value), out);
            }
            false => drop(out.value(element.name, element.value)),
        }
    }
    if !is_put {
        write(None, out);
    }
}

/// A value that is the same for all documents.
fn known(
    value: Value<'_>,
    code: Code,
    name: &str,
    running: &Running<'_>,
) -> Result<OwnedValue, Refusal> {
    let expression = Expression::parse(value, &running.scope)?;
    let wrong = || {
        Refusal::new(
            code,
            format!("$geoNear requires a constant '{name}' argument"),
        )
    };
    expression.known().cloned().ok_or_else(wrong)
}

/// # Errors
/// `TypeMismatch`; `BadValue` below 0.
fn distance_of(name: &str, value: Value<'_>) -> Result<f64, Refusal> {
    let number = to_f64(value).ok_or_else(|| {
        let kind = value.kind.name();
        Refusal::type_mismatch(format!("$geoNear's '{name}' must be a number, not {kind}"))
    })?;
    match number >= 0.0 {
        true => Ok(number),
        false => Err(Refusal::bad_value(format!("{name} must be nonnegative"))),
    }
}

fn text_of<'v>(of: Document<'v>, name: &str, code: Code) -> Result<Option<&'v str>, Refusal> {
    let Some(value) = of.get(name) else {
        return Ok(None);
    };
    let text = value.as_str().filter(|_| value.kind == Kind::String);
    let wrong = || Refusal::new(code, format!("$geoNear requires that '{name}' is a String"));
    text.map(Some).ok_or_else(wrong)
}

/// The names of a path.
fn names_of(what: &str, path: &str) -> Result<Vec<String>, Refusal> {
    let refuse = |code, why: &str| Err(Refusal::new(code, format!("'{what}' of $geoNear {why}")));
    let names: Vec<String> = path.split('.').map(str::to_owned).collect();
    match () {
        () if path.is_empty() && what == "key" => refuse(Code::BadValue, "is empty"),
        () if path.is_empty() => refuse(Code::ProjectEmpty, "is empty"),
        () if path.ends_with('.') => refuse(Code::PathDot, "ends with a '.'"),
        () if names.iter().any(String::is_empty) => {
            refuse(Code::PathEmpty, "has a name that is empty")
        }
        () if names.iter().any(|it| it.starts_with('$')) => {
            refuse(Code::PathDollar, "has a name that starts with '$'")
        }
        () if path.contains('\0') => refuse(Code::PathNull, "has a zero in it"),
        () if names.len() > NAMES_MAX => refuse(Code::Overflow, "has too many names"),
        () if names.len() == NAMES_MAX && what != "key" => {
            refuse(Code::PathDepth, "has too many names")
        }
        () => Ok(names),
    }
}

fn query_of(of: Document<'_>, running: &Running<'_>) -> Result<Filter, Refusal> {
    let Some(query) = of.get("query") else {
        return Ok(Filter::And(Vec::new()));
    };
    if query.kind != Kind::Document {
        let kind = query.kind.name();
        let text = format!("$geoNear's 'query' must be an object, not {kind}");
        return Err(Refusal::type_mismatch(text));
    }
    let query = Document(query.bytes);
    match query.get("$text") {
        Some(_) => Err(Refusal::bad_value("$text is not allowed within $geoNear")),
        None => Filter::without_near(query, &running.scope),
    }
}
