//! The body of a value, by its type byte.

use drumlin_base::{Error, Result};

use crate::cursor::{Cursor, Parsed, bad};
use crate::decode::chunk::{Chunk, FIELD_EXPIRE_MS_MAX, Layout};
use crate::decode::streams::{Form, StreamBody};
use crate::decode::strings::{binary_score, count, length, string, text_score};
use crate::value::{Field, Item, Kind};
use crate::{intset, ziplist, zipmap};

/// The items of a body that is not packed.
#[derive(Clone, Copy, Debug)]
enum Plain {
    Elements,
    Members,
    TextScores,
    BinaryScores,
    Fields,
    /// Expiries relative to the least, which comes first, plus one; or absolute.
    TimedFields {
        relative: bool,
    },
}

impl Plain {
    /// Least bytes of an item.
    fn bytes_each(self) -> u64 {
        match self {
            Self::Elements | Self::Members => 1,
            Self::TextScores | Self::Fields => 2,
            Self::BinaryScores => 9,
            Self::TimedFields { .. } => 3,
        }
    }
}

/// The packing of a node.
#[derive(Clone, Copy, Debug)]
enum Packing {
    Listpack,
    Ziplist,
    Zipmap,
    Intset,
}

#[derive(Debug)]
enum State {
    String,
    Counted(Plain),
    Items {
        plain: Plain,
        left: u64,
        least_ms: u64,
    },
    Packed {
        packing: Packing,
        layout: Layout,
        has_least: bool,
    },
    Quicklist(Packing),
    Nodes {
        packing: Packing,
        left: u64,
    },
    Stream(Box<StreamBody>),
    Done,
}

/// A value that is being read.
#[derive(Debug)]
pub(crate) struct Body {
    kind: Kind,
    chunk: Option<Chunk>,
    state: State,
}

