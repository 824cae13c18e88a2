//! Goal: the work for one value is linear in its bytes, or n log n, and what is made of it is bounded. Method: values of megabytes of a
//! shape that is the worst for nested loops, with which each of these tests would run for minutes up to days. Nothing is timed; what is longer ends when it is told to.

use std::cell::Cell;
use std::rc::Rc;

use drumlin_doc::{
    Builder, Code, Document, Expression, Filter, IndexFields, Kind, Moment, Outcome, OwnedValue,
    Path, Projection, ProjectionOf, Refusal, Scope, Update, show, watched,
};

use crate::json::doc;

const MANY: i32 = 300_000;

/// What `expression` gives for a document with the values `of` by their names.
fn eval(expression: &str, of: &[(&str, OwnedValue)]) -> Outcome<OwnedValue> {
    let expression = doc(&format!(r#"{{"e": {expression}}}"#));
    let expression = Document(&expression).get("e").expect("there");
    let mut holder = Builder::new();
    for (name, value) in of {
        holder.value(name, value.get());
    }
    let found = Expression::parse(expression, &Scope::default())?.eval(Document(&holder.finish()));
    found.map(|found| found.expect("a value"))
}

fn text(parts: &[(&str, usize)]) -> OwnedValue {
    let parts = parts.iter().map(|(part, times)| part.repeat(*times));
    OwnedValue::string(&parts.collect::<String>())
}

fn numbers(numbers: impl Iterator<Item = i32>) -> OwnedValue {
    OwnedValue::array(numbers.map(OwnedValue::int32))
}

fn names(count: i32) -> impl Iterator<Item = String> {
    (0..count).map(|at| format!("field{at}"))
}

#[test]
fn many_matches_in_a_long_text_are_found() {
    let count = MANY as usize;
    let input = text(&[(&format!("{}b", "a".repeat(40)), count)]);
    let of = [("s", input)];
    let all = r#"{"$regexFindAll": {"input": "$s", "regex": "b"}}"#;
    let size = eval(&format!(r#"{{"$size": {all}}}"#), &of);
    assert_eq!(size, Ok(OwnedValue::int32(MANY)));
    let last =
        format!(r#"{{"$getField": {{"field": "idx", "input": {{"$arrayElemAt": [{all}, -1]}}}}}}"#);
    assert_eq!(eval(&last, &of), Ok(OwnedValue::int32(MANY * 41 - 1)));
    let empty = r#"{"$regexFindAll": {"input": "$s", "regex": ""}}"#;
    let refused = eval(empty, &of).expect_err("too much");
    assert_eq!(refused.code, Code::RegexTooMuch);
}

#[test]
fn a_long_text_is_looked_for_in_a_longer_one() {
    let of = [
        ("s", text(&[("a", 8 << 20)])),
        ("t", text(&[("a", 4 << 20), ("b", 1)])),
    ];
    for expression in [
        r#"{"$indexOfBytes": ["$s", "$t"]}"#,
        r#"{"$indexOfCP": ["$s", "$t"]}"#,
    ] {
        assert_eq!(eval(expression, &of), Ok(OwnedValue::int32(-1)));
    }
    for expression in [
        r#"{"$replaceAll": {"input": "$s", "find": "$t", "replacement": ""}}"#,
        r#"{"$arrayElemAt": [{"$split": ["$s", "$t"]}, 0]}"#,
    ] {
        assert_eq!(eval(expression, &of).as_ref(), Ok(&of[0].1));
    }
}

#[test]
fn bytes_are_found_within_bounds_that_cut_characters() {
    let cases = [
        (r#"["aéé", "é"]"#, 1),
        (r#"["aéé", "é", 2]"#, 3),
        (r#"["aéé", "é", 2, 4]"#, -1),
        (r#"["aéé", "", 2]"#, 2),
        (r#"["aéé", "", 5]"#, 5),
        (r#"["aéé", "", 6]"#, -1),
        (r#"["aéé", "é", 4, 2]"#, -1),
        (r#"["aé", "é", 0, 2]"#, -1),
        (r#"["é", "", 1, 1]"#, 1),
        (r#"["éa", "a", 1, 1]"#, -1),
    ];
    for (arguments, at) in cases {
        let found = eval(&format!(r#"{{"$indexOfBytes": {arguments}}}"#), &[]);
        assert_eq!(found, Ok(OwnedValue::int32(at)), "{arguments}");
    }
}

#[test]
fn a_long_text_is_trimmed_of_many_characters() {
    let all: String = ('\u{1000}'..'\u{9000}').collect();
    let of = [
        ("s", text(&[("a", 6 << 20), ("\u{1000}", 1)])),
        ("c", text(&[(&all, 100), ("a", 1)])),
    ];
    let trimmed = eval(r#"{"$trim": {"input": "$s", "chars": "$c"}}"#, &of);
    assert_eq!(trimmed, Ok(OwnedValue::string("")));
}

#[test]
fn large_sets_differ() {
    let of = [
        ("a", numbers((0..MANY).rev().chain(0..MANY))),
        ("b", numbers((0..MANY).filter(|number| number % 2 == 0))),
    ];
    let left = eval(r#"{"$setDifference": ["$a", "$b"]}"#, &of);
    let odd = (0..MANY).rev().filter(|number| number % 2 == 1);
    assert!(left == Ok(numbers(odd)));
}

#[test]
fn documents_of_many_fields_are_merged() {
    let one = |at: i32| {
        let mut out = Builder::new();
        out.i32(format!("field{}", at % (MANY / 2)), at);
        OwnedValue::document(out.finish())
    };
    let all = OwnedValue::array((0..MANY).map(one));
    let merged = eval(r#"{"$mergeObjects": "$a"}"#, &[("a", all)]);
    let mut expected = Builder::new();
    for (at, name) in names(MANY / 2).enumerate() {
        expected.i32(name, i32::try_from(at).expect("few") + MANY / 2);
    }
    let expected = OwnedValue::document(expected.finish());
    assert!(merged.as_ref() == Ok(&expected));
    let of = [("d", expected.clone())];
    let again = eval(r#"{"$arrayToObject": {"$objectToArray": "$d"}}"#, &of);
    assert!(again == Ok(expected));
}

#[test]
fn what_no_document_could_hold_is_refused_before_it_is_made() {
    let wide = |part: &str| vec![part; 100_000].join(", ");
    let of = [
        ("s", text(&[("a", 1 << 20)])),
        ("l", numbers(0..100_000)),
        ("e", OwnedValue::array((0..100_000).map(|_| numbers(0..0)))),
    ];
    let fields = (0..100_000).map(|at| format!(r#""f{at}": "$s""#));
    let cases = [
        (
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", ")),
            10334,
        ),
        (format!("[{}]", wide(r#""$s""#)), 10334),
        (
            format!(r#"{{"$concatArrays": [{}]}}"#, wide(r#""$l""#)),
            10334,
        ),
        (
            format!(r#"{{"$concat": [{}]}}"#, wide(r#"{"$toUpper": "$s"}"#)),
            292,
        ),
        (
            r#"{"$zip": {"inputs": {"$concatArrays": ["$e", ["$l"]]}, "useLongestLength": true}}"#
                .to_owned(),
            10334,
        ),
    ];
    for (expression, code) in cases {
        let refused = eval(&expression, &of).expect_err("too much");
        assert_eq!(
            refused.code.number(),
            code,
            "{}",
            &expression[..60.min(expression.len())]
        );
    }
    // The same again and again takes no more than once.
    let union = format!(r#"{{"$setUnion": [{}]}}"#, [r#""$l""#; 100].join(", "));
    assert!(eval(&union, &of) == Ok(numbers(0..100_000)));
}

#[test]
fn many_values_are_added_to_a_large_set_and_pulled_from_it() {
    let changed = |operator: &str, values: OwnedValue, array: OwnedValue| {
        let mut update = Builder::new();
        update.open(Kind::Document, operator);
        match operator {
            "$addToSet" => {
                update.open(Kind::Document, "a");
                update.value("$each", values.get()).close()
            }
            _ => update.value("a", values.get()),
        };
        let update = update.close().clone().finish();
        let mut old = Builder::new();
        let old = old.value("a", array.get()).clone().finish();
        let update = Update::new(Document(&update)).expect("an update");
        let filter = Filter::new(Document::EMPTY).expect("a filter");
        let moment = Moment::default();
        let applied = update.apply(Document(&old), &filter, &moment);
        let applied = applied.expect("applied").document;
        Document(&applied).get("a").expect("there").to_owned()
    };
    let old = || numbers((0..MANY).rev());
    let twice = || numbers((MANY / 2..MANY * 2).chain(MANY / 2..MANY * 2));
    let added = changed("$addToSet", twice(), old());
    assert!(added == numbers((0..MANY).rev().chain(MANY..MANY * 2)));
    let pulled = changed("$pullAll", twice(), old());
    assert!(pulled == numbers((0..MANY / 2).rev()));
}

#[test]
fn a_schema_requires_many_fields() {
    let all = OwnedValue::array(names(MANY).map(|name| OwnedValue::string(&name)));
    let mut filter = Builder::new();
    filter
        .open(Kind::Document, "$jsonSchema")
        .value("required", all.get());
    let filter = filter.finish();
    let filter = Filter::new(Document(&filter)).expect("a filter");
    assert_eq!(filter.matches(Document::EMPTY), Ok(false));
}

#[test]
fn messages_cut_long_values_off() {
    let long = text(&[("é", 1 << 20)]);
    let list = numbers(0..MANY);
    for value in [&long, &list] {
        let shown = show(value.get());
        assert!(shown.len() < 1100 && shown.ends_with("..."), "{shown}");
    }
    let refused = eval(r#"{"$toInt": "$s"}"#, &[("s", long)]).expect_err("no number");
    assert!(refused.message.len() < 2100, "{}", refused.message);
}

#[test]
fn many_fields_are_projected() {
    let mut of = Builder::new();
    let mut document = Builder::new();
    for (at, name) in names(MANY).enumerate() {
        if at % 3 != 0 {
            of.i32(&name, 1);
        }
        document.i32(&name, 1);
    }
    let (of, document) = (of.finish(), document.finish());
    let projection = Projection::new(Document(&of), ProjectionOf::Find, &Scope::default());
    let made = projection
        .expect("a projection")
        .apply(Document(&document), None);
    assert!(made == Ok(of));
}

#[test]
fn what_is_projected_is_refused_while_it_grows() {
    let mut of = Builder::new();
    for name in names(100_000) {
        of.str(name, "$s");
    }
    let mut document = Builder::new();
    document.value("s", text(&[("a", 1 << 20)]).get());
    let of = of.finish();
    let projection = Projection::add_fields(Document(&of), &Scope::default());
    let made = projection
        .expect("a projection")
        .apply(Document(&document.finish()), None);
    assert_eq!(made.expect_err("too much").code, Code::BsonObjectTooLarge);
}

#[test]
fn many_fields_are_set() {
    let [mut update, mut old, mut new] = [0; 3].map(|_| Builder::new());
    update.open(Kind::Document, "$set");
    for name in names(MANY / 3) {
        update.i32(&name, 2);
        old.i32(&name, 1);
        new.i32(&name, 2);
    }
    let (update, old) = (update.finish(), old.finish());
    let update = Update::new(Document(&update)).expect("an update");
    let filter = Filter::new(Document::EMPTY).expect("a filter");
    let applied = update.apply(Document(&old), &filter, &Moment::default());
    assert!(applied.expect("applied").document == new.finish());
}

#[test]
fn keys_of_a_long_text_with_many_numbers_are_refused() {
    let mut document = Builder::new();
    document.value("a", text(&[("a", 4 << 20)]).get());
    document.value("b", numbers(0..MANY).get());
    let document = document.finish();
    let fields = |names: &[&str]| {
        let fields = names.iter().map(|name| (Path::new(name), false));
        IndexFields(fields.collect()).keys_of(Document(&document))
    };
    for names in [["a", "b"], ["b", "a"]] {
        let refused = fields(&names).expect_err("too much");
        assert_eq!(refused.code, Code::CannotBuildIndexKeys);
    }
    let keys = fields(&["b"]).expect("short ones").keys;
    assert_eq!(keys.len(), MANY as usize);
}

#[test]
fn an_element_is_found_by_a_condition_of_many_values() {
    let count = 100_000;
    let one = |at: i32| {
        let mut out = Builder::new();
        out.i32("b", at);
        OwnedValue::document(out.finish())
    };
    let elements = |of: &dyn Fn(i32) -> OwnedValue| OwnedValue::array((0..count).map(of));
    let mut old = Builder::new();
    let old = old.value("a", elements(&one).get()).clone().finish();
    let mut filter = Builder::new();
    filter
        .open(Kind::Document, "a.b")
        .value("$in", numbers(count - 1..2 * count).get());
    let filter = filter.finish();
    let filter = Filter::new(Document(&filter)).expect("a filter");
    let update = doc(r#"{"$set": {"a.$.b": -1}}"#);
    let update = Update::new(Document(&update)).expect("an update");
    let applied = update.apply(Document(&old), &filter, &Moment::default());
    let changed = |at| one(if at == count - 1 { -1 } else { at });
    let mut new = Builder::new();
    let new = new.value("a", elements(&changed).get()).clone().finish();
    assert!(applied.expect("applied").document == new);
}

#[test]
fn work_ends_when_the_watch_says_so() {
    let asked = Rc::new(Cell::new(0));
    let look = {
        let asked = Rc::clone(&asked);
        move || {
            asked.set(asked.get() + 1);
            match asked.get() < 100 {
                true => Ok(()),
                false => Err(Refusal::bad_value("enough")),
            }
        }
    };
    let range = r#"{"$range": [0, 1000000]}"#;
    let inner = format!(r#"{{"$map": {{"input": {range}, "in": 1}}}}"#);
    let of = format!(r#"{{"$map": {{"input": {range}, "in": {{"$size": {inner}}}}}}}"#);
    let refused = watched(look, || eval(&of, &[])).expect_err("it is long");
    assert_eq!((refused.message.as_str(), asked.get()), ("enough", 100));
    // Where nobody looks any more it goes on.
    eval(&inner, &[]).expect("nobody looks");
    assert_eq!(asked.get(), 100);
}
