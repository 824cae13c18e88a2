//! du and approxsize: what keys take on disk, by the indexes and counts of tables.
//!
//! The first keys of groups are found by seeks: one block is read for each group, and no other. Sizes come from the tables'
//! indexes, entries and the bytes of keys and values from the counts that each table keeps of itself.

use clap::Args;
use drumlin::{ColumnFamily, Db, RangeUsage, ReadOptions};
use drumlin_base::key::after_prefix;
use serde_json::{Value, json};

use crate::args::Place;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::json::put_bytes;
use crate::output::Output;
use crate::progress::Progress;
use crate::units;

/// Groups that are told apart: each costs a seek and a few hundred bytes.
const GROUPS_MAX: usize = 200_000;
/// Stars of the longest line of a histogram.
const STARS: u64 = 40;

#[derive(Debug, Args)]
pub(crate) struct Du {
    /// Only keys that begin so.
    #[arg(long)]
    prefix: Option<String>,
    /// Keys belong together that are the same up to this text, which is in the group's name.
    #[arg(long, value_name = "TEXT", conflicts_with = "length")]
    delimiter: Option<String>,
    /// Keys belong together whose first so many bytes behind --prefix are the same.
    #[arg(long, value_name = "BYTES")]
    length: Option<usize>,
    /// Print so many of the largest groups; the rest is one line.
    #[arg(long, value_name = "N", default_value_t = 30)]
    top: usize,
}

/// Where the name of a group ends.
enum Grouping {
    /// Behind the first of these bytes after the prefix.
    Delimiter(Vec<u8>),
    /// So many bytes after the prefix.
    Length(usize),
}

impl Grouping {
    /// The group of `key`, which begins with `prefix_bytes` bytes of the prefix.
    fn of<'k>(&self, key: &'k [u8], prefix_bytes: usize) -> &'k [u8] {
        let rest = key.get(prefix_bytes..).unwrap_or_default();
        let end = match self {
            Self::Length(length) => rest.len().min(*length),
            Self::Delimiter(delimiter) => rest
                .windows(delimiter.len())
                .position(|window| window == delimiter)
                .map_or(rest.len(), |at| at + delimiter.len()),
        };
        key.get(..prefix_bytes + end).unwrap_or(key)
    }
}

/// Prints what groups of keys take, and how the sizes of keys and values are distributed.
pub(crate) fn du(place: &Place, wanted: &Du, out: &mut Output) -> Outcome {
    let prefix = place.bytes(wanted.prefix.as_deref().unwrap_or(""))?;
    let grouping = grouping(place, wanted)?;
    let (db, family) = place.open_to_read()?;
    if family.order().name() != "leveldb.BytewiseComparator" {
        return Err(Failure::Usage(format!(
            "the keys of family '{}' are in the order '{}', in which those of a prefix are not one range",
            family.name(),
            family.order().name()
        )));
    }
    let groups = groups(&db, &family, &prefix, &grouping)?;
    let ranges: Vec<(&[u8], &[u8])> = groups
        .iter()
        .map(|group| (group.first.as_slice(), group.end.as_slice()))
        .collect();
    let mut usage: Vec<_> = groups
        .iter()
        .zip(db.approximate_usage(&family, &ranges)?)
        .collect();
    usage.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.bytes));
    show_groups(place.form(), &usage, wanted.top, out)?;
    show_histograms(&db, &family, out)
}

fn grouping(place: &Place, wanted: &Du) -> Outcome<Grouping> {
    match (&wanted.delimiter, wanted.length) {
        (Some(delimiter), _) => {
            let bytes = place.bytes(delimiter)?;
            match bytes.is_empty() {
                true => Err(Failure::Usage(
                    "--delimiter needs a byte at least".to_owned(),
                )),
                false => Ok(Grouping::Delimiter(bytes)),
            }
        }
        (None, length) => Ok(Grouping::Length(length.unwrap_or(0))),
    }
}

/// Keys that belong together: those from `first` to before `end`.
struct Group {
    name: Vec<u8>,
    first: Vec<u8>,
    end: Vec<u8>,
}

/// Every group that has a key, in order.
fn groups(
    db: &Db,
    family: &ColumnFamily,
    prefix: &[u8],
    grouping: &Grouping,
) -> Outcome<Vec<Group>> {
    let options = ReadOptions {
        lower_bound: Some(prefix.to_vec()),
        upper_bound: after_prefix(prefix),
        fill_cache: false,
        ..ReadOptions::default()
    };
    let past_all = last_key_of(db, family)?;
    let mut progress = Progress::new("counting", None);
    let mut entries = db.iter_cf(family, options);
    let mut groups = Vec::new();
    entries.seek_to_first();
    while entries.valid() {
        if groups.len() == GROUPS_MAX {
            return Err(Failure::Usage(format!(
                "there are more than {GROUPS_MAX} groups; name a longer --prefix, or a shorter --length"
            )));
        }
        let name = grouping.of(entries.key(), prefix.len()).to_vec();
        progress.advance(name.len() as u64);
        let next = after_prefix(&name);
        groups.push(Group {
            first: entries.key().to_vec(),
            end: next.clone().unwrap_or_else(|| past_all.clone()),
            name,
        });
        match next {
            Some(next) => entries.seek(&next),
            None => break,
        }
    }
    entries.status()?;
    progress.finish();
    Ok(groups)
}

