//! Records of two fields, as RFC 4180 has them: a field in quotes may hold commas, line ends, and quotes written twice.
//!
//! Stricter than many readers: a quote inside a field without quotes, bytes behind a closing quote, and a quote that is never
//! closed are mistakes, as what was meant cannot be known. A record may come in several lines.

/// What a reader knows after a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The fields.
    Record(Vec<Vec<u8>>),
    /// A quoted field goes on in the next line.
    Unfinished,
}

/// Splits a record, which has no line end behind it.
pub(crate) fn parse(record: &[u8]) -> Result<Parsed, String> {
    let (mut fields, mut rest) = (Vec::new(), record);
    loop {
        let (field, after) = match rest.strip_prefix(b"\"") {
            Some(quoted) => match take_quoted(quoted) {
                Some(taken) => taken,
                None => return Ok(Parsed::Unfinished),
            },
            None => take_plain(rest)?,
        };
        fields.push(field);
        match after.split_first() {
            None => return Ok(Parsed::Record(fields)),
            Some((b',', next)) => rest = next,
            Some(_) => {
                let text =
                    "behind the closing quote of a field a comma or the line's end is needed";
                return Err(text.to_owned());
            }
        }
    }
}

/// A field behind its opening quote, and what follows its closing one.
fn take_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut field, mut rest) = (Vec::new(), text);
    loop {
        let quote = rest.iter().position(|byte| *byte == b'"')?;
        let (inside, after) = rest.split_at_checked(quote)?;
        field.extend_from_slice(inside);
        rest = after.get(1..)?;
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => return Some((field, rest)),
        }
    }
}

/// A field without quotes, and what follows it.
fn take_plain(text: &[u8]) -> Result<(Vec<u8>, &[u8]), String> {
    let end = text.iter().position(|byte| *byte == b',');
    let (field, rest) = text.split_at(end.unwrap_or(text.len()));
    match field.contains(&b'"') {
        true => Err("there is a quote inside a field that does not begin with one".to_owned()),
        false => Ok((field.to_vec(), rest)),
    }
}

/// Key and value of a record.
pub(crate) fn key_and_value(fields: Vec<Vec<u8>>) -> Result<(Vec<u8>, Vec<u8>), String> {
    let count = fields.len();
    match <[Vec<u8>; 2]>::try_from(fields) {
        Ok([key, value]) => Ok((key, value)),
        Err(_) => Err(format!("a record has two fields, this one has {count}")),
    }
}

/// Appends a field, in quotes where it needs them.
pub(crate) fn write_field(field: &[u8], out: &mut Vec<u8>) {
    let needs_quotes = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    // An empty field gets them too: a record of one empty field would be an empty line, which readers pass over.
    if !field.is_empty() && !field.iter().any(needs_quotes) {
        out.extend_from_slice(field);
        return;
    }
    out.push(b'"');
    for byte in field {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(record: &str) -> Result<Option<Vec<String>>, String> {
        Ok(match parse(record.as_bytes())? {
            Parsed::Unfinished => None,
            Parsed::Record(fields) => {
                let text = |field: Vec<u8>| String::from_utf8(field).expect("text");
                Some(fields.into_iter().map(text).collect())
            }
        })
    }

    #[test]
    fn records_are_split_as_the_rfc_has_it() {
        let some = |fields: &[&str]| Ok(Some(fields.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(fields("a,b"), some(&["a", "b"]));
        assert_eq!(fields("\"a,\n\"\"\",b c"), some(&["a,\n\"", "b c"]));
        assert_eq!(fields(",\"\""), some(&["", ""]));
        assert_eq!(fields("a,\"b"), Ok(None));
        assert_eq!(fields("a,\"b\"\""), Ok(None));
        assert!(fields("a,b\"c").is_err_and(|what| what.contains("inside a field")));
        assert!(fields("\"a\"b,c").is_err_and(|what| what.contains("closing quote")));
    }
}
