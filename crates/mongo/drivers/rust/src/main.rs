//! MongoDB's driver for Rust as applications use it.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::io::{AsyncReadExt, AsyncWriteExt};
use futures_util::stream::{StreamExt, TryStreamExt};
use mongodb::bson::{Binary, Bson, DateTime, Decimal128, Document, Regex, Timestamp, doc, oid::ObjectId, spec::BinarySubtype};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{IndexOptions, ReturnDocument, WriteConcern};
use mongodb::{Client, Collection, Database, IndexModel};

type Outcome = Result<(), Error>;

fn code(error: &Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(write)) => Some(write.code),
        ErrorKind::InsertMany(many) => many.write_errors.as_ref()?.first().map(|write| write.code),
        ErrorKind::Command(command) => Some(command.code),
        _ => None,
    }
}

fn collection(db: &Database, name: &str) -> Collection<Document> {
    db.collection(name)
}

fn uri() -> String {
    std::env::var("MONGO_URI").expect("MONGO_URI")
}

async fn single_writes(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "single");
    let id = c.insert_one(doc! { "a": 1, "b": { "c": ["x"] } }).await?.inserted_id;
    assert_eq!(c.find_one(doc! { "_id": &id }).await?, Some(doc! { "_id": id, "a": 1, "b": { "c": ["x"] } }));
    let updated = c.update_one(doc! { "a": 1 }, doc! { "$inc": { "a": 1 }, "$push": { "b.c": "y" } }).await?;
    assert_eq!((updated.matched_count, updated.modified_count), (1, 1));
    let upserted = c.update_one(doc! { "_id": "new" }, doc! { "$set": { "a": 5 } }).upsert(true).await?;
    assert_eq!(upserted.upserted_id, Some(Bson::from("new")));
    assert_eq!(c.replace_one(doc! { "_id": "new" }, doc! { "z": 1 }).await?.modified_count, 1);
    let projected = c.find_one(doc! { "b.c": "y" }).projection(doc! { "_id": 0, "a": 1 }).await?;
    assert_eq!(projected, Some(doc! { "a": 2 }));
    assert_eq!(c.delete_many(doc! {}).await?.deleted_count, 2);
    assert_eq!(c.count_documents(doc! {}).await?, 0);
    Ok(())
}

async fn cursors(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "many");
    let all = (0..10_000).map(|n| doc! { "_id": n, "n": n, "text": "x".repeat(n as usize % 100) });
    assert_eq!(c.insert_many(all).await?.inserted_ids.len(), 10_000);
    let mut found = c.find(doc! { "n": { "$gte": 5000 } }).batch_size(333).await?;
    let mut sum = 0;
    while let Some(each) = found.next().await {
        sum += each?.get_i32("n").expect("n");
    }
    assert_eq!(sum, (5000 + 9999) * 5000 / 2);
    let top: Vec<Document> = c.find(doc! {}).sort(doc! { "n": -1 }).skip(10).limit(2).await?.try_collect().await?;
    assert_eq!(top.iter().map(|x| x.get_i32("n").expect("n")).collect::<Vec<_>>(), [9989, 9988]);
    let few = c.find(doc! {}).batch_size(2).await?;
    drop(few);
    let values = c.distinct("n", doc! { "n": { "$lt": 3 } }).await?;
    assert_eq!(values, [Bson::Int32(0), Bson::Int32(1), Bson::Int32(2)]);
    assert_eq!(c.estimated_document_count().await?, 10_000);
    Ok(())
}

async fn duplicates(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "dups");
    c.insert_one(doc! { "_id": 1 }).await?;
    assert_eq!(code(&c.insert_one(doc! { "_id": 1 }).await.unwrap_err()), Some(11000));
    let three = [doc! { "_id": 2 }, doc! { "_id": 1 }, doc! { "_id": 3 }];
    assert_eq!(code(&c.insert_many(three).ordered(false).await.unwrap_err()), Some(11000));
    assert_eq!(c.count_documents(doc! {}).await?, 3);
    Ok(())
}

