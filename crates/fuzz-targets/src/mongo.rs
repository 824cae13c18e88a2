//! Seeds for the targets of `drumlin_doc`: documents of all types; filters and updates, each with a document behind it.

use std::sync::Arc;

use drumlin_doc::{Builder, Document, Kind, Value};
use drumlin_doc_store::{
    Bounds, CollectionOptions, Name, NewIndex, PlaceOptions, ValidationLevel, Validator, View,
};

use crate::targets::mongo_catalog;

fn of(fill: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut out = Builder::new();
    fill(&mut out);
    out.finish()
}

pub(crate) fn all_types() -> Vec<u8> {
    of(|out| {
        out.i32("a", -1)
            .i64("b", 1 << 40)
            .f64("c", 1.5)
            .bool("d", true)
            .null("e");
        out.str("f", "t\u{0}x")
            .date("g", -5)
            .binary("h", 0, &[1, 2]);
        out.open(Kind::Array, "i").i32("0", 1).str("1", "x").close();
        out.open(Kind::Document, "j").f64("k", 0.1).close();
        for (name, kind, bytes) in [
            ("l", Kind::ObjectId, [7; 16].as_slice()),
            ("m", Kind::Decimal, &[9; 16]),
            ("n", Kind::Timestamp, &[1; 16]),
            ("o", Kind::MinKey, &[]),
        ] {
            let len = match kind {
                Kind::ObjectId => 12,
                Kind::Timestamp => 8,
                _ => bytes.len(),
            };
            out.value(
                name,
                Value {
                    kind,
                    bytes: &bytes[..len],
                },
            );
        }
        out.value(
            "p",
            Value {
                kind: Kind::Regex,
                bytes: b"a.*\0i\0",
            },
        );
        let scope = [
            0x12, 0, 0, 0, 2, 0, 0, 0, b'x', 0, 8, 0, 0, 0, 10, b'a', 0, 0,
        ];
        out.value(
            "q",
            Value {
                kind: Kind::CodeWithScope,
                bytes: &scope,
            },
        );
    })
}

