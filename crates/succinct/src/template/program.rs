//! Records from bits: the columns of a template as a row of steps.
//!
//! Everything that a step needs is in it: where its bits are, how the number is written, and the literal
//! behind the field as a row that is always copied whole. Steps of few bytes write one behind the other
//! into room that was made for them; the sink is told when a step asks for more.

use drumlin_base::Result;

use super::column::{COLUMNS_MAX, Column, Relation, choice_bits, damaged};
use super::document::{OPEN_MAX, Piece, Written};
use super::number::{SPELLING_BYTES_MAX, Style};
use crate::bits::Bits;
use crate::documents::VALUE_END;
use crate::text::{Ending, ROOM_BYTES, Sink, TextCoder};

/// Bytes of a row: the text, and its length in the last one.
const ROW_BYTES: usize = 32;
/// The longest text in a row.
const ROW_TEXT_MAX: usize = ROW_BYTES - 1;
/// Room that a step without a long text writes to: a number or a choice, and the literal behind it.
const STEP_BYTES: usize = SPELLING_BYTES_MAX + ROW_BYTES;
const _: () = assert!(STEP_BYTES <= ROOM_BYTES && 2 * ROW_BYTES <= STEP_BYTES);

/// A short text that is copied as a whole row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LiteralRow([u8; ROW_BYTES]);

impl LiteralRow {
    const EMPTY: Self = Self([0; ROW_BYTES]);

    /// The row of `text`; none when that is too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut row = [0; ROW_BYTES];
        row.get_mut(..text.len())?.copy_from_slice(text);
        row[ROW_TEXT_MAX] = text.len() as u8;
        (text.len() <= ROW_TEXT_MAX).then_some(Self(row))
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.0[ROW_TEXT_MAX])
    }

    /// Copies the row to `at`, and returns the end of its text.
    #[inline]
    fn copy(&self, room: &mut [u8], at: usize) -> usize {
        let place = room.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        debug_assert!(place.is_some(), "room was made for the step");
        if let Some(place) = place {
            *place = self.0;
        }
        at + self.len()
    }
}

/// The part that a step appends before its literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A number.
    Number {
        style: Style,
        base: i64,
        relation: Relation,
    },
    /// A number of a document.
    Binary {
        written: Written,
        base: i64,
        relation: Relation,
    },
    /// Four bytes for a length that is not known yet.
    Open,
    /// A zero, and the length of what was opened last, which counts itself or does not.
    Close { counts_itself: bool },
    /// One of so many rows, from this one on. The literal is in the rows.
    Choice { first: u32, count: u32 },
    /// One of so many texts, from this one on, of which some are long.
    LongChoice { first: u32, count: u32 },
    /// A text in the model's code.
    Text(Ending),
    /// A piece of the dictionary, at least so long, its length in so many bits.
    Piece { shortest: u32, bits: u32 },
    /// A long literal.
    Literal(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    what: What,
    /// The column's number.
    column: u8,
    /// Bits of the number, the choice, or the place.
    width: u8,
    /// Where they begin, from the record's first bit.
    at: u32,
    behind: LiteralRow,
}

/// See the module. Immutable, shared by threads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// Values of choices with the literal behind each.
    rows: Vec<LiteralRow>,
    /// Literals, and values of choices, that are too long for a row.
    texts: Vec<Vec<u8>>,
}

impl Program {
    /// The program for `columns` between `literals`, which are one more; places of a dictionary have
    /// `place_bits`.
    pub(super) fn new(literals: &[Vec<u8>], columns: &[Column], place_bits: u32) -> Self {
        let mut program = Self::default();
        program.add_literal(literals.first().map_or(&[], Vec::as_slice), 0);
        let last_text = last_text(columns);
        let mut at = 0;
        let behind = literals.iter().skip(1);
        for (index, (column, behind)) in columns.iter().zip(behind).enumerate() {
            let row = LiteralRow::new(behind);
            // A long literal for each value could take any amount of memory.
            let joined = row.map_or(&[][..], |_| behind);
            let (what, width) = program.field(column, joined, last_text == Some(index), place_bits);
            let is_joined = matches!(column, Column::Choice { .. });
            program.steps.push(Step {
                what,
                column: index as u8,
                width: width as u8,
                at,
                behind: row.filter(|_| !is_joined).unwrap_or(LiteralRow::EMPTY),
            });
            if row.is_none() {
                program.add_literal(behind, index);
            }
            at += column.width(place_bits);
        }
        program
    }

