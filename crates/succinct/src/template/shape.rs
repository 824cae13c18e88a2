//! Literals and columns; the fields of a record; records from bits.
//!
//! A record is literal, field, literal, field, ..., literal. A field ends at the first occurrence of
//! the next literal, so a record has at most one set of fields, and joining any set gives its record
//! back. So the columns alone decide whether a record has the shape.
//!
//! Bits: the fields of known width in column order, then the texts in column order, each but the last
//! ended by a mark. So the places of fields of known width are known before anything is decoded.

use drumlin_base::coding::{Reader, put_slice, put_varint32};
use drumlin_base::{Error, Result};

use super::column::{CHOICES_MAX, COLUMNS_MAX, Column, choice_bits};
use super::document;
use super::program::Program;
use crate::bits::{BitWriter, Bits};
use crate::dictionary::{Dictionary, DictionaryMatch};
use crate::text::{Ending, Sink, TextCoder, TextEncoder};

/// Values of a choice that are compared with a field one by one.
const LOOKED_THROUGH: usize = 8;

/// Records of one shape.
#[derive(Debug)]
pub struct Template {
    /// One more than there are columns. None but the first and the last is empty.
    literals: Vec<Vec<u8>>,
    columns: Vec<Column>,
    /// How records are decoded.
    program: Program,
    /// How documents are, if records are the texts of documents, and it can be told.
    of_documents: Option<Box<Program>>,
    /// Of each column the numbers of the values it chooses from, by value; empty when they are few.
    orders: Vec<Vec<u16>>,
    /// The column whose text ends with the bits, if one is a text.
    last_text: Option<usize>,
    /// Bits of the fields of known width.
    fixed_bits: usize,
    place_bits: u32,
    /// Of the first column that is a piece: its bits, counted from the record's first; the shortest
    /// piece, and the bits of the length.
    piece: Option<(usize, usize, u32)>,
}

impl Template {
    /// A template of these parts; none when they do not fit together: one literal more than columns, no
    /// empty one but at the ends, [`COLUMNS_MAX`] columns at most. `place_bits` are the dictionary's.
    pub fn new(literals: Vec<Vec<u8>>, columns: Vec<Column>, place_bits: u32) -> Option<Self> {
        let inner = literals.get(1..literals.len().max(2) - 1)?;
        let fit = literals.len() == columns.len() + 1
            && columns.len() <= COLUMNS_MAX
            && inner.iter().all(|literal| !literal.is_empty());
        if !fit {
            return None;
        }
        let width = |column: &Column| column.width(place_bits) as usize;
        let piece = columns
            .iter()
            .enumerate()
            .find_map(|(index, column)| match column {
                Column::Piece { shortest, bits } => {
                    let at = columns.iter().take(index).map(width).sum();
                    Some((at, *shortest as usize, *bits))
                }
                _ => None,
            });
        Some(Self {
            piece,
            program: Program::new(&literals, &columns, place_bits),
            of_documents: None,
            orders: columns.iter().map(order).collect(),
            literals,
            last_text: columns.iter().rposition(|column| *column == Column::Text),
            fixed_bits: columns.iter().map(width).sum(),
            columns,
            place_bits,
        })
    }

    /// Prepares [`Template::decode_document`], where that can be.
    pub(crate) fn prepare_documents(&mut self) {
        let pieces = document::pieces(&self.literals, &self.columns);
        self.of_documents = pieces
            .and_then(|pieces| Program::of_document(&pieces, &self.columns, self.place_bits))
            .map(Box::new);
    }

    /// Whether records can be decoded as documents at once.
    #[inline]
    pub(crate) fn has_documents(&self) -> bool {
        self.of_documents.is_some()
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The literals, one more than there are columns.
    pub fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.literals.iter().map(Vec::as_slice)
    }

    /// Bits of a record of this shape, its texts aside.
    pub fn fixed_bits(&self) -> usize {
        self.fixed_bits
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        let literals = self.literals.iter().map(|literal| literal.len() + 24);
        let orders = self.orders.iter();
        let orders = orders.map(|order| order.len() * size_of::<u16>());
        let of_documents = self
            .of_documents
            .as_ref()
            .map_or(0, |program| program.memory());
        literals.chain(orders).sum::<usize>() + self.program.memory() + of_documents
    }

