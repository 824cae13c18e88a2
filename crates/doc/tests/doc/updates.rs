//! Goal: updates change documents as MongoDB does. Method: a table of update, document, outcome; and of refusals.

use drumlin_doc::{ArrayFilter, Code, Document, Filter, Moment, Outcome, Update};

use crate::json::doc;

fn updated(filter: &str, update: &str, document: &str, moment: &Moment) -> Outcome<Vec<u8>> {
    let (filter, update, document) = (doc(filter), doc(update), doc(document));
    let filter = Filter::new(Document(&filter))?;
    let applied = Update::new(Document(&update))?.apply(Document(&document), &filter, moment)?;
    assert_eq!(applied.is_changed, applied.document != document);
    Ok(applied.document)
}

#[test]
fn updates_change_as_defined() {
    let cases = [
        (
            r#"{"b": 2}"#,
            r#"{"_id": 1, "a": 1}"#,
            r#"{"_id": 1, "b": 2}"#,
        ),
        (
            r#"{"$set": {"a": 2}}"#,
            r#"{"_id": 1, "a": 1, "b": 1}"#,
            r#"{"_id": 1, "a": 2, "b": 1}"#,
        ),
        (
            r#"{"$set": {"z": 1, "y.x": 2}}"#,
            r#"{"_id": 1}"#,
            r#"{"_id": 1, "y": {"x": 2}, "z": 1}"#,
        ),
        (
            r#"{"$set": {"a.1": 9}}"#,
            r#"{"a": [1, 2, 3]}"#,
            r#"{"a": [1, 9, 3]}"#,
        ),
        (
            r#"{"$set": {"a.4": 9}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [1, 2, null, null, 9]}"#,
        ),
        (
            r#"{"$unset": {"a": "", "b.c": "", "x.y": ""}}"#,
            r#"{"a": 1, "b": {"c": 1, "d": 2}}"#,
            r#"{"b": {"d": 2}}"#,
        ),
        (
            r#"{"$unset": {"a.0": ""}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [null, 2]}"#,
        ),
        (
            r#"{"$inc": {"a": 2, "b": 1}}"#,
            r#"{"a": 1}"#,
            r#"{"a": 3, "b": 1}"#,
        ),
        (
            r#"{"$inc": {"a": 1}}"#,
            r#"{"a": 2147483647}"#,
            r#"{"a": {"$long": 2147483648}}"#,
        ),
        (r#"{"$inc": {"a": 0.5}}"#, r#"{"a": 1}"#, r#"{"a": 1.5}"#),
        (
            r#"{"$mul": {"a": 3, "b": 2}}"#,
            r#"{"a": 2}"#,
            r#"{"a": 6, "b": 0}"#,
        ),
        (
            r#"{"$min": {"a": 1, "b": 9}}"#,
            r#"{"a": 2, "b": 3}"#,
            r#"{"a": 1, "b": 3}"#,
        ),
        (
            r#"{"$max": {"a": 1, "b": 9, "c": 1}}"#,
            r#"{"a": 2, "b": 3}"#,
            r#"{"a": 2, "b": 9, "c": 1}"#,
        ),
        (
            r#"{"$bit": {"a": {"and": 12, "or": 1}, "c": {"or": {"$long": 1}}, "d": {"xor": 5}}}"#,
            r#"{"a": 10, "c": 2}"#,
            r#"{"a": 9, "c": {"$long": 3}, "d": 5}"#,
        ),
        (
            r#"{"$push": {"a": 3}}"#,
            r#"{"a": [1]}"#,
            r#"{"a": [1, 3]}"#,
        ),
        (r#"{"$push": {"a": [3]}}"#, r#"{}"#, r#"{"a": [[3]]}"#),
        (
            r#"{"$push": {"a": {"$each": [5, 1], "$sort": 1, "$slice": 2}}}"#,
            r#"{"a": [3]}"#,
            r#"{"a": [1, 3]}"#,
        ),
        (
            r#"{"$push": {"a": {"$each": [5, 6], "$position": 1, "$slice": -3}}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [5, 6, 2]}"#,
        ),
        (
            r#"{"$push": {"a": {"$each": [{"k": 1}], "$sort": {"k": -1}}}}"#,
            r#"{"a": [{"k": 0}]}"#,
            r#"{"a": [{"k": 1}, {"k": 0}]}"#,
        ),
        (
            r#"{"$addToSet": {"a": {"$each": [1, 2, 2]}}}"#,
            r#"{"a": [1.0]}"#,
            r#"{"a": [1.0, 2]}"#,
        ),
        (
            r#"{"$pop": {"a": 1, "b": -1}}"#,
            r#"{"a": [1, 2], "b": [1, 2]}"#,
            r#"{"a": [1], "b": [2]}"#,
        ),
        (
            r#"{"$pull": {"a": {"$gt": 2}}}"#,
            r#"{"a": [1, 3, 2, 4]}"#,
            r#"{"a": [1, 2]}"#,
        ),
        (
            r#"{"$pull": {"a": {"k": 1}}}"#,
            r#"{"a": [{"k": 1, "v": 2}, {"k": 2}]}"#,
            r#"{"a": [{"k": 2}]}"#,
        ),
        (
            r#"{"$pullAll": {"a": [1, 2]}}"#,
            r#"{"a": [1, 3, 2, 1]}"#,
            r#"{"a": [3]}"#,
        ),
        (
            r#"{"$rename": {"a": "x.y"}}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"b": 2, "x": {"y": 1}}"#,
        ),
        (
            r#"{"$rename": {"q": "b"}}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": 1, "b": 2}"#,
        ),
        (
            r#"{"$setOnInsert": {"a": 1}}"#,
            r#"{"b": 2}"#,
            r#"{"b": 2}"#,
        ),
        (
            r#"{"$set": {"a.$[].k": 0}}"#,
            r#"{"a": [{"k": 1}, {"k": 2}]}"#,
            r#"{"a": [{"k": 0}, {"k": 0}]}"#,
        ),
        (
            r#"{"$inc": {"a.$[big]": 10}}"#,
            r#"{"a": [1, 5, 9]}"#,
            r#"{"a": [1, 15, 19]}"#,
        ),
    ];
    let filter = doc(r#"{"big": {"$gte": 5}}"#);
    let moment = Moment {
        filters: vec![ArrayFilter::new(Document(&filter)).expect("a filter")],
        ..Moment::default()
    };
    for (update, document, expected) in cases {
        let made = updated("{}", update, document, &moment)
            .unwrap_or_else(|refusal| panic!("{update}: {refusal}"));
        assert_eq!(made, doc(expected), "{update} on {document}");
    }
}

#[test]
fn the_place_that_the_filter_found_is_changed() {
    let moment = Moment::default();
    let made = updated(
        r#"{"a": 2}"#,
        r#"{"$set": {"a.$": 9}}"#,
        r#"{"a": [1, 2, 2]}"#,
        &moment,
    );
    assert_eq!(made, Ok(doc(r#"{"a": [1, 9, 2]}"#)));
    let made = updated(
        r#"{"a.k": {"$gt": 1}}"#,
        r#"{"$inc": {"a.$.n": 1}}"#,
        r#"{"a": [{"k": 1}, {"k": 2, "n": 5}]}"#,
        &moment,
    );
    assert_eq!(made, Ok(doc(r#"{"a": [{"k": 1}, {"k": 2, "n": 6}]}"#)));
    let made = updated(
        r#"{"a": {"$elemMatch": {"k": 2}}}"#,
        r#"{"$set": {"a.$.n": 1}}"#,
        r#"{"a": [{"k": 1}, {"k": 2}]}"#,
        &moment,
    );
    assert_eq!(made, Ok(doc(r#"{"a": [{"k": 1}, {"k": 2, "n": 1}]}"#)));
    let refused = updated("{}", r#"{"$set": {"a.$": 9}}"#, r#"{"a": [1]}"#, &moment);
    assert_eq!(refused.expect_err("no place").code, Code::BadValue);
}

#[test]
fn wrong_updates_are_refused_with_their_codes() {
    let cases = [
        (
            r#"{"$set": {"a": 1, "a.b": 2}}"#,
            r#"{}"#,
            Code::ConflictingUpdateOperators,
        ),
        (
            r#"{"$set": {"a": 1}, "$inc": {"a": 2}}"#,
            r#"{}"#,
            Code::ConflictingUpdateOperators,
        ),
        (
            r#"{"$rename": {"a": "b"}, "$set": {"b": 2}}"#,
            r#"{"a": 1}"#,
            Code::ConflictingUpdateOperators,
        ),
        (
            r#"{"$rename": {"a.b": "c"}}"#,
            r#"{"a": 1}"#,
            Code::PathNotViable,
        ),
        (
            r#"{"$rename": {"a.b": "c"}}"#,
            r#"{"a": [{"b": 1}]}"#,
            Code::PathNotViable,
        ),
        (
            r#"{"$rename": {"a.0": "c"}}"#,
            r#"{"a": [1]}"#,
            Code::BadValue,
        ),
        (
            r#"{"$rename": {"c": "a.0.b"}}"#,
            r#"{"a": [{}], "c": 1}"#,
            Code::BadValue,
        ),
        (
            r#"{"$set": {"_id": 2}}"#,
            r#"{"_id": 1}"#,
            Code::ImmutableField,
        ),
        (r#"{"_id": 2}"#, r#"{"_id": 1}"#, Code::ImmutableField),
        (
            r#"{"$set": {"a.b": 2}}"#,
            r#"{"a": 1}"#,
            Code::PathNotViable,
        ),
        (
            r#"{"$set": {"a.b": 2}}"#,
            r#"{"a": [1]}"#,
            Code::PathNotViable,
        ),
        (r#"{"$inc": {"a": 1}}"#, r#"{"a": "x"}"#, Code::TypeMismatch),
        (
            r#"{"$inc": {"c": 1}, "$push": {"a": 1}}"#,
            r#"{"c": "x", "a": 2}"#,
            Code::BadValue,
        ),
        (
            r#"{"$inc": {"a": 1}, "$push": {"c": 1}}"#,
            r#"{"c": 2, "a": "x"}"#,
            Code::TypeMismatch,
        ),
        (r#"{"$inc": {"a": "x"}}"#, r#"{}"#, Code::TypeMismatch),
        (
            r#"{"$inc": {"a": 1}}"#,
            r#"{"a": 9223372036854775807}"#,
            Code::BadValue,
        ),
        (r#"{"$push": {"a": 1}}"#, r#"{"a": 1}"#, Code::BadValue),
        (r#"{"$pop": {"a": 1}}"#, r#"{"a": 1}"#, Code::TypeMismatch),
        (r#"{"$set": {"a..b": 1}}"#, r#"{}"#, Code::EmptyFieldName),
        (
            r#"{"$set": {"$a": 1}}"#,
            r#"{}"#,
            Code::DollarPrefixedFieldName,
        ),
        (r#"{"$bit": {"a": {"and": 1.5}}}"#, r#"{}"#, Code::BadValue),
        (r#"{"$bit": {"a": {"nand": 1}}}"#, r#"{}"#, Code::BadValue),
        (r#"{"$bit": {"a": {}}}"#, r#"{}"#, Code::BadValue),
        (
            r#"{"$bit": {"a": {"or": 1}}}"#,
            r#"{"a": 1.5}"#,
            Code::BadValue,
        ),
        (r#"{"$wrong": {"a": 1}}"#, r#"{}"#, Code::FailedToParse),
        (r#"{"$set": 1}"#, r#"{}"#, Code::FailedToParse),
        (
            r#"{"a": 1, "$set": {"a": 1}}"#,
            r#"{}"#,
            Code::FailedToParse,
        ),
        (
            r#"{"$set": {"a.$[nobody]": 1}}"#,
            r#"{"a": [1]}"#,
            Code::BadValue,
        ),
    ];
    for (update, document, code) in cases {
        let refused = updated("{}", update, document, &Moment::default());
        assert_eq!(
            refused.map_err(|refusal| refusal.code),
            Err(code),
            "{update} on {document}"
        );
    }
}

#[test]
fn an_upsert_begins_with_what_the_filter_says() {
    let filter = doc(r#"{"a": 1, "b.c": {"$eq": 2}, "d": {"$gt": 5}, "$and": [{"e": 3}]}"#);
    let filter = Filter::new(Document(&filter)).expect("a filter");
    let moment = Moment {
        is_insert: true,
        ..Moment::default()
    };
    let seed = Update::of_equalities(&filter).expect("no conflict");
    let seed = seed
        .apply(Document::EMPTY, &filter, &moment)
        .expect("applies")
        .document;
    assert_eq!(seed, doc(r#"{"a": 1, "b": {"c": 2}, "e": 3}"#));
    let update = doc(r#"{"$setOnInsert": {"f": 1}, "$inc": {"a": 1}}"#);
    let made =
        Update::new(Document(&update))
            .expect("an update")
            .apply(Document(&seed), &filter, &moment);
    assert_eq!(
        made.expect("applies").document,
        doc(r#"{"a": 2, "b": {"c": 2}, "e": 3, "f": 1}"#)
    );
}

#[test]
fn decimals_are_added_and_multiplied_to_34_digits() {
    let nines = "9999999999999999999999999999999999";
    let [least, most] = ["1E-6176".to_owned(), format!("{nines}E+6111")];
    // The value, the operator, its operand, and what becomes of the value.
    let decimal = |text: &str| format!(r#"{{"$decimal": "{text}"}}"#);
    let cases = [
        ("10".to_owned(), "$inc", decimal("5"), decimal("15")),
        (decimal("1.50"), "$inc", "2".to_owned(), decimal("3.50")),
        (
            "10.5".to_owned(),
            "$inc",
            decimal("2.5"),
            decimal("13.0000000000000"),
        ),
        (decimal("1.5"), "$inc", decimal("-1.5"), decimal("0.0")),
        (
            decimal("1E+40"),
            "$inc",
            decimal("1"),
            decimal("1000000000000000000000000000000000E+7"),
        ),
        (
            decimal(nines),
            "$inc",
            decimal("0.5"),
            decimal("1000000000000000000000000000000000E+1"),
        ),
        (
            decimal("1E+100"),
            "$inc",
            decimal("-1E-100"),
            decimal("1000000000000000000000000000000000E+67"),
        ),
        (decimal("2"), "$mul", decimal("-3.14"), decimal("-6.28")),
        (
            decimal("1234567890123456789012345678901234"),
            "$mul",
            "11".to_owned(),
            decimal("1358024679135802467913580246791357E+1"),
        ),
        (decimal("-5"), "$mul", "0".to_owned(), decimal("-0")),
        (decimal(&most), "$inc", decimal(&most), decimal("Infinity")),
        (
            decimal(&most),
            "$mul",
            "-2".to_owned(),
            decimal("-Infinity"),
        ),
        (decimal(&least), "$mul", decimal("0.1"), decimal("0E-6176")),
        (decimal("Infinity"), "$mul", "0".to_owned(), decimal("NaN")),
        (
            decimal("Infinity"),
            "$inc",
            decimal("-Infinity"),
            decimal("NaN"),
        ),
        // A zero stays what it is.
        (
            "-0.0".to_owned(),
            "$inc",
            "0.0".to_owned(),
            "-0.0".to_owned(),
        ),
        (decimal("-0"), "$inc", "0".to_owned(), decimal("-0")),
    ];
    for (old, operator, operand, new) in cases {
        let update = format!(r#"{{"{operator}": {{"a": {operand}}}}}"#);
        let made = updated(
            "{}",
            &update,
            &format!(r#"{{"a": {old}}}"#),
            &Moment::default(),
        );
        let made = made.unwrap_or_else(|refusal| panic!("{update}: {refusal}"));
        assert_eq!(made, doc(&format!(r#"{{"a": {new}}}"#)), "{old} {update}");
    }
}

#[test]
fn paths_and_arrays_are_refused_as_defined() {
    let document = r#"{"_id": 1, "n": 5, "a": [1, 2, 3], "d": [{"b": [1]}]}"#;
    for (filter, update, code) in [
        ("{}", r#"{"$set": {"n.$[]": 1}}"#, Code::BadValue),
        (r#"{"n": 5}"#, r#"{"$set": {"n.$": 1}}"#, Code::BadValue),
        (
            r#"{"a": {"$ne": 7}}"#,
            r#"{"$set": {"a.$": 1}}"#,
            Code::BadValue,
        ),
        (
            r#"{"a": {"$exists": true}}"#,
            r#"{"$set": {"a.$": 1}}"#,
            Code::BadValue,
        ),
        ("{}", r#"{"$set": {"a.$.b.$": 1}}"#, Code::BadValue),
        ("{}", r#"{"$inc": {"$": 1}}"#, Code::BadValue),
        (
            "{}",
            r#"{"$set": {"$x": 1}}"#,
            Code::DollarPrefixedFieldName,
        ),
        ("{}", r#"{"$pop": {"n": 1}}"#, Code::TypeMismatch),
        ("{}", r#"{"$pop": {"n.b": 1}}"#, Code::PathNotViable),
        ("{}", r#"{"$pop": {"d.b": 1}}"#, Code::PathNotViable),
        (
            "{}",
            r#"{"$addToSet": {"a": {"$each": 1}}}"#,
            Code::TypeMismatch,
        ),
        (
            "{}",
            r#"{"$push": {"a": {"$each": [], "$sort": {}}}}"#,
            Code::BadValue,
        ),
        (
            "{}",
            r#"{"$currentDate": {"a": {"$type": "date", "x": 1}}}"#,
            Code::BadValue,
        ),
        ("{}", r#"{"$rename": {"n": "n"}}"#, Code::BadValue),
        ("{}", r#"{"$rename": {"n": "_id"}}"#, Code::ImmutableField),
        ("{}", r#"{"$rename": {"a.0": "x"}}"#, Code::BadValue),
        ("{}", r#"{"$rename": {"n": "a.0"}}"#, Code::BadValue),
        ("{}", r#"{"$rename": {"n.x": "y"}}"#, Code::PathNotViable),
        ("{}", r#"{"$rename": {"n": "a\u0000"}}"#, Code::NullByte),
    ] {
        let refusal = updated(filter, update, document, &Moment::default()).expect_err(update);
        assert_eq!(refusal.code, code, "{update}: {refusal}");
    }
    for (update, made) in [
        (r#"{"$set": {"x.$y": 1}}"#, r#"{"_id": 1, "x": {"$y": 1}}"#),
        (r#"{"$rename": {"$none": "b"}}"#, r#"{"_id": 1}"#),
    ] {
        let outcome = updated("{}", update, r#"{"_id": 1}"#, &Moment::default());
        assert_eq!(outcome.expect(update), doc(made));
    }
}

#[test]
fn array_filters_are_whole_filters_of_one_name() {
    let set = r#"{"$set": {"a.$[x].n": 9, "a.$[y].m": 9}}"#;
    let filters = [
        r#"{"$or": [{"x.n": 1}, {"x.n": 3}]}"#,
        r#"{"y.m": {"$gte": 2}}"#,
    ];
    let moment = Moment {
        filters: filters
            .map(|it| ArrayFilter::new(Document(&doc(it))).expect(it))
            .into(),
        ..Moment::default()
    };
    let document = r#"{"a": [{"n": 1, "m": 1}, {"n": 2, "m": 2}, {"n": 3, "m": 3}]}"#;
    let after = r#"{"a": [{"n": 9, "m": 1}, {"n": 2, "m": 9}, {"n": 9, "m": 9}]}"#;
    assert_eq!(
        updated("{}", set, document, &moment).expect(set),
        doc(after)
    );
    for (filter, code) in [
        (r#"{}"#, Code::FailedToParse),
        (r#"{"x": 1, "y": 1}"#, Code::FailedToParse),
        (r#"{"$or": [{"x": 1}, {"y": 1}]}"#, Code::FailedToParse),
        (r#"{"1x": 1}"#, Code::BadValue),
        (r#"{"$text": 1}"#, Code::BadValue),
        (r#"{"$expr": true}"#, Code::QueryFeatureNotAllowed),
    ] {
        let refusal = ArrayFilter::new(Document(&doc(filter))).expect_err(filter);
        assert_eq!(refusal.code, code, "{filter}");
    }
}