/// A message whose body is a command.
fn message(fill: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let body = of(|out| {
        fill(out);
        out.str("$db", "d");
    });
    let mut bytes = u32::try_from(body.len() + 21)
        .unwrap_or(0)
        .to_le_bytes()
        .to_vec();
    for number in [7u32, 0, 2013, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(0);
    [bytes, body].concat()
}

fn conversations() -> [(&'static str, Vec<Vec<u8>>); 4] {
    let insert = message(|out| {
        out.str("insert", "c").open(Kind::Array, "documents");
        for (name, id) in [("0", 1), ("1", 2), ("2", 3)] {
            out.open(Kind::Document, name)
                .i32("_id", id)
                .i32("a", id % 2)
                .close();
        }
        out.close();
    });
    let index = message(|out| {
        out.str("createIndexes", "c")
            .open(Kind::Array, "indexes")
            .open(Kind::Document, "0")
            .str("name", "a");
        out.open(Kind::Document, "key")
            .i32("a", 1)
            .close()
            .close()
            .close();
    });
    let find = message(|out| {
        out.str("find", "c")
            .open(Kind::Document, "filter")
            .i32("a", 1)
            .close()
            .i32("batchSize", 1);
        out.open(Kind::Document, "sort").i32("a", -1).close();
    });
    let update = message(|out| {
        out.str("update", "c")
            .open(Kind::Array, "updates")
            .open(Kind::Document, "0");
        out.open(Kind::Document, "q")
            .close()
            .open(Kind::Document, "u")
            .open(Kind::Document, "$inc")
            .i32("a", 1);
        out.close().close().bool("multi", true).close().close();
    });
    let modify = message(|out| {
        out.str("findAndModify", "c")
            .bool("remove", true)
            .open(Kind::Document, "query")
            .i32("_id", 2)
            .close();
    });
    let pipeline = message(|out| {
        out.str("aggregate", "c")
            .open(Kind::Document, "cursor")
            .close()
            .open(Kind::Array, "pipeline");
        out.open(Kind::Document, "0")
            .open(Kind::Document, "$group")
            .str("_id", "$a");
        out.open(Kind::Document, "n")
            .i32("$sum", 1)
            .close()
            .close()
            .close();
        out.open(Kind::Document, "1")
            .open(Kind::Document, "$project")
            .str("m", "$n")
            .close()
            .close()
            .close();
    });
    let hello = message(|out| {
        out.i32("hello", 1);
    });
    let drop_it = message(|out| {
        out.str("drop", "c");
    });
    let capped = message(|out| {
        out.str("create", "c")
            .bool("capped", true)
            .i32("size", 4096);
        out.open(Kind::Document, "validator")
            .open(Kind::Document, "_id")
            .str("$type", "int")
            .close()
            .close();
    });
    let view = message(|out| {
        out.str("create", "v").str("viewOn", "c");
        out.open(Kind::Array, "pipeline")
            .open(Kind::Document, "0")
            .i32("$limit", 1)
            .close()
            .close();
    });
    let tail = message(|out| {
        out.str("find", "c")
            .bool("tailable", true)
            .i32("batchSize", 1);
    });
    let change = message(|out| {
        out.str("collMod", "c").i32("cappedMax", 1);
    });
    [
        ("hello", vec![hello]),
        (
            "writes",
            vec![index, insert.clone(), update, modify, find, drop_it],
        ),
        ("pipeline", vec![insert.clone(), pipeline]),
        ("collections", vec![capped, insert, view, tail, change]),
    ]
}

/// Inputs: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let document = of(|out| {
        out.i32("_id", 1)
            .open(Kind::Array, "a")
            .i32("0", 1)
            .i32("1", 5)
            .close();
        out.open(Kind::Document, "b").i32("c", 3).close();
    });
    let range = of(|out| {
        out.open(Kind::Document, "a")
            .i32("$gt", 1)
            .f64("$lte", 5.0)
            .close();
        out.open(Kind::Document, "b.c")
            .open(Kind::Array, "$in")
            .i32("0", 3)
            .close()
            .close();
    });
    let logical = of(|out| {
        out.open(Kind::Array, "$or")
            .document("0", Document(&range))
            .close();
        out.open(Kind::Document, "x")
            .open(Kind::Document, "$not")
            .bool("$exists", true)
            .close()
            .close();
        out.open(Kind::Document, "a")
            .i32("$size", 2)
            .open(Kind::Document, "$elemMatch")
            .i32("$gte", 5)
            .close()
            .close();
        out.open(Kind::Document, "b").str("$type", "object").close();
    });
    let areas = areas();
    let fields = of(|out| {
        out.open(Kind::Document, "$set")
            .i32("b.c", 4)
            .i32("a.3", 1)
            .close();
        out.open(Kind::Document, "$inc").i32("n", 1).close();
        out.open(Kind::Document, "$rename").str("b.d", "e").close();
    });
    let arrays = of(|out| {
        out.open(Kind::Document, "$push").open(Kind::Document, "a");
        out.open(Kind::Array, "$each")
            .i32("0", 3)
            .close()
            .i32("$sort", 1)
            .i32("$slice", -2)
            .close()
            .close();
        out.open(Kind::Document, "$pull")
            .open(Kind::Document, "z")
            .i32("$gt", 1)
            .close()
            .close();
        out.open(Kind::Document, "$unset")
            .str("b.$[].c", "")
            .close();
    });
    let with = |first: &[u8]| [first, &document].concat();
    let entries = entries().into_iter();
    let entries = entries.map(|(name, entry)| ("mongo_catalog", name.to_owned(), entry));
    let conversations = conversations().into_iter();
    let conversations =
        conversations.map(|(name, messages)| ("mongo_message", name.to_owned(), messages.concat()));
    let documents = vec![
        ("mongo_bson", "all-types".to_owned(), all_types()),
        ("mongo_bson", "nested".to_owned(), document.clone()),
        ("mongo_keystring", "all-types".to_owned(), all_types()),
        ("mongo_keystring", "nested".to_owned(), document.clone()),
        ("mongo_filter", "range".to_owned(), with(&range)),
        ("mongo_filter", "logical".to_owned(), with(&logical)),
        ("mongo_filter", "areas".to_owned(), areas),
        ("mongo_update", "fields".to_owned(), with(&fields)),
        ("mongo_update", "arrays".to_owned(), with(&arrays)),
        (
            "mongo_update",
            "replacement".to_owned(),
            with(&of(|out| {
                out.i32("x", 1);
            })),
        ),
    ];
    let pipelines = pipelines().into_iter().map(|(name, pipeline)| {
        let bytes = [pipeline.as_slice(), &document, &document, &all_types()].concat();
        ("mongo_pipeline", name.to_owned(), bytes)
    });
    let others = documents.into_iter().chain(pipelines);
    conversations.chain(others).chain(entries).collect()
}

