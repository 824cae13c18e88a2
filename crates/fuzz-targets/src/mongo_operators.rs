//! Seeds of the document server's operators, as JSON.

use crate::json::doc;

/// What they are over: places, texts, numbers of all kinds, arrays.
const DOCUMENT: &str = r#"{"_id": 1, "p": {"type": "Point", "coordinates": [1.5, 2]}, "l": {"type": "LineString", "coordinates":
    [[0, 0], [10, 1], [20, 40]]}, "g": {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 3], [0, 3], [0, 0]]]}, "xy": [1, 2],
    "t": " one, two and Two ", "n": {"$decimal": "1.50"}, "i": 7, "a": [3, 1, 2, 3], "d": {"$date": 1700000000000},
    "s": [{"k": "x", "v": 1}, {"k": "y", "v": null}]}"#;

const FILTERS: [(&str, &str); 4] = [
    (
        "places",
        r#"{"p": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]]}}},
        "xy": {"$geoWithin": {"$centerSphere": [[1, 1], 0.1]}}, "l": {"$geoIntersects": {"$geometry": {"type": "MultiPoint",
        "coordinates": [[10, 1], [2, 2]]}}}}"#,
    ),
    (
        "flat-places",
        r#"{"xy": {"$geoWithin": {"$box": [[0, 0], [3, 3]]}}, "p.coordinates": {"$geoWithin": {"$polygon": [[0, 0], [4, 0], [2, 6]]}},
        "$nor": [{"xy": {"$geoWithin": {"$center": [[9, 9], 2]}}}], "g": {"$not": {"$geoIntersects": {"$geometry": {"type":
        "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [5, 5]}]}}}}}"#,
    ),
    (
        "schema",
        r#"{"$jsonSchema": {"required": ["_id", "i"], "minProperties": 2, "properties": {"i": {"bsonType": ["int", "long"],
        "minimum": 1, "multipleOf": 7}, "a": {"type": "array", "items": {"maximum": 9}, "uniqueItems": false, "maxItems": 5},
        "t": {"pattern": "t.o", "maxLength": 30}}, "patternProperties": {"^s": {"anyOf": [{"type": "array"}, {"enum": [1]}]}},
        "additionalProperties": {"not": {"type": "boolean"}}, "dependencies": {"i": ["a"]}}}"#,
    ),
    (
        "expressions",
        r#"{"$expr": {"$and": [{"$regexMatch": {"input": "$t", "regex": "(?i)two(?=[ ,])"}}, {"$lt": [{"$strLenCP": {"$trim":
        {"input": "$t", "chars": " ,"}}}, 40]}, {"$in": ["$i", {"$map": {"input": "$a", "as": "x", "in": {"$add": ["$$x",
        {"$toInt": "1"}, 3]}}}]}]}, "t": {"$regex": "^ one.*two", "$options": "is"}, "i": {"$bitsAllSet": [0, 1], "$mod": [5, 2]},
        "s": {"$elemMatch": {"k": {"$type": "string"}, "v": {"$in": [1, null]}}}, "a": {"$all": [1, 3]}}"#,
    ),
];

const PIPELINES: [(&str, &str); 4] = [
    (
        "texts",
        r#"{"pipeline": [{"$project": {"all": {"$regexFindAll": {"input": "$t", "regex": "(t)wo", "options": "i"}}, "parts":
        {"$split": ["$t", ","]}, "at": {"$indexOfBytes": ["$t", "two"]}, "changed": {"$replaceAll": {"input": {"$toUpper": "$t"},
        "find": "TWO", "replacement": "2"}}, "cut": {"$substrCP": ["$t", 1, 3]}}}]}"#,
    ),
    (
        "arrays",
        r#"{"pipeline": [{"$addFields": {"u": {"$setUnion": ["$a", [9, 1]]}, "o": {"$arrayToObject": "$s"}, "z": {"$zip":
        {"inputs": ["$a", "$s"]}}, "y": {"$sortArray": {"input": "$s", "sortBy": {"v": -1}}}, "r": {"$reduce": {"input": "$a",
        "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, "f": {"$filter": {"input": "$a", "cond": {"$gt": ["$$this", 1]},
        "limit": 2}}}}, {"$unset": "s"}, {"$unwind": {"path": "$z", "includeArrayIndex": "at"}}]}"#,
    ),
    (
        "numbers",
        r#"{"pipeline": [{"$group": {"_id": {"$mod": ["$i", 2]}, "n": {"$sum": "$n"}, "m": {"$avg": "$i"}, "x": {"$max": "$a"}}},
        {"$set": {"d": {"$dateAdd": {"startDate": {"$toDate": {"$multiply": ["$m", 1000000]}}, "unit": "month", "amount": 1}}, "p":
        {"$pow": ["$m", 2]}, "q": {"$convert": {"input": "$m", "to": "string", "onError": "none"}}}}, {"$bucket": {"groupBy": "$m",
        "boundaries": [0, 10, 100], "default": "other"}}]}"#,
    ),
    (
        "places",
        r#"{"pipeline": [{"$match": {"p": {"$geoWithin": {"$centerSphere": [[1, 2], 0.5]}}}}, {"$match": {"g":
        {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [1, 1]}}}}}]}"#,
    ),
];

