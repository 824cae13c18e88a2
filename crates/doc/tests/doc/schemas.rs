//! Goal: `$jsonSchema` finds what MongoDB finds. Method: a table of schema, document, answer; and of refusals.

use drumlin_doc::{Code, Document, Filter};

use crate::json::doc;

fn filter(schema: &str) -> Result<Filter, drumlin_doc::Refusal> {
    Filter::new(Document(&doc(&format!(r#"{{"$jsonSchema": {schema}}}"#))))
}

#[test]
fn schemas_hold_as_defined() {
    // The schema, documents for which it holds, and others.
    let cases: [(&str, &[&str], &[&str]); 24] = [
        (r#"{}"#, &[r#"{"a": 1}"#], &[]),
        (r#"{"bsonType": "object"}"#, &[r#"{}"#], &[]),
        (r#"{"bsonType": "array"}"#, &[], &[r#"{}"#]),
        (r#"{"not": {}}"#, &[], &[r#"{}"#]),
        (
            r#"{"required": ["a", "b"]}"#,
            &[r#"{"a": null, "b": 1}"#],
            &[r#"{"a": 1}"#],
        ),
        (
            r#"{"properties": {"a": {"bsonType": ["int", "string"]}}}"#,
            &[r#"{"a": 1}"#, r#"{"a": "x"}"#, r#"{"b": true}"#],
            &[r#"{"a": 1.5}"#, r#"{"a": null}"#, r#"{"a": [1]}"#],
        ),
        (
            r#"{"properties": {"a": {"type": "number"}}}"#,
            &[r#"{"a": 1}"#, r#"{"a": {"$decimal": "1.5"}}"#],
            &[r#"{"a": "1"}"#],
        ),
        (
            r#"{"properties": {"a": {"minimum": 5, "maximum": 7, "exclusiveMaximum": true}}}"#,
            &[
                r#"{"a": 5}"#,
                r#"{"a": {"$decimal": "6.9"}}"#,
                r#"{"a": "x"}"#,
                r#"{}"#,
            ],
            &[
                r#"{"a": 4}"#,
                r#"{"a": 7}"#,
                r#"{"a": {"$decimal": "NaN"}}"#,
            ],
        ),
        (
            r#"{"properties": {"a": {"multipleOf": 0.1}}}"#,
            &[
                r#"{"a": 0.3}"#,
                r#"{"a": 2}"#,
                r#"{"a": {"$decimal": "1E+20"}}"#,
                r#"{"a": 0}"#,
            ],
            &[r#"{"a": 0.35}"#, r#"{"a": {"$decimal": "NaN"}}"#],
        ),
        (
            r#"{"properties": {"a": {"minLength": 2, "maxLength": 3, "pattern": "^日"}}}"#,
            &[r#"{"a": "日本"}"#, r#"{"a": 1}"#],
            &[r#"{"a": "日"}"#, r#"{"a": "日本語だ"}"#, r#"{"a": "本日"}"#],
        ),
        (
            r#"{"properties": {"a": {"minItems": 1, "maxItems": 2, "uniqueItems": true}}}"#,
            &[r#"{"a": [1, "1"]}"#, r#"{"a": [0, false]}"#, r#"{"a": 1}"#],
            &[r#"{"a": []}"#, r#"{"a": [1, 1.0]}"#, r#"{"a": [1, 2, 3]}"#],
        ),
        (
            r#"{"properties": {"a": {"items": {"bsonType": "int"}}}}"#,
            &[r#"{"a": []}"#, r#"{"a": [1, 2]}"#],
            &[r#"{"a": [1, "x"]}"#],
        ),
        (
            r#"{"properties": {"a": {"items": [{"bsonType": "int"}], "additionalItems": false}}}"#,
            &[r#"{"a": []}"#, r#"{"a": [1]}"#],
            &[r#"{"a": ["x"]}"#, r#"{"a": [1, 2]}"#],
        ),
        (
            r#"{"properties": {"a": {"additionalItems": false}}}"#,
            &[r#"{"a": [1, 2]}"#],
            &[],
        ),
        (
            r#"{"properties": {"a": {}}, "additionalProperties": false}"#,
            &[r#"{"a": 1}"#],
            &[r#"{"a": 1, "b": 2}"#],
        ),
        (
            r#"{"patternProperties": {"^n": {"type": "number"}}, "additionalProperties": {"type": "string"}}"#,
            &[r#"{"n1": 1, "x": "y"}"#],
            &[r#"{"n1": "1"}"#, r#"{"x": 1}"#],
        ),
        (
            r#"{"minProperties": 1, "maxProperties": 2}"#,
            &[r#"{"a": 1}"#],
            &[r#"{}"#, r#"{"a": 1, "b": 1, "c": 1}"#],
        ),
        (
            r#"{"dependencies": {"a": ["b"]}}"#,
            &[r#"{"a": 1, "b": 1}"#, r#"{"c": 1}"#],
            &[r#"{"a": 1}"#],
        ),
        (
            r#"{"dependencies": {"a": {"properties": {"b": {"minimum": 0}}}}}"#,
            &[r#"{"a": 1, "b": 1}"#, r#"{"b": -1}"#],
            &[r#"{"a": 1, "b": -1}"#],
        ),
        (
            r#"{"properties": {"a": {"enum": [1, "x", [2]]}}}"#,
            &[r#"{"a": 1.0}"#, r#"{"a": [2]}"#],
            &[r#"{"a": 2}"#],
        ),
        (
            r#"{"allOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            &[r#"{"a": 1, "b": 1}"#],
            &[r#"{"a": 1}"#],
        ),
        (
            r#"{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            &[r#"{"a": 1}"#],
            &[r#"{"c": 1}"#],
        ),
        (
            r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            &[r#"{"a": 1}"#],
            &[r#"{"a": 1, "b": 1}"#, r#"{"c": 1}"#],
        ),
        (
            r#"{"title": "t", "description": "d", "properties": {"a": {"properties": {"b": {"bsonType": "int"}}}}}"#,
            &[r#"{"a": {"b": 1}}"#, r#"{"a": 1}"#],
            &[r#"{"a": {"b": "x"}}"#],
        ),
    ];
    for (schema, good, bad) in cases {
        let filter = filter(schema).unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
        for (documents, answer) in [(good, true), (bad, false)] {
            for document in documents {
                let found = filter.matches(Document(&doc(document)));
                assert_eq!(found, Ok(answer), "{schema} {document}");
            }
        }
    }
}

#[test]
fn malformed_schemas_are_refused_by_what_is_wrong() {
    for (schema, code) in [
        (r#"1"#, Code::TypeMismatch),
        (r#"{"required": "a"}"#, Code::TypeMismatch),
        (r#"{"required": [1]}"#, Code::TypeMismatch),
        (r#"{"required": []}"#, Code::FailedToParse),
        (r#"{"required": ["a", "a"]}"#, Code::FailedToParse),
        (r#"{"properties": {"a": 1}}"#, Code::TypeMismatch),
        (
            r#"{"properties": {"a": {"minLength": -1}}}"#,
            Code::FailedToParse,
        ),
        (
            r#"{"properties": {"a": {"minLength": "x"}}}"#,
            Code::FailedToParse,
        ),
        (
            r#"{"properties": {"a": {"multipleOf": 0}}}"#,
            Code::FailedToParse,
        ),
        (
            r#"{"properties": {"a": {"bsonType": "nothing"}}}"#,
            Code::BadValue,
        ),
        (
            r#"{"properties": {"a": {"bsonType": "integer"}}}"#,
            Code::FailedToParse,
        ),
        (r#"{"properties": {"a": {"type": "long"}}}"#, Code::BadValue),
        (
            r#"{"properties": {"a": {"pattern": "["}}}"#,
            Code::RegexInvalid,
        ),
        (r#"{"patternProperties": {"[": {}}}"#, Code::BadValue),
        (r#"{"exclusiveMinimum": true}"#, Code::FailedToParse),
        (r#"{"enum": []}"#, Code::FailedToParse),
        (
            r#"{"type": "object", "bsonType": "object"}"#,
            Code::FailedToParse,
        ),
        (r#"{"dependencies": {"a": []}}"#, Code::FailedToParse),
        (r#"{"$ref": "x"}"#, Code::FailedToParse),
        (r#"{"nothing": 1}"#, Code::FailedToParse),
    ] {
        let refusal = filter(schema).expect_err(schema);
        assert_eq!(refusal.code, code, "{schema}: {refusal}");
    }
}
