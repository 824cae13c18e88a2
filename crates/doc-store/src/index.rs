//! A secondary index: what it is over, and the entries of a document in it.

use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_doc::{
    Code, Document, Filter, IndexFields, Kind, Path, PlaceKind, Predicate, Refusal, Test,
    check_keys,
};

use crate::geo::{self, PlaceOptions, Places};
use crate::layout::{Ident, under};

/// An index of a collection.
#[derive(Debug)]
pub struct Index {
    /// Under it are its entries.
    pub(crate) ident: Ident,
    /// Its name, one of its collection.
    pub name: String,
    /// Its key as it was given: a document.
    pub key: Vec<u8>,
    /// The fields of the key.
    pub fields: IndexFields,
    /// Which of its fields are places; of an ordinary index there are none.
    pub(crate) places: Places,
    /// What was said of these.
    pub place_options: PlaceOptions,
    /// Whether no two documents may have the same key.
    pub unique: bool,
    /// Whether documents without any of the fields have no entry.
    pub sparse: bool,
    /// The only documents that have entries, where not all have.
    pub partial: Option<Partial>,
    /// Documents go so many seconds after the date that they have at the field.
    pub expire_after_seconds: Option<u32>,
    /// Whether a document ever had an array at one of the fields, or a place that is more than a point. It is set before such an entry is written, so that who sees
    /// the entry sees it.
    pub(crate) multikey: AtomicBool,
}

/// An index that is being built.
#[derive(Debug)]
pub(crate) struct Building {
    pub(crate) index: Arc<Index>,
    /// Why it will not be.
    pub(crate) failed: Mutex<Option<Refusal>>,
}

impl Building {
    /// Gives it up for `why`, unless it was given up before.
    pub(crate) fn fail(&self, why: Refusal) {
        self.failed.lock().get_or_insert(why);
    }

    /// # Errors
    /// Why it was given up.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match &*self.failed.lock() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }
}

/// What documents of a partial index are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    /// As it was given: a document.
    pub given: Vec<u8>,
    /// It as a filter: of the conditions that an index may have.
    pub filter: Filter,
}

impl Partial {
    /// # Errors
    /// Of the filter; `CannotCreateIndex` for conditions that an index may not have.
    pub(crate) fn new(given: &[u8]) -> Result<Self, Refusal> {
        let filter = Filter::new(Document(given))?;
        match may_be_partial(&filter) {
            true => Ok(Self {
                given: given.to_vec(),
                filter,
            }),
            false => {
                let text = "unsupported expression in partial index: it takes $and, $or, $in, equality, comparisons, $type and $exists: true";
                Err(Refusal::new(Code::CannotCreateIndex, text))
            }
        }
    }
}

fn may_be_partial(filter: &Filter) -> bool {
    fn may(test: &Test) -> bool {
        match test {
            Test::Exists => true,
            Test::All(tests) => tests.iter().all(may),
            Test::Any(predicate) => !matches!(
                predicate,
                Predicate::Regex(_)
                    | Predicate::OneOf(..)
                    | Predicate::Bits(..)
                    | Predicate::Geo(_)
                    | Predicate::Near(_)
                    | Predicate::Mod(..)
            ),
            _ => false,
        }
    }
    match filter {
        Filter::And(parts) | Filter::Or(parts) => parts.iter().all(may_be_partial),
        Filter::Field(_, test) => may(test),
        Filter::Nor(_) | Filter::Expression(_) | Filter::Schema(_) => false,
    }
}

/// An entry of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// The fields that the key of an index names, and which are places.
///
/// # Errors
/// `CannotCreateIndex` for kinds of indexes that are not served, by name; of the options of places.
pub(crate) fn fields_of(
    key: Document<'_>,
    options: PlaceOptions,
) -> Result<(IndexFields, Places), Refusal> {
    let cannot = |text: String| Refusal::new(Code::CannotCreateIndex, text);
    let mut fields = Vec::new();
    let mut places = Places::new();
    for element in key {
        let name = element.name_str();
        if name.is_empty()
            || name
                .split('.')
                .any(|part| part.is_empty() || part.starts_with('$'))
        {
            return Err(cannot(format!(
                "an index over {name:?} is not supported by this server"
            )));
        }
        let path = Path::new(name);
        if path.has_numbers() {
            return Err(cannot(format!(
                "an index over {name:?}, a place of an array, is not supported by this server"
            )));
        }
        let word = element.value.as_str().unwrap_or_default();
        let place = options.kind(word)?;
        places.push(place);
        if place.is_some() {
            fields.push((path, false));
            continue;
        }
        if !element.value.kind.is_number() {
            let kind = element.value.as_str().unwrap_or("that");
            return Err(cannot(format!(
                "an index of kind {kind:?} over {name:?} is not supported by this server"
            )));
        }
        match element.value.as_whole() {
            Some(1..) => fields.push((path, false)),
            Some(..=-1) => fields.push((path, true)),
            _ => {
                return Err(cannot(format!(
                    "Values in the index key pattern must be whole numbers other than 0, as that of {name:?} is not"
                )));
            }
        }
    }
    geo::check(&places, options)?;
    if places.iter().all(Option::is_none) {
        places.clear();
    }
    match fields.len() {
        1..=32 => Ok((IndexFields(fields), places)),
        count => Err(cannot(format!("an index has 1 to 32 fields, not {count}"))),
    }
}

