//! `$geoWithin` and `$geoIntersects`: what is asked of places.

use crate::number::to_f64;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;

use super::cover::Cap;
use super::plane::{Flat, Pair};
use super::shape::{flat_point, geometry, geometry_of, strict_pair};
use super::sphere::{Geometry, Vector};

/// Most points of a condition: each of its edges is held against each of a document's.
const POINTS_MAX: usize = 10_000;

/// A condition on a place.
#[derive(Clone, Debug, PartialEq)]
pub struct GeoQuery {
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Flat(Flat),
    /// No further from a place than so many radians.
    Cap(Vector, f64),
    Within(Geometry),
    Intersects(Geometry),
}

/// Where a place that is found has a part of itself.
pub(super) enum Wanted<'q> {
    Flat(&'q Flat),
    Cap(Cap),
    Shape(&'q Geometry),
}

impl GeoQuery {
    pub(super) fn wanted(&self) -> Wanted<'_> {
        match &self.shape {
            Shape::Flat(flat) => Wanted::Flat(flat),
            Shape::Cap(center, radius) => Wanted::Cap(Cap {
                center: *center,
                radius: *radius,
            }),
            Shape::Within(area) | Shape::Intersects(area) => Wanted::Shape(area),
        }
    }

    /// The condition of `$geoWithin`.
    ///
    /// # Errors
    /// `BadValue` for what is no shape.
    pub fn within(value: Value<'_>) -> Outcome<Self> {
        let (name, shape) = shape_of("$geoWithin", value)?;
        let wrong = || refused(name, shape);
        let shape = match name {
            "$geometry" => {
                let made = geometry_in(shape)?.ok_or_else(wrong)?;
                let is_area = made.points.is_empty() && made.lines.is_empty();
                match is_area && !made.polygons.is_empty() {
                    true => Shape::Within(made),
                    false => {
                        let text = "$geoWithin not supported with provided geometry";
                        return Err(Refusal::bad_value(format!("{text}: {}", show(shape))));
                    }
                }
            }
            "$box" => {
                let corners = pairs(shape).ok_or_else(wrong)?;
                let [a, b] = *corners.first_chunk::<2>().ok_or_else(wrong)?;
                let low = [a[0].min(b[0]), a[1].min(b[1])];
                let high = [a[0].max(b[0]), a[1].max(b[1])];
                Shape::Flat(Flat::Box(low, high))
            }
            "$polygon" => {
                let corners = pairs(shape).filter(|all| all.len() > 2);
                Shape::Flat(Flat::Polygon(corners.ok_or_else(wrong)?))
            }
            "$center" => {
                let (center, radius) = circle(shape).ok_or_else(wrong)?;
                Shape::Flat(Flat::Circle(center, radius))
            }
            "$centerSphere" => {
                let (center, radius) = circle(shape).ok_or_else(wrong)?;
                Shape::Cap(Vector::of(center).ok_or_else(wrong)?, radius)
            }
            _ => {
                let text = format!("unknown geo specifier: {name}");
                return Err(Refusal::bad_value(text));
            }
        };
        Ok(Self { shape })
    }

    /// The condition of `$geoIntersects`.
    ///
    /// # Errors
    /// `BadValue` for what is no geometry.
    pub fn intersects(value: Value<'_>) -> Outcome<Self> {
        let (name, shape) = shape_of("$geoIntersects", value)?;
        let made = geometry_in(shape)?.filter(|_| name == "$geometry");
        let made = made.ok_or_else(|| refused(name, shape))?;
        Ok(Self {
            shape: Shape::Intersects(made),
        })
    }

    /// Whether a value is such a place.
    ///
    /// # Errors
    /// Of the watch.
    pub(crate) fn holds(&self, value: Value<'_>) -> Outcome<bool> {
        if let Shape::Flat(flat) = &self.shape {
            return Ok(flat_point(value).is_some_and(|point| flat.has(point)));
        }
        let Some(geometry) = geometry_of(value)? else {
            return Ok(false);
        };
        match &self.shape {
            Shape::Flat(_) => Ok(false),
            Shape::Cap(center, radius) => Ok(geometry.is_near(*center, *radius)),
            Shape::Within(area) => geometry.is_within(&area.polygons),
            Shape::Intersects(other) => geometry.intersects(other),
        }
    }
}

fn refused(name: &str, value: Value<'_>) -> Refusal {
    Refusal::bad_value(format!(
        "{name} is not one that there may be: {}",
        show(value)
    ))
}

/// The one shape of a condition.
fn shape_of<'a>(operator: &str, value: Value<'a>) -> Outcome<(&'a str, Value<'a>)> {
    let wrong = |what: &str| Refusal::bad_value(format!("{operator} {what}: {}", show(value)));
    if value.kind != Kind::Document {
        return Err(wrong("needs an object"));
    }
    let shapes = Document(value.bytes).iter();
    let mut shapes = shapes.filter(|it| it.name != b"$uniqueDocs");
    let first = shapes.next().ok_or_else(|| wrong("needs a shape"))?;
    match shapes.next() {
        None => Ok((first.name_str(), first.value)),
        Some(_) => Err(wrong("takes one shape")),
    }
}

/// How many points there are in GeoJSON: what begins with a number.
fn points_in(value: Value<'_>) -> usize {
    if !matches!(value.kind, Kind::Array | Kind::Document) {
        return 0;
    }
    let mut all = Document(value.bytes).iter().map(|it| it.value);
    match all.clone().next() {
        Some(first) if first.kind.is_number() => 1,
        _ => all
            .try_fold(0, |sum, it| {
                let sum = sum + points_in(it);
                (sum <= POINTS_MAX).then_some(sum)
            })
            .unwrap_or(POINTS_MAX + 1),
    }
}

fn geometry_in(value: Value<'_>) -> Outcome<Option<Geometry>> {
    // That no ring crosses itself takes longer than to count.
    if points_in(value) > POINTS_MAX {
        return Ok(None);
    }
    match value.kind {
        Kind::Document if Document(value.bytes).get("type").is_some() => {
            geometry(Document(value.bytes))
        }
        Kind::Document | Kind::Array => {
            let point = strict_pair(value).and_then(Vector::of);
            Ok(point.map(|point| Geometry {
                points: vec![point],
                ..Geometry::default()
            }))
        }
        _ => Ok(None),
    }
}

/// Points, of an array or of a document's fields.
fn pairs(value: Value<'_>) -> Option<Vec<Pair>> {
    let is_list = matches!(value.kind, Kind::Array | Kind::Document);
    let list = is_list.then_some(Document(value.bytes))?;
    let pairs = list
        .iter()
        .take(POINTS_MAX + 1)
        .map(|it| strict_pair(it.value));
    let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
    (pairs.len() <= POINTS_MAX).then_some(pairs)
}

/// A center and a radius.
fn circle(value: Value<'_>) -> Option<(Pair, f64)> {
    let is_list = matches!(value.kind, Kind::Array | Kind::Document);
    let list = is_list.then_some(Document(value.bytes))?;
    let parts: Vec<_> = list.iter().map(|it| it.value).collect();
    match parts.as_slice() {
        [center, radius] => {
            let radius = to_f64(*radius).filter(|radius| *radius >= 0.0)?;
            Some((strict_pair(*center)?, radius))
        }
        _ => None,
    }
}
