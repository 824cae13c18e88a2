//! A compaction style as text in RocksDB's OPTIONS file.
//!
//! Settings a style does not use are not written, and RocksDB settings that no style here uses are
//! skipped on reading.

use drumlin_base::limits::LEVELS;

use super::style::{CompactionStyle, FifoOptions, UniversalOptions};
use crate::options::file::Section;

const STYLE: &str = "compaction_style";
const UNIVERSAL: &str = "compaction_options_universal";
const RUNS: &str = "level0_file_num_compaction_trigger";
const LEVELS_MAX: &str = "num_levels";
/// Whether the deepest level sets the sizes of the others.
pub const DYNAMIC: &str = "level_compaction_dynamic_level_bytes";
const FIFO: &str = "compaction_options_fifo";
const TTL: &str = "ttl";
/// RocksDB's value where no one set a time.
const TTL_UNSET: u64 = u64::MAX - 1;

/// Puts `style` into a family's `section`, where that does not name one yet. The manual style writes
/// nothing: tables stay in the shape that some other style gave them, so the section keeps that style.
///
/// `levels` are those that leveled compaction uses, with L0: RocksDB refuses a table below those it has.
pub fn write(style: &CompactionStyle, levels: usize, section: &mut Section) {
    if let CompactionStyle::Auto | CompactionStyle::Leveled = style {
        let told = section.number(LEVELS_MAX).unwrap_or(LEVELS as i64);
        if told.min(LEVELS as i64) != levels as i64 {
            section.set(LEVELS_MAX, levels.to_string());
        }
    }
    if read(section).as_ref() == Some(style) {
        return;
    }
    match style {
        CompactionStyle::Auto | CompactionStyle::Leveled => {
            section.set(STYLE, "kCompactionStyleLevel");
            // Another program's way to size its levels is left as it is.
            if section.get(DYNAMIC).is_none() {
                section.set(DYNAMIC, "true");
            }
        }
        CompactionStyle::Universal(limits) => {
            section.set(STYLE, "kCompactionStyleUniversal");
            let widest = u32::try_from(limits.merge_width_max).unwrap_or(u32::MAX);
            let text = format!(
                "{{size_ratio={};min_merge_width={};max_merge_width={widest};\
                 max_size_amplification_percent={};}}",
                limits.size_ratio_percent, limits.merge_width_min, limits.space_percent_max,
            );
            section.set(UNIVERSAL, text);
            section.set(RUNS, limits.runs_trigger.to_string());
            section.set(LEVELS_MAX, limits.levels_max.to_string());
        }
        CompactionStyle::Fifo(limits) => {
            section.set(STYLE, "kCompactionStyleFIFO");
            let text = format!(
                "{{max_table_files_size={};allow_compaction={};}}",
                limits.table_bytes_max, limits.merge_small,
            );
            section.set(FIFO, text);
            section.set(TTL, limits.ttl_seconds.unwrap_or(0).to_string());
        }
        CompactionStyle::Manual => {}
    }
}

/// The levels that a family's section allows, with L0; `None` where it has no sensible value. As
/// RocksDB, leveled compaction has two at least.
pub fn levels(section: &Section) -> Option<usize> {
    let told = usize::try_from(section.number(LEVELS_MAX)?).ok()?;
    (told > 0).then(|| told.clamp(2, LEVELS))
}

/// The style that a family's section names; `None` when it names no known one.
pub fn read(section: &Section) -> Option<CompactionStyle> {
    let style = match section.get(STYLE)? {
        "kCompactionStyleLevel" => CompactionStyle::Leveled,
        "kCompactionStyleUniversal" => {
            let mut limits = universal(section.get(UNIVERSAL).unwrap_or(""));
            set(&mut limits.runs_trigger, section.get(RUNS).unwrap_or(""));
            set(
                &mut limits.levels_max,
                section.get(LEVELS_MAX).unwrap_or(""),
            );
            limits.levels_max = limits.levels_max.min(LEVELS);
            CompactionStyle::Universal(limits)
        }
        "kCompactionStyleFIFO" => {
            let ttl = section.get(TTL).and_then(|ttl| ttl.parse().ok());
            CompactionStyle::Fifo(fifo(section.get(FIFO).unwrap_or(""), ttl))
        }
        "kCompactionStyleNone" => CompactionStyle::Manual,
        _ => return None,
    };
    style.validate().is_ok().then_some(style)
}

