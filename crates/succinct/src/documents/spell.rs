//! Documents to text.

use std::io::Write;

use drumlin_base::coding::Reader;

use super::{NAME_END, NESTING_MAX, VALUE_END, bson, frame, kind};

/// Digits behind the point of a double, at least: a price of 12.5 is 12.50, so that all prices have two.
const DECIMALS_MIN: usize = 2;
/// Bytes of a double's decimal digits before zeros are added; longer ones are spelled by their bits.
const DECIMAL_BYTES_MAX: usize = 24;

/// The text of a record, and where its values are. To be used for one record after another.
#[derive(Debug, Default)]
pub struct Spelled {
    text: Vec<u8>,
    /// Of each value, where it begins and ends.
    values: Vec<(usize, usize)>,
}

impl Spelled {
    /// Spells `record`; whether it is a document, and all its values are of types that can be spelled. If not, the text
    /// is of no use.
    pub fn spell(&mut self, record: &[u8]) -> bool {
        self.spell_whole(record).is_some()
            || self.spell_behind_byte(record).is_some()
            || self.spell_without_length(record).is_some()
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text between the values, if there are values, and `values_max` at most: the literals of a template for records like
    /// this.
    pub fn shape(&self, values_max: usize) -> Option<Vec<Vec<u8>>> {
        (1..=values_max)
            .contains(&self.values.len())
            .then_some(())?;
        let mut literals = Vec::with_capacity(self.values.len() + 1);
        let mut at = 0;
        for &(from, to) in &self.values {
            literals.push(self.text.get(at..from)?.to_vec());
            at = to;
        }
        literals.push(self.text.get(at..)?.to_vec());
        Some(literals)
    }

    fn begin(&mut self, frame: u8) {
        self.text.clear();
        self.values.clear();
        self.text.push(frame);
    }

    fn spell_whole(&mut self, record: &[u8]) -> Option<()> {
        self.begin(frame::WHOLE);
        let mut reader = Reader::new(record);
        self.document(&mut reader, kind::DOCUMENT_END, 0)?;
        reader.is_empty().then_some(())
    }

    fn spell_behind_byte(&mut self, record: &[u8]) -> Option<()> {
        let mut reader = Reader::new(record);
        let first = reader.u8()?;
        self.begin(frame::BEHIND_BYTE);
        self.byte(first);
        self.document(&mut reader, kind::DOCUMENT_END, 0)?;
        reader.is_empty().then_some(())
    }

    fn spell_without_length(&mut self, record: &[u8]) -> Option<()> {
        let mut reader = Reader::new(record);
        let first = reader.u8()?;
        self.begin(frame::WITHOUT_LENGTH);
        self.byte(first);
        self.elements(&mut reader, kind::DOCUMENT_END, 0)?;
        reader.is_empty().then_some(())
    }

    /// Two digits for `byte`.
    fn byte(&mut self, byte: u8) {
        self.write(format_args!("{byte:02x}"));
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        let _infallible = self.text.write_fmt(text);
    }

    /// A length, the elements and a zero, which end where the length says.
    fn document(&mut self, reader: &mut Reader<'_>, end: u8, depth: usize) -> Option<()> {
        let len = (reader.fixed32()? as usize).checked_sub(4)?;
        let mut inside = Reader::new(reader.bytes(len)?);
        self.elements(&mut inside, end, depth)?;
        inside.is_empty().then_some(())
    }

    /// Elements up to a zero, and `end`.
    fn elements(&mut self, reader: &mut Reader<'_>, end: u8, depth: usize) -> Option<()> {
        (depth < NESTING_MAX).then_some(())?;
        for place in 0_usize.. {
            let bson = reader.u8()?;
            if bson == 0 {
                break;
            }
            let name = c_string(reader)?;
            let is_named = end != kind::ARRAY_END;
            if !is_named && !is_place(name, place) {
                return None;
            }
            self.element(bson, is_named.then_some(name), reader, depth)?;
        }
        self.text.push(end);
        Some(())
    }

    fn element(
        &mut self,
        bson: u8,
        name: Option<&[u8]>,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Option<()> {
        let head = |spelled: &mut Self, kind: u8| {
            spelled.text.push(kind);
            if let Some(name) = name {
                spelled.text.extend_from_slice(name);
                spelled.text.push(NAME_END);
            }
        };
        match bson {
            bson::DOUBLE => {
                let double = f64::from_bits(reader.fixed64()?);
                let before = self.text.len();
                head(self, kind::DECIMAL);
                if !self.decimal(double) {
                    self.text.truncate(before);
                    head(self, kind::BITS);
                    self.value(format_args!("{:016x}", double.to_bits()));
                }
            }
            bson::STRING => {
                let len = (reader.fixed32()? as usize).checked_sub(1)?;
                let string = reader.bytes(len)?;
                (reader.u8()? == 0).then_some(())?;
                if string.contains(&VALUE_END) {
                    head(self, kind::COUNTED);
                    self.value(format_args!("{len}"));
                } else {
                    head(self, kind::STRING);
                }
                self.bytes(string);
            }
            bson::DOCUMENT => {
                head(self, kind::DOCUMENT);
                self.document(reader, kind::DOCUMENT_END, depth + 1)?;
            }
            bson::ARRAY => {
                head(self, kind::ARRAY);
                self.document(reader, kind::ARRAY_END, depth + 1)?;
            }
            bson::BINARY => {
                head(self, kind::BINARY);
                let len = reader.fixed32()? as usize;
                let subtype = reader.u8()?;
                self.value(format_args!("{subtype}"));
                self.value(format_args!("{len}"));
                self.bytes(reader.bytes(len)?);
            }
            bson::OBJECT_ID => {
                head(self, kind::OBJECT_ID);
                // By its makers: seconds, five bytes of the process, a counter; all with the highest byte first.
                let [s0, s1, s2, s3, p0, p1, p2, p3, p4, c0, c1, c2] =
                    *reader.bytes(12)?.first_chunk()?;
                self.value(format_args!("{}", u32::from_be_bytes([s0, s1, s2, s3])));
                let process = u64::from_be_bytes([0, 0, 0, p0, p1, p2, p3, p4]);
                self.value(format_args!("{process:010x}"));
                self.value(format_args!("{}", u32::from_be_bytes([0, c0, c1, c2])));
            }
            bson::BOOL => {
                head(self, kind::BOOL);
                let bool = reader.u8()?;
                (bool <= 1).then_some(())?;
                self.value(format_args!("{bool}"));
            }
            bson::DATE => {
                head(self, kind::DATE);
                let millis = reader.fixed64()?.cast_signed();
                self.value(format_args!("{}", millis.div_euclid(1000)));
                self.value(format_args!("{}", millis.rem_euclid(1000)));
            }
            bson::NULL => head(self, kind::NULL),
            bson::INT32 => {
                head(self, kind::INT32);
                self.value(format_args!("{}", reader.fixed32()?.cast_signed()));
            }
            bson::INT64 => {
                head(self, kind::INT64);
                self.value(format_args!("{}", reader.fixed64()?.cast_signed()));
            }
            bson::TIMESTAMP => {
                head(self, kind::TIMESTAMP);
                let (increment, seconds) = (reader.fixed32()?, reader.fixed32()?);
                self.value(format_args!("{seconds}"));
                self.value(format_args!("{increment}"));
            }
            _ => return None,
        }
        Some(())
    }

    fn value(&mut self, text: std::fmt::Arguments<'_>) {
        let from = self.text.len();
        self.write(text);
        self.values.push((from, self.text.len()));
        self.text.push(VALUE_END);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let from = self.text.len();
        self.text.extend_from_slice(bytes);
        self.values.push((from, self.text.len()));
        self.text.push(VALUE_END);
    }

    /// A double in decimal digits, if they are few and say it to the bit.
    fn decimal(&mut self, double: f64) -> bool {
        let from = self.text.len();
        self.write(format_args!("{double}"));
        let digits = self.text.get(from..).unwrap_or_default();
        if !double.is_finite() || digits.len() > DECIMAL_BYTES_MAX {
            return false;
        }
        let behind = match digits.iter().position(|&byte| byte == b'.') {
            Some(point) => digits.len() - point - 1,
            None => {
                self.text.push(b'.');
                0
            }
        };
        (behind..DECIMALS_MIN).for_each(|_| self.text.push(b'0'));
        let digits = self.text.get(from..).unwrap_or_default();
        let back = super::read::double(digits).map(f64::to_bits);
        if back != Some(double.to_bits()) {
            return false;
        }
        self.values.push((from, self.text.len()));
        self.text.push(VALUE_END);
        true
    }
}

/// The bytes up to a zero, which is passed.
fn c_string<'r>(reader: &mut Reader<'r>) -> Option<&'r [u8]> {
    let len = reader.rest().iter().position(|&byte| byte == 0)?;
    let string = reader.bytes(len)?;
    reader.u8()?;
    Some(string)
}

/// Whether `name` is `place` in digits.
fn is_place(name: &[u8], place: usize) -> bool {
    let number = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.parse().ok());
    number == Some(place)
        && (name == b"0"
            || name
                .first()
                .is_some_and(|byte| (b'1'..=b'9').contains(byte)))
}
