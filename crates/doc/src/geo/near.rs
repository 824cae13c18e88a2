//! `$near`, `$nearSphere` and `$geoNear`: what lies around a point, the nearest first.

use crate::code::Code;
use crate::number::to_f64;
use crate::path::{Path, candidates};
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;

use super::plane::Pair;
use super::shape::{flat_point, geometry_of, pair, point, strict_pair};
use super::sphere::Vector;

/// The radius of the earth, in metres, as MongoDB has it.
const EARTH: f64 = 6_378_100.0;

/// A point, and how near to it, in the unit of its distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    pub(super) center: Center,
    /// The least distance, and the most.
    pub min: f64,
    /// See `min`.
    pub max: f64,
}

/// What distances are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Center {
    /// Of the plane, as the coordinates are.
    Flat(Pair),
    /// Of the sphere: radians times a unit. GeoJSON has its distances in metres.
    Sphere { at: Vector, unit: f64 },
}

impl Near {
    /// The condition of a field that begins with `$near` or `$nearSphere`.
    ///
    /// # Errors
    /// `BadValue` for what is no point or no distance; `Location34413` for other conditions on the field.
    pub(crate) fn new(of: Document<'_>) -> Outcome<Self> {
        let mut point = None;
        let mut limits = Limits::default();
        let mut is_sphere = false;
        for element in of {
            match element.name {
                b"$near" | b"$nearSphere" | b"$geoNear" => {
                    // Two of them are no pair of numbers, nor one of GeoJSON.
                    point = match point {
                        None => query_point(element.value, &mut limits)?,
                        Some(_) => return Err(wrong(of)),
                    };
                    is_sphere = element.name == b"$nearSphere";
                }
                b"$minDistance" => limits.set(Limit::Min, element.value)?,
                b"$maxDistance" => limits.set(Limit::Max, element.value)?,
                b"$uniqueDocs" => {}
                _ => return Err(sibling(element.name_str())),
            }
        }
        match point {
            Some(At::Legacy(pair)) => Self::of_pair(pair, is_sphere, limits),
            Some(At::Json(pair)) => Self::of_json(pair, limits),
            None => with_geometry(of),
        }
    }

    /// Around a pair of coordinates.
    ///
    /// # Errors
    /// `BadValue` for what is none of the sphere's.
    pub(super) fn of_pair(pair: Pair, is_sphere: bool, limits: Limits) -> Outcome<Self> {
        let center = match is_sphere {
            true => Center::Sphere {
                at: vector(pair)?,
                unit: 1.0,
            },
            false => Center::Flat(pair),
        };
        Ok(limits.around(center))
    }

    pub(super) fn of_json(pair: Pair, limits: Limits) -> Outcome<Self> {
        let at = vector(pair)?;
        let unit = EARTH;
        Ok(limits.around(Center::Sphere { at, unit }))
    }

    /// What `$geoNear` has as `near`: GeoJSON, or a pair, whose distances are in radians on the sphere.
    ///
    /// # Errors
    /// `BadValue` for what is no point.
    pub fn of_stage(
        near: Value<'_>,
        is_sphere: bool,
        min: Option<f64>,
        max: Option<f64>,
    ) -> Outcome<Self> {
        let mut limits = Limits::default();
        let point = query_point(near, &mut limits)?;
        let limits = Limits {
            min: min.unwrap_or(0.0),
            max: max.unwrap_or(limits.max),
        };
        match point {
            Some(At::Legacy(pair)) => Self::of_pair(pair, is_sphere, limits),
            Some(At::Json(pair)) => Self::of_json(pair, limits),
            None => Err(Refusal::bad_value(format!(
                "invalid argument in geo near query: near: {}",
                show(near)
            ))),
        }
    }

    /// Whether it is about the plane, which an index of the sphere knows nothing of.
    pub fn is_flat(&self) -> bool {
        matches!(self.center, Center::Flat(_))
    }

    /// Whether its distances are in metres: an index of the plane does not serve it.
    pub fn is_json(&self) -> bool {
        matches!(self.center, Center::Sphere { unit, .. } if unit != 1.0)
    }

    /// How far a document's place at `path` is, the nearest where it has several, and that place. `None` where it has none.
    ///
    /// # Errors
    /// Of the watch.
    pub fn nearest<'a>(
        &self,
        document: Document<'a>,
        path: &Path,
    ) -> Outcome<Option<(f64, Value<'a>)>> {
        let mut nearest: Option<(f64, Value<'a>)> = None;
        let mut ended = Ok(());
        let mut see = |value: Value<'a>| {
            if ended.is_err() {
                return false;
            }
            let distance = self.distance(value).unwrap_or_else(|refusal| {
                ended = Err(refusal);
                None
            });
            let is_nearer = distance.filter(|it| nearest.is_none_or(|(nearest, _)| *it < nearest));
            nearest = is_nearer.map(|it| (it, value)).or(nearest);
            distance.is_some()
        };
        candidates(document, path, &mut |value| {
            if let Some(value) = value
                && !see(value)
                && value.kind == Kind::Array
            {
                Document(value.bytes).iter().for_each(|it| {
                    see(it.value);
                });
            }
            false
        });
        ended.map(|()| nearest)
    }

    /// Whether the nearest place of a document is as near as wanted.
    ///
    /// # Errors
    /// Of the watch.
    pub(crate) fn holds(&self, document: Document<'_>, path: &Path) -> Outcome<bool> {
        let nearest = self.nearest(document, path)?;
        Ok(nearest.is_some_and(|(distance, _)| self.min <= distance && distance <= self.max))
    }

    fn distance(&self, value: Value<'_>) -> Outcome<Option<f64>> {
        Ok(match self.center {
            Center::Flat([x, y]) => flat_point(value).map(|[a, b]| libm::hypot(a - x, b - y)),
            Center::Sphere { at, unit, .. } => {
                let distance = geometry_of(value)?.map(|geometry| geometry.distance(at) * unit);
                distance.filter(|distance| distance.is_finite())
            }
        })
    }
}

