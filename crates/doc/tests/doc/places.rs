//! Goal: `$geoWithin` and `$geoIntersects` find what MongoDB finds. Method: a table of condition, places, answer; and of refusals.

use drumlin_doc::{Code, Document, Filter, PlaceKind, Refusal, watched};

use crate::json::doc;

fn filter(condition: &str) -> Result<Filter, Refusal> {
    Filter::new(Document(&doc(&format!(r#"{{"p": {condition}}}"#))))
}

fn polygon(rings: &str) -> String {
    format!(r#"{{"type": "Polygon", "coordinates": {rings}}}"#)
}

#[test]
fn places_are_found_as_defined() {
    let square = polygon("[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]");
    let clockwise = polygon("[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]");
    let holed = polygon(
        "[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]",
    );
    let across = polygon("[[[178, -2], [-178, -2], [-178, 2], [178, 2], [178, -2]]]");
    let polar = polygon("[[[-10, 89], [10, 89], [10, 90], [-10, 90], [-10, 89]]]");
    let small = polygon("[[[0, 0], [0.0001, 0], [0.0001, 0.0001], [0, 0.0001], [0, 0]]]");
    let two = r#"{"type": "MultiPolygon", "coordinates": [[[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]], [[[15, 15], [25, 15], [25, 25], [15, 25], [15, 15]]]]}"#;
    let strict = clockwise.replace(
        r#"{"type""#,
        r#"{"crs": {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}, "type""#,
    );
    let within = |shape: &str| format!(r#"{{"$geoWithin": {{"$geometry": {shape}}}}}"#);
    let meets = |shape: &str| format!(r#"{{"$geoIntersects": {{"$geometry": {shape}}}}}"#);
    let flat = |shape: &str| format!(r#"{{"$geoWithin": {shape}}}"#);
    let point = r#"{"type": "Point", "coordinates": [5, 5]}"#;
    let line = r#"{"type": "LineString", "coordinates": [[1, 1], [5, 5]]}"#;
    let short = line.replace("5, 5", "2, 2");
    let long = r#"{"type": "LineString", "coordinates": [[5, 5], [50, 5]]}"#;
    let beside = polygon("[[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]");
    let over = polygon("[[[5, 5], [15, 5], [15, 15], [5, 15], [5, 5]]]");
    // The condition, places for which it holds, and others.
    let cases: [(String, Vec<&str>, Vec<&str>); 21] = [
        (
            within(&square),
            vec![
                point,
                "[5, 5]",
                r#"{"x": 5, "y": 5}"#,
                "[[50, 50], [5, 5]]",
                line,
                "[0, 0]",
            ],
            vec!["[11, 5]", "null", "5", r#""x""#, long, &over],
        ),
        (within(&clockwise), vec![point], vec!["[50, 50]"]),
        (within(&strict), vec!["[50, 50]"], vec![point]),
        (within(&holed), vec!["[2, 2]"], vec![point, &square]),
        (
            within(&across),
            vec!["[179, 0]", "[-179, 0]"],
            vec!["[0, 0]"],
        ),
        (within(&polar), vec!["[0, 89.5]"], vec!["[0, 80]"]),
        (
            within(&small),
            vec!["[0.00001, 0.00001]"],
            vec!["[0.001, 0]"],
        ),
        (within(two), vec!["[1, 1]", "[20, 20]"], vec!["[10, 10]"]),
        (
            meets(&square),
            vec![point, line, long, &over, &square],
            vec!["[11, 5]", &beside],
        ),
        (meets(&beside), vec![long], vec![line]),
        (
            meets(point),
            vec![point, &square, line],
            vec!["[5, 6]", &beside],
        ),
        (
            meets(r#"{"type": "LineString", "coordinates": [[-1, 1], [1, -1]]}"#),
            vec![r#"{"type": "LineString", "coordinates": [[-1, -1], [1, 1]]}"#],
            vec![r#"{"type": "LineString", "coordinates": [[3, 3], [4, 4]]}"#],
        ),
        (
            meets(
                r#"{"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [5, 5]}]}"#,
            ),
            vec![point],
            vec!["[1, 1]"],
        ),
        (
            flat(r#"{"$box": [[10, 0], [0, 10]]}"#),
            vec!["[0, 0]", "[10, 10]", point, "[5, 5, 99]"],
            vec!["[10.001, 5]", line],
        ),
        (
            flat(r#"{"$center": [[0, 0], 5]}"#),
            vec!["[3, 4]", "[0, 5]"],
            vec!["[4, 4]"],
        ),
        (
            flat(r#"{"$center": [[0, 0], {"$decimal": "Infinity"}]}"#),
            vec!["[900, 4]"],
            vec!["[1]"],
        ),
        (
            flat(r#"{"$polygon": [[0, 0], [0, 10], [10, 10], [10, 0]]}"#),
            vec!["[5, 5]", "[0, 0]", "[5, 0]"],
            vec!["[15, 5]", "[5, 11]"],
        ),
        (
            flat(r#"{"$polygon": [[0, 0], [10, 10], [10, 0], [0, 10]]}"#),
            vec!["[2, 2]", "[5, 5]"],
            vec!["[8, 8]"],
        ),
        (
            flat(r#"{"$centerSphere": [[180, 0], 0.001]}"#),
            vec!["[179.99, 0]", "[-179.99, 0]"],
            vec!["[0, 0]"],
        ),
        (
            flat(r#"{"$centerSphere": [[0, 90], 0.03]}"#),
            vec!["[90, 89]", "[180, 89]"],
            vec!["[0, 0]"],
        ),
        (
            flat(r#"{"$centerSphere": [[0, 0], 0.1]}"#),
            vec![&short],
            vec![long],
        ),
    ];
    for (condition, good, bad) in cases {
        let filter = filter(&condition).unwrap_or_else(|refusal| panic!("{condition}: {refusal}"));
        for (places, answer) in [(good, true), (bad, false)] {
            for place in places {
                let found = filter.matches(Document(&doc(&format!(r#"{{"p": {place}}}"#))));
                assert_eq!(found, Ok(answer), "{condition} {place}");
            }
        }
    }
}

#[test]
fn malformed_places_are_refused_by_what_is_wrong() {
    let within = |shape: &str| format!(r#"{{"$geoWithin": {{"$geometry": {shape}}}}}"#);
    for condition in [
        r#"{"$geoWithin": {}}"#.to_owned(),
        r#"{"$geoWithin": 1}"#.to_owned(),
        r#"{"$geoWithin": {"$box": [[0, 0]]}}"#.to_owned(),
        r#"{"$geoWithin": {"$box": [[0, 0], [1, 1]], "$center": [[0, 0], 1]}}"#.to_owned(),
        r#"{"$geoWithin": {"$box": [[0, "x"], [1, 1]]}}"#.to_owned(),
        r#"{"$geoWithin": {"$center": [[0, 0], -1]}}"#.to_owned(),
        r#"{"$geoWithin": {"$center": [[0, 0, 0], 1]}}"#.to_owned(),
        r#"{"$geoWithin": {"$centerSphere": [[0, 91], 1]}}"#.to_owned(),
        r#"{"$geoWithin": {"$polygon": [[0, 0], [1, 1]]}}"#.to_owned(),
        r#"{"$geoIntersects": {"$box": [[0, 0], [1, 1]]}}"#.to_owned(),
        within(r#"{"type": "Point", "coordinates": [0, 0]}"#),
        within(&polygon("[]")),
        within(&polygon("[[[0, 0], [1, 0], [1, 1], [0, 1]]]")),
        within(&polygon("[[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]")),
        within(&polygon("[[[0, 0], [1, 0], [1, 91], [0, 0]]]")),
        within(&polygon(
            "[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], [[5, 5], [6, 5], [6, 6], [5, 5]]]",
        )),
        within(
            r#"{"type": "Polygon", "crs": {"type": "name", "properties": {"name": "x"}}, "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}"#,
        ),
        r#"{"$near": {"$geometry": {"type": "LineString", "coordinates": [0, 0]}}}"#.to_owned(),
        r#"{"$near": [0, 0], "$nearSphere": [0, 0]}"#.to_owned(),
        r#"{"$near": {}}"#.to_owned(),
        r#"{"$near": 1}"#.to_owned(),
        r#"{"$not": {"$near": [0, 0]}}"#.to_owned(),
        r#"{"$geoIntersects": {"$geometry": [0, 0]}, "$exists": true}"#.to_owned(),
    ] {
        let refusal = filter(&condition).expect_err(&condition);
        assert!(
            matches!(refusal.code, Code::BadValue | Code::NoPlan),
            "{condition}: {refusal}"
        );
    }
    let near = filter(r#"{"$near": [0, 0], "$size": 1}"#).expect_err("a condition beside it");
    assert_eq!(near.code, Code::NearSibling);
    let inner = filter(r#"{"$elemMatch": {"q": {"$nearSphere": [0, 0]}}}"#).expect_err("below");
    assert_eq!(inner.code, Code::BadValue);
}

/// The corners of a circle, so many, its radius rough, around a point.
fn corners(count: u32, size: f64, [east, north]: [f64; 2]) -> Vec<String> {
    let mut points: Vec<String> = (0..count)
        .map(|at| {
            let turn = std::f64::consts::TAU * f64::from(at) / f64::from(count);
            let radius = size * if at % 2 == 0 { 1.0 } else { 0.9999 };
            let [x, y] = [east + radius * turn.cos(), north + radius * turn.sin()];
            format!("[{x:?}, {y:?}]")
        })
        .collect();
    points.push(points[0].clone());
    points
}

fn circle(count: u32, center: [f64; 2]) -> String {
    let points = corners(count, 10.0, center);
    polygon(&format!("[[{}]]", points.join(", ")))
}

/// A band of so many edges up and down, around a point.
fn zigzag(count: u32, [east, north]: [f64; 2]) -> String {
    let pair = |x: f64, y: u32| format!("[{:?}, {:?}]", east + x, north + f64::from(y));
    let edges = (0..count).map(|at| pair(f64::from(at) / 1000.0, at % 2 * 10));
    let right = f64::from(count) / 1000.0;
    let rest = [pair(right, 20), pair(0.0, 20), pair(0.0, 0)];
    let points: Vec<_> = edges.chain(rest).collect();
    format!("[{}]", points.join(", "))
}

#[test]
fn who_ends_a_command_ends_it_within_a_comparison_of_large_areas() {
    let asked = circle(9000, [0.0, 0.0]);
    let document = doc(&format!(r#"{{"p": {}}}"#, circle(60_000, [0.0, 0.0005])));
    for operator in ["$geoWithin", "$geoIntersects"] {
        let condition = format!(r#"{{"{operator}": {{"$geometry": {asked}}}}}"#);
        let filter = filter(&condition).expect("a filter");
        let enough = || Err(Refusal::bad_value("enough"));
        let refused = watched(enough, || filter.matches(Document(&document)));
        assert_eq!(refused.expect_err("it is long").message, "enough");
    }
    let place = drumlin_doc::Path::new("p");
    let keys = PlaceKind::Sphere.keys_of(Document(&document), &place);
    let keys = keys.expect("an area").keys;
    assert!((4..=12).contains(&keys.len()), "{}", keys.len());
    // Each of its edges has all the heights that the others have: nobody compares them all.
    let zigzag = polygon(&format!("[{}]", zigzag(20_000, [0.0, 0.0])));
    let document = doc(&format!(r#"{{"p": {zigzag}}}"#));
    let refused = PlaceKind::Sphere.keys_of(Document(&document), &place);
    assert_eq!(refused.expect_err("too many").code, Code::NoGeoKeys);
}

/// The keys of a place on the sphere.
fn sphere_keys(place: &str) -> Result<usize, Code> {
    let document = doc(&format!(r#"{{"p": {place}}}"#));
    let keys = PlaceKind::Sphere.keys_of(Document(&document), &drumlin_doc::Path::new("p"));
    keys.map(|it| it.keys.len()).map_err(|it| it.code)
}

#[test]
fn a_large_area_with_a_large_hole_is_read_or_refused_at_once() {
    let outer = corners(100_000, 10.0, [0.0, 0.0]).join(", ");
    let holed =
        |hole: &[String]| sphere_keys(&polygon(&format!("[[{outer}], [{}]]", hole.join(", "))));
    let inner = corners(100_000, 9.0, [0.0, 0.0]);
    assert!(holed(&inner).is_ok_and(|keys| keys >= 4));
    let around = corners(100_000, 11.0, [0.0, 0.0]);
    assert_eq!(holed(&around), Err(Code::NoGeoKeys));
    // Where they meet each corner would be held against all edges.
    let mut touching = inner;
    for end in [0, 100_000] {
        touching[end] = "[10.0, 0.0]".to_owned();
    }
    assert_eq!(holed(&touching), Err(Code::NoGeoKeys));
    // So would a corner of each of many holes.
    let small = |at: u32| {
        let [east, north] = [at % 100, at / 100].map(|it| f64::from(it) / 10.0 - 5.0);
        format!("[{}]", corners(4, 0.01, [east, north]).join(", "))
    };
    let holes: Vec<_> = (0..10_000).map(small).collect();
    let many = polygon(&format!("[[{outer}], {}]", holes.join(", ")));
    assert_eq!(sphere_keys(&many), Err(Code::NoGeoKeys));
}

#[test]
fn small_holes_touch_an_area_in_places() {
    let square = "[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]";
    for (hole, is_good) in [
        ("[[4, 4], [6, 4], [6, 6], [4, 4]]", true),
        ("[[0, 0], [6, 4], [4, 6], [0, 0]]", true),
        ("[[0, 5], [6, 4], [10, 5], [4, 6], [0, 5]]", true),
        ("[[0, 0], [6, 4], [-1, 6], [0, 0]]", false),
        ("[[0, 2], [6, 4], [0, 6], [0, 2]]", false),
        ("[[-1, -1], [11, -1], [11, 11], [-1, 11], [-1, -1]]", false),
        ("[[20, 0], [21, 0], [21, 1], [20, 0]]", false),
    ] {
        let found = sphere_keys(&polygon(&format!("[{square}, {hole}]")));
        assert_eq!(found.is_ok(), is_good, "{hole}");
    }
}

#[test]
fn many_rings_share_what_may_be_compared() {
    let multi = |count: u32| {
        let places = (0..count).map(|at| [f64::from(at) * 12.0 - 180.0, 0.0]);
        let all: Vec<_> = places.map(|at| format!("[{}]", zigzag(6000, at))).collect();
        let all = all.join(", ");
        format!(r#"{{"type": "MultiPolygon", "coordinates": [{all}]}}"#)
    };
    assert!(sphere_keys(&multi(1)).is_ok());
    assert_eq!(sphere_keys(&multi(2)), Err(Code::NoGeoKeys));
}

#[test]
fn who_ends_a_command_ends_the_reading_of_an_area() {
    let document = doc(&format!(r#"{{"p": {}}}"#, circle(60_000, [0.0, 0.0])));
    let enough = || Err(Refusal::bad_value("enough"));
    let place = drumlin_doc::Path::new("p");
    let read = || {
        PlaceKind::Sphere
            .keys_of(Document(&document), &place)
            .map(drop)
    };
    let near = filter(r#"{"$nearSphere": [0, 0]}"#).expect("a filter");
    let matched = || near.matches(Document(&document)).map(drop);
    for refused in [watched(enough, read), watched(enough, matched)] {
        assert_eq!(refused.expect_err("it is long").message, "enough");
    }
}

#[test]
fn a_place_on_the_plane_is_one_place() {
    let keys = |place: &str| {
        let document = doc(&format!(r#"{{"p": {place}}}"#));
        let kind = PlaceKind::Flat(drumlin_doc::Grid::default());
        let keys = kind.keys_of(Document(&document), &drumlin_doc::Path::new("p"));
        keys.map(|it| it.keys.len()).map_err(|it| it.code)
    };
    let two = r#"{"a": 1, "b": 2, "type": "Point", "coordinates": [50, 60]}"#;
    assert_eq!(keys(two), Err(Code::GeoObject));
    assert_eq!(keys(&format!("[[1, 2], {two}]")), Err(Code::GeoObject));
    assert_eq!(keys(r#"{"a": 1, "b": 2, "type": "shop"}"#), Ok(1));
}
