//! What an index of places has of documents, and which of its keys a query is about.
//!
//! A key is a byte and a number of a cell. On the sphere a point has the number of the smallest cell that it lies in, and anything else
//! those of a few cells that cover it; so what lies in a cell has its numbers in one range, or the number of a cell around it. On the
//! plane there are points alone.

use crate::code::Code;
use crate::keystring::PLACE;
use crate::number::to_f64;
use crate::path::{Path, candidates};
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;

use super::cell::{Cell, Grid, SLACK, SPHERE_LEVELS};
use super::cover::{GridCap, Plane, Shape, cap_of, cover, reaches};
use super::near::{Center, Near};
use super::plane::Pair;
use super::query::{GeoQuery, Wanted};
use super::shape::geometry_of;
use super::sphere::Geometry;

/// Cells of a document on the sphere, and how small they are: to half a metre. On disk.
const STORED_CELLS: (usize, u32) = (12, 24);
/// Cells of a query, and how small they are.
const ASKED_CELLS: (usize, u32) = (20, 28);

/// The kind of a field in an index of places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaceKind {
    /// `2dsphere`.
    Sphere,
    /// `2d`.
    Flat(Grid),
}

/// A range of keys of a field: from the first, up to the second.
pub type PlaceRange = (Vec<u8>, Vec<u8>);

/// The keys of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceKeys {
    /// None where the document has no place.
    pub keys: Vec<Vec<u8>>,
    /// Whether there is anything but the smallest cell of one point.
    pub is_spread: bool,
}

