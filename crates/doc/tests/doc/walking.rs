//! Goal: foreign bytes are looked at once and never trusted before. Method: documents cut and changed at every byte; index keys.

use drumlin_doc::{
    Builder, Code, DEPTH_MAX, Document, IndexFields, Kind, Path, keystring, validate,
};

use crate::json::doc;

#[test]
fn a_cut_or_longer_document_is_refused() {
    let whole = doc(r#"{"a": 1, "b": {"c": [1, "x", {"$date": 5}]}, "d": true}"#);
    assert_eq!(validate(&whole), Ok(()));
    for end in 0..whole.len() {
        let refused = validate(&whole[..end]).expect_err("cut off");
        assert_eq!(refused.code, Code::InvalidBson);
    }
    assert!(validate(&[whole.as_slice(), &[0]].concat()).is_err());
}

#[test]
fn what_passes_is_walked_to_its_end() {
    let whole = doc(r#"{"a": 1, "b": {"c": [1, "x", {"$date": 5}]}, "d": true, "e": 1.5}"#);
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            if validate(&bytes).is_ok() {
                let fields: usize = Document(&bytes)
                    .iter()
                    .map(|element| element.name.len() + element.value.bytes.len() + 2)
                    .sum();
                assert_eq!(fields + 5, bytes.len(), "byte {at} is {byte}");
            }
        }
    }
}

#[test]
fn documents_nest_so_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let mut out = Builder::new();
        for _ in 0..depth {
            out.open(Kind::Document, "a");
        }
        out.finish()
    };
    assert_eq!(validate(&nested(DEPTH_MAX)), Ok(()));
    assert!(validate(&nested(DEPTH_MAX + 1)).is_err());
}

#[test]
fn documents_have_the_keys_of_their_arrays() {
    let keys = |fields: &[(&str, bool)], document: &str| {
        let fields = fields
            .iter()
            .map(|(path, down)| (Path::new(path), *down))
            .collect();
        IndexFields(fields).keys_of(Document(&doc(document)))
    };
    let values = |document: &str| {
        let bytes = doc(document);
        let mut keys: Vec<_> = Document(&bytes)
            .iter()
            .map(|element| keystring::key_of(element.value))
            .collect();
        keys.sort();
        keys
    };
    let one = |path: &str, document: &str| keys(&[(path, false)], document).expect("keys");
    assert_eq!(one("a", r#"{"a": 5}"#).keys, values(r#"{"0": 5}"#));
    assert_eq!(
        one("a", r#"{"a": [5, 7, 5]}"#).keys,
        values(r#"{"0": 5, "1": 7}"#)
    );
    assert_eq!(
        one("a.b", r#"{"a": [{"b": 1}, {"b": [2, 3]}, 4]}"#).keys,
        values(r#"{"0": 1, "1": 2, "2": 3, "3": null}"#)
    );
    assert_eq!(one("a", r#"{"a": []}"#).keys, [vec![15]], "undefined");
    assert!(one("a", r#"{"b": 1}"#).is_absent && !one("a", r#"{"a": null}"#).is_absent);
    assert!(one("a", r#"{"a": [1]}"#).is_multikey && !one("a", r#"{"a": 1}"#).is_multikey);
    let both = [("a.b", false), ("a.c", false)];
    let paired = keys(&both, r#"{"a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}"#).expect("keys");
    assert_eq!(
        paired.keys.len(),
        2,
        "the elements of one array go together"
    );
    let refused = keys(&[("a", false), ("b", false)], r#"{"a": [1], "b": [2]}"#);
    assert_eq!(
        refused.expect_err("two arrays").code,
        Code::CannotIndexParallelArrays
    );
}