/// The least distance, and the most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    min: f64,
    max: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min: 0.0,
            max: f64::INFINITY,
        }
    }
}

#[derive(Clone, Copy)]
enum Limit {
    Min,
    Max,
}

impl Limits {
    fn around(self, center: Center) -> Near {
        Near {
            center,
            min: self.min,
            max: self.max,
        }
    }

    /// Takes a distance that stands beside a point.
    ///
    /// # Errors
    /// By MongoDB's codes for each.
    fn set(&mut self, which: Limit, value: Value<'_>) -> Outcome<()> {
        let (place, name, kind, sign) = match which {
            Limit::Min => (
                &mut self.min,
                "$minDistance",
                Code::MinDistanceNumber,
                Code::MinDistanceNegative,
            ),
            Limit::Max => (
                &mut self.max,
                "$maxDistance",
                Code::MaxDistanceNumber,
                Code::MaxDistanceNegative,
            ),
        };
        let number = to_f64(value);
        let number =
            number.ok_or_else(|| Refusal::new(kind, format!("{name} must be a number")))?;
        match number >= 0.0 {
            true => *place = number,
            false => return Err(Refusal::new(sign, format!("{name} must be non-negative"))),
        }
        Ok(())
    }
}

/// A point of a query.
enum At {
    Legacy(Pair),
    Json(Pair),
}

fn vector(pair: Pair) -> Outcome<Vector> {
    let wrong = || {
        let [east, north] = pair;
        Refusal::bad_value(format!(
            "longitude/latitude is out of bounds: {east}, {north}"
        ))
    };
    Vector::of(pair).ok_or_else(wrong)
}

fn wrong(of: Document<'_>) -> Refusal {
    let text = "invalid argument in geo near query";
    Refusal::bad_value(format!("{text}: {}", show(of.as_value())))
}

fn sibling(name: &str) -> Refusal {
    let text = format!("invalid argument in geo near query: {name}");
    Refusal::new(Code::NearSibling, text)
}

/// Numbers as an array or a document's fields, the third one the most distance; or GeoJSON itself. `None` for anything else.
fn query_point(value: Value<'_>, limits: &mut Limits) -> Outcome<Option<At>> {
    if !matches!(value.kind, Kind::Array | Kind::Document) {
        return Ok(None);
    }
    let inner = Document(value.bytes);
    let is_legacy = value.kind == Kind::Array
        || inner
            .iter()
            .next()
            .is_some_and(|it| it.value.kind.is_number());
    if !is_legacy {
        return Ok(json_point(inner).map(At::Json));
    }
    if let Some(pair) = strict_pair(value) {
        return Ok(Some(At::Legacy(pair)));
    }
    let numbers: Vec<_> = inner.iter().map(|it| it.value).collect();
    match (numbers.as_slice(), pair(value)) {
        ([_, _, most], Some(pair)) if most.kind.is_number() => {
            limits.set(Limit::Max, *most)?;
            Ok(Some(At::Legacy(pair)))
        }
        _ => Ok(None),
    }
}

/// A point of GeoJSON, of which the type need not be said.
fn json_point(of: Document<'_>) -> Option<Pair> {
    let is_point = of
        .get("type")
        .is_none_or(|it| it.kind == Kind::String && it.as_str() == Some("Point"));
    let coordinates = of.get("coordinates").filter(|_| is_point)?;
    point(coordinates)?;
    pair(coordinates)
}

/// `{ $near: { $geometry, $minDistance, $maxDistance } }`.
fn with_geometry(of: Document<'_>) -> Outcome<Near> {
    let mut fields = of.iter();
    let inner = fields.next().map(|it| it.value);
    let inner = inner.filter(|it| it.kind == Kind::Document && fields.next().is_none());
    let inner = Document(inner.ok_or_else(|| wrong(of))?.bytes);
    let mut limits = Limits::default();
    let mut center = None;
    for element in inner {
        let distance = || {
            let number = to_f64(element.value).filter(|it| *it >= 0.0 && it.is_finite());
            number.ok_or_else(|| {
                let name = element.name_str();
                Refusal::bad_value(format!("{name} must be a number that is not negative"))
            })
        };
        match element.name {
            b"$geometry" => {
                let at = (element.value.kind == Kind::Document)
                    .then(|| json_point(Document(element.value.bytes)))
                    .flatten();
                let text = "invalid point in geo near query $geometry argument";
                let no_point = || Refusal::bad_value(format!("{text}: {}", show(element.value)));
                center = Some(at.ok_or_else(no_point)?);
            }
            b"$minDistance" => limits.min = distance()?,
            b"$maxDistance" => limits.max = distance()?,
            _ => return Err(wrong(of)),
        }
    }
    Near::of_json(center.ok_or_else(|| wrong(of))?, limits)
}
