//! The documents of the clients, and the indexes over them.

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, Kind, Value};

/// Groups that the documents of a client fall into.
pub(crate) const GROUPS: i64 = 8;
/// Values of `p` from here on are in the partial index.
pub(crate) const PARTIAL_FROM: i64 = 50;

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doc {
    pub(crate) id: i64,
    /// Its client and its group.
    pub(crate) c: i64,
    pub(crate) g: i64,
    /// Counts its changes.
    pub(crate) n: i64,
    /// No other document has it.
    pub(crate) u: i64,
    /// Has an entry each in the index over arrays.
    pub(crate) t: Vec<i64>,
    pub(crate) p: i64,
    /// Bytes that only fill.
    pub(crate) filling: usize,
    /// Is not always there.
    pub(crate) s: Option<i64>,
}

impl Doc {
    pub(crate) fn random(rng: &mut Rng, client: i64, number: i64) -> Self {
        let below = |rng: &mut Rng, bound| rng.below(bound) as i64;
        Self {
            id: client << 32 | number,
            c: client,
            g: below(rng, GROUPS as u64),
            n: 0,
            u: client << 32 | number,
            t: (0..rng.below(4)).map(|_| below(rng, 40)).collect(),
            p: below(rng, 100),
            filling: match rng.below(20) {
                0 => rng.below(4000) as usize,
                _ => rng.below(60) as usize,
            },
            s: rng.one_in(2).then(|| below(rng, 20)),
        }
    }

    /// Appends all but `_id`.
    pub(crate) fn fields(&self, out: &mut Builder) {
        out.i64("c", self.c).i64("g", self.g).i64("n", self.n);
        out.i64("u", self.u).open(Kind::Array, "t");
        for (at, item) in self.t.iter().enumerate() {
            out.i64(at.to_string(), *item);
        }
        out.close().i64("p", self.p);
        out.str("f", &"f".repeat(self.filling));
        if let Some(s) = self.s {
            out.i64("s", s);
        }
    }

    pub(crate) fn bson(&self) -> Vec<u8> {
        let mut out = Builder::new();
        out.i64("_id", self.id);
        self.fields(&mut out);
        out.finish()
    }

    /// The document of `bytes`, which must have nothing else.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let document = Document(bytes);
        let shown = || drumlin_doc::show(document.as_value());
        let whole = |name: &str| {
            let value = document.get(name).and_then(Value::as_whole);
            value.unwrap_or_else(|| panic!("no {name} in {}", shown()))
        };
        let items = document.get("t").and_then(Value::as_array).expect("t");
        let items = items
            .iter()
            .map(|it| it.value.as_whole().expect("a number"));
        let filling = document.get("f").and_then(Value::as_str).expect("f");
        let read = Self {
            id: whole("_id"),
            c: whole("c"),
            g: whole("g"),
            n: whole("n"),
            u: whole("u"),
            t: items.collect(),
            p: whole("p"),
            filling: filling.len(),
            s: document.get("s").and_then(Value::as_whole),
        };
        let fields = 8 + usize::from(read.s.is_some());
        assert_eq!(document.iter().count(), fields, "{}", shown());
        assert!(filling.bytes().all(|byte| byte == b'f'), "{}", shown());
        read
    }
}

/// An index that there may be.
pub(crate) struct Kept {
    pub(crate) name: &'static str,
    pub(crate) key: &'static [(&'static str, i64)],
}

/// The index of `u`, in the collection of all always there.
pub(crate) const UNIQUE: usize = 0;

/// All of them, by their places.
pub(crate) const INDEXES: [Kept; 5] = [
    Kept {
        name: "unique",
        key: &[("u", 1)],
    },
    Kept {
        name: "compound",
        key: &[("c", 1), ("g", -1), ("n", 1)],
    },
    Kept {
        name: "multikey",
        key: &[("t", 1)],
    },
    Kept {
        name: "sparse",
        key: &[("s", 1)],
    },
    Kept {
        name: "partial",
        key: &[("g", 1), ("p", -1)],
    },
];

impl Kept {
    /// Appends what `createIndexes` takes.
    pub(crate) fn describe(&self, out: &mut Builder, at: usize) {
        out.open(Kind::Document, at.to_string());
        crate::session::numbers(out, "key", self.key);
        out.str("name", self.name);
        match self.name {
            "unique" => drop(out.bool("unique", true)),
            "sparse" => drop(out.bool("sparse", true)),
            "partial" => {
                out.open(Kind::Document, "partialFilterExpression");
                crate::session::numbers(out, "p", &[("$gte", PARTIAL_FROM)]);
                out.close();
            }
            _ => {}
        }
        out.close();
    }
}
