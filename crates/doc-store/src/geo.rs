//! Indexes of places: their options, and the keys of documents in them.

use drumlin_doc::{
    Builder, Code, Document, Grid, IndexFields, IndexKeys, Path, PlaceKind, Refusal, check_keys,
    to_f64,
};

/// The version of spheres' indexes that is told, MongoDB's third.
const SPHERE_VERSION: u32 = 3;

/// What is said of an index of places.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaceOptions {
    /// Of `2dsphere`.
    pub version: Option<u32>,
    /// Of `2d`: see [`Grid`].
    pub bits: Option<u32>,
    /// See [`Grid`].
    pub min: Option<f64>,
    /// See [`Grid`].
    pub max: Option<f64>,
}

/// By field, of an index that has any.
pub(crate) type Places = Vec<Option<PlaceKind>>;

impl PlaceOptions {
    /// With what is told of an index though nobody said it.
    pub(crate) fn completed(self, places: &Places) -> Self {
        let has_sphere = places.contains(&Some(PlaceKind::Sphere));
        let version = self.version.unwrap_or(SPHERE_VERSION);
        Self {
            version: has_sphere.then_some(version),
            ..self
        }
    }

    /// Appends them to the entry of an index in the catalog.
    pub(crate) fn encode(self, out: &mut Builder) {
        for (name, number) in [("sphere", self.version), ("bits", self.bits)] {
            if let Some(number) = number {
                out.i64(name, i64::from(number));
            }
        }
        for (name, number) in [("min", self.min), ("max", self.max)] {
            if let Some(number) = number {
                out.f64(name, number);
            }
        }
    }

    /// What [`PlaceOptions::encode`] wrote; `None` for what it did not.
    pub(crate) fn decode(entry: Document<'_>) -> Option<Self> {
        let whole = |name: &str| match entry.get(name) {
            Some(number) => u32::try_from(number.as_whole()?).map(Some).ok(),
            None => Some(None),
        };
        let double = |name: &str| match entry.get(name) {
            Some(number) => to_f64(number).map(Some),
            None => Some(None),
        };
        Some(Self {
            version: whole("sphere")?,
            bits: whole("bits")?,
            min: double("min")?,
            max: double("max")?,
        })
    }

    /// The kind of fields of `2d`.
    ///
    /// # Errors
    /// `InvalidOptions`.
    fn flat(self) -> Result<PlaceKind, Refusal> {
        let usual = Grid::default();
        let grid = Grid {
            bits: self.bits.unwrap_or(usual.bits),
            min: self.min.unwrap_or(usual.min),
            max: self.max.unwrap_or(usual.max),
        };
        let refuse = |text: &str| Err(Refusal::new(Code::InvalidOptions, text));
        let is_finite = grid.min.is_finite() && (grid.max - grid.min).is_finite();
        match () {
            () if !(1..=32).contains(&grid.bits) => refuse("bits for hash must be > 0 and <= 32"),
            () if !is_finite || grid.max <= grid.min => {
                refuse("region for hash must be valid and have positive area")
            }
            () => Ok(PlaceKind::Flat(grid)),
        }
    }

    /// The kind of a field that the key of an index names by a word; `None` for other words.
    ///
    /// # Errors
    /// `InvalidOptions`, `CannotCreateIndex`.
    pub(crate) fn kind(self, word: &str) -> Result<Option<PlaceKind>, Refusal> {
        match word {
            "2d" => self.flat().map(Some),
            "2dsphere" => match self.version.unwrap_or(SPHERE_VERSION) {
                2 | SPHERE_VERSION => Ok(Some(PlaceKind::Sphere)),
                version => {
                    let text = format!(
                        "unsupported geo index version {version}, only the versions 2 and 3 are supported"
                    );
                    Err(Refusal::new(Code::CannotCreateIndex, text))
                }
            },
            _ => Ok(None),
        }
    }
}

/// Refuses fields that do not go together.
///
/// # Errors
/// `Location16800`, `Location16801`, `CannotCreateIndex`.
pub(crate) fn check(places: &Places, options: PlaceOptions) -> Result<(), Refusal> {
    let is_flat = |kind: &Option<PlaceKind>| matches!(kind, Some(PlaceKind::Flat(_)));
    let flat = places.iter().filter(|kind| is_flat(kind)).count();
    let has_sphere = places.contains(&Some(PlaceKind::Sphere));
    let refuse = |code, text: &str| Err(Refusal::new(code, text));
    let is_of_flat = options.bits.is_some() || options.min.is_some() || options.max.is_some();
    match () {
        () if flat > 0 && has_sphere => {
            let text = "Can't use more than one index plugin for a single index.";
            refuse(Code::CannotCreateIndex, text)
        }
        () if flat > 1 => refuse(Code::PlacesTwice, "can't have 2 geo fields"),
        () if flat == 1 && !places.first().is_some_and(is_flat) => {
            refuse(Code::PlacesFirst, "2d has to be first in index")
        }
        () if flat == 0 && is_of_flat || !has_sphere && options.version.is_some() => {
            let text = "an index without places has options of one with them";
            refuse(Code::CannotCreateIndex, text)
        }
        () => Ok(()),
    }
}

/// The keys of a document: each of a field's with each of the others'. It has none where it has no place.
///
/// # Errors
/// `Location16755` and others for what is no place; `CannotBuildIndexKeys` as of [`check_keys`].
pub(crate) fn keys_of(
    IndexFields(fields): &IndexFields,
    places: &Places,
    document: Document<'_>,
) -> Result<IndexKeys, Refusal> {
    let mut found = IndexKeys {
        is_absent: true,
        ..IndexKeys::default()
    };
    let mut keys = vec![Vec::new()];
    for (field, kind) in fields.iter().zip(places) {
        let of_field = match kind {
            Some(kind) => {
                let of_field = kind.keys_of(document, &field.0)?;
                found.is_absent &= of_field.keys.is_empty();
                found.is_multikey |= of_field.is_spread;
                of_field.keys
            }
            None => {
                let of_field = IndexFields(vec![field.clone()]).keys_of(document)?;
                found.is_multikey |= of_field.is_multikey;
                of_field.keys
            }
        };
        let of_field = match of_field.is_empty() {
            true => vec![drumlin_doc::keystring::key_of(drumlin_doc::Value::NULL)],
            false => of_field,
        };
        let size = |keys: &[Vec<u8>]| keys.iter().map(Vec::len).sum::<usize>();
        let before_bytes = size(&keys).saturating_mul(of_field.len());
        let size_bytes = before_bytes.saturating_add(size(&of_field).saturating_mul(keys.len()));
        check_keys(keys.len().saturating_mul(of_field.len()), size_bytes)?;
        let pairs = keys.iter().flat_map(|key| {
            of_field
                .iter()
                .map(move |last| [key.as_slice(), last].concat())
        });
        keys = pairs.collect();
    }
    if !found.is_absent {
        keys.sort_unstable();
        keys.dedup();
        found.keys = keys;
    }
    Ok(found)
}

/// The kind of a field of an index.
pub(crate) fn kind_of(fields: &IndexFields, places: &Places, of: &Path) -> Option<PlaceKind> {
    let at = fields.0.iter().position(|(path, _)| path == of)?;
    places.get(at).copied().flatten()
}
