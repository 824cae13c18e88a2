//! A packed node, checked as a whole and then given out item by item.

use drumlin_base::{Error, Result};

use crate::listpack::{self, Held};
use crate::number;
use crate::unique::any_twice;
use crate::value::{Bytes, Field, Item};

/// Latest time at which a field may expire: 48 bits.
pub(crate) const FIELD_EXPIRE_MS_MAX: u64 = (1 << 48) - 1;

/// The meaning of a node's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Elements,
    Members,
    /// Member and score.
    Scored,
    /// Name and value.
    Fields,
    /// Name, value and expiry, those with an expiry first and by it.
    TimedFields,
}

impl Layout {
    fn entries_each(self) -> usize {
        match self {
            Self::Elements | Self::Members => 1,
            Self::Scored | Self::Fields => 2,
            Self::TimedFields => 3,
        }
    }
}

/// A node that is being given out.
#[derive(Debug)]
pub(crate) struct Chunk {
    listpack: Vec<u8>,
    at: usize,
    layout: Layout,
}

impl Chunk {
    /// Checks `listpack` as a whole.
    ///
    /// # Errors
    /// Corruption where the listpack is damaged, an item is incomplete, a score is no number, expiries are out of
    /// order, or a name comes twice.
    pub(crate) fn open(listpack: Vec<u8>, layout: Layout) -> Result<Self> {
        let each = layout.entries_each();
        let mut names = Vec::new();
        let mut number = 0;
        // Before the first field there is no expiry to be compared with.
        let mut expiry_before = None;
        listpack::walk(&listpack, |place, held| {
            match number % each {
                // A listpack is below 4 GiB.
                0 if layout != Layout::Elements => names.push(place as u32),
                1 if layout == Layout::Scored => drop(score(held)?),
                2 => expiry_before = Some(ordered(expiry(held)?, expiry_before)?),
                _ => {}
            }
            number += 1;
            Ok(())
        })?;
        if number % each != 0 {
            return Err(Error::corruption("a packed node ends within an item"));
        }
        let name = |place: &u32| match listpack::entry(&listpack, *place as usize) {
            Ok(Some((held, _))) => held,
            // All places were walked over just now.
            _ => Held::Integer(0),
        };
        let twice = any_twice(&mut names, |one, other| name(one).order(&name(other)));
        if twice && !drumlin_base::bug!("packed-names-may-repeat") {
            return Err(Error::corruption("a name comes twice in a packed node"));
        }
        let at = listpack::FIRST;
        Ok(Self {
            listpack,
            at,
            layout,
        })
    }

    /// The next item, or none at the end.
    pub(crate) fn item(&mut self) -> Result<Option<Item>> {
        let Some(first) = self.entry()? else {
            return Ok(None);
        };
        let first = first.to_bytes();
        Ok(Some(match self.layout {
            Layout::Elements => Item::Element(first),
            Layout::Members => Item::Member(first),
            Layout::Scored => Item::Scored(first, score(self.more()?)?),
            Layout::Fields => self.field(first, false)?,
            Layout::TimedFields => self.field(first, true)?,
        }))
    }

    fn field(&mut self, name: Bytes, timed: bool) -> Result<Item> {
        let value = self.more()?.to_bytes();
        let expire_ms = if timed { expiry(self.more()?)? } else { None };
        Ok(Item::Field(Field {
            name,
            value,
            expire_ms,
        }))
    }

    fn more(&mut self) -> Result<Held<'_>> {
        let entry = self.entry()?;
        entry.ok_or_else(|| Error::corruption("a packed node ends within an item"))
    }

    fn entry(&mut self) -> Result<Option<Held<'_>>> {
        Ok(
            listpack::entry(&self.listpack, self.at)?.map(|(held, next)| {
                self.at = next;
                held
            }),
        )
    }
}

fn score(held: Held<'_>) -> Result<f64> {
    let score = match held {
        Held::Integer(number) => Some(number as f64),
        Held::Text(text) => number::score(text),
    };
    score.ok_or_else(|| Error::corruption("a score is no number"))
}

fn expiry(held: Held<'_>) -> Result<Option<u64>> {
    let time = held.integer().and_then(|time| u64::try_from(time).ok());
    let time = time.filter(|time| *time <= FIELD_EXPIRE_MS_MAX);
    let time = time.ok_or_else(|| Error::corruption("the expiry of a field is no time"))?;
    Ok((time != 0).then_some(time))
}

/// `expiry`, if it may follow `before`.
fn ordered(expiry: Option<u64>, before: Option<Option<u64>>) -> Result<Option<u64>> {
    let fits = match (expiry, before) {
        (None, _) | (_, None) => true,
        (Some(_), Some(None)) => false,
        (Some(expiry), Some(Some(before))) => expiry >= before,
    };
    if !fits {
        return Err(Error::corruption("the expiries of fields are out of order"));
    }
    Ok(expiry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listpack::Writer;

    fn chunk(entries: &[&str], layout: Layout) -> Result<Vec<Item>> {
        let mut writer = Writer::new();
        entries
            .iter()
            .for_each(|entry| writer.push(entry.as_bytes()));
        let mut chunk = Chunk::open(writer.finish()?, layout)?;
        let mut items = Vec::new();
        while let Some(item) = chunk.item()? {
            items.push(item);
        }
        Ok(items)
    }

    #[test]
    fn names_come_once_and_values_as_often_as_they_like() {
        assert_eq!(
            chunk(&["a", "x", "b", "x"], Layout::Fields).unwrap().len(),
            2
        );
        assert_eq!(chunk(&["x", "x"], Layout::Elements).unwrap().len(), 2);
        assert!(chunk(&["a", "x", "a", "y"], Layout::Fields).is_err());
        assert!(chunk(&["7", "8", "7"], Layout::Members).is_err());
        assert!(chunk(&["a", "1", "a", "2"], Layout::Scored).is_err());
    }

    #[test]
    fn an_integer_and_its_text_are_one_name() {
        // A text "7" that is not packed as an integer, and the integer.
        let listpack = [12, 0, 0, 0, 2, 0, 0x81, b'7', 2, 7, 1, 0xff].to_vec();
        assert!(Chunk::open(listpack.clone(), Layout::Members).is_err());
        assert!(Chunk::open(listpack, Layout::Elements).is_ok());
    }

    #[test]
    fn items_are_whole_and_scores_are_numbers() {
        assert!(chunk(&["a"], Layout::Fields).is_err());
        assert!(chunk(&["a", "b"], Layout::TimedFields).is_err());
        assert!(chunk(&["a", "nan"], Layout::Scored).is_err());
        assert!(chunk(&["a", ""], Layout::Scored).is_err());
        let scored = chunk(&["a", "-inf"], Layout::Scored).unwrap();
        assert_eq!(scored, [Item::Scored(b"a".to_vec(), f64::NEG_INFINITY)]);
    }

    #[test]
    fn fields_with_an_expiry_come_first_and_by_it() {
        let timed = |times: [&str; 3]| {
            let [one, two, three] = times;
            let entries = ["a", "x", one, "b", "x", two, "c", "x", three];
            chunk(&entries, Layout::TimedFields)
        };
        assert!(timed(["5", "5", "0"]).is_ok());
        assert!(timed(["0", "0", "0"]).is_ok());
        assert!(timed(["5", "4", "0"]).is_err());
        assert!(timed(["5", "0", "6"]).is_err());
        assert!(timed(["x", "0", "0"]).is_err());
        assert!(timed(["-1", "0", "0"]).is_err());
        assert!(timed(["281474976710656", "0", "0"]).is_err());
    }
}
