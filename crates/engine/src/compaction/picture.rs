//! Versions as pictures, for tests of pickers.
//!
//! A picture has a line a level: `L5 4:a-f=10`, table 4 covers a to f and has 10 bytes (1 without
//! `=`). A `)` after the bounds excludes the last key, `*` marks a table as being compacted, `!` as
//! marked for compaction, `@7` makes it, and its data, at second 7, `@7/9` its data at 7 and it at 9. L0
//! is newest first.

use std::sync::Arc;

use drumlin_base::key::{append_internal, internal_key};
use drumlin_base::limits::LEVELS;
use drumlin_base::{KeyOrder, SEQNO_MAX, ValueKind};

use super::plan::{InFlight, Moment, Plan, Work};
use crate::version::{FileMeta, NewFile, Version};

static NOTHING: InFlight = InFlight {
    running: Vec::new(),
};

/// Nothing is under way.
pub(super) const IDLE: Moment<'static> = Moment {
    in_flight: &NOTHING,
    now: 0,
    oldest_snapshot: SEQNO_MAX,
    is_quiet: true,
    flush_cf: u64::MAX,
    has_space: true,
};

/// `in_flight` is under way.
pub(super) fn moment(in_flight: &InFlight) -> Moment<'_> {
    Moment { in_flight, ..IDLE }
}

/// One table of a picture.
pub(super) fn file(text: &str) -> Arc<FileMeta> {
    let (text, made) = text.split_once('@').unwrap_or((text, "0"));
    let (born, made) = made.split_once('/').unwrap_or((made, made));
    let (number, rest) = text.split_once(':').unwrap();
    let flags: String = rest.chars().filter(|c| "*!)".contains(*c)).collect();
    let rest: String = rest.chars().filter(|c| !"*!)".contains(*c)).collect();
    let (bounds, size) = rest.split_once('=').unwrap_or((&rest, "1"));
    let (first, last) = bounds.split_once('-').unwrap();
    let mut largest = Vec::new();
    if flags.contains(')') {
        let kind = ValueKind::RangeDeletion as u8;
        append_internal(&mut largest, last.as_bytes(), SEQNO_MAX, kind);
    } else {
        largest = internal_key(last.as_bytes(), 1, ValueKind::Value);
    }
    let file = FileMeta::new(NewFile {
        number: number.parse().unwrap(),
        size: size.parse().unwrap(),
        smallest: internal_key(first.as_bytes(), 9, ValueKind::Value),
        largest,
        largest_seqno: 9,
        creation_time: made.parse().unwrap(),
        oldest_ancestor_time: born.parse().unwrap(),
        epoch: number.parse().unwrap(),
        marked_for_compaction: flags.contains('!'),
        ..NewFile::default()
    });
    if flags.contains('*') {
        assert!(file.claim());
    }
    Arc::new(file)
}

/// The version of a picture.
pub(super) fn version(picture: &str) -> Version {
    let mut levels: [Vec<Arc<FileMeta>>; LEVELS] = Default::default();
    for line in picture
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (level, files) = line.split_once(' ').unwrap();
        let level: usize = level.strip_prefix('L').unwrap().parse().unwrap();
        levels[level] = files.split_whitespace().map(file).collect();
    }
    Version::new(&KeyOrder::Bytewise, levels)
}

/// A plan in short.
pub(super) fn show(plan: Option<Plan>) -> String {
    let Some(plan) = plan else {
        return "nothing".to_owned();
    };
    let mut text = format!("L{}>L{}", plan.level, plan.output_level);
    for input in &plan.inputs {
        text.push_str(&format!(" L{}:", input.level));
        let numbers: Vec<_> = input.files.iter().map(|f| f.number.to_string()).collect();
        text.push_str(&numbers.join(","));
    }
    if !plan.grandparents.is_empty() {
        let numbers: Vec<_> = plan
            .grandparents
            .iter()
            .map(|f| f.number.to_string())
            .collect();
        text.push_str(&format!(" over {}", numbers.join(",")));
    }
    match plan.work {
        Work::Rewrite => {}
        Work::Move => text.push_str(" move"),
        Work::Drop => text.push_str(" drop"),
    }
    text
}