/// Entries of the catalog, as a store writes them.
fn entries() -> Vec<(&'static str, Vec<u8>)> {
    let filter = of(|out| {
        out.open(Kind::Document, "a").i32("$gt", 1).close();
    });
    let pipeline = of(|out| {
        out.open(Kind::Document, "0")
            .document("$match", Document(&filter))
            .close();
    });
    let capped = CollectionOptions {
        capped: Some(Bounds {
            size_bytes: 4096,
            documents_max: Some(10),
        }),
        ..CollectionOptions::default()
    };
    let validated = CollectionOptions {
        validator: Some(Validator::new(Document(&filter)).expect("a filter")),
        validation_level: Some(ValidationLevel::Moderate),
        ..CollectionOptions::default()
    };
    let view = CollectionOptions {
        view: Some(View {
            on: "other".to_owned(),
            pipeline,
        }),
        ..CollectionOptions::default()
    };
    let index = NewIndex {
        name: "a_1".to_owned(),
        key: of(|out| {
            out.i32("a", 1);
        }),
        unique: true,
        partial: Some(filter),
        expire_after_seconds: Some(60),
        sparse: false,
        place_options: PlaceOptions::default(),
    };
    let plain = CollectionOptions::default();
    let all = [
        ("plain", plain),
        ("capped", capped),
        ("validated", validated),
        ("view", view),
    ];
    let name = Name::new("d", "c");
    let entry = |(kind, options)| {
        let store = mongo_catalog::open(&Arc::default()).expect("opens");
        store.create_with(&name, options).expect("creates");
        if kind != "view" {
            let built = store.create_indexes(&name, std::slice::from_ref(&index));
            built.expect("builds");
        }
        let entry = store.db().get(mongo_catalog::KEY).expect("reads");
        (kind, entry.expect("an entry").to_vec())
    };
    all.into_iter().map(entry).collect()
}

/// A condition on an area, and a line that lies in it.
fn areas() -> Vec<u8> {
    fn point(out: &mut Builder, at: usize, [east, north]: [f64; 2]) {
        out.open(Kind::Array, at.to_string());
        out.f64("0", east).f64("1", north).close();
    }
    let corners = [
        [179.0, 0.0],
        [-179.0, 0.5],
        [-179.0, 2.0],
        [179.0, 2.0],
        [179.0, 0.0],
    ];
    let filter = of(|out| {
        out.open(Kind::Document, "p")
            .open(Kind::Document, "$geoIntersects")
            .open(Kind::Document, "$geometry")
            .str("type", "Polygon")
            .open(Kind::Array, "coordinates")
            .open(Kind::Array, "0");
        for (at, corner) in corners.into_iter().enumerate() {
            point(out, at, corner);
        }
        out.close().close().close().close().close();
    });
    let document = of(|out| {
        out.open(Kind::Document, "p").str("type", "LineString");
        out.open(Kind::Array, "coordinates");
        point(out, 0, [-179.9, 1.0]);
        point(out, 1, [179.99, 1.25]);
        out.close().close();
    });
    [filter, document].concat()
}

/// A stage of a pipeline, of one operator.
fn stage(out: &mut Builder, at: usize, name: &str, fill: impl FnOnce(&mut Builder)) {
    out.open(Kind::Document, at.to_string());
    out.open(Kind::Document, name);
    fill(out);
    out.close().close();
}

fn pipelines() -> [(&'static str, Vec<u8>); 3] {
    let pipeline = |fill: &dyn Fn(&mut Builder)| {
        of(|out| {
            out.open(Kind::Array, "pipeline");
            fill(out);
            out.close();
        })
    };
    let query = pipeline(&|out| {
        stage(out, 0, "$match", |out| {
            out.open(Kind::Document, "_id").i32("$gte", 0).close();
        });
        stage(out, 1, "$sort", |out| {
            out.i32("a", -1).i32("_id", 1);
        });
        out.open(Kind::Document, "2").i32("$skip", 1).close();
        out.open(Kind::Document, "3").i32("$limit", 1).close();
        stage(out, 4, "$project", |out| {
            out.i32("a", 1).str("x", "$b.c");
        });
    });
    let groups = pipeline(&|out| {
        out.open(Kind::Document, "0").str("$unwind", "$a").close();
        stage(out, 1, "$group", |out| {
            out.str("_id", "$a");
            out.open(Kind::Document, "n").i32("$sum", 1).close();
            out.open(Kind::Document, "all")
                .str("$push", "$$ROOT")
                .close();
        });
        stage(out, 2, "$addFields", |out| {
            out.open(Kind::Document, "s").str("$size", "$all").close();
        });
        out.open(Kind::Document, "3")
            .str("$sortByCount", "$s")
            .close();
    });
    let joins = pipeline(&|out| {
        stage(out, 0, "$lookup", |out| {
            out.str("from", "c").str("localField", "_id");
            out.str("foreignField", "_id").str("as", "same");
        });
        stage(out, 1, "$facet", |out| {
            out.open(Kind::Array, "x").open(Kind::Document, "0");
            out.str("$count", "n").close().close();
        });
        out.open(Kind::Document, "2").str("$unionWith", "c").close();
    });
    [("query", query), ("groups", groups), ("joins", joins)]
}
