//! Goal: filters find what MongoDB finds. Method: a table of filter, document, answer.

use drumlin_doc::{
    Builder, Code, Document, Filter, Kind, Projection, ProjectionOf, Scope, Sort, Value, show,
};

use crate::json::doc;

fn matches(filter: &str, document: &str) -> bool {
    let (filter, document) = (doc(filter), doc(document));
    let filter = Filter::new(Document(&filter)).unwrap_or_else(|refusal| panic!("{refusal}"));
    filter
        .matches(Document(&document))
        .unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn filters_match_as_defined() {
    let cases = [
        (r#"{}"#, r#"{"a": 1}"#, true),
        (r#"{"a": 1}"#, r#"{"a": 1.0}"#, true),
        (r#"{"a": 1}"#, r#"{"a": "1"}"#, false),
        (r#"{"a": null}"#, r#"{"b": 1}"#, true),
        (r#"{"a": null}"#, r#"{"a": null}"#, true),
        (r#"{"a": null}"#, r#"{"a": 0}"#, false),
        (r#"{"a": 2}"#, r#"{"a": [1, 2]}"#, true),
        (r#"{"a": [1, 2]}"#, r#"{"a": [1, 2]}"#, true),
        (r#"{"a": [1, 2]}"#, r#"{"a": [[1, 2], 3]}"#, true),
        (r#"{"a": {"$ne": 2}}"#, r#"{"a": [1, 2]}"#, false),
        (r#"{"a": {"$ne": 2}}"#, r#"{}"#, true),
        (r#"{"a": {"$gt": 1, "$lt": 3}}"#, r#"{"a": [0, 5]}"#, true),
        (
            r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}"#,
            r#"{"a": [0, 5]}"#,
            false,
        ),
        (
            r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}"#,
            r#"{"a": [0, 2]}"#,
            true,
        ),
        (r#"{"a": {"$gt": 1}}"#, r#"{"a": "x"}"#, false),
        (r#"{"a": {"$gte": null}}"#, r#"{}"#, true),
        (r#"{"a": {"$gt": null}}"#, r#"{}"#, false),
        (r#"{"a.b": 1}"#, r#"{"a": [{"b": 2}, {"b": 1}]}"#, true),
        (r#"{"a.b": 1}"#, r#"{"a": [[{"b": 1}]]}"#, false),
        (r#"{"a.1": 5}"#, r#"{"a": [4, 5]}"#, true),
        (r#"{"a.1.b": 5}"#, r#"{"a": [4, {"b": 5}]}"#, true),
        (r#"{"a.b": null}"#, r#"{"a": 4}"#, true),
        (r#"{"a.b": {"$exists": false}}"#, r#"{"a": []}"#, true),
        (
            r#"{"a.b": {"$exists": true}}"#,
            r#"{"a": [{"c": 1}, {"b": null}]}"#,
            true,
        ),
        (r#"{"a": {"$in": [1, null]}}"#, r#"{}"#, true),
        (r#"{"a": {"$in": []}}"#, r#"{"a": 1}"#, false),
        (r#"{"a": {"$nin": [1, 2]}}"#, r#"{"a": 3}"#, true),
        (r#"{"a": {"$nin": [1, 2]}}"#, r#"{"a": [3, 2]}"#, false),
        (r#"{"$or": [{"a": 1}, {"b": 1}]}"#, r#"{"b": 1}"#, true),
        (r#"{"$nor": [{"a": 1}, {"b": 1}]}"#, r#"{"b": 1}"#, false),
        (r#"{"a": {"$not": {"$gt": 5}}}"#, r#"{"a": "x"}"#, true),
        (r#"{"a": {"$size": 2}}"#, r#"{"a": [1, 2]}"#, true),
        (r#"{"a": {"$size": 2}}"#, r#"{"a": 2}"#, false),
        (r#"{"a": {"$all": [1, 2]}}"#, r#"{"a": [2, 3, 1]}"#, true),
        (r#"{"a": {"$all": []}}"#, r#"{"a": []}"#, false),
        (r#"{"a": {"$type": "number"}}"#, r#"{"a": 1.5}"#, true),
        (r#"{"a": {"$type": "array"}}"#, r#"{"a": [1]}"#, true),
        (r#"{"a": {"$type": "int"}}"#, r#"{"a": ["x", 1]}"#, true),
        (r#"{"a": {"$mod": [4, 1]}}"#, r#"{"a": 9.7}"#, true),
        (r#"{"a": {"$mod": [4, -1]}}"#, r#"{"a": -9}"#, true),
        (
            r#"{"a": {"b": 1, "c": 2}}"#,
            r#"{"a": {"b": 1, "c": 2.0}}"#,
            true,
        ),
        (r#"{"a": {"b": 1}}"#, r#"{"a": {"b": 1, "c": 2}}"#, false),
        (
            r#"{"a": {"$elemMatch": {"b": 1, "c": 2}}}"#,
            r#"{"a": [{"b": 1, "c": 3}, {"b": 2, "c": 2}]}"#,
            false,
        ),
        (
            r#"{"a": {"$elemMatch": {"b": 1, "c": 2}}}"#,
            r#"{"a": [{"b": 1, "c": 2}]}"#,
            true,
        ),
        (
            r#"{"a": {"$elemMatch": {"$gt": 1}}}"#,
            r#"{"a": [[5]]}"#,
            false,
        ),
        (r#"{"a": {"$regex": "^b"}}"#, r#"{"a": ["ab", "bc"]}"#, true),
        (
            r#"{"a": {"$regex": "B", "$options": "i"}}"#,
            r#"{"a": "ab"}"#,
            true,
        ),
        (r#"{"a": {"$not": {"$regex": "b"}}}"#, r#"{"a": 5}"#, true),
        (r#"{"a": {"$bitsAllSet": 6}}"#, r#"{"a": 7}"#, true),
        (r#"{"a": {"$bitsAnyClear": [0, 3]}}"#, r#"{"a": 9}"#, false),
        (r#"{"a": {"$bitsAnySet": [200]}}"#, r#"{"a": -1}"#, true),
        (r#"{"a": {"$bitsAllClear": 1}}"#, r#"{"a": "x"}"#, false),
        (
            r#"{"$expr": {"$gt": ["$a", "$b"]}}"#,
            r#"{"a": 2, "b": 1}"#,
            true,
        ),
        (
            r#"{"$or": [{"$expr": "$a"}, {"b": 3}]}"#,
            r#"{"a": 0, "b": 1}"#,
            false,
        ),
    ];
    for (filter, document, expected) in cases {
        assert_eq!(
            matches(filter, document),
            expected,
            "{filter} on {document}"
        );
    }
}

#[test]
fn what_is_not_served_is_refused_by_name() {
    let cases = [
        (r#"{"a": {"$regex": "("}}"#, "Regular"),
        (r#"{"a": {"$ne": {"$gt": 1}, "$options": "i"}}"#, "$options"),
        (r#"{"$where": "x"}"#, "$where"),
        (r#"{"a": {"$elemMatch": {"$expr": 1}}}"#, "$expr"),
        (r#"{"a": {"$bitsAllSet": -1}}"#, "$bitsAllSet"),
        (r#"{"$text": {"$search": "x"}}"#, "$text"),
        (r#"{"a": {"$in": 1}}"#, "$in"),
        (r#"{"$or": []}"#, "$or"),
        (r#"{"a": {"$not": {"b": 1}}}"#, "$not"),
        (r#"{"a": {"$mod": [0, 1]}}"#, "divisor"),
    ];
    for (filter, name) in cases {
        let bytes = doc(filter);
        let refusal = Filter::new(Document(&bytes)).expect_err(filter);
        assert!(refusal.message.contains(name), "{filter}: {refusal}");
    }
}

#[test]
fn projections_cut_as_defined() {
    let cases = [
        (
            r#"{"a": 1}"#,
            r#"{"_id": 1, "a": 2, "b": 3}"#,
            r#"{"_id": 1, "a": 2}"#,
        ),
        (
            r#"{"a": 1, "_id": 0}"#,
            r#"{"_id": 1, "a": 2, "b": 3}"#,
            r#"{"a": 2}"#,
        ),
        (r#"{"_id": 0}"#, r#"{"_id": 1, "a": 2}"#, r#"{"a": 2}"#),
        (r#"{"_id": 1}"#, r#"{"_id": 1, "a": 2}"#, r#"{"_id": 1}"#),
        (
            r#"{"b": 0}"#,
            r#"{"_id": 1, "a": 2, "b": 3}"#,
            r#"{"_id": 1, "a": 2}"#,
        ),
        (
            r#"{"a.b": 1}"#,
            r#"{"a": [{"b": 1, "c": 2}, 7, {"c": 3}]}"#,
            r#"{"a": [{"b": 1}, {}]}"#,
        ),
        (
            r#"{"a.b": 0}"#,
            r#"{"a": [{"b": 1, "c": 2}, 7]}"#,
            r#"{"a": [{"c": 2}, 7]}"#,
        ),
        (r#"{"a.b": 1}"#, r#"{"a": 5, "c": 1}"#, r#"{}"#),
        (
            r#"{"a": {"b": 1}}"#,
            r#"{"a": {"b": 1, "c": 2}}"#,
            r#"{"a": {"b": 1}}"#,
        ),
        (
            r#"{"a": {"$slice": -1}}"#,
            r#"{"a": [1, 2], "b": 3}"#,
            r#"{"a": [2], "b": 3}"#,
        ),
        (
            r#"{"a": {"$slice": [1, 1]}, "c": 1}"#,
            r#"{"a": [1, 2, 3], "b": 3, "c": 4}"#,
            r#"{"a": [2], "c": 4}"#,
        ),
        (
            r#"{"a": {"$elemMatch": {"$gt": 1}}}"#,
            r#"{"a": [1, 2, 3], "b": 1}"#,
            r#"{"a": [2]}"#,
        ),
        (
            r#"{"a.$": 1}"#,
            r#"{"a": [1, 7, 9], "b": 1}"#,
            r#"{"a": [7]}"#,
        ),
        (
            r#"{"a": "$b", "_id": 0}"#,
            r#"{"_id": 1, "b": 2}"#,
            r#"{"a": 2}"#,
        ),
        (
            r#"{"a.c": {"$add": ["$b", 1]}}"#,
            r#"{"a": [{"x": 1}, 5], "b": 1}"#,
            r#"{"a": [{"c": 2}, {"c": 2}]}"#,
        ),
        (
            r#"{"b": {"c": {"$literal": 1}}}"#,
            r#"{"a": 1}"#,
            r#"{"b": {"c": 1}}"#,
        ),
    ];
    let query = doc(r#"{"a": 7}"#);
    let query = Filter::new(Document(&query)).expect("a filter");
    for (projection, document, expected) in cases {
        let (projection, document) = (doc(projection), doc(document));
        let made = Projection::new(Document(&projection), ProjectionOf::Find, &Scope::default());
        let made = made
            .expect("a projection")
            .apply(Document(&document), Some(&query));
        assert_eq!(made, Ok(doc(expected)), "{expected}");
    }
    for wrong in [
        r#"{"a": 1, "b": 0}"#,
        r#"{"a": 1, "a.b": 1}"#,
        r#"{"a": {"$slice": "x"}}"#,
        r#"{"a": 0, "b": "$c"}"#,
        r#"{"a": {"$meta": "textScore"}}"#,
        r#"{"a": {}}"#,
        r#"{"$a": 1}"#,
    ] {
        let made = Projection::new(Document(&doc(wrong)), ProjectionOf::Find, &Scope::default());
        assert!(made.is_err(), "{wrong}");
    }
}

#[test]
fn fields_are_added_in_their_places() {
    let cases = [
        (
            r#"{"a": 5, "c": "$b"}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": 5, "b": 2, "c": 2}"#,
        ),
        (
            r#"{"a.b": 5}"#,
            r#"{"a": {"b": 1, "c": 2}}"#,
            r#"{"a": {"b": 5, "c": 2}}"#,
        ),
        (
            r#"{"a": {"b": 5}}"#,
            r#"{"a": [{"c": 1}, 2]}"#,
            r#"{"a": [{"b": 5, "c": 1}, {"b": 5}]}"#,
        ),
        (r#"{"a": "$$REMOVE"}"#, r#"{"a": 1, "b": 2}"#, r#"{"b": 2}"#),
    ];
    for (fields, document, expected) in cases {
        let made = Projection::add_fields(Document(&doc(fields)), &Scope::default());
        let made = made
            .expect("fields")
            .apply(Document(&doc(document)), None)
            .expect("a document");
        let same = |document: &[u8]| {
            let mut names: Vec<_> = Document(document).iter().map(|it| show(it.value)).collect();
            names.sort();
            names
        };
        let sorted = |text: String| {
            let mut parts: Vec<char> = text.chars().collect();
            parts.sort_unstable();
            parts
        };
        assert_eq!(same(&made).len(), same(&doc(expected)).len(), "{fields}");
        assert_eq!(
            sorted(show(Document(&made).as_value())),
            sorted(show(Document(&doc(expected)).as_value())),
            "{fields}"
        );
    }
}

#[test]
fn arrays_sort_by_their_least_and_their_greatest() {
    let sorted = |sort: &str, documents: [&str; 5]| {
        let sort = Sort::new(Document(&doc(sort))).expect("a sort");
        let mut all = documents.map(doc);
        all.sort_by_key(|document| sort.key_of(Document(document)));
        all.map(|document| {
            documents
                .iter()
                .position(|text| doc(text) == document)
                .expect("one of them")
        })
    };
    let documents = [
        r#"{"a": 3}"#,
        r#"{"a": [1, 9]}"#,
        r#"{}"#,
        r#"{"a": []}"#,
        r#"{"a": "x"}"#,
    ];
    assert_eq!(sorted(r#"{"a": 1}"#, documents), [3, 2, 1, 0, 4]);
    assert_eq!(sorted(r#"{"a": -1}"#, documents), [4, 1, 0, 2, 3]);
}

#[test]
fn a_sort_counts_by_the_least_key_that_an_index_would_have() {
    let order = |sort: &str, documents: &[&str]| {
        let sort = Sort::new(Document(&doc(sort))).expect("a sort");
        let mut all: Vec<usize> = (0..documents.len()).collect();
        all.sort_by_key(|at| sort.key_of(Document(&doc(documents[*at]))));
        all
    };
    // What has no fields has null there, in an array too.
    let documents = [
        r#"{"a": [{"y": 1}], "i": 0}"#,
        r#"{"a": [{"y": 2}, 7], "i": 1}"#,
        r#"{"a": [{"y": 3}, [4]], "i": 2}"#,
    ];
    assert_eq!(order(r#"{"a.y": 1, "i": -1}"#, &documents), [2, 1, 0]);
    assert_eq!(order(r#"{"a.y": -1, "i": 1}"#, &documents), [2, 1, 0]);
    // Fields of one element go together: here 1 and 9, there 1 and 8.
    let documents = [
        r#"{"a": [{"x": 1, "y": 9}, {"x": 2, "y": 0}]}"#,
        r#"{"a": [{"x": 1, "y": 8}]}"#,
    ];
    assert_eq!(order(r#"{"a.x": 1, "a.y": 1}"#, &documents), [1, 0]);
    // Two arrays cannot go together, and each counts alone.
    let documents = [r#"{"a": [2, 3], "b": [5, 0]}"#, r#"{"a": [2], "b": [1]}"#];
    assert_eq!(order(r#"{"a": 1, "b": 1}"#, &documents), [0, 1]);
    let documents = [r#"{"a": [{"x": 1}, 2], "b": [3]}"#, r#"{"b": 2}"#];
    assert_eq!(order(r#"{"a.x": 1, "b": -1}"#, &documents), [0, 1]);
}

#[test]
fn what_is_missing_lies_between_the_ends_of_the_order() {
    let cases = [
        ("$lte", Kind::MaxKey, true),
        ("$lt", Kind::MaxKey, true),
        ("$gt", Kind::MinKey, true),
        ("$gte", Kind::MinKey, true),
        ("$gt", Kind::MaxKey, false),
        ("$lt", Kind::MinKey, false),
        ("$eq", Kind::MaxKey, false),
    ];
    for (operator, kind, expected) in cases {
        let mut filter = Builder::new();
        filter.open(Kind::Document, "a");
        filter.value(operator, Value { kind, bytes: &[] });
        let filter = filter.finish();
        let filter = Filter::new(Document(&filter)).expect("a filter");
        for document in [r#"{}"#, r#"{"a": 1}"#, r#"{"a": null}"#] {
            let found = filter.matches(Document(&doc(document))).expect("no error");
            assert_eq!(found, expected, "{operator} {kind:?} {document}");
        }
        // What is no number does, too.
        let mut document = Builder::new();
        document.f64("a", f64::NAN);
        let found = filter.matches(Document(&document.finish()));
        assert_eq!(found.expect("no error"), expected, "{operator} {kind:?}");
    }
}

#[test]
fn elements_are_projected_as_the_query_found_them() {
    // Filter, projection, document, and what is left.
    let cases = [
        (
            r#"{"a": 3}"#,
            r#"{"b.$": 1}"#,
            r#"{"_id": 1, "a": [1, 3], "b": [5, 6]}"#,
            r#"{"_id": 1, "b": [6]}"#,
        ),
        (
            r#"{"$or": [{"a": 9}, {"a": 3}]}"#,
            r#"{"a.$": 1}"#,
            r#"{"a": [1, 3]}"#,
            r#"{"a": [3]}"#,
        ),
        (
            r#"{"a": {"$all": [1, 3]}}"#,
            r#"{"a.$": 1}"#,
            r#"{"a": [1, 3]}"#,
            r#"{"a": [3]}"#,
        ),
        (
            r#"{"x.c": {"$gte": 2}}"#,
            r#"{"x.b.$": 1}"#,
            r#"{"x": {"b": [5, 6], "c": [1, 2]}}"#,
            r#"{"x": {"b": [6]}}"#,
        ),
        (
            "{}",
            r#"{"a": {"$elemMatch": {"$gt": 1}}, "c": 0}"#,
            r#"{"a": [1, 2], "b": 1, "c": 1}"#,
            r#"{"a": [2], "b": 1}"#,
        ),
        (
            "{}",
            r#"{"a": {"$slice": 1.7}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [1]}"#,
        ),
        (
            "{}",
            r#"{"a": {"$slice": [{"$decimal": "1"}, {"$decimal": "2.5"}]}}"#,
            r#"{"a": [1, 2, 3, 4]}"#,
            r#"{"a": [2, 3]}"#,
        ),
        (
            "{}",
            r#"{"a": {"$slice": {"$decimal": "Infinity"}}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [1, 2]}"#,
        ),
    ];
    for (filter, projection, document, expected) in cases {
        let filter = Filter::new(Document(&doc(filter))).expect("a filter");
        let projection = doc(projection);
        let made = Projection::new(Document(&projection), ProjectionOf::Find, &Scope::default());
        let made = made.expect("a projection");
        let left = made.apply(Document(&doc(document)), Some(&filter));
        assert_eq!(left, Ok(doc(expected)), "{expected}");
    }
    // With fields that stay it is the last one.
    let projection = doc(r#"{"a": 1, "m": {"$elemMatch": {"$gt": 1}}, "z": 1}"#);
    let made = Projection::new(Document(&projection), ProjectionOf::Find, &Scope::default());
    let document = doc(r#"{"a": 1, "m": [1, 2], "z": 1}"#);
    let left = made.expect("a projection").apply(Document(&document), None);
    let left = left.expect("a document");
    let names: Vec<_> = Document(&left).iter().map(|it| it.name_str()).collect();
    assert_eq!(names, ["a", "z", "m"]);
    let document = doc(r#"{"a": [1, 3], "b": [1]}"#);
    for (filter, projection, code) in [
        (r#"{"a": 3}"#, r#"{"b.$": 1}"#, Code::PositionalBeyond),
        (
            r#"{"a": {"$not": {"$gt": 5}}}"#,
            r#"{"a.$": 1}"#,
            Code::PositionalNone,
        ),
        (
            r#"{"$or": [{"a": 1}, {"b": 1}]}"#,
            r#"{"a.$": 1}"#,
            Code::PositionalNone,
        ),
        (r#"{"a": [1, 3]}"#, r#"{"a.$": 1}"#, Code::PositionalNone),
        ("{}", r#"{"a.$": "x"}"#, Code::PositionalValue),
        ("{}", r#"{"a.$": {"x": 1}}"#, Code::PositionalObject),
        ("{}", r#"{"a.$.b": 1}"#, Code::PositionalMiddle),
        ("{}", r#"{"a.$": 1, "b.$": 1}"#, Code::PositionalTwice),
        (
            "{}",
            r#"{"a.$": 1, "b": {"$elemMatch": {}}}"#,
            Code::ElemMatchAfterPositional,
        ),
        (
            "{}",
            r#"{"a": {"$elemMatch": {}}, "b.$": 1}"#,
            Code::PositionalAfterElemMatch,
        ),
        ("{}", r#"{"a": {"$elemMatch": 1}}"#, Code::ElemMatchObject),
        (
            "{}",
            r#"{"a": {"$elemMatch": {}, "x": 1}}"#,
            Code::PathDollar,
        ),
        ("{}", r#"{"a": {"$slice": [1, 0]}}"#, Code::SliceLimit),
        ("{}", r#"{"a": 1, "a.b": 1}"#, Code::CollisionBelow),
        ("{}", r#"{"a": {"$nothing": 1}}"#, Code::UnknownProjection),
        ("{}", r#"{"a.": 1}"#, Code::PathDot),
        ("{}", r#"{".a": 1}"#, Code::PathEmpty),
    ] {
        let filter = Filter::new(Document(&doc(filter))).expect("a filter");
        let of = doc(projection);
        let made = Projection::new(Document(&of), ProjectionOf::Find, &Scope::default());
        let made = made.and_then(|it| it.apply(Document(&document), Some(&filter)));
        let refusal = made.expect_err(projection);
        assert_eq!(refusal.code, code, "{projection}: {refusal}");
    }
}

#[test]
fn malformed_filters_are_refused_by_what_is_wrong() {
    for (filter, code) in [
        (r#"{"a": {"$bitsAllSet": -1}}"#, Code::FailedToParse),
        (r#"{"a": {"$bitsAllSet": "x"}}"#, Code::BadValue),
        (r#"{"a": {"$bitsAllSet": [-1]}}"#, Code::BadValue),
        (
            r#"{"a": {"$size": {"$long": 9007199254740993}}}"#,
            Code::BadValue,
        ),
        (r#"{"a": {"$type": true}}"#, Code::TypeMismatch),
        (
            r#"{"a": {"$all": [{"$elemMatch": {}}, 1]}}"#,
            Code::BadValue,
        ),
        (r#"{"a": {"$regex": "a\u0000b"}}"#, Code::BadValue),
        (
            r#"{"a": {"$elemMatch": {"$jsonSchema": {}}}}"#,
            Code::QueryFeatureNotAllowed,
        ),
    ] {
        let refusal = Filter::new(Document(&doc(filter))).expect_err(filter);
        assert_eq!(refusal.code, code, "{filter}: {refusal}");
    }
    for (filter, document, answer) in [
        (
            r#"{"a": {"$bitsAllSet": {"$decimal": "5"}}}"#,
            r#"{"a": {"$decimal": "7"}}"#,
            true,
        ),
        (
            r#"{"a": {"$exists": {"$decimal": "0.0"}}}"#,
            r#"{"a": 1}"#,
            false,
        ),
        (
            r#"{"a": {"$size": {"$decimal": "2.0"}}}"#,
            r#"{"a": [1, 2]}"#,
            true,
        ),
        (
            r#"{"a": {"$mod": [-1, 0]}}"#,
            r#"{"a": -9223372036854775808}"#,
            true,
        ),
    ] {
        assert_eq!(matches(filter, document), answer, "{filter}");
    }
}
