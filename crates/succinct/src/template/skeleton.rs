//! Shapes that a sample has: the literals between its fields.
//!
//! Two kinds of records are recognised: fields joined by a delimiter, and JSON whose records have the
//! same keys in the same order. Both come out as literals; see [`Template`](super::Template).

use std::collections::HashMap;

use super::column::COLUMNS_MAX;

/// Bytes that may join fields, the likelier ones first.
const DELIMITERS: [u8; 6] = [b'|', b'\t', b';', b',', 0x1F, 0x01];
/// Records in a hundred that must have a delimiter equally often.
const ALIKE_PERCENT: usize = 95;
/// A shape of JSON or documents is kept if it is that of one record in so many.
const SHAPE_SHARE: usize = 12;
/// Such shapes that are kept.
const SHAPES_MAX: usize = 4;

/// The literals of each shape that many records of `sample` have, the most frequent first.
pub fn skeletons(sample: &[&[u8]]) -> Vec<Vec<Vec<u8>>> {
    let shapes = json_shapes(sample);
    if !shapes.is_empty() {
        return shapes;
    }
    delimited(sample).into_iter().collect()
}

/// Fields joined by one delimiter. A last field may hold it too.
fn delimited(sample: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    let counts = DELIMITERS.iter().filter_map(|&delimiter| {
        let mut by_count: HashMap<usize, usize> = HashMap::new();
        for record in sample {
            let count = record.iter().filter(|&&byte| byte == delimiter).count();
            *by_count.entry(count).or_default() += 1;
        }
        let (&count, &records) = by_count
            .iter()
            .max_by_key(|&(count, records)| (records, count))?;
        let alike = records * 100 >= sample.len() * ALIKE_PERCENT;
        (alike && (1..COLUMNS_MAX).contains(&count)).then_some((count, delimiter))
    });
    // The earlier delimiter of those that are equally frequent.
    let (count, delimiter) = counts.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let mut literals = vec![vec![delimiter]; count + 2];
    if let [first, .., last] = literals.as_mut_slice() {
        first.clear();
        last.clear();
    }
    Some(literals)
}

fn json_shapes(sample: &[&[u8]]) -> Vec<Vec<Vec<u8>>> {
    let shapes = sample.iter().filter_map(|record| json_shape(record));
    frequent(shapes, sample.len())
}

/// The shapes that many of `records` records have, the most frequent first.
pub fn frequent(shapes: impl Iterator<Item = Vec<Vec<u8>>>, records: usize) -> Vec<Vec<Vec<u8>>> {
    let mut by_shape: HashMap<Vec<Vec<u8>>, usize> = HashMap::new();
    for shape in shapes {
        *by_shape.entry(shape).or_default() += 1;
    }
    let mut shapes: Vec<_> = by_shape
        .into_iter()
        .filter(|(_, uses)| uses * SHAPE_SHARE >= records)
        .collect();
    shapes.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    shapes.truncate(SHAPES_MAX);
    shapes.into_iter().map(|(shape, _)| shape).collect()
}

/// The literals around the values of a JSON text; none when it is not one, or has no values, or too
/// many. It need not be sound JSON: any record decodes to the bytes that were encoded.
fn json_shape(record: &[u8]) -> Option<Vec<Vec<u8>>> {
    if !matches!(record.first(), Some(b'{' | b'[')) {
        return None;
    }
    let (mut literals, mut literal, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(&byte) = record.get(at) {
        match byte {
            b'"' => {
                let end = at + 1 + string_len(record.get(at + 1..)?)?;
                let behind = record.get(end + 1..)?;
                let next = behind.iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    literal.extend_from_slice(record.get(at..=end)?);
                } else {
                    literal.push(b'"');
                    literals.push(std::mem::replace(&mut literal, vec![b'"']));
                }
                at = end + 1;
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let more = record.get(at..)?.iter();
                let inside = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                at += more.take_while(inside).count();
                literals.push(std::mem::take(&mut literal));
            }
            _ => {
                literal.push(byte);
                at += 1;
            }
        }
        (literals.len() <= COLUMNS_MAX).then_some(())?;
    }
    literals.push(literal);
    let inner = literals.get(1..literals.len() - 1)?;
    (literals.len() > 1 && inner.iter().all(|literal| !literal.is_empty())).then_some(literals)
}

/// Bytes up to the closing quote.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(literals: &[&str]) -> Vec<Vec<u8>> {
        let bytes = literals.iter().map(|literal| literal.as_bytes().to_vec());
        bytes.collect()
    }

    #[test]
    fn delimited_records_are_recognised() {
        let sample = ["1|a,b|x", "2|c|y,z", "3|d|"].map(str::as_bytes);
        assert_eq!(skeletons(&sample), vec![shape(&["", "|", "|", ""])]);
        assert!(skeletons(&["a|b", "c", "d||"].map(str::as_bytes)).is_empty());
        assert!(skeletons(&[]).is_empty());
    }

    #[test]
    fn json_of_equal_keys_is_recognised() {
        let sample = [
            r#"{"id": 17, "name":"a \"b\"", "ok":true,"at":[1.5,-2]}"#,
            r#"{"id": 9, "name":"", "ok":false,"at":[0,1e9]}"#,
        ];
        let expected = shape(&[
            r#"{"id": "#,
            r#", "name":""#,
            r#"", "ok":"#,
            r#","at":["#,
            ",",
            "]}",
        ]);
        assert_eq!(skeletons(&sample.map(str::as_bytes)), vec![expected]);
    }

    #[test]
    fn broken_json_is_no_shape() {
        for text in [r#"{"a"#, r#"{"a":"b"#, "{", "[]", r#"{"a":1"b"}"#] {
            let found = json_shape(text.as_bytes());
            assert!(found.is_none() || text.contains("1\""), "{text}");
        }
    }
}