    /// Appends the template as it is stored.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_varint32(out, self.columns.len() as u32);
        self.literals().for_each(|literal| put_slice(out, literal));
        self.columns.iter().for_each(|column| column.write(out));
    }

    /// Reads a template from the bytes of [`Template::write`].
    ///
    /// # Errors
    /// `Corruption` when it is damaged, or needs a dictionary and there is none.
    pub fn read(reader: &mut Reader<'_>, dictionary: Option<&Dictionary>) -> Result<Self> {
        let damaged = || Error::corruption("a damaged template");
        let count = reader.varint32().ok_or_else(damaged)? as usize;
        if count > COLUMNS_MAX {
            return Err(damaged());
        }
        let mut literals = Vec::with_capacity(count + 1);
        for _ in 0..=count {
            literals.push(reader.slice().ok_or_else(damaged)?.to_vec());
        }
        let mut columns = Vec::with_capacity(count);
        for index in 0..count {
            columns.push(Column::read(reader, index)?);
        }
        let pieces = columns
            .iter()
            .any(|column| matches!(column, Column::Piece { .. }));
        if pieces && dictionary.is_none() {
            return Err(damaged());
        }
        let place_bits = dictionary.map_or(0, Dictionary::place_bits);
        Self::new(literals, columns, place_bits).ok_or_else(damaged)
    }

    /// Splits `record` into its fields, which replace the content of `fields`. Returns whether it
    /// has the shape.
    pub fn split<'r>(&self, record: &'r [u8], fields: &mut Vec<&'r [u8]>) -> bool {
        fields.clear();
        let Some((first, rest)) = self.literals.split_first() else {
            return false;
        };
        let Some(mut record) = record.strip_prefix(first.as_slice()) else {
            return false;
        };
        for (index, literal) in rest.iter().enumerate() {
            let literal = literal.as_slice();
            if index + 1 == rest.len() {
                let Some(field) = record.strip_suffix(literal) else {
                    return false;
                };
                fields.push(field);
                return true;
            }
            let Some(end) = find(record, literal) else {
                return false;
            };
            fields.push(&record[..end]);
            record = &record[end + literal.len()..];
        }
        record.is_empty()
    }

    /// Appends the bits of a record with these fields; whether the columns can hold them. If not, bits
    /// may have been written all the same.
    pub fn encode(
        &self,
        fields: &[&[u8]],
        text: Option<(&TextCoder, &TextEncoder)>,
        writer: &mut BitWriter<'_>,
    ) -> bool {
        let mut numbers = [0i64; COLUMNS_MAX];
        for (index, (column, field)) in self.columns.iter().zip(fields).enumerate() {
            let fits = match column {
                Column::Choice { values } => {
                    let order = self.orders.get(index).map_or(&[][..], Vec::as_slice);
                    encode_choice(values, order, field, writer)
                }
                Column::Number { style, .. } => style.parse(field).is_some_and(|number| {
                    numbers[index] = number;
                    encode_number(column, number, &numbers[..index], writer)
                }),
                Column::Text => true,
                Column::Piece { shortest, bits } => {
                    let limits = (*shortest as usize, *bits);
                    text.is_some_and(|text| self.encode_piece(limits, field, text, writer))
                }
            };
            if !fits {
                return false;
            }
        }
        let texts = self.columns.iter().zip(fields).enumerate();
        let mut texts = texts.filter(|(_, (column, _))| **column == Column::Text);
        texts.all(|(index, (_, field))| {
            let ending = self.ending(index);
            text.is_some_and(|(coder, encoder)| encoder.encode(coder, field, ending, writer))
        })
    }

    fn ending(&self, column: usize) -> Ending {
        if self.last_text == Some(column) {
            Ending::Bits
        } else {
            Ending::Mark
        }
    }

    fn encode_piece(
        &self,
        (shortest, bits): (usize, u32),
        field: &[u8],
        (coder, encoder): (&TextCoder, &TextEncoder),
        writer: &mut BitWriter<'_>,
    ) -> bool {
        let (Some(matcher), Some(dictionary)) = (encoder.matcher(), coder.dictionary()) else {
            return false;
        };
        let Some(extra) = field.len().checked_sub(shortest) else {
            return false;
        };
        let mut whole: Option<DictionaryMatch> = None;
        matcher.find(dictionary, field, |found| {
            if found.len == field.len() {
                whole = Some(found);
            }
        });
        let Some(found) = whole.filter(|_| extra < 1 << bits) else {
            return false;
        };
        writer.put(found.place as u32, self.place_bits);
        writer.put(extra as u32, bits);
        true
    }

    /// The place and the length of the piece of the dictionary in the record whose bits begin at `at`, if
    /// it has one at a place known beforehand. Not checked against the dictionary.
    #[inline]
    pub fn piece(&self, bits: &Bits<'_>, at: usize) -> Option<(usize, usize)> {
        let (skipped, shortest, width) = self.piece?;
        let at = at + skipped;
        let place = bits.field(at, self.place_bits) as usize;
        let len = bits.field(at + self.place_bits as usize, width) as usize;
        Some((place, shortest + len))
    }

    /// Decodes a record whose bits begin at `at` into `sink`.
    ///
    /// # Errors
    /// `Corruption` when the bits are no record of this shape.
    pub fn decode(
        &self,
        bits: &Bits<'_>,
        at: usize,
        text: Option<&TextCoder>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        self.run(&self.program, bits, at, text, sink)
    }

    /// As [`Template::decode`], of the document that the record is the text of. Requires: [`Template::has_documents`].
    pub(crate) fn decode_document(
        &self,
        bits: &Bits<'_>,
        at: usize,
        text: Option<&TextCoder>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let program = self.of_documents.as_deref().expect("asked before");
        self.run(program, bits, at, text, sink)
    }

    #[inline]
    fn run(
        &self,
        program: &Program,
        bits: &Bits<'_>,
        at: usize,
        text: Option<&TextCoder>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let text_at = at + self.fixed_bits;
        if text_at > bits.len() {
            return Err(Error::corruption("a record's fields are cut off"));
        }
        program.run(bits, (at, text_at), text, sink)
    }
}

