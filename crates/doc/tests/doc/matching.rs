//! Goal: filters find what MongoDB finds. Method: a table of filter, document, answer.

use drumlin_doc::{Document, Filter, Projection, Sort};

use crate::json::doc;

fn matches(filter: &str, document: &str) -> bool {
    let (filter, document) = (doc(filter), doc(document));
    let filter = Filter::new(Document(&filter)).unwrap_or_else(|refusal| panic!("{refusal}"));
    filter.matches(Document(&document))
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
        (r#"{"a": {"$regex": "x"}}"#, "$regex"),
        (r#"{"$where": "x"}"#, "$where"),
        (r#"{"$expr": 1}"#, "$expr"),
        (r#"{"a": {"$near": [1, 2]}}"#, "$near"),
        (r#"{"a": {"$bitsAllSet": 1}}"#, "$bitsAllSet"),
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
    ];
    for (projection, document, expected) in cases {
        let (projection, document) = (doc(projection), doc(document));
        let made = Projection::new(Document(&projection))
            .expect("a projection")
            .apply(Document(&document));
        assert_eq!(made, doc(expected), "{expected}");
    }
    for wrong in [
        r#"{"a": 1, "b": 0}"#,
        r#"{"a": 1, "a.b": 1}"#,
        r#"{"a": {"$slice": 1}}"#,
        r#"{"a.$": 1}"#,
        r#"{"a": "$b"}"#,
    ] {
        assert!(Projection::new(Document(&doc(wrong))).is_err(), "{wrong}");
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