    /// The program for the documents whose texts have such a template; see [`super::document`].
    pub(super) fn of_document(
        pieces: &[Piece],
        columns: &[Column],
        place_bits: u32,
    ) -> Option<Self> {
        let mut program = Self::default();
        let last_text = last_text(columns);
        let mut starts = Vec::with_capacity(columns.len());
        let mut at = 0;
        for column in columns {
            starts.push(at);
            at += column.width(place_bits);
        }
        let mut pieces = pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            if let Piece::Bytes(bytes) = piece {
                program.add_literal(bytes, 0);
                continue;
            }
            let next = match pieces.peek() {
                Some(Piece::Bytes(bytes)) => bytes.as_slice(),
                _ => &[],
            };
            let row = LiteralRow::new(next);
            if row.is_some() && !next.is_empty() {
                pieces.next();
            }
            let joined = row.map_or(&[][..], |_| next);
            let (index, (what, width)) = match piece {
                Piece::Bytes(_) => continue,
                Piece::Open => (0, (What::Open, 0)),
                Piece::Close { counts_itself } => {
                    let counts_itself = *counts_itself;
                    (0, (What::Close { counts_itself }, 0))
                }
                Piece::Choice { column, values } => (*column, program.choice(values, joined)),
                Piece::Field { column } => {
                    let is_last = last_text == Some(*column);
                    let field = program.field(columns.get(*column)?, joined, is_last, place_bits);
                    (*column, field)
                }
                Piece::Number { column, written } => {
                    let Column::Number {
                        base,
                        bits,
                        relation,
                        ..
                    } = columns.get(*column)?
                    else {
                        return None;
                    };
                    let (written, base, relation) = (*written, *base, *relation);
                    let what = What::Binary {
                        written,
                        base,
                        relation,
                    };
                    (*column, (what, *bits))
                }
            };
            let is_joined = matches!(what, What::Choice { .. } | What::LongChoice { .. });
            program.steps.push(Step {
                what,
                column: index as u8,
                width: width as u8,
                at: starts.get(index).copied().unwrap_or(0),
                behind: row.filter(|_| !is_joined).unwrap_or(LiteralRow::EMPTY),
            });
        }
        Some(program)
    }

    /// The step for the field of a column, and the bits of what it reads. `joined` is the literal behind it, if it fits a row.
    fn field(
        &mut self,
        column: &Column,
        joined: &[u8],
        is_last_text: bool,
        place_bits: u32,
    ) -> (What, u32) {
        match column {
            Column::Choice { values } => self.choice(values, joined),
            Column::Number {
                style,
                base,
                bits,
                relation,
            } => {
                let (style, base, relation) = (*style, *base, *relation);
                let what = What::Number {
                    style,
                    base,
                    relation,
                };
                (what, *bits)
            }
            Column::Text if is_last_text => (What::Text(Ending::Bits), 0),
            Column::Text => (What::Text(Ending::Mark), 0),
            Column::Piece { shortest, bits } => {
                let (shortest, bits) = (*shortest, *bits);
                (What::Piece { shortest, bits }, place_bits)
            }
        }
    }

    /// Adds the values of a choice, each with `behind` behind it.
    fn choice(&mut self, values: &[Vec<u8>], behind: &[u8]) -> (What, u32) {
        let joined: Vec<Vec<u8>> = values
            .iter()
            .map(|value| [value.as_slice(), behind].concat())
            .collect();
        let (count, width) = (values.len() as u32, choice_bits(values.len()));
        let rows: Option<Vec<LiteralRow>> =
            joined.iter().map(|text| LiteralRow::new(text)).collect();
        let what = match rows {
            Some(rows) => {
                let first = self.rows.len() as u32;
                self.rows.extend(rows);
                What::Choice { first, count }
            }
            None => {
                let first = self.texts.len() as u32;
                self.texts.extend(joined);
                What::LongChoice { first, count }
            }
        };
        (what, width)
    }

    /// Adds a step for a literal that is not behind a column, or does not fit there.
    fn add_literal(&mut self, literal: &[u8], column: usize) {
        if literal.is_empty() {
            return;
        }
        self.steps.push(Step {
            what: What::Literal(self.texts.len() as u32),
            column: column as u8,
            width: 0,
            at: 0,
            behind: LiteralRow::EMPTY,
        });
        self.texts.push(literal.to_vec());
    }

    /// Bytes it takes in memory.
    pub(super) fn memory(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.len() + 24).sum();
        self.steps.len() * size_of::<Step>() + self.rows.len() * ROW_BYTES + texts
    }

    /// Decodes the record whose bits begin at `from`, and its texts at `text_at`, into `sink`. Requires
    /// that the bits before the texts are there.
    ///
    /// # Errors
    /// `Corruption` when the bits are no record.
    pub(super) fn run(
        &self,
        bits: &Bits<'_>,
        (from, mut text_at): (usize, usize),
        text: Option<&TextCoder>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let mut numbers = [0i64; COLUMNS_MAX];
        let (mut opened, mut open) = ([0; OPEN_MAX], 0);
        let (mut room, mut end) = (&mut [][..], 0);
        for step in &self.steps {
            if room.len() - end < STEP_BYTES {
                sink.advance(end);
                (room, end) = (sink.room()?, 0);
            }
            let at = from + step.at as usize;
            match step.what {
                What::Number {
                    style,
                    base,
                    relation,
                } => {
                    let stored = base.wrapping_add(bits.field_wide(at, step.width.into()) as i64);
                    let number = relation.apply(stored, &numbers);
                    numbers[usize::from(step.column) % COLUMNS_MAX] = number;
                    let place = room.get_mut(end..).and_then(<[u8]>::first_chunk_mut);
                    end += style.render(number, place.ok_or_else(damaged)?)?;
                }
                What::Binary {
                    written,
                    base,
                    relation,
                } => {
                    let stored = base.wrapping_add(bits.field_wide(at, step.width.into()) as i64);
                    let number = relation.apply(stored, &numbers);
                    numbers[usize::from(step.column) % COLUMNS_MAX] = number;
                    let place = room.get_mut(end..).and_then(<[u8]>::first_chunk_mut);
                    end += written.write(number, &numbers, place.ok_or_else(damaged)?)?;
                }
                What::Open => {
                    sink.advance(end);
                    opened[open % OPEN_MAX] = sink.at();
                    open += 1;
                    (room, end) = (sink.room()?, 4);
                }
                What::Close { counts_itself } => {
                    let place = room.get_mut(end).ok_or_else(damaged)?;
                    *place = 0;
                    sink.advance(end + 1);
                    open = open.checked_sub(1).ok_or_else(damaged)?;
                    let place = opened[open % OPEN_MAX];
                    // It would end the value in a text.
                    if !counts_itself && sink.written(place + 4).contains(&VALUE_END) {
                        return Err(damaged());
                    }
                    sink.count(place, counts_itself)?;
                    (room, end) = (sink.room()?, 0);
                }
                What::Choice { first, count } => {
                    let choice = bits.field(at, step.width.into()) as u32;
                    let row = self.rows.get((first + choice) as usize);
                    let row = row.filter(|_| choice < count).ok_or_else(damaged)?;
                    end = row.copy(room, end);
                    continue; // The literal is in the row.
                }
                // Parts that may be long go through the sink.
                _ => {
                    sink.advance(end);
                    let next = self.append_long(step, bits, (at, text_at), text, sink)?;
                    text_at = next;
                    // No room is made where nothing comes.
                    (room, end) = (&mut [], 0);
                    if step.behind.len() == 0 {
                        continue;
                    }
                    room = sink.room()?;
                }
            }
            end = step.behind.copy(room, end);
        }
        sink.advance(end);
        Ok(())
    }

    /// Appends a part that may be longer than a row, and returns where the next text begins.
    #[inline]
    fn append_long(
        &self,
        step: &Step,
        bits: &Bits<'_>,
        (at, text_at): (usize, usize),
        text: Option<&TextCoder>,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        let width = u32::from(step.width);
        match step.what {
            What::Piece {
                shortest,
                bits: len_bits,
            } => {
                let dictionary = text.and_then(TextCoder::dictionary).ok_or_else(damaged)?;
                let place = bits.field(at, width) as usize;
                let len = bits.field(at + width as usize, len_bits) as usize;
                sink.extend(dictionary.get(place, shortest as usize + len)?)?;
            }
            What::Text(ending) => {
                let coder = text.ok_or_else(damaged)?;
                return coder.decode(bits, text_at, ending, sink);
            }
            What::LongChoice { first, count } => {
                let choice = bits.field(at, width) as u32;
                let text = self.texts.get((first + choice) as usize);
                sink.extend(text.filter(|_| choice < count).ok_or_else(damaged)?)?;
            }
            What::Literal(literal) => {
                sink.extend(self.texts.get(literal as usize).ok_or_else(damaged)?)?;
            }
            What::Number { .. }
            | What::Binary { .. }
            | What::Open
            | What::Close { .. }
            | What::Choice { .. } => {}
        }
        Ok(text_at)
    }
}

/// The column whose text ends with the bits.
fn last_text(columns: &[Column]) -> Option<usize> {
    columns.iter().rposition(|column| *column == Column::Text)
}
