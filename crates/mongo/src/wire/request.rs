//! What clients send: `OP_MSG`, and `OP_QUERY` for the first handshake of old drivers.

use drumlin_doc::{Document, Refusal, validate};

use super::header::{HEADER_BYTES, Header, OP_MSG};

/// Flags of `OP_MSG`. The lower 16 have to be known.
const CHECKSUM: u32 = 1;
const MORE_TO_COME: u32 = 2;
const EXHAUST_ALLOWED: u32 = 1 << 16;
const REQUIRED: u32 = 0xFFFF;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) body: Document<'a>,
    /// Lists of documents beside the body, by the name of the field that they stand for.
    pub(crate) sequences: Vec<(&'a str, Vec<Document<'a>>)>,
    /// Whether the client waits for no reply.
    pub(crate) is_silent: bool,
    pub(crate) has_checksum: bool,
    /// Whether more than one reply may come.
    pub(crate) takes_more: bool,
    /// Of `OP_QUERY`: the collection that is asked.
    pub(crate) query_of: Option<&'a str>,
}

/// Why a message is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The connection cannot go on.
    Close(String),
    /// A document is none: the client is told.
    Refuse(Refusal),
}

fn close(text: &str) -> Wrong {
    Wrong::Close(text.to_owned())
}

/// Bytes that are taken from the front.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Wrong> {
        let cut = || close("a message that ends too early");
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Wrong> {
        let bytes = self.take(4)?;
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes))
    }

    fn text(&mut self) -> Result<&'a str, Wrong> {
        let wrong = || close("a name that has no end or is not UTF-8");
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(wrong)?;
        let text = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(text).map_err(|_| wrong())
    }

    fn document(&mut self) -> Result<Document<'a>, Wrong> {
        let len = self
            .0
            .first_chunk::<4>()
            .map_or(0, |len| u32::from_le_bytes(*len));
        if len < 5 {
            return Err(close("a document whose length is wrong"));
        }
        let bytes = self.take(len as usize)?;
        validate(bytes).map_err(Wrong::Refuse)?;
        Ok(Document(bytes))
    }
}

/// The request that the whole message `bytes` is.
///
/// # Errors
/// See [`Wrong`].
pub(crate) fn read<'a>(header: Header, bytes: &'a [u8]) -> Result<Request<'a>, Wrong> {
    let mut rest = Rest(bytes.get(HEADER_BYTES..).unwrap_or_default());
    match header.opcode {
        OP_MSG => read_message(bytes, rest),
        _ => {
            rest.number()?;
            let of = rest.text()?;
            rest.take(8)?;
            Ok(Request {
                body: rest.document()?,
                sequences: Vec::new(),
                is_silent: false,
                has_checksum: false,
                takes_more: false,
                query_of: Some(of),
            })
        }
    }
}

fn read_message<'a>(bytes: &'a [u8], mut rest: Rest<'a>) -> Result<Request<'a>, Wrong> {
    let flags = rest.number()?;
    if flags & REQUIRED & !(CHECKSUM | MORE_TO_COME) != 0 {
        return Err(Wrong::Close(format!(
            "a message with the unknown flags {flags:#x}"
        )));
    }
    let has_checksum = flags & CHECKSUM != 0;
    if has_checksum {
        let cut = || close("a message that ends before its checksum");
        let (covered, sum) = bytes.split_last_chunk::<4>().ok_or_else(cut)?;
        let is_right = drumlin_base::checksum::crc32c(covered) == u32::from_le_bytes(*sum);
        if !is_right && !drumlin_base::bug!("mongo-checksum-unchecked") {
            return Err(close("a message whose checksum is wrong"));
        }
        let inner = rest.0.len().checked_sub(4).ok_or_else(cut)?;
        rest = Rest(rest.take(inner)?);
    }
    let mut body = None;
    let mut sequences: Vec<(&str, Vec<Document<'_>>)> = Vec::new();
    while !rest.0.is_empty() {
        match rest.take(1)? {
            [0] => {
                if body.replace(rest.document()?).is_some() {
                    return Err(close("a message with two bodies"));
                }
            }
            [1] => {
                let len = rest
                    .number()?
                    .checked_sub(4)
                    .ok_or_else(|| close("a section whose length is wrong"))?;
                let mut inner = Rest(rest.take(len as usize)?);
                let name = inner.text()?;
                if sequences.iter().any(|(known, _)| *known == name) {
                    return Err(Wrong::Close(format!(
                        "a message with two lists called {name:?}"
                    )));
                }
                let mut documents = Vec::new();
                while !inner.0.is_empty() {
                    documents.push(inner.document()?);
                }
                sequences.push((name, documents));
            }
            _ => return Err(close("a message with a section of an unknown kind")),
        }
    }
    let body = body.ok_or_else(|| close("a message without a body"))?;
    if let Some((name, _)) = sequences.iter().find(|(name, _)| body.get(name).is_some()) {
        return Err(Wrong::Close(format!("a message that has {name:?} twice")));
    }
    Ok(Request {
        body,
        sequences,
        is_silent: flags & MORE_TO_COME != 0,
        has_checksum,
        takes_more: flags & EXHAUST_ALLOWED != 0,
        query_of: None,
    })
}