impl Body {
    /// The body of type `code`.
    ///
    /// # Errors
    /// NotSupported for values of modules, Corruption for an unknown type.
    pub(crate) fn new(code: u8) -> Result<Self> {
        let packed = |packing, layout| State::Packed {
            packing,
            layout,
            has_least: false,
        };
        let (kind, state) = match code {
            0 => (Kind::String, State::String),
            1 => (Kind::List, State::Counted(Plain::Elements)),
            2 => (Kind::Set, State::Counted(Plain::Members)),
            3 => (Kind::ZSet, State::Counted(Plain::TextScores)),
            4 => (Kind::Hash, State::Counted(Plain::Fields)),
            5 => (Kind::ZSet, State::Counted(Plain::BinaryScores)),
            9 => (Kind::Hash, packed(Packing::Zipmap, Layout::Fields)),
            10 => (Kind::List, packed(Packing::Ziplist, Layout::Elements)),
            11 => (Kind::Set, packed(Packing::Intset, Layout::Members)),
            12 => (Kind::ZSet, packed(Packing::Ziplist, Layout::Scored)),
            13 => (Kind::Hash, packed(Packing::Ziplist, Layout::Fields)),
            14 => (Kind::List, State::Quicklist(Packing::Ziplist)),
            15 => (
                Kind::Stream,
                State::Stream(Box::new(StreamBody::new(Form::First))),
            ),
            16 => (Kind::Hash, packed(Packing::Listpack, Layout::Fields)),
            17 => (Kind::ZSet, packed(Packing::Listpack, Layout::Scored)),
            18 => (Kind::List, State::Quicklist(Packing::Listpack)),
            19 => (
                Kind::Stream,
                State::Stream(Box::new(StreamBody::new(Form::Counted))),
            ),
            20 => (Kind::Set, packed(Packing::Listpack, Layout::Members)),
            21 => (
                Kind::Stream,
                State::Stream(Box::new(StreamBody::new(Form::Active))),
            ),
            22 => (
                Kind::Hash,
                State::Counted(Plain::TimedFields { relative: false }),
            ),
            23 => (Kind::Hash, packed(Packing::Listpack, Layout::TimedFields)),
            24 => (
                Kind::Hash,
                State::Counted(Plain::TimedFields { relative: true }),
            ),
            25 => {
                let (packing, layout) = (Packing::Listpack, Layout::TimedFields);
                (
                    Kind::Hash,
                    State::Packed {
                        packing,
                        layout,
                        has_least: true,
                    },
                )
            }
            6 | 7 => return Err(Error::not_supported("values of modules are not read")),
            _ => return Err(Error::corruption(format!("{code} is no type of value"))),
        };
        let chunk = None;
        Ok(Self { kind, chunk, state })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether everything was read.
    pub(crate) fn is_done(&self) -> bool {
        let ended = match &self.state {
            State::Done => true,
            State::Stream(body) => body.is_done(),
            _ => false,
        };
        ended && self.chunk.is_none()
    }

    /// Takes the bytes of one step: the next item, or none where the step gives none or everything was read.
    /// After [`crate::cursor::Stop::Short`] the same step is made again.
    pub(crate) fn step(
        &mut self,
        input: &mut Cursor<'_>,
        bytes_max: usize,
    ) -> Parsed<Option<Item>> {
        if let Some(chunk) = &mut self.chunk {
            if let Some(item) = chunk.item()? {
                return Ok(Some(item));
            }
            self.chunk = None;
            return Ok(None);
        }
        let (item, next) = match &mut self.state {
            State::Stream(body) => return body.step(input, bytes_max),
            State::String => (Some(Item::String(string(input, bytes_max)?)), State::Done),
            State::Counted(plain) => (None, begin(input, *plain)?),
            State::Items { left: 0, .. } | State::Nodes { left: 0, .. } | State::Done => {
                (None, State::Done)
            }
            State::Items {
                plain,
                left,
                least_ms,
            } => {
                let item = plain_item(input, *plain, *least_ms, bytes_max)?;
                *left -= 1;
                return Ok(Some(item));
            }
            State::Packed {
                packing,
                layout,
                has_least,
            } => {
                if *has_least {
                    input.u64_le()?;
                }
                let bytes = string(input, bytes_max)?;
                self.chunk = Some(Chunk::open(unpack(bytes, *packing)?, *layout)?);
                (None, State::Done)
            }
            State::Quicklist(packing) => {
                let packing = *packing;
                let left = count(input, 1)?;
                (None, State::Nodes { packing, left })
            }
            State::Nodes { packing, left } => {
                let (item, chunk) = list_node(input, *packing, bytes_max)?;
                *left -= 1;
                self.chunk = chunk;
                return Ok(item);
            }
        };
        self.state = next;
        Ok(item)
    }
}

/// The head of a body that is not packed.
fn begin(input: &mut Cursor<'_>, plain: Plain) -> Parsed<State> {
    let mut least_ms = 0;
    if let Plain::TimedFields { relative: true } = plain {
        least_ms = input.u64_le()?;
        if least_ms > FIELD_EXPIRE_MS_MAX + 1 {
            return bad("the first expiry of a hash is no time");
        }
    }
    let left = count(input, plain.bytes_each())?;
    Ok(State::Items {
        plain,
        left,
        least_ms,
    })
}

fn plain_item(
    input: &mut Cursor<'_>,
    plain: Plain,
    least_ms: u64,
    bytes_max: usize,
) -> Parsed<Item> {
    let mut expire_ms = None;
    if let Plain::TimedFields { relative } = plain {
        let stored = length(input)?;
        let time = match stored {
            0 => 0,
            stored if relative => least_ms.saturating_add(stored - 1),
            stored => stored,
        };
        if time > FIELD_EXPIRE_MS_MAX {
            return bad("the expiry of a field is no time");
        }
        expire_ms = (time != 0).then_some(time);
    }
    let name = string(input, bytes_max)?;
    Ok(match plain {
        Plain::Elements => Item::Element(name),
        Plain::Members => Item::Member(name),
        Plain::TextScores => Item::Scored(name, text_score(input)?),
        Plain::BinaryScores => Item::Scored(name, binary_score(input)?),
        Plain::Fields | Plain::TimedFields { .. } => {
            let value = string(input, bytes_max)?;
            Item::Field(Field {
                name,
                value,
                expire_ms,
            })
        }
    })
}

/// A node of a list: one large element, or a packed node of several.
fn list_node(
    input: &mut Cursor<'_>,
    packing: Packing,
    bytes_max: usize,
) -> Parsed<(Option<Item>, Option<Chunk>)> {
    const ONE_ELEMENT: u64 = 1;
    const PACKED: u64 = 2;
    let holds = match packing {
        Packing::Listpack => length(input)?,
        _ => PACKED,
    };
    let bytes = string(input, bytes_max)?;
    match holds {
        // Redis refuses an empty one, which it never puts in a node of its own.
        ONE_ELEMENT if bytes.is_empty() => bad("a node of a list is empty"),
        ONE_ELEMENT => Ok((Some(Item::Element(bytes)), None)),
        PACKED => {
            let chunk = Chunk::open(unpack(bytes, packing)?, Layout::Elements)?;
            Ok((None, Some(chunk)))
        }
        _ => bad(format!("{holds} is no kind of node of a list")),
    }
}

/// `bytes` as a listpack, unchecked where they are one already.
fn unpack(bytes: Vec<u8>, packing: Packing) -> Result<Vec<u8>> {
    match packing {
        Packing::Listpack => Ok(bytes),
        Packing::Ziplist => ziplist::to_listpack(&bytes),
        Packing::Zipmap => zipmap::to_listpack(&bytes),
        Packing::Intset => intset::to_listpack(&bytes),
    }
}
