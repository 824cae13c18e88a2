//! The properties block: the facts that a table states about itself.
//!
//! Names and encodings are RocksDB's. Integers are varints, texts are bytes; unknown properties are
//! kept in [`TableProperties::user`] byte for byte. Entries are sorted by name and unique.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::key::{tag_kind, tag_seqno};
use drumlin_base::{Error, Result, SeqNo, ValueKind};

/// Name of the user property that holds the kind of index, four bytes little-endian. RocksDB 11
/// refuses tables without it.
pub const INDEX_TYPE: &str = "rocksdb.block.based.table.index.type";
/// Name of the user property that says `1` when whole keys are in the filter.
pub const WHOLE_KEY_FILTERING: &str = "rocksdb.block.based.table.whole.key.filtering";
/// Name of the user property that says `1` when prefixes are in the filter.
pub const PREFIX_FILTERING: &str = "rocksdb.block.based.table.prefix.filtering";
/// Name of the user property of tables made to be ingested: their version, four bytes.
pub const EXTERNAL_VERSION: &str = "rocksdb.external_sst_file.version";
/// Name of the user property that holds the sequence number every entry of an ingested table
/// takes, eight bytes. It may be patched in place, which breaks the block's checksum.
pub const GLOBAL_SEQNO: &str = "rocksdb.external_sst_file.global_seqno";

/// The kind of index in [`INDEX_TYPE`]. The numbers are on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexType {
    /// One sorted block of separators.
    #[default]
    BinarySearch = 0,
    /// As [`IndexType::BinarySearch`], with hash tables beside it that may be ignored.
    HashSearch = 1,
    /// Partitions, and a top-level index of them.
    TwoLevel = 2,
    /// As [`IndexType::BinarySearch`], each entry followed by its block's first key.
    BinarySearchWithFirstKey = 3,
}

impl IndexType {
    /// The kind stored as `value`.
    ///
    /// # Errors
    /// `NotSupported` for kinds of later RocksDB versions.
    pub fn from_u32(value: u32) -> Result<Self> {
        Ok(match value {
            0 => Self::BinarySearch,
            1 => Self::HashSearch,
            2 => Self::TwoLevel,
            3 => Self::BinarySearchWithFirstKey,
            _ => return Err(Error::not_supported(format!("index of kind {value}"))),
        })
    }
}

/// A sequence-number property of a table that does not tell.
pub const SEQNO_UNKNOWN: u64 = u64::MAX;