/// A key after every key of the family.
fn last_key_of(db: &Db, family: &ColumnFamily) -> Outcome<Vec<u8>> {
    let tables = db.live_tables(family)?;
    let mut last = tables.into_iter().map(|table| table.largest).max();
    let mut entries = db.iter_cf(family, ReadOptions::default());
    entries.seek_to_last();
    if entries.valid() {
        last = last.max(Some(entries.key().to_vec()));
    }
    entries.status()?;
    let mut last = last.unwrap_or_default();
    last.push(0);
    Ok(last)
}

fn show_groups(
    form: Form,
    usage: &[(&Group, RangeUsage)],
    top: usize,
    out: &mut Output,
) -> Outcome {
    out.remark_of_text(
        "      size     entries   keys (mean)  values (mean)  keys that begin with",
    )?;
    for (group, usage) in usage.iter().take(top) {
        let mut object = usage_object(usage);
        if let Value::Object(members) = &mut object {
            put_bytes(members, "prefix", form, &group.name);
        }
        out.fact(
            usage_line(usage, &format!("'{}'", form.show(&group.name))),
            object,
        )?;
    }
    let rest = usage.get(top.min(usage.len())..).unwrap_or_default();
    let mut sum = RangeUsage::default();
    for (_, usage) in rest {
        sum.bytes += usage.bytes;
        sum.entries += usage.entries;
        sum.key_bytes += usage.key_bytes;
        sum.value_bytes += usage.value_bytes;
    }
    if rest.is_empty() {
        return Ok(());
    }
    let mut object = usage_object(&sum);
    object["other_prefixes"] = rest.len().into();
    out.fact(
        usage_line(&sum, &format!("{} others", units::count(rest.len() as u64))),
        object,
    )
}

fn mean(bytes: u64, entries: u64) -> u64 {
    bytes.checked_div(entries).unwrap_or(0)
}

fn usage_line(usage: &RangeUsage, name: &str) -> String {
    format!(
        "{:>10} {:>11} {:>13} {:>14}  {name}",
        units::bytes(usage.bytes),
        units::count(usage.entries),
        units::bytes(mean(usage.key_bytes, usage.entries)),
        units::bytes(mean(usage.value_bytes, usage.entries)),
    )
}

fn usage_object(usage: &RangeUsage) -> Value {
    json!({
        "bytes": usage.bytes, "entries": usage.entries, "key_bytes": usage.key_bytes,
        "value_bytes": usage.value_bytes,
    })
}

/// Sizes of keys and of values over the tables: every table counts with all its entries at its mean.
fn show_histograms(db: &Db, family: &ColumnFamily, out: &mut Output) -> Outcome {
    let (mut keys, mut values) = (Histogram::default(), Histogram::default());
    db.count_tables(family)?;
    for table in db.live_tables(family)? {
        let (Some(entries), Some(key_bytes), Some(value_bytes)) =
            (table.entries, table.key_bytes, table.value_bytes)
        else {
            continue;
        };
        keys.add(mean(key_bytes, entries), entries);
        values.add(mean(value_bytes, entries), entries);
    }
    keys.show("keys", out)?;
    values.show("values", out)
}

/// Entries by the bytes of their key or value, a line for each doubling.
#[derive(Debug, Default)]
struct Histogram {
    buckets: std::collections::BTreeMap<u32, u64>,
}

impl Histogram {
    fn add(&mut self, bytes: u64, entries: u64) {
        *self.buckets.entry(bytes.max(1).ilog2()).or_default() += entries;
    }

    fn show(&self, what: &str, out: &mut Output) -> Outcome {
        let most = self.buckets.values().copied().max().unwrap_or(0).max(1);
        out.remark_of_text(format!("sizes of {what} (bytes, tables at their mean):"))?;
        for (doubling, entries) in &self.buckets {
            let from = 1u64 << doubling;
            let stars = "*".repeat(usize::try_from(entries * STARS / most).unwrap_or(0));
            let text = format!(
                "{from:>12} .. {:<12} {:>12} {stars}",
                from * 2 - 1,
                units::count(*entries)
            );
            let json =
                json!({"sizes_of": what, "from": from, "to": from * 2 - 1, "entries": entries});
            out.fact(text.trim_end(), json)?;
        }
        Ok(())
    }
}

/// Prints about how many bytes the keys from `from` to before `to` take.
pub(crate) fn approxsize(
    place: &Place,
    from: Option<&str>,
    to: Option<&str>,
    out: &mut Output,
) -> Outcome {
    let bound = |text: Option<&str>| text.map(|text| place.bytes(text)).transpose();
    let (from, to) = (bound(from)?.unwrap_or_default(), bound(to)?);
    let (db, family) = place.open_to_read()?;
    let to = match to {
        Some(to) => to,
        None => last_key_of(&db, &family)?,
    };
    let sizes = db.approximate_sizes(&family, &[(from.as_slice(), to.as_slice())])?;
    out.count("bytes", sizes.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_behind_its_delimiter_or_after_its_length() {
        let colon = Grouping::Delimiter(b":".to_vec());
        assert_eq!(colon.of(b"user:1:name", 0), b"user:");
        assert_eq!(colon.of(b"user:1:name", 5), b"user:1:");
        assert_eq!(colon.of(b"plain", 0), b"plain");
        assert_eq!(Grouping::Length(2).of(b"abcd", 1), b"abc");
        assert_eq!(Grouping::Length(9).of(b"abcd", 1), b"abcd");
        assert_eq!(Grouping::Length(0).of(b"abcd", 0), b"");
    }
}
