//! Keys and values packed into one buffer, in both directions. Lengths are 32 bits, the low byte first.
//!
//! ```text
//! keys      (length, key)*
//! changes   (0, length of key, key | 1, length of key, length of value, key, value)*
//! values    (length, value)*            a length of all ones: there is none
//! entries   (length of key, length of value, key, value)*
//! ```

use drumlin::{Error, ErrorKind, Result, WriteBatch};

/// The length that stands for a value that is not there.
const NONE: u32 = u32::MAX;

/// Takes packed bytes apart.
pub(crate) struct Unpacked<'a>(&'a [u8]);

impl<'a> Unpacked<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Self(packed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = left;
        Ok(taken)
    }

    fn length(&mut self) -> Result<usize> {
        let (taken, left) = self.0.split_first_chunk::<4>().ok_or_else(cut_off)?;
        self.0 = left;
        usize::try_from(u32::from_le_bytes(*taken)).map_err(|_| cut_off())
    }

    /// The keys of a list.
    pub(crate) fn keys(mut self) -> Result<Vec<&'a [u8]>> {
        let mut keys = Vec::new();
        while !self.0.is_empty() {
            let length = self.length()?;
            keys.push(self.take(length)?);
        }
        Ok(keys)
    }

    /// The changes of a batch.
    pub(crate) fn batch(mut self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        while let Some((&tag, left)) = self.0.split_first() {
            self.0 = left;
            let key_length = self.length()?;
            match tag {
                0 => batch.delete(self.take(key_length)?)?,
                1 => {
                    let value_length = self.length()?;
                    let key = self.take(key_length)?;
                    batch.put(key, self.take(value_length)?)?;
                }
                _ => return Err(cut_off()),
            }
        }
        Ok(batch)
    }
}

#[cold]
fn cut_off() -> Error {
    Error::new(ErrorKind::InvalidArgument, "packed keys are cut off")
}

/// `length` as it is packed.
///
/// # Errors
/// `TooLarge`.
fn packed_length(length: usize) -> Result<[u8; 4]> {
    match u32::try_from(length) {
        Ok(length) if length != NONE => Ok(length.to_le_bytes()),
        _ => Err(Error::new(
            ErrorKind::TooLarge,
            "a key or a value of 4 GiB or more",
        )),
    }
}

/// Adds a value, or that there is none.
pub(crate) fn push_value(packed: &mut Vec<u8>, value: Option<&[u8]>) -> Result<()> {
    match value {
        None => packed.extend_from_slice(&NONE.to_le_bytes()),
        Some(value) => {
            packed.extend_from_slice(&packed_length(value.len())?);
            packed.extend_from_slice(value);
        }
    }
    Ok(())
}

/// Adds an entry.
pub(crate) fn push_entry(packed: &mut Vec<u8>, key: &[u8], value: &[u8]) -> Result<()> {
    packed.extend_from_slice(&packed_length(key.len())?);
    packed.extend_from_slice(&packed_length(value.len())?);
    packed.extend_from_slice(key);
    packed.extend_from_slice(value);
    Ok(())
}