async fn indexes(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "indexed");
    c.insert_many((0..100).map(|n| doc! { "mail": format!("m{n}"), "a": n % 10, "b": n })).await?;
    let unique = IndexOptions::builder().unique(true).build();
    let mail = IndexModel::builder().keys(doc! { "mail": 1 }).options(unique).build();
    assert_eq!(c.create_index(mail).await?.index_name, "mail_1");
    c.create_index(IndexModel::builder().keys(doc! { "a": 1, "b": -1 }).build()).await?;
    let names: BTreeSet<String> = c.list_index_names().await?.into_iter().collect();
    assert_eq!(names, ["_id_", "a_1_b_-1", "mail_1"].map(String::from).into());
    assert_eq!(code(&c.insert_one(doc! { "mail": "m5" }).await.unwrap_err()), Some(11000));
    let top = c.find(doc! { "a": 3 }).sort(doc! { "b": -1 }).limit(2);
    let top: Vec<Document> = top.hint(mongodb::options::Hint::Name("a_1_b_-1".into())).await?.try_collect().await?;
    assert_eq!(top.iter().map(|x| x.get_i32("b").expect("b")).collect::<Vec<_>>(), [93, 83]);
    c.drop_index("mail_1").await?;
    c.insert_one(doc! { "mail": "m5" }).await?;
    Ok(())
}

async fn pipelines(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "sales");
    c.insert_many([("a", 1), ("b", 2), ("a", 3), ("c", 4)].map(|(k, n)| doc! { "k": k, "n": n })).await?;
    let stages = [
        doc! { "$match": { "n": { "$lt": 4 } } },
        doc! { "$group": { "_id": "$k", "total": { "$sum": "$n" }, "all": { "$push": "$n" } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let groups: Vec<Document> = c.aggregate(stages).await?.try_collect().await?;
    assert_eq!(groups, [doc! { "_id": "a", "total": 4, "all": [1, 3] }, doc! { "_id": "b", "total": 2, "all": [2] }]);
    Ok(())
}

async fn find_and_modify(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "counters");
    for n in 1..3 {
        let next = c.find_one_and_update(doc! { "_id": "seq" }, doc! { "$inc": { "n": 1 } });
        let next = next.upsert(true).return_document(ReturnDocument::After).await?;
        assert_eq!(next, Some(doc! { "_id": "seq", "n": n }));
    }
    assert_eq!(c.find_one_and_delete(doc! { "_id": "seq" }).await?, Some(doc! { "_id": "seq", "n": 2 }));
    assert_eq!(c.find_one_and_replace(doc! { "_id": "none" }, doc! { "a": 1 }).await?, None);
    Ok(())
}

async fn types(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "types");
    let decimal: Decimal128 = "1.2345678901234567890123456789".parse().expect("a decimal");
    let all = doc! {
        "_id": ObjectId::new(),
        "string": "häß\0lich",
        "double": 1.5,
        "int": 7,
        "long": 9_007_199_254_740_993_i64,
        "decimal": decimal,
        "date": DateTime::from_millis(1_700_000_000_123),
        "binary": Binary { subtype: BinarySubtype::UserDefined(128), bytes: vec![1, 2, 3] },
        "regex": Regex { pattern: "^a".into(), options: "i".into() },
        "stamp": Timestamp { time: 5, increment: 6 },
        "min": Bson::MinKey,
        "max": Bson::MaxKey,
        "none": Bson::Null,
        "yes": true,
        "code": Bson::JavaScriptCode("f()".into()),
        "symbol": Bson::Symbol("s".into()),
        "deep": [[], {}, [1, { "a": [] }]],
    };
    c.insert_one(&all).await?;
    assert_eq!(c.find_one(doc! { "_id": all.get("_id") }).await?, Some(all));
    assert_eq!(c.count_documents(doc! { "decimal": { "$type": "decimal" } }).await?, 1);
    Ok(())
}

async fn workers(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "counter");
    c.insert_one(doc! { "_id": 1, "n": 0 }).await?;
    let all = (0..8).map(|_| {
        let c = c.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                c.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).await?;
            }
            Ok::<_, Error>(())
        })
    });
    for worker in all.collect::<Vec<_>>() {
        worker.await.expect("a worker ends")?;
    }
    assert_eq!(c.find_one(doc! {}).await?, Some(doc! { "_id": 1, "n": 1600 }));
    Ok(())
}