fn universal(text: &str) -> UniversalOptions {
    let mut limits = UniversalOptions::default();
    for (key, value) in fields(text) {
        set_universal(&mut limits, key, value);
    }
    limits
}

/// Sets the limit that RocksDB calls `key`, if there is one here.
pub(crate) fn set_universal(limits: &mut UniversalOptions, key: &str, value: &str) {
    match key {
        "size_ratio" => set(&mut limits.size_ratio_percent, value),
        "min_merge_width" => set(&mut limits.merge_width_min, value),
        "max_merge_width" => {
            set(&mut limits.merge_width_max, value);
            if limits.merge_width_max >= u32::MAX as usize {
                limits.merge_width_max = usize::MAX;
            }
        }
        "max_size_amplification_percent" => set(&mut limits.space_percent_max, value),
        _ => {}
    }
}

fn fifo(text: &str, ttl: Option<u64>) -> FifoOptions {
    let mut limits = FifoOptions {
        ttl_seconds: ttl.filter(|&ttl| ttl > 0 && ttl < TTL_UNSET),
        ..FifoOptions::default()
    };
    for (key, value) in fields(text) {
        set_fifo(&mut limits, key, value);
    }
    limits
}

/// Sets the limit that RocksDB calls `key`, if there is one here.
pub(crate) fn set_fifo(limits: &mut FifoOptions, key: &str, value: &str) {
    match key {
        "max_table_files_size" => set(&mut limits.table_bytes_max, value),
        "allow_compaction" => limits.merge_small = value == "true",
        _ => {}
    }
}

/// Takes `value` over if it is a number of that kind.
fn set<T: std::str::FromStr>(field: &mut T, value: &str) {
    if let Ok(number) = value.parse() {
        *field = number;
    }
}

/// Keys and values of `{key=value;key=value;}`. A nested group keeps the walk from going on.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    inner.split(';').filter_map(|field| {
        let (key, value) = field.split_once('=')?;
        Some((key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let styles = [
            CompactionStyle::Leveled,
            CompactionStyle::Universal(UniversalOptions::default()),
            CompactionStyle::Universal(UniversalOptions {
                runs_trigger: 5,
                size_ratio_percent: 10,
                merge_width_min: 3,
                merge_width_max: 9,
                space_percent_max: 50,
                levels_max: 1,
            }),
            CompactionStyle::Fifo(FifoOptions::default()),
            CompactionStyle::Fifo(FifoOptions {
                table_bytes_max: 77,
                ttl_seconds: Some(60),
                merge_small: true,
            }),
        ];
        for style in styles {
            let mut section = Section::default();
            write(&style, LEVELS, &mut section);
            assert_eq!(read(&section), Some(style));
            let mut kept = section.clone();
            write(&CompactionStyle::Manual, LEVELS, &mut kept);
            let kept = read(&kept);
            assert_eq!(kept, Some(style), "the shape of the tables is kept");
        }
    }

    #[test]
    fn what_rocksdb_writes_is_read_and_what_makes_no_sense_is_passed_over() {
        let mut section = Section::default();
        assert_eq!(read(&section), None);
        section.set(STYLE, "kCompactionStyleUniversal");
        section.set(
            UNIVERSAL,
            "{incremental=false;compression_size_percent=-1;allow_trivial_move=false;\
             max_size_amplification_percent=150;max_merge_width=4294967295;\
             stop_style=kCompactionStopStyleTotalSize;min_merge_width=2;size_ratio=5;}",
        );
        section.set(RUNS, "4");
        section.set(LEVELS_MAX, "40");
        let wanted = UniversalOptions {
            runs_trigger: 4,
            size_ratio_percent: 5,
            space_percent_max: 150,
            ..UniversalOptions::default()
        };
        assert_eq!(read(&section), Some(CompactionStyle::Universal(wanted)));
        section.set(UNIVERSAL, "{min_merge_width=1;}");
        assert_eq!(read(&section), None);
        section.set(STYLE, "kCompactionStyleFIFO");
        section.set(
            FIFO,
            "{age_for_warm=0;allow_compaction=true;max_table_files_size=4096;}",
        );
        section.set(TTL, u64::MAX.to_string());
        let wanted = FifoOptions {
            table_bytes_max: 4096,
            ttl_seconds: None,
            merge_small: true,
        };
        assert_eq!(read(&section), Some(CompactionStyle::Fifo(wanted)));
        section.set(STYLE, "kCompactionStyleOfTheFuture");
        assert_eq!(read(&section), None);
    }
}
