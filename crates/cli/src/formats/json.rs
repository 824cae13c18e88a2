//! Bytes as members of JSON objects: `"key": "text"` where they are UTF-8, `"key_hex": "00ff"` where not, or on request.

use serde_json::{Map, Value};

use crate::escape::Form;

/// Puts `bytes` into `object` as `name`, or as `name_hex`.
pub(crate) fn put_bytes(object: &mut Map<String, Value>, name: &str, form: Form, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) if form == Form::Plain => object.insert(name.to_owned(), text.into()),
        _ => object.insert(format!("{name}_hex"), digits(bytes).into()),
    };
}

/// An object of one member, `bytes`.
pub(crate) fn bytes_object(name: &str, form: Form, bytes: &[u8]) -> Map<String, Value> {
    let mut object = Map::new();
    put_bytes(&mut object, name, form, bytes);
    object
}

fn digits(bytes: &[u8]) -> String {
    let mut text = Form::Hex.show(bytes).split_off(2);
    text.make_ascii_lowercase();
    text
}

/// Takes the bytes called `name`, or `name_hex`, out of `object`.
fn take_bytes(object: &mut Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let hex_name = format!("{name}_hex");
    match (object.remove(name), object.remove(&hex_name)) {
        (Some(Value::String(text)), None) => Ok(text.into_bytes()),
        (None, Some(Value::String(text))) => match Form::Hex.read(text.as_bytes()) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(bad) => Err(format!("\"{hex_name}\", byte {}: {}", bad.at + 1, bad.what)),
        },
        (Some(_), Some(_)) => Err(format!("both \"{name}\" and \"{hex_name}\" are there")),
        (None, None) => Err(format!("there is neither \"{name}\" nor \"{hex_name}\"")),
        _ => Err(format!("\"{name}\" is no string")),
    }
}

/// Key and value of a line.
pub(crate) fn split_line(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Value::Object(mut object) = value else {
        return Err("a JSON object is needed".to_owned());
    };
    let key = take_bytes(&mut object, "key")?;
    let value = take_bytes(&mut object, "value")?;
    match object.keys().next() {
        // Taken for nothing, it would be lost.
        Some(name) => Err(format!("\"{name}\" is neither key nor value")),
        None => Ok((key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_object_of_key_and_value_and_nothing_else() {
        let split = |line: &str| split_line(line.as_bytes());
        let pair = |key: &[u8], value: &[u8]| Ok((key.to_vec(), value.to_vec()));
        assert_eq!(split(r#"{"key":"a","value":"b\n"}"#), pair(b"a", b"b\n"));
        assert_eq!(
            split(r#"{"value_hex":"00FF","key":""}"#),
            pair(b"", b"\0\xff")
        );
        for (line, what) in [
            ("[]", "object is needed"),
            (r#"{"key":"a"}"#, "neither \"value\""),
            (r#"{"key":1,"value":"b"}"#, "is no string"),
            (r#"{"key":"a","key_hex":"61","value":"b"}"#, "both"),
            (r#"{"key":"a","value":"b","ttl":"3"}"#, "\"ttl\" is neither"),
            (r#"{"key_hex":"6","value":"b"}"#, "even number of digits"),
            (r#"{"key":"a","value":"b"} x"#, "trailing"),
        ] {
            let said = split(line).expect_err(line);
            assert!(said.contains(what), "{line}: {said}");
        }
    }
}
