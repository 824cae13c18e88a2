//! Documents: what passes the look at foreign bytes is walked to its end and written back; keys sort as values do and give them
//! back; filters agree with their opposite; updates leave whole documents with the same `_id`.

use drumlin_doc::{
    Builder, Document, Filter, Kind, Moment, Update, Value, compare, keystring, validate,
};

/// Most values of one input that are compared with each other.
const VALUES_MAX: usize = 24;

/// A document.
pub(crate) fn run_bson(data: &[u8]) {
    match validate(data) {
        Err(refusal) => assert!(!refusal.message.is_empty()),
        Ok(()) => {
            let mut out = Builder::new();
            copy(Document(data), &mut out);
            assert_eq!(out.finish(), data);
        }
    }
}

/// Recurses as deep as documents may be.
fn copy(document: Document<'_>, out: &mut Builder) {
    for element in document {
        match element.value.kind {
            kind @ (Kind::Document | Kind::Array) => {
                out.open(kind, element.name);
                copy(Document(element.value.bytes), out);
                out.close();
            }
            _ => {
                out.value(element.name, element.value);
            }
        }
    }
}

/// A document, whose values are compared; its bytes are also taken for keys.
pub(crate) fn run_keystring(data: &[u8]) {
    for (kind, _) in Kind::NAMES {
        if let Some(value) = keystring::decode(kind, data) {
            assert_eq!(keystring::key_of(value.get()), data);
        }
    }
    if validate(data).is_err() {
        return;
    }
    let mut values = Vec::new();
    collect(Document(data), &mut values);
    let keys: Vec<_> = values
        .iter()
        .map(|value| keystring::key_of(*value))
        .collect();
    for (a, key_a) in values.iter().zip(&keys) {
        if keystring::is_reversible(*a) {
            let back = keystring::decode(a.kind, key_a).expect("it is reversible");
            assert_eq!(back.get(), *a);
        }
        for (b, key_b) in values.iter().zip(&keys) {
            assert_eq!(key_a.cmp(key_b), compare(*a, *b), "{a:?} and {b:?}");
            assert!(key_a == key_b || !key_b.starts_with(key_a));
        }
    }
}

fn collect<'a>(document: Document<'a>, values: &mut Vec<Value<'a>>) {
    for element in document {
        if values.len() >= VALUES_MAX {
            return;
        }
        values.push(element.value);
        if let Some(inner) = element.value.as_document() {
            collect(inner, values);
        }
    }
}

/// Two documents, one behind the other.
fn pair(data: &[u8]) -> Option<(Document<'_>, Document<'_>)> {
    let len = u32::from_le_bytes(*data.first_chunk::<4>()?);
    let (first, second) = data.split_at_checked(usize::try_from(len).ok()?)?;
    (validate(first).is_ok() && validate(second).is_ok())
        .then_some((Document(first), Document(second)))
}

/// A filter and a document.
pub(crate) fn run_filter(data: &[u8]) {
    let Some((filter, document)) = pair(data) else {
        return;
    };
    let Ok(parsed) = Filter::new(filter) else {
        return;
    };
    let mut nor = Builder::new();
    nor.open(Kind::Array, "$nor").document("0", filter).close();
    // One level more may be too deep.
    if let Ok(opposite) = Filter::new(Document(&nor.finish())) {
        assert_ne!(parsed.matches(document), opposite.matches(document));
    }
}

/// An update and a document.
pub(crate) fn run_update(data: &[u8]) {
    let Some((update, document)) = pair(data) else {
        return;
    };
    let Ok(update) = Update::new(update) else {
        return;
    };
    let filter = Filter::And(Vec::new());
    let Ok(applied) = update.apply(document, &filter, &Moment::default()) else {
        return;
    };
    assert_eq!(applied.is_changed, applied.document != document.0);
    assert_eq!(validate(&applied.document), Ok(()));
    let id = |document: Document<'_>| document.get("_id").map(keystring::key_of);
    assert!(id(document).is_none() || id(document) == id(Document(&applied.document)));
}