const UPDATES: [(&str, &str); 2] = [
    (
        "numbers",
        r#"{"$mul": {"n": 2, "i": 3}, "$min": {"d": {"$date": 5}}, "$max": {"x": 1}, "$bit": {"a.0": {"xor": 5}}, "$currentDate":
        {"now": true}}"#,
    ),
    (
        "of-arrays",
        r#"{"$pull": {"a": {"$gte": 3}}, "$addToSet": {"s": {"$each": [{"k": "z"}, {"k": "z"}]}}, "$pop": {"xy": -1}, "$set":
        {"l.coordinates.$[].0": 4}}"#,
    ),
];

/// Inputs: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let document = doc(DOCUMENT);
    let mut seeds = Vec::new();
    let mut add = |target, all: &[(&str, &str)], copies: usize| {
        for (name, text) in all {
            let bytes = [doc(text), document.repeat(copies)].concat();
            seeds.push((target, format!("operators-{name}"), bytes));
        }
    };
    add("mongo_filter", &FILTERS, 1);
    add("mongo_update", &UPDATES, 1);
    add("mongo_pipeline", &PIPELINES, 2);
    seeds
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use drumlin::Options;
    use drumlin_doc::{Builder, Document, Filter, Kind, Moment, Update};
    use drumlin_fs::{Env, StrictMemFileSystem};
    use drumlin_mongo::Embedded;

    use super::*;

    #[test]
    fn seeds_are_no_refusals() {
        let document = doc(DOCUMENT);
        for (name, text) in FILTERS {
            let filter = Filter::new(Document(&doc(text))).expect(name);
            assert_eq!(filter.matches(Document(&document)), Ok(true), "{name}");
        }
        for (name, text) in UPDATES {
            let update = Update::new(Document(&doc(text))).expect(name);
            let all = Filter::And(Vec::new());
            let applied = update.apply(Document(&document), &all, &Moment::default());
            assert!(applied.expect(name).is_changed, "{name}");
        }
        let options = Options {
            env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
            background_threads: Some(0),
            memory_budget: Some(4 << 20),
            ..Options::default()
        };
        let server = Embedded::open(Path::new("/mongo"), options).expect("opens");
        let mut insert = Builder::new();
        insert
            .str("insert", "c")
            .str("$db", "d")
            .open(Kind::Array, "documents");
        insert.document("0", Document(&document)).close();
        server.run(&insert.finish()).expect("a document");
        for (name, text) in PIPELINES {
            let mut command = Builder::new();
            command.str("aggregate", "c").str("$db", "d");
            command.open(Kind::Document, "cursor").close();
            for element in Document(&doc(text)) {
                command.value(element.name, element.value);
            }
            let reply = server.run(&command.finish()).expect("a document");
            let cursor = Document(&reply)
                .get("cursor")
                .and_then(|it| it.as_document());
            let batch = cursor.and_then(|it| it.get("firstBatch")?.as_array());
            let why = Document(&reply).get("errmsg").and_then(|it| it.as_str());
            assert!(batch.is_some_and(|it| !it.is_empty()), "{name}: {why:?}");
        }
    }
}
