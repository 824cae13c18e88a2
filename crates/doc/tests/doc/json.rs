//! Documents of tests, written as JSON: whole numbers are int32 where they fit, else int64; `{"$oid": …}`, `{"$date": ms}` and
//! `{"$long": …}` are values of those types, `{"$decimal": "1.50"}` is a decimal.

use drumlin_doc::{Builder, Kind, Value};
use serde_json::Value as Json;

/// The document that `text` describes.
pub(crate) fn doc(text: &str) -> Vec<u8> {
    let json: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut out = Builder::new();
    for (name, value) in json.as_object().expect("an object") {
        put(&mut out, name, value);
    }
    out.finish()
}

fn put(out: &mut Builder, name: &str, json: &Json) {
    match json {
        Json::Null => out.null(name),
        Json::Bool(flag) => out.bool(name, *flag),
        Json::String(text) => out.str(name, text),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => match i32::try_from(whole) {
                Ok(narrow) => out.i32(name, narrow),
                Err(_) => out.i64(name, whole),
            },
            None => out.f64(name, number.as_f64().expect("a double")),
        },
        Json::Array(items) => {
            out.open(Kind::Array, name);
            for (at, item) in items.iter().enumerate() {
                put(out, &at.to_string(), item);
            }
            out.close()
        }
        Json::Object(fields) => {
            if let Some(ms) = fields.get("$date") {
                return drop_it(out.date(name, ms.as_i64().expect("milliseconds")));
            }
            if let Some(number) = fields.get("$long") {
                return drop_it(out.i64(name, number.as_i64().expect("a number")));
            }
            if let Some(hex) = fields.get("$oid") {
                let hex = hex.as_str().expect("hex");
                let bytes: Vec<u8> = (0..12)
                    .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"))
                    .collect();
                return drop_it(out.value(
                    name,
                    Value {
                        kind: Kind::ObjectId,
                        bytes: &bytes,
                    },
                ));
            }
            if let Some(text) = fields.get("$decimal") {
                let bytes = decimal(text.as_str().expect("a text"));
                return drop_it(out.value(
                    name,
                    Value {
                        kind: Kind::Decimal,
                        bytes: &bytes,
                    },
                ));
            }
            out.open(Kind::Document, name);
            for (name, value) in fields {
                put(out, name, value);
            }
            out.close()
        }
    };
}

/// The bytes of a decimal: its digits with a point and an exponent behind `E`, or `NaN`, or `Infinity`.
fn decimal(text: &str) -> [u8; 16] {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (1u128 << 127, rest),
        None => (0, text),
    };
    let bits = match text {
        "NaN" => 0x1F << 122,
        "Infinity" => 0x1E << 122,
        _ => {
            let (digits, power) = text.split_once('E').unwrap_or((text, "0"));
            let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
            let power: i32 = power.parse().expect("a power");
            let power = power - i32::try_from(behind).expect("few digits");
            let coefficient: u128 = digits.replace('.', "").parse().expect("digits");
            (u128::try_from(power + 6176).expect("a power") << 113) | coefficient
        }
    };
    (sign | bits).to_le_bytes()
}

fn drop_it(_: &mut Builder) {}