/// The numbers of the values that `column` chooses from, by value, if they are too many to look through.
fn order(column: &Column) -> Vec<u16> {
    const { assert!(CHOICES_MAX <= u16::MAX as usize) }
    let Column::Choice { values } = column else {
        return Vec::new();
    };
    if values.len() <= LOOKED_THROUGH {
        return Vec::new();
    }
    let mut order: Vec<u16> = (0..=u16::MAX).take(values.len()).collect();
    order.sort_by_key(|&number| values.get(usize::from(number)));
    order
}

/// Appends the number of `field` among `values`; whether it is one. `order` is as [`order`] gave it.
fn encode_choice(
    values: &[Vec<u8>],
    order: &[u16],
    field: &[u8],
    writer: &mut BitWriter<'_>,
) -> bool {
    // The most frequent ones come first.
    let mut first = values.iter().take(LOOKED_THROUGH);
    let choice = first.position(|value| value == field).or_else(|| {
        let value = |number: &u16| values.get(usize::from(*number)).map(Vec::as_slice);
        let found = order.binary_search_by(|number| value(number).cmp(&Some(field)));
        order.get(found.ok()?).map(|&number| usize::from(number))
    });
    let Some(choice) = choice else {
        return false;
    };
    writer.put(choice as u32, choice_bits(values.len()));
    true
}

fn encode_number(
    column: &Column,
    number: i64,
    earlier: &[i64],
    writer: &mut BitWriter<'_>,
) -> bool {
    let Column::Number {
        base,
        bits,
        relation,
        ..
    } = column
    else {
        return false;
    };
    let stored = relation.solve(number, earlier);
    let Some(stored) = stored.and_then(|stored| stored.checked_sub(*base)) else {
        return false;
    };
    let Ok(stored) = u64::try_from(stored) else {
        return false;
    };
    if *bits < 64 && stored >> bits != 0 {
        return false;
    }
    writer.put_wide(stored, *bits);
    true
}