impl PlaceKind {
    /// The keys of what `document` has at `path`.
    ///
    /// # Errors
    /// `Location16755` and others for what is no place.
    pub fn keys_of(self, document: Document<'_>, path: &Path) -> Outcome<PlaceKeys> {
        let mut values = Vec::new();
        candidates(document, path, &mut |value| {
            values.extend(value);
            false
        });
        let is_nothing = |value: &Value<'_>| {
            let is_list = matches!(value.kind, Kind::Array | Kind::Document);
            matches!(value.kind, Kind::Null | Kind::Undefined)
                || is_list && Document(value.bytes).is_empty()
        };
        if matches!(values.as_slice(), [only] if is_nothing(only)) {
            return Ok(PlaceKeys::default());
        }
        let mut found = PlaceKeys::default();
        let mut numbers = Vec::new();
        for value in values {
            match self {
                Self::Sphere => {
                    let geometry = geometry_of(value)?.filter(is_small);
                    let geometry = geometry.ok_or_else(|| no_keys(document, value))?;
                    let cells = stored(&geometry)?;
                    found.is_spread |= cells.iter().any(|it| it.level < SPHERE_LEVELS);
                    numbers.extend(cells.into_iter().map(Cell::number));
                }
                Self::Flat(grid) => {
                    for pair in pairs(value)? {
                        let cell = grid.at(pair).ok_or_else(|| {
                            let Grid { min, max, .. } = grid;
                            let text = format!("point not in interval of [ {min}, {max} ]");
                            Refusal::new(Code::PointOutside, format!("{text}: {}", show(value)))
                        })?;
                        numbers.push(grid.numbers(cell).0);
                    }
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        found.is_spread |= numbers.len() > 1;
        found.keys = numbers.into_iter().map(key).collect();
        Ok(found)
    }

    /// The ranges with the keys of all places that a query may find, sorted. `None` where it has to do without them. `is_spread`: whether
    /// any document has more than a point.
    ///
    /// # Errors
    /// Of the watch.
    pub fn ranges(self, query: &GeoQuery, is_spread: bool) -> Outcome<Option<Vec<PlaceRange>>> {
        Ok(Some(match (self, query.wanted()) {
            (Self::Sphere, Wanted::Shape(geometry)) => {
                let cells = cover(&Shape::new(geometry), Cell::faces(), ASKED_CELLS)?;
                sphere_ranges(&cells, is_spread)
            }
            (Self::Sphere, Wanted::Cap(cap)) => {
                let cells = cover(&cap, Cell::faces(), ASKED_CELLS)?;
                sphere_ranges(&cells, is_spread)
            }
            (Self::Flat(grid), Wanted::Flat(of)) => {
                let cells = cover(&Plane { grid, of }, root(), flat_cells(grid))?;
                flat_ranges(grid, &cells)
            }
            (Self::Flat(grid), Wanted::Cap(cap)) => {
                let cells = cover(&GridCap { grid, cap }, root(), flat_cells(grid))?;
                flat_ranges(grid, &cells)
            }
            _ => return Ok(None),
        }))
    }

    /// Whether an index of this kind serves it.
    pub fn serves(self, near: &Near) -> bool {
        match self {
            Self::Sphere => !near.is_flat(),
            Self::Flat(_) => !near.is_json(),
        }
    }

    /// # Errors
    /// `Location16433` for a point that an index of the plane has no place for.
    pub fn check(self, near: &Near) -> Outcome<()> {
        match (self, near.center) {
            (Self::Flat(grid), Center::Flat(at)) if grid.at(at).is_none() => {
                let Grid { min, max, .. } = grid;
                let text = format!("point not in interval of [ {min}, {max} ]");
                Err(Refusal::new(Code::NearOutside, text))
            }
            _ => Ok(()),
        }
    }

    /// The largest cells.
    pub fn roots(self) -> Vec<PlaceCell> {
        match self {
            Self::Sphere => Cell::faces().map(PlaceCell).collect(),
            Self::Flat(_) => root().map(PlaceCell).collect(),
        }
    }

    /// The four parts of a cell; none of the smallest.
    pub fn parts(self, PlaceCell(cell): PlaceCell) -> Vec<PlaceCell> {
        let smallest = match self {
            Self::Sphere => SPHERE_LEVELS,
            Self::Flat(grid) => grid.bits,
        };
        match cell.level < smallest {
            true => cell.children().map(PlaceCell).to_vec(),
            false => Vec::new(),
        }
    }

    /// The range of the keys of a cell and of all that lie in it.
    pub fn within(self, PlaceCell(cell): PlaceCell) -> PlaceRange {
        match self {
            Self::Sphere => range(cell.numbers()),
            Self::Flat(grid) => range(grid.numbers(cell)),
        }
    }

    /// The range of the key of a cell alone. `None` where no key is that of such a cell.
    pub fn own(self, PlaceCell(cell): PlaceCell) -> Option<PlaceRange> {
        match self {
            Self::Sphere => Some(range((cell.number(), cell.number()))),
            Self::Flat(grid) => (cell.level >= grid.bits).then(|| range(grid.numbers(cell))),
        }
    }

    /// The cell of the key that `bytes` begin with; `None` for what is none.
    pub fn cell_of(self, bytes: &[u8]) -> Option<PlaceCell> {
        let number = u64::from_be_bytes(*bytes.get(1..)?.first_chunk::<8>()?);
        let cell = match self {
            Self::Sphere => Cell::of_number(number)?,
            Self::Flat(grid) => grid.of_number(number),
        };
        Some(PlaceCell(cell))
    }

    /// How far what lies in a cell is at the least and at the most, in the unit of distances. `None` where there can be no places.
    pub fn distances(self, near: &Near, PlaceCell(cell): PlaceCell) -> Option<(f64, f64)> {
        let (center, at, unit) = match (self, near.center) {
            (Self::Sphere, Center::Sphere { at, unit, .. }) => (cell.cap(), at, unit),
            (Self::Flat(grid), Center::Sphere { at, unit, .. }) => (cap_of(grid, cell)?, at, unit),
            (Self::Flat(grid), Center::Flat(at)) => return Some(reaches(grid.corners(cell), at)),
            (Self::Sphere, Center::Flat(_)) => return None,
        };
        let (center, reach) = center;
        let (away, reach) = (center.angle(at), reach + SLACK);
        Some(((away - reach).max(0.0) * unit, (away + reach) * unit))
    }
}

/// A part of the sphere or of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceCell(Cell);

fn root() -> impl Iterator<Item = Cell> {
    std::iter::once(Cell::face(0))
}

fn flat_cells(grid: Grid) -> (usize, u32) {
    (ASKED_CELLS.0, grid.bits)
}

fn key(number: u64) -> Vec<u8> {
    [[PLACE].as_slice(), &number.to_be_bytes()].concat()
}

/// From the first number to behind the last.
fn range((first, last): (u64, u64)) -> PlaceRange {
    let mut end = key(last);
    end.push(crate::keystring::BEHIND);
    (key(first), end)
}

/// Sorted ranges of numbers, those that meet as one.
fn merged(mut all: Vec<(u64, u64)>) -> Vec<PlaceRange> {
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            // Between the numbers of cells beside each other there is one of a cell around them at most.
            Some(before) if first <= before.1.saturating_add(2) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged.into_iter().map(range).collect()
}

fn sphere_ranges(cells: &[Cell], is_spread: bool) -> Vec<PlaceRange> {
    let mut all: Vec<_> = cells.iter().map(|cell| cell.numbers()).collect();
    if is_spread && !drumlin_base::bug!("mongo-cells-around-forgotten") {
        let above = cells
            .iter()
            .flat_map(|cell| (0..cell.level).map(|level| cell.ancestor(level).number()));
        all.extend(above.map(|number| (number, number)));
    }
    merged(all)
}

fn flat_ranges(grid: Grid, cells: &[Cell]) -> Vec<PlaceRange> {
    merged(cells.iter().map(|cell| grid.numbers(*cell)).collect())
}

/// The cells of a geometry.
fn stored(geometry: &Geometry) -> Outcome<Vec<Cell>> {
    let is_point = geometry.lines.is_empty() && geometry.polygons.is_empty();
    match geometry.points.as_slice() {
        [point] if is_point => Ok(vec![Cell::at(*point)]),
        _ => cover(&Shape::new(geometry), Cell::faces(), STORED_CELLS),
    }
}

/// Whether no polygon has more than half of the sphere, as those may that keep to the winding: MongoDB has none in an index.
fn is_small(geometry: &Geometry) -> bool {
    geometry.polygons.iter().all(|polygon| !polygon.is_strict)
}

fn no_keys(document: Document<'_>, value: Value<'_>) -> Refusal {
    let id = document.get("_id").map(show).unwrap_or_default();
    let text = format!("Can't extract geo keys: {} _id: {id}", show(value));
    Refusal::new(Code::NoGeoKeys, text)
}

/// The points on the plane that a value is, or an array of them.
fn pairs(value: Value<'_>) -> Outcome<Vec<Pair>> {
    if !matches!(value.kind, Kind::Array | Kind::Document) {
        return Ok(Vec::new());
    }
    let inner = Document(value.bytes);
    let one = |of: Value<'_>| {
        // What is GeoJSON to a condition has no other place in an index.
        let document = (of.kind == Kind::Document).then_some(Document(of.bytes));
        let kind = document.and_then(|it| it.get("type"));
        if kind.is_some_and(|kind| kind.as_str() == Some("Point")) {
            let text = "location object expected, location array not in correct format";
            return Err(Refusal::new(
                Code::GeoObject,
                format!("{text}: {}", show(of)),
            ));
        }
        let mut numbers = Document(of.bytes).iter().map(|it| it.value);
        let (Some(x), Some(y)) = (numbers.next(), numbers.next()) else {
            let text = format!("geo field only has 1 element: {}", show(of));
            return Err(Refusal::new(Code::GeoOneElement, text));
        };
        let pair = to_f64(x).zip(to_f64(y));
        let text = "geo values must be 'legacy coordinate pairs' for 2d indexes";
        pair.map(|(x, y)| [x, y])
            .ok_or_else(|| Refusal::new(Code::GeoNumbers, format!("{text}: {}", show(of))))
    };
    match inner.iter().next() {
        None => Ok(Vec::new()),
        Some(first) if first.value.kind.is_number() => Ok(vec![one(value)?]),
        Some(_) => {
            let mut all = Vec::new();
            for item in inner {
                if !matches!(item.value.kind, Kind::Array | Kind::Document) {
                    let text = "location object expected, location array not in correct format";
                    return Err(Refusal::new(Code::GeoObject, text));
                }
                if !Document(item.value.bytes).is_empty() {
                    all.push(one(item.value)?);
                }
            }
            Ok(all)
        }
    }
}
