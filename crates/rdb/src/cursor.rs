//! Taking bytes from the front of those that have arrived.

use drumlin_base::Error;

/// Why a step could not be made.
#[derive(Debug)]
pub(crate) enum Stop {
    /// So many bytes, counted from the cursor's start, have to arrive first.
    Short(usize),
    /// The bytes are damaged.
    Bad(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Bad(error)
    }
}

pub(crate) type Parsed<T> = Result<T, Stop>;

/// Damage, as a step reports it.
pub(crate) fn bad<T>(message: impl Into<String>) -> Parsed<T> {
    Err(Stop::Bad(Error::corruption(message)))
}

/// A place in the bytes that have arrived. After an error its place means nothing.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that will follow `bytes`, if their number is known.
    to_come: Option<u64>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], to_come: Option<u64>) -> Self {
        let at = 0;
        Self { bytes, at, to_come }
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.at
    }

    fn here(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let end = self.at.checked_add(count);
        if let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) {
            self.at += count;
            return Ok(taken);
        }
        self.expect_left(count as u64)?;
        end.map_or_else(
            || bad("a length is larger than memory"),
            |end| Err(Stop::Short(end)),
        )
    }

    /// Refuses when `count` bytes can never come.
    pub(crate) fn expect_left(&self, count: u64) -> Parsed<()> {
        match self.to_come {
            Some(to_come) if count > to_come + self.here() as u64 => {
                let left = to_come + self.here() as u64;
                bad(format!("{count} bytes are announced where {left} are left"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let taken = self.take(N)?;
        // `take` returns as many as asked for.
        Ok(taken.try_into().unwrap_or([0; N]))
    }

    pub(crate) fn byte(&mut self) -> Parsed<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(crate) fn u64_le(&mut self) -> Parsed<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
