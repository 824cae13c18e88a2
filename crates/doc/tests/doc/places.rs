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

/// A circle of so many corners, its radius rough, around a point.
fn circle(corners: u32, [east, north]: [f64; 2]) -> String {
    let mut points: Vec<String> = (0..corners)
        .map(|at| {
            let turn = std::f64::consts::TAU * f64::from(at) / f64::from(corners);
            let radius = if at % 2 == 0 { 10.0 } else { 9.999 };
            let [x, y] = [east + radius * turn.cos(), north + radius * turn.sin()];
            format!("[{x:?}, {y:?}]")
        })
        .collect();
    points.push(points[0].clone());
    polygon(&format!("[[{}]]", points.join(", ")))
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
    let mut zigzag: Vec<String> = (0..20_000u32)
        .map(|at| format!("[{:?}, {}]", f64::from(at) / 1000.0, at % 2 * 10))
        .collect();
    zigzag.extend([
        "[20, 20]".to_owned(),
        "[0, 20]".to_owned(),
        "[0, 0]".to_owned(),
    ]);
    let zigzag = polygon(&format!("[[{}]]", zigzag.join(", ")));
    let document = doc(&format!(r#"{{"p": {zigzag}}}"#));
    let refused = PlaceKind::Sphere.keys_of(Document(&document), &place);
    assert_eq!(refused.expect_err("too many").code, Code::NoGeoKeys);
}
