//! The 16 bytes in front of each message.

use super::limits::MESSAGE_BYTES_MAX;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 16;

pub(crate) const OP_REPLY: u32 = 1;
pub(crate) const OP_QUERY: u32 = 2004;
pub(crate) const OP_COMPRESSED: u32 = 2012;
pub(crate) const OP_MSG: u32 = 2013;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: usize,
    pub(crate) request: u32,
    pub(crate) opcode: u32,
}

impl Header {
    /// The header of the message that `bytes` begin with; `None` until all of it is there.
    ///
    /// # Errors
    /// A sentence, for a length or an opcode that there cannot be: the connection has to be closed.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let number = |at: usize| {
            let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let len = number(0) as usize;
        let opcode = number(12);
        let least = match opcode {
            OP_MSG => HEADER_BYTES + 4 + 1 + 5,
            OP_QUERY => HEADER_BYTES + 4 + 1 + 8 + 5,
            OP_COMPRESSED => HEADER_BYTES + 4 + 4 + 1,
            _ => {
                return Err(format!(
                    "the operation {opcode} is not supported by this server"
                ));
            }
        };
        match (least..=MESSAGE_BYTES_MAX).contains(&len) {
            true => Ok(Some(Self {
                len,
                request: number(4),
                opcode,
            })),
            false => Err(format!("a message of {len} bytes")),
        }
    }
}