impl Index {
    /// That of `_id`, of a capped collection.
    pub(crate) fn of_id(ident: Ident) -> Self {
        let mut key = drumlin_doc::Builder::new();
        key.i32("_id", 1);
        Self {
            ident,
            name: "_id_".to_owned(),
            key: key.finish(),
            fields: IndexFields(vec![(Path::new("_id"), false)]),
            places: Places::new(),
            place_options: PlaceOptions::default(),
            unique: true,
            sparse: false,
            partial: None,
            expire_after_seconds: None,
            multikey: AtomicBool::new(false),
        }
    }

    /// Whether it has the entries that `other` has, but for its ident.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let options = |it: &Self| (it.unique, it.sparse, it.expire_after_seconds);
        (&self.name, &self.key, options(self)) == (&other.name, &other.key, options(other))
            && self.partial == other.partial
    }

    /// Whether it is multikey.
    pub fn is_multikey(&self) -> bool {
        self.multikey.load(Ordering::Acquire)
    }

    /// The first field that is a place, and whether it is one on the plane.
    pub fn place_field(&self) -> Option<(&Path, bool)> {
        let mut fields = self.fields.0.iter().zip(&self.places);
        fields.find_map(|((path, _), kind)| {
            let kind = (*kind)?;
            Some((path, matches!(kind, PlaceKind::Flat(_))))
        })
    }

    /// The kind of a field, where it is a place.
    pub(crate) fn place(&self, path: &Path) -> Option<PlaceKind> {
        geo::kind_of(&self.fields, &self.places, path)
    }

    /// The entries of a document whose `_id` has the key `id_key`, sorted; and whether an array made them.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays`, `CannotBuildIndexKeys`, those of places.
    pub(crate) fn entries(
        &self,
        document: Document<'_>,
        id_key: &[u8],
    ) -> Result<(Vec<Entry>, bool), Refusal> {
        if let Some(partial) = &self.partial
            && !partial.filter.matches(document)?
        {
            return Ok((Vec::new(), false));
        }
        let found = match self.places.is_empty() {
            true => self.fields.keys_of(document)?,
            false => geo::keys_of(&self.fields, &self.places, document)?,
        };
        if found.is_absent && self.sparse {
            return Ok((Vec::new(), false));
        }
        // Each entry has the key of the `_id`, too.
        let keys_bytes = found.keys.iter().map(Vec::len).sum::<usize>();
        let ids_bytes = found.keys.len().saturating_mul(id_key.len());
        check_keys(found.keys.len(), keys_bytes.saturating_add(ids_bytes))?;
        let entry = |key: &Vec<u8>| match self.unique {
            true => Entry {
                key: under(self.ident, key),
                value: id_key.to_vec(),
            },
            false => Entry {
                key: under(self.ident, &[key.as_slice(), id_key].concat()),
                value: u32::try_from(id_key.len())
                    .unwrap_or(u32::MAX)
                    .to_be_bytes()
                    .to_vec(),
            },
        };
        Ok((found.keys.iter().map(entry).collect(), found.is_multikey))
    }

    /// The key of the `_id` that an entry refers to.
    pub(crate) fn id_of<'a>(&self, key: &'a [u8], value: &'a [u8]) -> Option<&'a [u8]> {
        if self.unique {
            return Some(value);
        }
        let len = usize::try_from(u32::from_be_bytes(value.try_into().ok()?)).ok()?;
        key.get(key.len().checked_sub(len)?..)
    }

    /// The refusal of a document that has a key of another one.
    pub(crate) fn duplicate(&self, namespace: &str, document: Document<'_>) -> Refusal {
        duplicate(namespace, (&self.name, Document(&self.key)), document)
    }
}

/// `DuplicateKey`, with what drivers look for.
pub(crate) fn duplicate(
    namespace: &str,
    (name, key): (&str, Document<'_>),
    document: Document<'_>,
) -> Refusal {
    let mut values = drumlin_doc::Builder::new();
    for element in key {
        let value = drumlin_doc::value_at(document, &Path::new(element.name_str()));
        values.value(element.name, value.unwrap_or(drumlin_doc::Value::NULL));
    }
    let values = values.finish();
    let shown = drumlin_doc::show(Document(&values).as_value());
    let mut details = drumlin_doc::Builder::new();
    details.value(
        "keyPattern",
        drumlin_doc::Value {
            kind: Kind::Document,
            bytes: key.0,
        },
    );
    details.document("keyValue", Document(&values));
    Refusal {
        code: Code::DuplicateKey,
        message: format!(
            "E11000 duplicate key error collection: {namespace} index: {name} dup key: {shown}"
        ),
        details: Some(details.finish()),
    }
}
