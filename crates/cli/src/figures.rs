//! stats and explain: the figures of a store, for people, for programs and for Prometheus.

use drumlin::{FamilyMetrics, Metrics, Times};
use serde_json::{Map, Value, json};

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::formats::json::put_bytes;
use crate::output::Output;

/// Prints one property, or everything there is to say.
pub(crate) fn stats(
    place: &Place,
    property: Option<&str>,
    prometheus: bool,
    out: &mut Output,
) -> Outcome {
    let (db, family) = place.open_to_read()?;
    if prometheus {
        return out.text(db.metrics()?.to_prometheus().trim_end());
    }
    if property.is_none() && out.is_json() {
        return out.text(object(&db.metrics()?).to_string());
    }
    let name = property.unwrap_or("rocksdb.stats");
    let Some(text) = db.property(&family, name) else {
        return Err(Failure::NotFound(format!("there is no property '{name}'")));
    };
    let number: Option<u64> = text.parse().ok();
    let value = number.map_or_else(|| json!(text), Value::from);
    out.fact(text.trim_end(), json!({"property": name, "value": value}))
}

/// Prints why a write waits and which tables a read searches.
pub(crate) fn explain(place: &Place, key: Option<&str>, out: &mut Output) -> Outcome {
    let key = key.map(|key| place.bytes(key)).transpose()?;
    let (db, family) = place.open_to_read()?;
    if !out.is_json() {
        return out.text(db.explain(&family, key.as_deref()).trim_end());
    }
    let mut object = object(&db.metrics()?);
    if let Some(key) = &key {
        let order = family.order();
        let holds = |smallest: &[u8], largest: &[u8]| {
            order.compare(smallest, key).is_le() && order.compare(key, largest).is_le()
        };
        let tables = db.live_tables(&family)?.into_iter();
        let tables = tables.filter(|table| holds(&table.smallest, &table.largest));
        let tables = tables.map(|table| json!({"level": table.level, "number": table.number}));
        let mut read = Map::new();
        put_bytes(&mut read, "key", place.form(), key);
        read.insert("tables".to_owned(), tables.collect());
        object["read"] = Value::Object(read);
    }
    out.text(object.to_string())
}

/// The figures as one object: sizes in bytes, times in seconds.
fn object(metrics: &Metrics) -> Value {
    let numbers = |list: &[(&'static str, u64)]| -> Map<String, Value> {
        let members = list.iter();
        members
            .map(|(name, number)| ((*name).to_owned(), (*number).into()))
            .collect()
    };
    let times = metrics.times.iter();
    let times: Map<String, Value> = times
        .map(|(name, times)| ((*name).to_owned(), times_object(times)))
        .collect();
    json!({
        "health": format!("{:?}", metrics.health),
        "slowed": metrics.slowed.map(|(rate, cause)| {
            json!({"bytes_per_second": rate, "cause": cause.name()})
        }),
        "tickers": numbers(&metrics.tickers),
        "times": times,
        "waits": metrics.waits.iter().map(|(cause, count, total)| {
            json!({"cause": cause.name(), "count": count, "seconds": total.as_secs_f64()})
        }).collect::<Vec<_>>(),
        "families": metrics.families.iter().map(family_object).collect::<Vec<_>>(),
        "levels_written": metrics.levels_written.iter().enumerate().map(|(level, work)| {
            json!({
                "level": level, "jobs": work.jobs, "bytes_read": work.bytes_read,
                "bytes_written": work.bytes_written,
            })
        }).collect::<Vec<_>>(),
        "memory": numbers(&metrics.memory),
        "memory_limit": metrics.memory_limit,
        "block_cache_capacity": metrics.block_cache_capacity,
        "jobs": metrics.jobs.iter().map(|job| {
            json!({
                "family": job.family, "what": job.what, "share": job.share, "bytes": job.bytes,
                "seconds": job.took.as_secs_f64(),
            })
        }).collect::<Vec<_>>(),
        "snapshots": metrics.snapshots,
        "trash_bytes": metrics.trash_bytes,
        "disk_free_bytes": metrics.disk_free_bytes,
        "disk_reserve_bytes": metrics.disk_reserve_bytes,
        "newest_seqno": metrics.newest_seqno,
        "durable_seqno": metrics.durable_seqno,
    })
}

fn times_object(times: &Times) -> Value {
    json!({
        "count": times.count(),
        "seconds": times.total().as_secs_f64(),
        "p50": times.quantile(0.5).as_secs_f64(),
        "p99": times.quantile(0.99).as_secs_f64(),
        "p999": times.quantile(0.999).as_secs_f64(),
        "max": times.longest().as_secs_f64(),
    })
}

fn family_object(family: &FamilyMetrics) -> Value {
    let levels = family.levels.iter().enumerate().map(|(number, level)| {
        json!({
            "level": number, "tables": level.tables, "bytes": level.bytes,
            "tables_compacting": level.tables_compacting,
        })
    });
    json!({
        "name": family.name,
        "levels": levels.collect::<Vec<_>>(),
        "active_memtable_bytes": family.active_memtable_bytes,
        "memtable_bytes": family.memtable_bytes,
        "immutable_memtables": family.immutable_memtables,
        "pending_compaction_bytes": family.pending_compaction_bytes,
        "blob_files": family.blob_files,
        "blob_bytes": family.blob_bytes,
        "blob_garbage_bytes": family.blob_garbage_bytes,
    })
}