async fn compressed(_: Client, _: Database) -> Outcome {
    let other = Client::with_uri_str(uri() + "?compressors=zlib").await?;
    let c = collection(&other.database("rust"), "compressed");
    c.insert_many((0..1000).map(|n| doc! { "n": n, "text": "again and again ".repeat(20) })).await?;
    let all: Vec<Document> = c.find(doc! {}).await?.try_collect().await?;
    assert_eq!(all.len(), 1000);
    Ok(())
}

async fn sessions(client: Client, db: Database) -> Outcome {
    let c = collection(&db, "sessions");
    let mut session = client.start_session().await?;
    let durable = WriteConcern::builder().w(mongodb::options::Acknowledgment::Majority).journal(true).build();
    c.insert_one(doc! { "a": 1 }).write_concern(durable).session(&mut session).await?;
    assert_eq!(c.count_documents(doc! {}).session(&mut session).await?, 1);
    Ok(())
}

async fn gridfs(_: Client, db: Database) -> Outcome {
    let bucket = db.gridfs_bucket(None);
    let data = b"drumlin ".repeat(87_500);
    let mut up = bucket.open_upload_stream("a.bin").await?;
    up.write_all(&data).await?;
    up.close().await?;
    let mut back = Vec::new();
    bucket.open_download_stream(up.id().clone()).await?.read_to_end(&mut back).await?;
    assert!(back == data);
    bucket.delete(up.id().clone()).await
}

async fn refusals(client: Client, db: Database) -> Outcome {
    let c = collection(&db, "refused");
    c.insert_one(doc! { "a": 1 }).await?;
    let said = c.find(doc! { "$where": "this.a" }).await.unwrap_err().to_string();
    assert!(said.contains("$where"), "{said}");
    let said = c.aggregate([doc! { "$geoNear": {} }]).await.unwrap_err().to_string();
    assert!(said.contains("$geoNear"), "{said}");
    let said = c.watch().await.unwrap_err().to_string();
    assert!(said.to_lowercase().contains("changestream"), "{said}");
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    assert_eq!(code(&c.insert_one(doc! { "a": 2 }).session(&mut session).await.unwrap_err()), Some(20));
    assert_eq!(code(&db.run_command(doc! { "nonsense": 1 }).await.unwrap_err()), Some(59));
    assert_eq!(c.count_documents(doc! {}).await?, 1);
    Ok(())
}

async fn catalog(client: Client, db: Database) -> Outcome {
    db.create_collection("made").await?;
    assert!(db.list_collection_names().await?.contains(&"made".to_string()));
    collection(&db, "made").drop().await?;
    assert!(!db.list_collection_names().await?.contains(&"made".to_string()));
    assert!(client.list_database_names().await?.contains(&"rust".to_string()));
    Ok(())
}

async fn a_killed_server(_: Client, db: Database) -> Outcome {
    let c = collection(&db, "killed");
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (c, stop) = (c.clone(), Arc::clone(&stop));
        async move {
            let mut acknowledged = Vec::new();
            for n in 0_i32.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if c.insert_one(doc! { "_id": n }).await.is_ok() {
                    acknowledged.push(n);
                }
            }
            acknowledged
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let restart = std::env::var("RESTART_SERVER").expect("RESTART_SERVER");
    assert!(tokio::process::Command::new(restart).status().await?.success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.await.expect("the writer ends");
    let found: Vec<Document> = c.find(doc! {}).await?.try_collect().await?;
    let found: BTreeSet<i32> = found.iter().map(|x| x.get_i32("_id").expect("_id")).collect();
    assert!(acknowledged.len() > 10);
    assert!(acknowledged.iter().all(|n| found.contains(n)));
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let client = Client::with_uri_str(uri()).await?;
    let db = client.database("rust");
    let (mut passed, mut failed) = (0, 0);
    macro_rules! check {
        ($($name:ident),* $(,)?) => {$(
            match tokio::spawn($name(client.clone(), db.clone())).await {
                Ok(Ok(())) => {
                    passed += 1;
                    println!("ok {}", stringify!($name));
                }
                problem => {
                    failed += 1;
                    println!("FAILED {} {problem:?}", stringify!($name));
                }
            }
        )*};
    }
    check!(
        single_writes, cursors, duplicates, indexes, pipelines, find_and_modify, types, workers, compressed, sessions, gridfs, refusals,
        catalog, a_killed_server,
    );
    println!("{passed} passed, {failed} failed");
    std::process::exit(i32::from(failed > 0))
}
