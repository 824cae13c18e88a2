//! Goal: expressions give what MongoDB gives. Method: a table of expression, document, value; one of expressions and codes.

use drumlin_doc::{Document, Expression, Kind, OwnedValue, Scope, Value, equal, show};

use crate::json::doc;

fn eval(expression: &str, document: &str) -> Result<Option<OwnedValue>, i32> {
    let holder = doc(&format!(r#"{{"e": {expression}}}"#));
    let scope = Scope {
        now_ms: 1_700_000_000_000,
        ..Scope::default()
    };
    let value = Document(&holder).get("e").expect("there");
    Expression::parse(value, &scope)
        .and_then(|it| it.eval(Document(&doc(document))))
        .map_err(|refusal| refusal.code.number())
}

fn letters(value: Value<'_>) -> Vec<char> {
    let mut letters: Vec<char> = show(value).chars().collect();
    letters.sort_unstable();
    letters
}

#[test]
fn expressions_give_what_is_defined() {
    let document = r#"{"a": 7, "b": -2.5, "s": "Abc", "n": null, "l": [3, 1, 2], "d": {"x": 1, "y": [1, 2]},
        "o": [{"q": 1}, {"q": 2}, 5], "t": {"$date": 1612345678901}, "f": 0}"#;
    let cases = [
        (r#""$a""#, "7"),
        (r#""$o.q""#, "[1, 2]"),
        (r#""$$ROOT.d.x""#, "1"),
        (r#"{"x": "$a", "gone": "$none"}"#, r#"{"x": 7}"#),
        (r#"["$none", 1]"#, "[null, 1]"),
        (r#"{"$add": ["$a", 1, 0.5]}"#, "8.5"),
        (r#"{"$add": ["$a", null]}"#, "null"),
        (r#"{"$add": ["$t", 1000]}"#, r#"{"$date": 1612345679901}"#),
        (r#"{"$add": [2147483647, 1]}"#, "2147483648"),
        (r#"{"$subtract": ["$a", 10]}"#, "-3"),
        (r#"{"$multiply": ["$a", "$b"]}"#, "-17.5"),
        (r#"{"$divide": ["$a", 2]}"#, "3.5"),
        (r#"{"$mod": [-7, 4]}"#, "-3"),
        (r#"{"$abs": "$b"}"#, "2.5"),
        (r#"{"$ceil": "$b"}"#, "-2.0"),
        (r#"{"$round": [2.5]}"#, "2.0"),
        (r#"{"$round": [1234, -2]}"#, "1200"),
        (r#"{"$round": [-2.675, 2]}"#, "-2.67"),
        (r#"{"$trunc": [7.89, 1]}"#, "7.8"),
        (r#"{"$pow": [2, 10]}"#, "1024"),
        (r#"{"$sqrt": 9}"#, "3.0"),
        (r#"{"$bitAnd": [6, 3]}"#, "2"),
        (r#"{"$cmp": ["$a", 8]}"#, "-1"),
        (r#"{"$eq": ["$none", null]}"#, "false"),
        (r#"{"$lt": ["$none", null]}"#, "true"),
        (r#"{"$and": [1, "$f"]}"#, "false"),
        (r#"{"$or": [0, "$a"]}"#, "true"),
        (r#"{"$not": ["$f"]}"#, "true"),
        (
            r#"{"$cond": [{"$gt": ["$a", 5]}, "big", "small"]}"#,
            r#""big""#,
        ),
        (r#"{"$cond": {"if": false, "then": 1, "else": 2}}"#, "2"),
        (r#"{"$ifNull": ["$n", "$none", "x"]}"#, r#""x""#),
        (
            r#"{"$switch": {"branches": [{"case": {"$eq": ["$a", 7]}, "then": 1}], "default": 2}}"#,
            "1",
        ),
        (r#"{"$concat": ["$s", "-", "x"]}"#, r#""Abc-x""#),
        (r#"{"$toUpper": "$s"}"#, r#""ABC""#),
        (r#"{"$substrCP": ["\u00e9\u00e8x", 1, 1]}"#, "\"\u{e8}\""),
        (r#"{"$substrBytes": ["$s", 1, -1]}"#, r#""bc""#),
        (r#"{"$strLenBytes": "\u00e9"}"#, "2"),
        (r#"{"$split": ["a,b,,c", ","]}"#, r#"["a", "b", "", "c"]"#),
        (r#"{"$indexOfCP": ["\u00e9bb", "b", 2]}"#, "2"),
        (r#"{"$indexOfBytes": ["abc", "z"]}"#, "-1"),
        (r#"{"$trim": {"input": "  x "}}"#, r#""x""#),
        (r#"{"$ltrim": {"input": "xxay", "chars": "x"}}"#, r#""ay""#),
        (
            r#"{"$replaceAll": {"input": "aXbX", "find": "X", "replacement": "-"}}"#,
            r#""a-b-""#,
        ),
        (
            r#"{"$regexMatch": {"input": "$s", "regex": "^a", "options": "i"}}"#,
            "true",
        ),
        (
            r#"{"$regexFind": {"input": "\u00e9xay1", "regex": "a(y)(z)?"}}"#,
            r#"{"match": "ay", "idx": 2, "captures": ["y", null]}"#,
        ),
        (
            r#"{"$size": {"$regexFindAll": {"input": "aba", "regex": "a|"}}}"#,
            "3",
        ),
        (r#"{"$size": "$l"}"#, "3"),
        (r#"{"$arrayElemAt": ["$l", -1]}"#, "2"),
        (r#"{"$first": "$l"}"#, "3"),
        (r#"{"$slice": ["$l", 1, 5]}"#, "[1, 2]"),
        (r#"{"$slice": ["$l", -2]}"#, "[1, 2]"),
        (r#"{"$concatArrays": ["$l", [9]]}"#, "[3, 1, 2, 9]"),
        (r#"{"$concatArrays": ["$missing", 9]}"#, "null"),
        (r#"{"$reverseArray": "$l"}"#, "[2, 1, 3]"),
        (r#"{"$in": [2, "$l"]}"#, "true"),
        (r#"{"$indexOfArray": ["$l", 2]}"#, "2"),
        (r#"{"$range": [5, 0, -2]}"#, "[5, 3, 1]"),
        (
            r#"{"$zip": {"inputs": [[1, 2], ["x"]], "useLongestLength": true, "defaults": [0, 9]}}"#,
            r#"[[1, "x"], [2, 9]]"#,
        ),
        (
            r#"{"$objectToArray": "$d"}"#,
            r#"[{"k": "x", "v": 1}, {"k": "y", "v": [1, 2]}]"#,
        ),
        (
            r#"{"$arrayToObject": [[["a", 1], ["b", 2], ["a", 3]]]}"#,
            r#"{"a": 3, "b": 2}"#,
        ),
        (
            r#"{"$mergeObjects": ["$d", {"x": 2, "z": 3}, null]}"#,
            r#"{"x": 2, "y": [1, 2], "z": 3}"#,
        ),
        (r#"{"$getField": {"field": "x", "input": "$d"}}"#, "1"),
        (
            r#"{"$setField": {"field": "a.b", "input": {}, "value": 1}}"#,
            r#"{"a.b": 1}"#,
        ),
        (
            r#"{"$map": {"input": "$l", "as": "e", "in": {"$multiply": ["$$e", 2]}}}"#,
            "[6, 2, 4]",
        ),
        (
            r#"{"$filter": {"input": "$l", "cond": {"$gt": ["$$this", 1]}, "limit": 1}}"#,
            "[3]",
        ),
        (
            r#"{"$reduce": {"input": "$l", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}"#,
            "6",
        ),
        (r#"{"$let": {"vars": {"v": "$d"}, "in": "$$v.x"}}"#, "1"),
        (
            r#"{"$sortArray": {"input": "$l", "sortBy": -1}}"#,
            "[3, 2, 1]",
        ),
        (
            r#"{"$sortArray": {"input": [{"q": 2}, {"q": 1}], "sortBy": {"q": 1}}}"#,
            r#"[{"q": 1}, {"q": 2}]"#,
        ),
        (r#"{"$maxN": {"n": 2, "input": "$l"}}"#, "[3, 2]"),
        (r#"{"$sum": "$l"}"#, "6"),
        (r#"{"$avg": ["$a", "$f"]}"#, "3.5"),
        (r#"{"$max": "$l"}"#, "3"),
        (r#"{"$stdDevPop": [1, 3]}"#, "1.0"),
        (r#"{"$setUnion": [[2, 1], [1, 3]]}"#, "[1, 2, 3]"),
        (r#"{"$setUnion": ["$missing", 1]}"#, "null"),
        (r#"{"$setIntersection": [[], 1]}"#, "[]"),
        (r#"{"$concat": ["$missing", 1]}"#, "null"),
        (r#"{"$setDifference": [[2, 1, 2], [1]]}"#, "[2]"),
        (r#"{"$setIsSubset": [[1], [2, 1]]}"#, "true"),
        (r#"{"$setEquals": [[1, 2, 1], [2, 1]]}"#, "true"),
        (r#"{"$allElementsTrue": [[1, 0]]}"#, "false"),
        (r#"{"$type": "$none"}"#, r#""missing""#),
        (r#"{"$toInt": "12"}"#, "12"),
        (r#"{"$toString": 1.5}"#, r#""1.5""#),
        (r#"{"$toBool": "false"}"#, "true"),
        (
            r#"{"$toDate": "2021-02-03T09:47:58.901Z"}"#,
            r#"{"$date": 1612345678901}"#,
        ),
        (
            r#"{"$convert": {"input": "x", "to": "int", "onError": -1}}"#,
            "-1",
        ),
        (r#"{"$year": "$t"}"#, "2021"),
        (r#"{"$dayOfWeek": "$t"}"#, "4"),
        (
            r#"{"$hour": {"date": "$t", "timezone": "America/New_York"}}"#,
            "4",
        ),
        (r#"{"$hour": {"date": "$t", "timezone": "+05:30"}}"#, "15"),
        (
            r#"{"$dateToString": {"date": "$t", "format": "%Y/%m/%d %H:%M %j %z", "timezone": "Asia/Tokyo"}}"#,
            r#""2021/02/03 18:47 034 +0900""#,
        ),
        (
            r#"{"$dateToString": {"date": "$t"}}"#,
            r#""2021-02-03T09:47:58.901Z""#,
        ),
        (
            r#"{"$dateFromString": {"dateString": "03.02.2021", "format": "%d.%m.%Y"}}"#,
            r#"{"$date": 1612310400000}"#,
        ),
        (
            r#"{"$dateFromParts": {"year": 2021, "month": 14, "day": 1}}"#,
            r#"{"$date": 1643673600000}"#,
        ),
        (
            r#"{"$dateToParts": {"date": "$t", "iso8601": true}}"#,
            r#"{"isoWeekYear": 2021, "isoWeek": 5, "isoDayOfWeek": 3, "hour": 9, "minute": 47, "second": 58, "millisecond": 901}"#,
        ),
        (
            r#"{"$dateAdd": {"startDate": {"$dateFromParts": {"year": 2021, "month": 1, "day": 31}}, "unit": "month", "amount": 1}}"#,
            r#"{"$date": 1614470400000}"#,
        ),
        (
            r#"{"$dateDiff": {"startDate": "$t", "endDate": {"$add": ["$t", 86400000]}, "unit": "day"}}"#,
            "1",
        ),
        (
            r#"{"$dateTrunc": {"date": "$t", "unit": "month"}}"#,
            r#"{"$date": 1612137600000}"#,
        ),
        (
            r#"{"$dateTrunc": {"date": "$t", "unit": "week"}}"#,
            r#"{"$date": 1612051200000}"#,
        ),
        (r#""$$NOW""#, r#"{"$date": 1700000000000}"#),
        (r#"{"$literal": "$a"}"#, r#""$a""#),
    ];
    for (expression, wanted) in cases {
        let got = eval(expression, document).unwrap_or_else(|code| panic!("{expression}: {code}"));
        let holder = doc(&format!(r#"{{"e": {wanted}}}"#));
        let wanted = Document(&holder).get("e").expect("there");
        let got = got.unwrap_or_else(|| panic!("{expression}: nothing"));
        // JSON has no order of fields.
        let is_same = match got.kind {
            Kind::Document => letters(got.get()) == letters(wanted),
            _ => equal(got.get(), wanted),
        };
        assert!(
            is_same && (got.kind == wanted.kind || got.kind.is_number()),
            "{expression}: {}",
            show(got.get())
        );
    }
    for nothing in [
        r#""$none""#,
        r#""$$REMOVE""#,
        r#"{"$arrayElemAt": ["$l", 9]}"#,
    ] {
        assert_eq!(eval(nothing, document), Ok(None), "{nothing}");
    }
}

#[test]
fn what_is_wrong_has_its_code() {
    let cases = [
        (r#"{"$nonsense": 1}"#, 168),
        (r#"{"$add": [1], "x": 1}"#, 15983),
        (r#"{"$divide": [1]}"#, 16020),
        (r#"{"$divide": [1, 0]}"#, 2),
        (r#"{"$add": [1, "x"]}"#, 14),
        (r#"{"$concat": [1]}"#, 16702),
        (r#"{"$concat": [1, "$missing"]}"#, 16702),
        (r#"{"$setUnion": [1, "$missing"]}"#, 17043),
        (r#"{"$size": 5}"#, 17124),
        (r#""$$never""#, 17276),
        (r#""$a..b""#, 15998),
        (r#""$""#, 16872),
        (r#"{"$toInt": "x"}"#, 241),
        (r#"{"$year": "x"}"#, 16006),
        (
            r#"{"$hour": {"date": {"$toDate": {"$toLong": 0}}, "timezone": "Nowhere/No"}}"#,
            40485,
        ),
        (
            r#"{"$switch": {"branches": [{"case": false, "then": 1}]}}"#,
            40066,
        ),
        (r#"{"$cond": {"if": 1, "then": 2}}"#, 17082),
        (r#"{"$regexMatch": {"input": "a", "regex": "("}}"#, 51091),
        (r#"{"$let": {"vars": {"A": 1}, "in": 1}}"#, 16867),
        (
            r#"{"$reduce": {"input": {"$range": [0, 30]}, "initialValue": "xxxxxxxx", "in": {"$concat": ["$$value", "$$value"]}}}"#,
            10334,
        ),
    ];
    for (expression, code) in cases {
        assert_eq!(eval(expression, "{}"), Err(code), "{expression}");
    }
}

#[test]
fn decimals_have_magnitudes_and_whole_parts() {
    for (name, of, wanted) in [
        ("$abs", "-1.50", "1.50"),
        ("$abs", "2", "2"),
        ("$floor", "1.5", "1"),
        ("$floor", "-1.5", "-2"),
        ("$floor", "-0.00", "0"),
        ("$floor", "-9.01", "-10"),
        ("$floor", "7", "7"),
        ("$ceil", "1.01", "2"),
        ("$ceil", "-1.99", "-1"),
        ("$ceil", "0.3", "1"),
        ("$ceil", "-0.3", "0"),
        ("$ceil", "99.5", "100"),
    ] {
        let made = eval(&format!(r#"{{"{name}": {{"$decimal": "{of}"}}}}"#), "{}");
        let made = made.expect("a number").expect("a value");
        let wanted = doc(&format!(r#"{{"x": {{"$decimal": "{wanted}"}}}}"#));
        let wanted = Document(&wanted).get("x").expect("there");
        assert_eq!(made.kind, Kind::Decimal);
        assert!(
            equal(made.get(), wanted),
            "{name} of {of}: {:?}",
            made.get()
        );
        // Zeros behind the point are kept by what keeps the digits alone.
        if name == "$abs" {
            assert_eq!(made.bytes, wanted.bytes);
        }
    }
}

#[test]
fn decimals_are_reckoned_with_to_their_last_digit() {
    let third = format!("0.{}", "3".repeat(34));
    let two_thirds = format!("0.{}7", "6".repeat(33));
    for (expression, wanted) in [
        (r#"{"$add": [D1.50, 2]}"#, "3.50"),
        (r#"{"$add": [D0.10, D0.20, {"$long": 1}]}"#, "1.30"),
        (r#"{"$subtract": [3, D1.50]}"#, "1.50"),
        (r#"{"$subtract": [D1.50, D1.50]}"#, "0.00"),
        (r#"{"$multiply": [D19.99, 3]}"#, "59.97"),
        (r#"{"$multiply": [D1.5, D2.0]}"#, "3.00"),
        (r#"{"$divide": [D10, 4]}"#, "2.5"),
        (r#"{"$divide": [D6.00, 2]}"#, "3.00"),
        (r#"{"$divide": [D1E3, 5]}"#, "2E2"),
        (r#"{"$divide": [1, D-3]}"#, &format!("-{third}")),
        (r#"{"$divide": [D2, D3]}"#, &two_thirds),
        (r#"{"$divide": [D0.0, 7]}"#, "0.0"),
        (r#"{"$divide": [D-Infinity, 7]}"#, "-Infinity"),
        (r#"{"$divide": [DInfinity, DInfinity]}"#, "NaN"),
        (r#"{"$sum": [[D0.1, "x", D0.2, 1]]}"#, "1.3"),
        (r#"{"$avg": [[D0.1, D0.2, null]]}"#, "0.15"),
        (r#"{"$avg": [1, D2]}"#, "1.5"),
    ] {
        let mut json = String::new();
        let mut rest = expression;
        while let Some(at) = rest.find('D') {
            let (before, number) = rest.split_at(at);
            let end = number.find([',', ']']).expect("an end");
            json += &format!(r#"{before}{{"$decimal": "{}"}}"#, &number[1..end]);
            rest = &number[end..];
        }
        let made = eval(&format!("{json}{rest}"), "{}").expect("a number");
        let wanted = doc(&format!(r#"{{"x": {{"$decimal": "{wanted}"}}}}"#));
        let wanted = Document(&wanted).get("x").expect("there");
        let made = made.expect("a value");
        assert_eq!(made.bytes, wanted.bytes, "{expression}: {:?}", made.get());
    }
    let by_zero = r#"{"$divide": [1, {"$decimal": "0.0"}]}"#;
    assert_eq!(eval(by_zero, "{}"), Err(2));
    assert_eq!(eval(r#"{"$exp": {"$decimal": "1"}}"#, "{}"), Err(115));
    assert_eq!(eval(r#"{"$mod": [5, {"$decimal": "2"}]}"#, "{}"), Err(115));
}