/// Where `needle` first is in `text`. Requires: `needle` is not empty.
pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, rest) = needle.split_first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|&byte| byte == first)?;
        if text.get(at + 1..)?.starts_with(rest) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Relation, Style};
    use drumlin_base::rng::Rng;

    fn template() -> Template {
        let number = |style, bits, relation| Column::Number {
            style,
            base: -3,
            bits,
            relation,
        };
        let values = vec![
            b"MAIL".to_vec(),
            Vec::new(),
            b"longer than one row".to_vec(),
        ];
        let columns = vec![
            number(Style::Integer, 9, Relation::Alone),
            number(Style::Date, 14, Relation::Sum(0)),
            Column::Choice { values },
            number(Style::Decimal(2), 64, Relation::Product(0)),
        ];
        let literals = ["<", "|", "> a long literal, longer than a row <", "|", "!"];
        let literals = literals.map(|literal| literal.as_bytes().to_vec());
        Template::new(literals.to_vec(), columns, 0).expect("they fit")
    }

    fn code(template: &Template, record: &[u8]) -> Option<Vec<u8>> {
        let mut fields = Vec::new();
        if !template.split(record, &mut fields) {
            return None;
        }
        let mut code = Vec::new();
        let mut writer = BitWriter::new(&mut code);
        let fits = template.encode(&fields, None, &mut writer);
        writer.finish();
        fits.then_some(code)
    }

    #[test]
    fn records_of_the_shape_come_back() {
        let mut bytes = Vec::new();
        template().write(&mut bytes);
        let template = Template::read(&mut Reader::new(&bytes), None).expect("its own bytes");
        let long = "<7|1970-01-09> a long literal, longer than a row <longer than one row|0.35!";
        let cases = [
            long,
            "<1|1970-01-09> a long literal, longer than a row <|123456.78!",
            "<-3|1970-01-01> a long literal, longer than a row <MAIL|0.03!",
        ];
        for record in cases {
            let code = code(&template, record.as_bytes()).expect(record);
            let mut out = Vec::new();
            let mut sink = Sink::new(&mut out, 0, 1000);
            let bits = Bits::new(&code);
            template.decode(&bits, 0, None, &mut sink).expect("sound");
            sink.finish().expect("short");
            assert_eq!(String::from_utf8_lossy(&out), record);
        }
    }

    #[test]
    fn other_records_are_refused() {
        let template = template();
        for record in [
            "",
            "<7|1970-01-09",
            "7|1970-01-09> a long literal, longer than a row <MAIL|0.35!",
            "<7|1970-01-09> a long literal, longer than a row <MAIL|0.36!",
            "<900|1972-01-09> a long literal, longer than a row <MAIL|0.00!",
            "<7|1970-01-09> a long literal, longer than a row <RAIL|0.35!",
        ] {
            assert_eq!(code(&template, record.as_bytes()), None, "{record}");
        }
    }

    #[test]
    fn every_one_of_many_values_is_found() {
        let mut rng = Rng::new(8);
        let mut values: Vec<Vec<u8>> = (0..1000)
            .map(|n| format!("{:x} {n}", rng.below(1 << 20)).into_bytes())
            .collect();
        values[700].clear();
        let column = Column::Choice {
            values: values.clone(),
        };
        let literals = vec![b"<".to_vec(), b">".to_vec()];
        let template = Template::new(literals, vec![column], 0).expect("they fit");
        for (number, value) in values.iter().enumerate() {
            let record = [b"<", &value[..], b">"].concat();
            let own = code(&template, &record).expect("one of the values");
            let expected = (number as u16) << 6 | 0x3F;
            assert_eq!(own, expected.to_be_bytes(), "{number}");
            assert_eq!(code(&template, &[&record[..], b"x>"].concat()), None);
        }
    }

    #[test]
    fn damage_is_refused_or_decodes() {
        let template = template();
        let mut rng = Rng::new(5);
        for _ in 0..3000 {
            let mut noise = vec![0; rng.below(20) as usize];
            rng.fill(&mut noise);
            let mut out = Vec::new();
            let mut sink = Sink::new(&mut out, 0, 1000);
            let outcome = template.decode(&Bits::new(&noise), 0, None, &mut sink);
            assert!(outcome.is_ok() || noise.len() < 12 || !out.is_empty());
        }
        let mut bytes = Vec::new();
        template.write(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Template::read(&mut Reader::new(&bytes[..cut]), None).is_err());
        }
    }
}