/// The properties of one table.
///
/// Sizes are bytes, times seconds since 1970 (0 = unknown). A property that a table lacks is zero,
/// empty or `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableProperties {
    /// The file's number when it was written.
    pub original_file_number: u64,
    /// Data blocks with their trailers.
    pub data_size: u64,
    /// Index blocks, trailers included.
    pub index_size: u64,
    /// Partitions of a two-level index, else 0.
    pub index_partitions: u64,
    /// The top level of a two-level index, else 0.
    pub top_level_index_size: u64,
    /// Whether index keys are user keys instead of internal ones.
    pub index_key_is_user_key: bool,
    /// Whether index values are delta-encoded handles.
    pub index_value_is_delta_encoded: bool,
    /// Filter blocks.
    pub filter_size: u64,
    /// Internal keys, uncompressed. RocksDB builds with asserts abort on tables with entries whose
    /// raw sizes are both zero.
    pub raw_key_size: u64,
    /// Values, uncompressed.
    pub raw_value_size: u64,
    /// Data blocks.
    pub num_data_blocks: u64,
    /// Of those, the ones stored as they are because their codec saved too little.
    pub num_blocks_rejected: u64,
    /// Of those, the ones that were to be stored as they are.
    pub num_blocks_bypassed: u64,
    /// Entries, range tombstones included where [`TableProperties::counts_tombstones`].
    pub num_entries: u64,
    /// Keys and prefixes put into the filter.
    pub num_filter_entries: u64,
    /// Deletions of any kind, range tombstones included as in `num_entries`.
    pub num_deletions: u64,
    /// Merge operands.
    pub num_merge_operands: u64,
    /// Range tombstones.
    pub num_range_deletions: u64,
    /// The `format_version` as stored here: RocksDB writes 0 for every version in the footer.
    pub format_version: u64,
    /// Length of every key in plain tables, else 0.
    pub fixed_key_length: u64,
    /// The column family the table was written for; [`TableProperties::FAMILY_UNKNOWN`] if none.
    pub column_family_id: u64,
    /// Its name.
    pub column_family_name: String,
    /// When the oldest data here was written, or this file if that is not known.
    pub creation_time: u64,
    /// When the oldest key here was written.
    pub oldest_key_time: u64,
    /// When the newest key here was written.
    pub newest_key_time: u64,
    /// When this file was written.
    pub file_creation_time: u64,
    /// Where the blocks after the data blocks begin.
    pub tail_start_offset: u64,
    /// Whether keys hold the timestamps that their comparator asks for (true when not stored).
    pub user_defined_timestamps_persisted: bool,
    /// The highest sequence number here; [`SEQNO_UNKNOWN`] when not stored.
    pub largest_seqno: u64,
    /// The lowest sequence number here; [`SEQNO_UNKNOWN`] when not stored.
    pub smallest_seqno: u64,
    /// Entries between restarts in data blocks, 0 when not stored.
    pub data_block_restart_interval: u64,
    /// Entries between restarts in index blocks, 0 when not stored.
    pub index_block_restart_interval: u64,
    /// Whether data blocks keep keys and values apart (RocksDB 11).
    pub separate_key_value_in_data_block: bool,
    /// Identity of the database that wrote the table.
    pub db_id: String,
    /// Identity of its session.
    pub db_session_id: String,
    /// Its machine.
    pub db_host_id: String,
    /// Name of the filter policy.
    pub filter_policy_name: String,
    /// Name of the key order.
    pub comparator_name: String,
    /// Name of the merge operator, `nullptr` when there was none.
    pub merge_operator_name: String,
    /// Name of the prefix extractor, `nullptr` when there was none.
    pub prefix_extractor_name: String,
    /// Names of property collectors, as a list in brackets.
    pub property_collectors_names: String,
    /// The codec, by RocksDB's name.
    pub compression_name: String,
    /// Its options, as text for people.
    pub compression_options: String,
    /// Every other property, by name.
    pub user: BTreeMap<String, Vec<u8>>,
}

impl Default for TableProperties {
    fn default() -> Self {
        Self {
            original_file_number: 0,
            data_size: 0,
            index_size: 0,
            index_partitions: 0,
            top_level_index_size: 0,
            index_key_is_user_key: false,
            index_value_is_delta_encoded: false,
            filter_size: 0,
            raw_key_size: 0,
            raw_value_size: 0,
            num_data_blocks: 0,
            num_blocks_rejected: 0,
            num_blocks_bypassed: 0,
            num_entries: 0,
            num_filter_entries: 0,
            num_deletions: 0,
            num_merge_operands: 0,
            num_range_deletions: 0,
            format_version: 0,
            fixed_key_length: 0,
            column_family_id: Self::FAMILY_UNKNOWN,
            column_family_name: String::new(),
            creation_time: 0,
            oldest_key_time: 0,
            newest_key_time: 0,
            file_creation_time: 0,
            tail_start_offset: 0,
            user_defined_timestamps_persisted: true,
            largest_seqno: SEQNO_UNKNOWN,
            smallest_seqno: SEQNO_UNKNOWN,
            data_block_restart_interval: 0,
            index_block_restart_interval: 0,
            separate_key_value_in_data_block: false,
            db_id: String::new(),
            db_session_id: String::new(),
            db_host_id: String::new(),
            filter_policy_name: String::new(),
            comparator_name: String::new(),
            merge_operator_name: String::new(),
            prefix_extractor_name: String::new(),
            property_collectors_names: String::new(),
            compression_name: String::new(),
            compression_options: String::new(),
            user: BTreeMap::new(),
        }
    }
}

