//! The forms of a model: the meanings that a record's bits may have.

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use crate::dictionary::Dictionary;
use crate::template::{Layout, Template};

/// Forms of a model: the number of the form and the raw escape fit the first byte of a code.
pub(super) const FORMS_MAX: usize = 7;

/// The highest level of zstd.
const LEVEL_MAX: u8 = 22;

/// One way to encode a record. A record takes the first form of its model that can hold it.
#[derive(Debug)]
pub(super) enum Form {
    /// The whole record is one text.
    Text,
    /// Fields between literals.
    Template(Template),
    /// Numbers at fixed places.
    Layout(Layout),
    /// A large record as a zstd frame, written at this level.
    Frame(i8),
}

/// On disk: the first byte of a form.
const TEXT: u8 = 0;
const TEMPLATE: u8 = 1;
const FRAME: u8 = 2;
const LAYOUT: u8 = 3;

impl Form {
    /// Appends the form as it is stored.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text => out.push(TEXT),
            Self::Template(template) => {
                out.push(TEMPLATE);
                template.write(out);
            }
            Self::Layout(layout) => {
                out.push(LAYOUT);
                layout.write(out);
            }
            Self::Frame(level) => out.extend_from_slice(&[FRAME, *level as u8]),
        }
    }

    /// Reads a form from the bytes of [`Form::write`].
    ///
    /// # Errors
    /// `Corruption` when it is damaged.
    pub(super) fn read(reader: &mut Reader<'_>, dictionary: Option<&Dictionary>) -> Result<Self> {
        match reader.u8() {
            Some(TEXT) => Ok(Self::Text),
            Some(TEMPLATE) => Ok(Self::Template(Template::read(reader, dictionary)?)),
            Some(LAYOUT) => Ok(Self::Layout(Layout::read(reader)?)),
            Some(FRAME) => match reader.u8() {
                Some(level @ 1..=LEVEL_MAX) => Ok(Self::Frame(level as i8)),
                _ => Err(Error::corruption("a form with a level that does not exist")),
            },
            Some(kind) => Err(Error::corruption(format!("a form of unknown kind {kind}"))),
            None => Err(Error::corruption("a form is cut off")),
        }
    }
}
