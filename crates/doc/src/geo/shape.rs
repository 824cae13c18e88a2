//! Geometries and points, read from values.

use crate::number::to_f64;
use crate::raw::{Document, Kind, Value};
use crate::refusal::Outcome;

use super::beside::Pairs;
use super::plane::Pair;
use super::sphere::{Geometry, Polygon, Ring, Vector};

/// How deep collections lie in each other.
const DEPTH_MAX: usize = 32;
/// Systems of coordinates that are the earth by degrees.
const SYSTEMS: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];
/// The one whose polygons have inside what is left of them, however much that is.
const STRICT: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// The finite numbers that a point begins with, of an array or of a document's fields.
pub(super) fn pair(value: Value<'_>) -> Option<Pair> {
    if !matches!(value.kind, Kind::Array | Kind::Document) {
        return None;
    }
    let mut numbers = Document(value.bytes).iter().map(|it| to_f64(it.value));
    let pair = [numbers.next()??, numbers.next()??];
    pair.iter().all(|number| number.is_finite()).then_some(pair)
}

/// The point of a query: two numbers and no more.
pub(super) fn strict_pair(value: Value<'_>) -> Option<Pair> {
    let is_pair = || Document(value.bytes).iter().count() == 2;
    pair(value).filter(|_| is_pair())
}

/// A point on the plane that a document has: of two coordinates, or GeoJSON's.
pub(super) fn flat_point(value: Value<'_>) -> Option<Pair> {
    let document = (value.kind == Kind::Document).then_some(Document(value.bytes));
    match document.and_then(|it| it.get("type")?.as_str()) {
        Some("Point") => pair(document?.get("coordinates")?),
        Some(_) => None,
        None => pair(value),
    }
}

/// What a document has: GeoJSON, or two coordinates.
///
/// # Errors
/// Of the watch.
pub(super) fn geometry_of(value: Value<'_>) -> Outcome<Option<Geometry>> {
    let document = (value.kind == Kind::Document).then_some(Document(value.bytes));
    match document.filter(|it| it.get("type").is_some_and(|it| it.as_str().is_some())) {
        Some(document) => geometry(document),
        None => Ok(point(value).map(|point| Geometry {
            points: vec![point],
            ..Geometry::default()
        })),
    }
}

/// GeoJSON. `None` where it is wrong, or has so many edges beside each other that nobody would wait until all are compared.
///
/// # Errors
/// Of the watch.
pub(super) fn geometry(of: Document<'_>) -> Outcome<Option<Geometry>> {
    Pairs::of_value(|pairs| part(of, 0, pairs))
}

/// A geometry, in so many collections.
fn part(of: Document<'_>, depth: usize, pairs: &mut Pairs) -> Option<Geometry> {
    if depth > DEPTH_MAX {
        return None;
    }
    let is_strict = is_strict(of)?;
    let kind = of.get("type")?.as_str()?;
    if is_strict && kind != "Polygon" {
        return None;
    }
    let mut made = Geometry::default();
    if kind == "GeometryCollection" {
        let all = of.get("geometries")?.as_array()?;
        for item in all {
            let inner = (item.value.kind == Kind::Document).then_some(item.value.bytes);
            let inner = part(Document(inner?), depth + 1, pairs)?;
            made.points.extend(inner.points);
            made.lines.extend(inner.lines);
            made.polygons.extend(inner.polygons);
        }
        return (!all.is_empty()).then_some(made);
    }
    let coordinates = of.get("coordinates")?;
    match kind {
        "Point" => made.points.push(point(coordinates)?),
        "MultiPoint" => made.points = each(coordinates, point)?,
        "LineString" => made.lines.push(line(coordinates)?),
        "MultiLineString" => made.lines = each(coordinates, line)?,
        "Polygon" => made.polygons.push(polygon(coordinates, is_strict, pairs)?),
        "MultiPolygon" => made.polygons = each(coordinates, |it| polygon(it, false, pairs))?,
        _ => return None,
    }
    Some(made)
}

/// Whether the system of coordinates keeps to the winding; `None` for one that is not known.
fn is_strict(of: Document<'_>) -> Option<bool> {
    let Some(system) = of.get("crs") else {
        return Some(false);
    };
    let system = (system.kind == Kind::Document).then_some(Document(system.bytes))?;
    let properties = system.get("properties")?;
    let properties = (properties.kind == Kind::Document).then_some(Document(properties.bytes))?;
    let name = properties.get("name")?.as_str()?;
    let is_named = system.get("type")?.as_str()? == "name";
    (is_named && (name == STRICT || SYSTEMS.contains(&name))).then_some(name == STRICT)
}

/// All of an array that is not empty.
fn each<T>(value: Value<'_>, mut one: impl FnMut(Value<'_>) -> Option<T>) -> Option<Vec<T>> {
    let array = value.as_array().filter(|array| !array.is_empty())?;
    array.iter().map(|it| one(it.value)).collect()
}

pub(super) fn point(value: Value<'_>) -> Option<Vector> {
    Vector::of(pair(value)?)
}

fn line(value: Value<'_>) -> Option<Vec<Vector>> {
    let mut points = each(value, point)?;
    points.dedup_by(|a, b| a.is_at(*b));
    (points.len() > 1).then_some(points)
}

fn polygon(value: Value<'_>, is_strict: bool, pairs: &mut Pairs) -> Option<Polygon> {
    let ring = |value: Value<'_>| {
        let points = each(value, point)?;
        let is_closed = points.first()?.is_at(*points.last()?);
        is_closed.then(|| Ring::new(points, pairs)).flatten()
    };
    let mut rings = each(value, ring)?.into_iter();
    let outer = rings.next()?;
    if is_strict {
        return rings.next().is_none().then_some(Polygon {
            outer,
            holes: Vec::new(),
            is_strict,
        });
    }
    let holes = rings.map(Ring::of_smaller_side).collect();
    Polygon::new(outer.of_smaller_side(), holes, pairs)
}