/// A field that a stored integer lands in.
enum Number<'a> {
    Count(&'a mut u64),
    Flag(&'a mut bool),
}

/// When a property is stored.
#[derive(Clone, Copy)]
enum Presence {
    Always,
    /// Only when it differs from a reader's default.
    Unless(u64),
}

impl TableProperties {
    /// The column family id of tables that belong to none.
    pub const FAMILY_UNKNOWN: u64 = i32::MAX as u64;

    /// Bytes of all keys and values, uncompressed.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_key_size.saturating_add(self.raw_value_size)
    }

    /// Builds the properties from a block's entries, in block order.
    ///
    /// # Errors
    /// `Corruption` when names are not strictly ascending, a name is not UTF-8 or an integer is
    /// damaged; the errors of the iterator.
    pub fn decode<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<Self> {
        let mut properties = Self::default();
        let mut last: Option<K> = None;
        for entry in entries {
            let (name, value) = entry?;
            if last.is_some_and(|last| last.as_ref() >= name.as_ref()) {
                return Err(Error::corruption("table properties are not sorted by name"));
            }
            properties.set(name.as_ref(), value.as_ref())?;
            last = Some(name);
        }
        Ok(properties)
    }

    /// Takes one stored property.
    ///
    /// # Errors
    /// `Corruption` when the name is not UTF-8 or a known integer is damaged.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(Error::corruption("a table property's name is not UTF-8"));
        };
        if let Some(field) = self.number_mut(name) {
            let number = Reader::new(value).varint64().ok_or_else(|| {
                Error::corruption(format!("table property {name} is not an integer"))
            })?;
            match field {
                Number::Count(field) => *field = number,
                Number::Flag(field) => *field = number != 0,
            }
        } else if let Some(field) = self.text_mut(name) {
            *field = String::from_utf8_lossy(value).into_owned();
        } else {
            self.user.insert(name.to_owned(), value.to_vec());
        }
        Ok(())
    }

    /// The entries of the properties block, sorted by name.
    ///
    /// # Panics
    /// In debug builds, when there are entries but both raw sizes are zero: RocksDB's tools abort
    /// on such tables.
    pub fn encode(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        debug_assert!(
            self.num_entries == 0 || self.raw_key_size > 0 || self.raw_value_size > 0,
            "a table with entries tells their raw sizes"
        );
        let mut sorted: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for (name, value) in &self.user {
            sorted.insert(name, value.clone());
        }
        for (name, number, presence) in self.numbers() {
            if !matches!(presence, Presence::Unless(assumed) if assumed == number) {
                let mut value = Vec::new();
                put_varint64(&mut value, number);
                sorted.insert(name, value);
            }
        }
        for (name, text) in self.texts() {
            if !text.is_empty() {
                sorted.insert(name, text.as_bytes().to_vec());
            }
        }
        sorted
            .into_iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value))
            .collect()
    }

    /// Whether the counts are known to include range tombstones. RocksDB 5.0 to 5.14 have no count of
    /// them alone and leave them out of the deletions; 5.18 leaves them out of the entries, too. 6.0
    /// counts them, but only from 6.6 on is its hand seen in the properties: by the file's time, or in
    /// tables made outside of a database by an identity.
    pub fn counts_tombstones(&self) -> bool {
        self.file_creation_time != 0 || !self.db_id.is_empty()
    }

    /// The least and the most entries beside its range tombstones that a table with so many can hold.
    pub fn point_entries(&self, tombstones: u64) -> RangeInclusive<u64> {
        let least = self.num_entries.saturating_sub(tombstones);
        if self.counts_tombstones() {
            least..=least
        } else {
            least..=self.num_entries
        }
    }

    /// Counts an entry that is no range tombstone.
    #[inline]
    pub(crate) fn count_entry(&mut self, key_bytes: usize, value_bytes: usize, tag: u64) {
        self.num_entries += 1;
        self.raw_key_size += key_bytes as u64;
        self.raw_value_size += value_bytes as u64;
        let kind = tag_kind(tag);
        let deletions = [
            ValueKind::Deletion as u8,
            ValueKind::SingleDeletion as u8,
            ValueKind::DeletionWithTimestamp as u8,
        ];
        if deletions.contains(&kind) {
            self.num_deletions += 1;
        } else if kind == ValueKind::Merge as u8 {
            self.num_merge_operands += 1;
        }
        self.count_seqno(tag_seqno(tag));
    }

    /// Counts a range tombstone of an internal key of `key_bytes`.
    pub(crate) fn count_range_tombstone(&mut self, key_bytes: usize, end: &[u8], seqno: SeqNo) {
        self.num_entries += 1;
        self.num_deletions += 1;
        self.num_range_deletions += 1;
        self.raw_key_size += key_bytes as u64;
        self.raw_value_size += end.len() as u64;
        self.count_seqno(seqno);
    }

    /// Takes the sequence number of an entry that was counted into the bounds.
    #[inline]
    fn count_seqno(&mut self, seqno: SeqNo) {
        if self.num_entries == 1 {
            self.smallest_seqno = seqno;
            self.largest_seqno = seqno;
        } else {
            self.smallest_seqno = self.smallest_seqno.min(seqno);
            self.largest_seqno = self.largest_seqno.max(seqno);
        }
    }

    /// The kind of index; [`IndexType::BinarySearch`] when the table does not tell.
    ///
    /// # Errors
    /// `NotSupported` for an unknown kind, `Corruption` when the property is damaged.
    pub fn index_type(&self) -> Result<IndexType> {
        let Some(value) = self.user.get(INDEX_TYPE) else {
            return Ok(IndexType::default());
        };
        match Reader::new(value).fixed32() {
            Some(number) => IndexType::from_u32(number),
            None => Err(Error::corruption("damaged index type property")),
        }
    }

    /// States the kind of index.
    pub fn set_index_type(&mut self, index: IndexType) {
        let value = (index as u32).to_le_bytes().to_vec();
        self.user.insert(INDEX_TYPE.to_owned(), value);
    }

    /// Whether whole keys are in the filter; yes when the table does not tell, as RocksDB assumes.
    pub fn whole_key_filtering(&self) -> bool {
        self.flag(WHOLE_KEY_FILTERING)
    }

    /// Whether prefixes are in the filter; yes when the table does not tell, as RocksDB assumes.
    pub fn prefix_filtering(&self) -> bool {
        self.flag(PREFIX_FILTERING)
    }

    /// States the content of the filter.
    pub fn set_filtering(&mut self, whole_keys: bool, prefixes: bool) {
        for (name, on) in [
            (WHOLE_KEY_FILTERING, whole_keys),
            (PREFIX_FILTERING, prefixes),
        ] {
            let value = if on { b"1" } else { b"0" };
            self.user.insert(name.to_owned(), value.to_vec());
        }
    }

    /// The sequence number that every entry of an ingested table takes; `None` for others and when
    /// it is zero (the entries' own numbers hold).
    pub fn global_seqno(&self) -> Option<u64> {
        let stored = Reader::new(self.user.get(GLOBAL_SEQNO)?).fixed64()?;
        (stored != 0).then_some(stored)
    }

    /// The sequence number that all entries of the table take, when the MANIFEST tells that its largest is
    /// `largest`; `None` when their own hold.
    ///
    /// # Errors
    /// `Corruption` when the two do not agree, or the table cannot have such a number.
    pub(crate) fn seqno_of_all(&self, largest: Option<SeqNo>) -> Result<Option<SeqNo>> {
        let version = self
            .user
            .get(EXTERNAL_VERSION)
            .and_then(|value| value.as_slice().try_into().ok().map(u32::from_le_bytes));
        let stored = self.global_seqno();
        match (version, stored) {
            (None | Some(1), None) => Ok(None),
            (Some(2), stored) => {
                let seqno = stored.or(largest).unwrap_or(0);
                if largest.is_some_and(|largest| largest != seqno) {
                    return Err(Error::corruption(format!(
                        "the table says its entries have sequence number {seqno}, the MANIFEST {largest:?}"
                    )));
                }
                if seqno > drumlin_base::SEQNO_MAX {
                    return Err(Error::corruption(format!(
                        "global sequence number {seqno} is too large"
                    )));
                }
                Ok((seqno != 0).then_some(seqno))
            }
            (version, _) => Err(Error::corruption(format!(
                "a table of external version {version:?} cannot have a global sequence number"
            ))),
        }
    }

    /// Memory the properties hold, about.
    pub fn resident_bytes(&self) -> usize {
        let texts: usize = self.texts().iter().map(|(_, text)| text.len()).sum();
        let user: usize = self
            .user
            .iter()
            .map(|(name, value)| name.len() + value.len() + 48)
            .sum();
        size_of::<Self>() + texts + user
    }

    fn flag(&self, name: &str) -> bool {
        self.user.get(name).is_none_or(|value| value != b"0")
    }

    fn number_mut(&mut self, name: &str) -> Option<Number<'_>> {
        use Number::{Count, Flag};
        Some(match name {
            "rocksdb.original.file.number" => Count(&mut self.original_file_number),
            "rocksdb.data.size" => Count(&mut self.data_size),
            "rocksdb.index.size" => Count(&mut self.index_size),
            "rocksdb.index.partitions" => Count(&mut self.index_partitions),
            "rocksdb.top-level.index.size" => Count(&mut self.top_level_index_size),
            "rocksdb.index.key.is.user.key" => Flag(&mut self.index_key_is_user_key),
            "rocksdb.index.value.is.delta.encoded" => Flag(&mut self.index_value_is_delta_encoded),
            "rocksdb.filter.size" => Count(&mut self.filter_size),
            "rocksdb.raw.key.size" => Count(&mut self.raw_key_size),
            "rocksdb.raw.value.size" => Count(&mut self.raw_value_size),
            "rocksdb.num.data.blocks" => Count(&mut self.num_data_blocks),
            "rocksdb.num.data.blocks.compression.rejected" => Count(&mut self.num_blocks_rejected),
            "rocksdb.num.data.blocks.compression.bypassed" => Count(&mut self.num_blocks_bypassed),
            "rocksdb.num.entries" => Count(&mut self.num_entries),
            "rocksdb.num.filter_entries" => Count(&mut self.num_filter_entries),
            "rocksdb.deleted.keys" => Count(&mut self.num_deletions),
            "rocksdb.merge.operands" => Count(&mut self.num_merge_operands),
            "rocksdb.num.range-deletions" => Count(&mut self.num_range_deletions),
            "rocksdb.format.version" => Count(&mut self.format_version),
            "rocksdb.fixed.key.length" => Count(&mut self.fixed_key_length),
            "rocksdb.column.family.id" => Count(&mut self.column_family_id),
            "rocksdb.creation.time" => Count(&mut self.creation_time),
            "rocksdb.oldest.key.time" => Count(&mut self.oldest_key_time),
            "rocksdb.newest.key.time" => Count(&mut self.newest_key_time),
            "rocksdb.file.creation.time" => Count(&mut self.file_creation_time),
            "rocksdb.tail.start.offset" => Count(&mut self.tail_start_offset),
            "rocksdb.user.defined.timestamps.persisted" => {
                Flag(&mut self.user_defined_timestamps_persisted)
            }
            "rocksdb.key.largest.seqno" => Count(&mut self.largest_seqno),
            "rocksdb.key.smallest.seqno" => Count(&mut self.smallest_seqno),
            "rocksdb.data.block.restart.interval" => Count(&mut self.data_block_restart_interval),
            "rocksdb.index.block.restart.interval" => Count(&mut self.index_block_restart_interval),
            "rocksdb.separate.key.value.in.data.block" => {
                Flag(&mut self.separate_key_value_in_data_block)
            }
            _ => return None,
        })
    }

    /// Every integer property as it is stored.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, u64, Presence)> {
        self.sizes()
            .into_iter()
            .chain(self.counts())
            .chain(self.facts())
    }

    /// Bytes of parts of the table, and how its index and filter are stored.
    fn sizes(&self) -> [(&'static str, u64, Presence); 11] {
        use Presence::{Always, Unless};
        let top_level = self.top_level_index_size;
        let user_keys = u64::from(self.index_key_is_user_key);
        let deltas = u64::from(self.index_value_is_delta_encoded);
        [
            ("rocksdb.data.size", self.data_size, Always),
            ("rocksdb.index.size", self.index_size, Always),
            ("rocksdb.index.partitions", self.index_partitions, Unless(0)),
            ("rocksdb.top-level.index.size", top_level, Unless(0)),
            ("rocksdb.index.key.is.user.key", user_keys, Always),
            ("rocksdb.index.value.is.delta.encoded", deltas, Always),
            ("rocksdb.filter.size", self.filter_size, Always),
            ("rocksdb.raw.key.size", self.raw_key_size, Always),
            ("rocksdb.raw.value.size", self.raw_value_size, Always),
            ("rocksdb.tail.start.offset", self.tail_start_offset, Always),
            ("rocksdb.fixed.key.length", self.fixed_key_length, Always),
        ]
    }

    /// How many blocks and entries there are, and between which sequence numbers.
    fn counts(&self) -> [(&'static str, u64, Presence); 12] {
        use Presence::{Always, Unless};
        let filtered = self.num_filter_entries;
        let (smallest, largest) = (self.smallest_seqno, self.largest_seqno);
        let unknown = Unless(SEQNO_UNKNOWN);
        let data_restarts = self.data_block_restart_interval;
        let index_restarts = self.index_block_restart_interval;
        [
            ("rocksdb.num.data.blocks", self.num_data_blocks, Always),
            (
                "rocksdb.num.data.blocks.compression.rejected",
                self.num_blocks_rejected,
                Unless(0),
            ),
            (
                "rocksdb.num.data.blocks.compression.bypassed",
                self.num_blocks_bypassed,
                Unless(0),
            ),
            ("rocksdb.num.entries", self.num_entries, Always),
            ("rocksdb.num.filter_entries", filtered, Always),
            ("rocksdb.deleted.keys", self.num_deletions, Always),
            ("rocksdb.merge.operands", self.num_merge_operands, Always),
            (
                "rocksdb.num.range-deletions",
                self.num_range_deletions,
                Always,
            ),
            ("rocksdb.key.largest.seqno", largest, unknown),
            ("rocksdb.key.smallest.seqno", smallest, unknown),
            (
                "rocksdb.data.block.restart.interval",
                data_restarts,
                Unless(0),
            ),
            (
                "rocksdb.index.block.restart.interval",
                index_restarts,
                Unless(0),
            ),
        ]
    }

    /// What the table is: its number, family, times and format.
    fn facts(&self) -> [(&'static str, u64, Presence); 9] {
        use Presence::{Always, Unless};
        let timestamps = u64::from(self.user_defined_timestamps_persisted);
        let apart = u64::from(self.separate_key_value_in_data_block);
        let (number, made) = (self.original_file_number, self.file_creation_time);
        [
            ("rocksdb.original.file.number", number, Always),
            ("rocksdb.format.version", self.format_version, Always),
            ("rocksdb.column.family.id", self.column_family_id, Always),
            ("rocksdb.creation.time", self.creation_time, Always),
            ("rocksdb.oldest.key.time", self.oldest_key_time, Always),
            ("rocksdb.newest.key.time", self.newest_key_time, Unless(0)),
            ("rocksdb.file.creation.time", made, Unless(0)),
            (
                "rocksdb.user.defined.timestamps.persisted",
                timestamps,
                Unless(1),
            ),
            ("rocksdb.separate.key.value.in.data.block", apart, Unless(0)),
        ]
    }

    fn text_mut(&mut self, name: &str) -> Option<&mut String> {
        Some(match name {
            "rocksdb.column.family.name" => &mut self.column_family_name,
            "rocksdb.creating.db.identity" => &mut self.db_id,
            "rocksdb.creating.session.identity" => &mut self.db_session_id,
            "rocksdb.creating.host.identity" => &mut self.db_host_id,
            "rocksdb.filter.policy" => &mut self.filter_policy_name,
            "rocksdb.comparator" => &mut self.comparator_name,
            "rocksdb.merge.operator" => &mut self.merge_operator_name,
            "rocksdb.prefix.extractor.name" => &mut self.prefix_extractor_name,
            "rocksdb.property.collectors" => &mut self.property_collectors_names,
            "rocksdb.compression" => &mut self.compression_name,
            "rocksdb.compression_options" => &mut self.compression_options,
            _ => return None,
        })
    }

    fn texts(&self) -> [(&'static str, &str); 11] {
        [
            ("rocksdb.column.family.name", &self.column_family_name),
            ("rocksdb.creating.db.identity", &self.db_id),
            ("rocksdb.creating.session.identity", &self.db_session_id),
            ("rocksdb.creating.host.identity", &self.db_host_id),
            ("rocksdb.filter.policy", &self.filter_policy_name),
            ("rocksdb.comparator", &self.comparator_name),
            ("rocksdb.merge.operator", &self.merge_operator_name),
            ("rocksdb.prefix.extractor.name", &self.prefix_extractor_name),
            (
                "rocksdb.property.collectors",
                &self.property_collectors_names,
            ),
            ("rocksdb.compression", &self.compression_name),
            ("rocksdb.compression_options", &self.compression_options),
        ]
    }
}
