//! The settings of a family that may change while the store runs: by name, see `options/by_name.rs`.

use drumlin_base::limits::LEVELS;
use drumlin_table::{Codec, Compression};

use crate::compaction::{CompactionOptions, CompactionStyle};
use crate::family::ttl;
use crate::options::file::Section;
use crate::options::settings::{DirectoryFormat, FamilyOptions, Options, Tuning};

/// Tables are not rewritten more often than this for values whose time is up.
const TTL_AGE_SECONDS_MIN: u64 = 60;

/// See the module. Nothing in it changes: another one takes its place.
#[derive(Clone, Debug)]
pub(crate) struct FamilySettings {
    pub(crate) tuning: Tuning,
    pub(crate) compression: Compression,
    /// The style, whether or not compactions run by themselves.
    pub(crate) style: CompactionStyle,
    /// The sizes and triggers that follow from all of this.
    pub(crate) compaction: CompactionOptions,
    /// Whether the user has a compaction filter.
    has_filter: bool,
    /// Seconds that values live, 0 for ever.
    pub(crate) ttl_seconds: u64,
    /// What was set by name, for the family's section of the OPTIONS file.
    pub(crate) named: Section,
    /// The same for the section of its table factory.
    pub(crate) named_table: Section,
}

impl FamilySettings {
    /// The settings that a family is opened with, under `budget` bytes.
    pub(crate) fn new(options: &FamilyOptions, database: &Options, budget: usize) -> Self {
        let tuning = options
            .tuning
            .clone()
            .unwrap_or_else(|| database.tuning.clone());
        let style = options
            .compaction_style
            .unwrap_or(database.compaction_style);
        let mut settings = Self {
            tuning,
            compression: options.compression.unwrap_or(database.compression),
            style,
            compaction: CompactionOptions {
                // LevelDB takes the table of L0 with the higher number for the newer one.
                merges_within_l0: database.format != DirectoryFormat::LevelDb,
                levels: options.levels_max.unwrap_or(LEVELS).clamp(2, LEVELS),
                ..CompactionOptions::new(options.order.without_timestamps())
            },
            has_filter: options.compaction_filter.is_some(),
            ttl_seconds: options.ttl.map_or(0, ttl::whole_seconds),
            named: match drumlin_base::bug!("recorded-options-untold") {
                true => Section::default(),
                false => Section::of(&options.recorded),
            },
            named_table: Section::default(),
        };
        settings.derive(budget);
        settings
    }

    /// Brings up to date what follows from the other settings.
    pub(crate) fn derive(&mut self, budget: usize) {
        let (tuning, compression) = (&self.tuning, self.compression);
        let compaction = &mut self.compaction;
        compaction.style = match tuning.automatic_compactions {
            true => self.style,
            false => CompactionStyle::Manual,
        };
        compaction.l0_trigger = tuning.l0_trigger;
        compaction.level_base_bytes = tuning.level_base(budget);
        compaction.level_multiplier = tuning.level_multiplier;
        compaction.dynamic_levels = tuning.dynamic_levels;
        compaction.target_file_bytes = tuning.target_file_bytes;
        // What lives only so long is looked for as often, so that its space comes back.
        let ttl = (self.ttl_seconds > 0).then_some((self.ttl_seconds + 1).max(TTL_AGE_SECONDS_MIN));
        compaction.age_max_seconds = ttl.into_iter().chain(tuning.age_max_seconds).min();
        compaction.filters = self.has_filter || ttl.is_some();
        compaction.level_forms =
            std::array::from_fn(|level| level_compression(compression, level).codec as u8);
    }
}

/// The compression of `level`'s tables: data in L0 and L1 is rewritten soon, so a slow codec is
/// not worth its time there.
pub(crate) fn level_compression(chosen: Compression, level: usize) -> Compression {
    match chosen.codec {
        Codec::None | Codec::Snappy | Codec::Lz4 => chosen,
        _ if level < 2 - usize::from(drumlin_base::bug!("slow-codec-in-l1")) => {
            Compression::new(Codec::Lz4)
        }
        _ => chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_codecs_are_for_what_stays() {
        let zstd = Compression::new(Codec::Zstd);
        let chosen: Vec<_> = (0..4)
            .map(|level| level_compression(zstd, level).codec)
            .collect();
        assert_eq!(chosen, [Codec::Lz4, Codec::Lz4, Codec::Zstd, Codec::Zstd]);
        assert_eq!(
            level_compression(Compression::new(Codec::None), 0).codec,
            Codec::None
        );
    }
}
