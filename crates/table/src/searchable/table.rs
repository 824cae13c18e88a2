//! An open searchable table: lookups, and the start of cursors.
//!
//! A lookup finds the key's rank in the key index and its page in the locator, both in memory; takes
//! the page from its slot, or reads it; and decodes the one row. A key that is not there costs no page.
//!
//! Thread safety: immutable after open but for the cache slots, which are atomic. Dropping the last
//! handle releases the table's charges and its cached pages.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::bytes::{Draft, SharedBytes, SlabPlace, prefetch};
use drumlin_base::key::{ValueKind, pack_tag, tag_kind, tag_seqno, user_key};
use drumlin_base::perf::{Measure, count, timed};
use drumlin_base::{
    Error, ErrorKind, KeyOrder, MemoryBudget, MemoryUse, PinnedSlice, PrefixExtractor,
    RangeTombstone, Result, SEQNO_MAX, SeqNo,
};
use drumlin_fs::RandomAccessFile;
use drumlin_succinct::{KeyIndex, Model};

use super::format::{PAGE_BYTES, Section};
use super::locator::{Locator, RowPlace, RowSpan};
use super::page::{is_sound, row_range, stored_bytes};
use super::row::{PLAIN_TAG, Version, Versions};
use crate::cache::ReadAhead;
use crate::cache::{BlockCache, Cached, Fetched, SlotArray};
use crate::format::TableProperties;
use crate::options::{ReadTier, TableReadOptions};

/// Cache lines of a row that are prefetched.
const ROW_LINES: usize = 2;
/// Lines of a page that are prefetched: they tell where its rows are.
pub(crate) const PAGE_HEADER_LINES: usize = 4;

/// A page as it is on disk. Cheap to clone.
pub(crate) type Page = SharedBytes<PageMeta>;

/// Nothing is kept beside a page's bytes.
#[derive(Debug)]
pub(crate) struct PageMeta;

impl Cached for Page {
    fn charge(&self) -> usize {
        self.memory_bytes()
    }

    fn place(&self) -> Option<SlabPlace> {
        Self::place(self)
    }
}

/// An open searchable table. See the module for cost and thread safety.
pub struct SearchableTable {
    pub(crate) file: Arc<dyn RandomAccessFile>,
    pub(super) path: PathBuf,
    pub(super) order: KeyOrder,
    pub(super) keys: KeyIndex,
    pub(super) locator: Locator,
    pub(super) model: Arc<Model>,
    /// The model's id, if it is in a file of its own.
    pub(super) shared_model: Option<u64>,
    /// How many rows a page has on average, at least 1.
    pub(super) rows_of_a_page: usize,
    /// Codes are the values themselves, which need no copy.
    pub(super) values_are_raw: bool,
    /// Length of the longest value.
    pub(super) value_bytes_max: usize,
    pub(crate) slots: Arc<SlotArray<Page>>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) budget: Arc<MemoryBudget>,
    pub(super) prefix: Option<Arc<dyn PrefixExtractor>>,
    pub(super) properties: TableProperties,
    pub(super) range_tombstones: Vec<RangeTombstone>,
    /// The sequence number of every entry, in an ingested table.
    pub(super) global_seqno: Option<SeqNo>,
    pub(super) extents: Vec<Section>,
    /// Where pages and extents end.
    pub(super) tail_start: u64,
    pub(super) resident_bytes: usize,
    pub(super) size: u64,
}

/// A value that was looked up.
#[derive(Debug)]
pub struct SearchableValue<'a>(ValueSource<'a>);

/// The reason why a value is in its page.
const IN_PAGE: &str = "a version that was decoded is in its page";
/// The reason why a value is among those that were decoded with it.
const AMONG_OTHERS: &str = "a value ends where the next one begins";

#[derive(Debug)]
enum ValueSource<'a> {
    /// Where it is in its page.
    InPage(&'a Page, Range<usize>),
    /// Decoded from there.
    Decoded(&'a mut Vec<u8>),
    /// Decoded beside others.
    Shared(&'a Arc<Vec<u8>>, Range<usize>),
}

impl<'a> SearchableValue<'a> {
    /// The `range` of `page`.
    #[inline]
    pub(super) fn in_page(page: &'a Page, range: Range<usize>) -> Self {
        debug_assert!(range.end <= page.bytes().len());
        Self(ValueSource::InPage(page, range))
    }

    /// All of `bytes`; pinning takes them.
    #[inline]
    pub(super) fn decoded(bytes: &'a mut Vec<u8>) -> Self {
        Self(ValueSource::Decoded(bytes))
    }

    /// The `range` of `bytes`, which other values share.
    #[inline]
    pub(super) fn shared(bytes: &'a Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self(ValueSource::Shared(bytes, range))
    }
}

impl SearchableValue<'_> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            ValueSource::InPage(page, range) => page.bytes().get(range.clone()).expect(IN_PAGE),
            ValueSource::Decoded(bytes) => bytes,
            ValueSource::Shared(bytes, range) => bytes.get(range.clone()).expect(AMONG_OTHERS),
        }
    }

    /// The bytes, pinned in their memory. Few bytes are copied instead; a decoded value is moved.
    #[inline]
    pub fn pin(self) -> PinnedSlice {
        match self.0 {
            ValueSource::InPage(page, range) => PinnedSlice::of_shared(page, range).expect(IN_PAGE),
            ValueSource::Decoded(bytes) => PinnedSlice::owned(std::mem::take(bytes)),
            ValueSource::Shared(bytes, range) => {
                PinnedSlice::of_vector(bytes, range).expect(AMONG_OTHERS)
            }
        }
    }
}

impl SearchableTable {
    /// Visits the versions of `user_key` with a sequence number of at most `seqno`, newest first,
    /// until `visit` breaks. Range tombstones are not consulted.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `Incomplete` when only the cache may be read and does not suffice.
    pub fn get(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        visit: impl FnMut(SeqNo, ValueKind, SearchableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match self.find(user_key) {
            Some(place) => self.get_row(place, None, seqno, options, visit),
            None => Ok(()),
        }
    }

    /// As [`SearchableTable::get`], of the key whose row is at `place`, and there at `span` if that is known.
    #[inline]
    pub(crate) fn get_row(
        &self,
        place: RowPlace,
        span: Option<RowSpan>,
        seqno: SeqNo,
        options: &TableReadOptions,
        mut visit: impl FnMut(SeqNo, ValueKind, SearchableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let page = self.page(place.page, options, None)?;
        let page = page.get();
        let row = match span {
            // The page may have been read again since, and be damaged now.
            Some(span) if span.range().end > page.bytes().len() => {
                return Err(self.damaged(place.page));
            }
            Some(span) => span.range(),
            None => {
                self.prefetch_about(page, place.row);
                row_range(page.bytes(), place.row).ok_or_else(|| self.damaged(place.page))?
            }
        };
        let mut decoded = Vec::new();
        if !place.versioned {
            let plain = Version {
                tag: self.shown_tag(PLAIN_TAG),
                range: row,
            };
            let found = tag_seqno(plain.tag);
            if found <= seqno {
                let value = self.value(page, place.page, &plain, &mut decoded)?;
                let _ = visit(found, ValueKind::Value, value); // There is no further version.
            }
            return Ok(());
        }
        let mut versions = Versions::new(page.bytes(), row);
        for mut version in versions.by_ref() {
            version.tag = self.shown_tag(version.tag);
            if tag_seqno(version.tag) > seqno {
                continue;
            }
            let kind = ValueKind::from_byte(tag_kind(version.tag))
                .map_err(|error| error.with_file(&self.path))?;
            let value = self.value(page, place.page, &version, &mut decoded)?;
            if visit(tag_seqno(version.tag), kind, value).is_break() {
                return Ok(());
            }
        }
        if versions.is_sound() {
            Ok(())
        } else {
            Err(self.damaged(place.page))
        }
    }

    /// The tag that an entry stored with `tag` shows.
    #[inline]
    pub(super) fn shown_tag(&self, tag: u64) -> u64 {
        match self.global_seqno {
            None => tag,
            Some(global) => pack_tag(global.min(SEQNO_MAX), tag_kind(tag)),
        }
    }

    /// The block of keys that `user_key` would be in, for [`SearchableTable::find_in`]. Prefetches the memory
    /// that will be read there.
    #[inline]
    pub(crate) fn find_block(&self, user_key: &[u8]) -> Option<usize> {
        let block = self.keys.block_of(user_key)?;
        self.locator.prefetch(block);
        Some(block)
    }

    /// Where the row of `user_key` is, whose block is known.
    #[inline]
    pub(crate) fn find_in(&self, block: usize, user_key: &[u8]) -> Option<RowPlace> {
        self.locator.find(self.keys.get_in(block, user_key)?)
    }

    /// Prefetches the row at `place`, if its page is cached, and gives where in the page it is.
    pub(crate) fn prefetch_row(&self, place: RowPlace) -> Option<RowSpan> {
        let page = self.slots.peek(place.page as usize)?;
        let range = row_range(page.bytes(), place.row)?;
        let row = page.bytes().get(range.clone())?;
        prefetch(row.as_ptr(), ROW_LINES);
        RowSpan::of(&range)
    }

    /// Prefetches the bytes that the code in the row at `span` refers to, if its page is cached and the row is a
    /// code.
    pub(crate) fn prefetch_value(&self, place: RowPlace, span: RowSpan) {
        if !place.versioned
            && !self.values_are_raw
            && let Some(page) = self.slots.peek(place.page as usize)
            && let Some(code) = page.bytes().get(span.range())
        {
            self.model.prefetch(code);
        }
    }

    /// Prefetches the place where row `row` would be in `page` if all rows of the table had one length. So the wait
    /// for it overlaps with that for the head of the page, which has its true place.
    #[inline]
    fn prefetch_about(&self, page: &Page, row: usize) {
        let about = row * PAGE_BYTES / self.rows_of_a_page;
        if let Some(row) = page.bytes().get(about..) {
            prefetch(row.as_ptr(), ROW_LINES);
        }
    }

    /// Where the row of `user_key` is.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8]) -> Option<RowPlace> {
        let block = self.find_block(user_key)?;
        // Most rows of a block are in its first page, so the page's head is loaded beside the keys.
        if let Some(page) = self.locator.first_page(block) {
            self.slots.prefetch(page as usize, 1);
        }
        self.find_in(block, user_key)
    }

    /// The value of `version` in page `at`; decoded into `decoded` if it is coded.
    #[inline]
    fn value<'a>(
        &self,
        page: &'a Page,
        at: u32,
        version: &Version,
        decoded: &'a mut Vec<u8>,
    ) -> Result<SearchableValue<'a>> {
        if self.is_coded(version) {
            decoded.clear();
            self.decode(page, at, &version.range, decoded)?;
            return Ok(SearchableValue::decoded(decoded));
        }
        Ok(SearchableValue::in_page(page, version.range.clone()))
    }

    /// Whether the bytes of `version` are a code under the model.
    #[inline]
    pub(super) fn is_coded(&self, version: &Version) -> bool {
        !self.values_are_raw && tag_kind(version.tag) == ValueKind::Value as u8
    }

    /// Appends the value whose code is at `code` of page `at`.
    #[inline]
    pub(super) fn decode(
        &self,
        page: &Page,
        at: u32,
        code: &Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let code = page.bytes().get(code.clone()).expect(IN_PAGE);
        self.model
            .decode_within(code, self.value_bytes_max, out)
            .map_err(|error| self.locate(error, at))
    }

    /// Page `at`, from its slot or the file.
    ///
    /// # Errors
    /// `Corruption`, `Io`, `Incomplete`.
    #[inline]
    pub(super) fn page(
        &self,
        at: u32,
        options: &TableReadOptions,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Fetched<'_, Page>> {
        match self.slots.get(at as usize) {
            Some(guard) => Ok(Fetched::InSlot(guard)),
            None => self.load_page(at, options, ahead).map(Fetched::Owned),
        }
    }

    #[inline(never)]
    fn load_page(
        &self,
        at: u32,
        options: &TableReadOptions,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Page> {
        self.cache.count_miss();
        let offset = self.page_offset(at).ok_or_else(|| self.damaged(at))?;
        let admitted = match options.tier {
            ReadTier::Disk => true,
            ReadTier::PageCache => self.file.is_in_page_cache(offset, PAGE_BYTES as u64),
            ReadTier::BlockCache => false,
        };
        if !admitted {
            let error = Error::new(ErrorKind::Incomplete, "the page is not in memory");
            return Err(error.with_file(&self.path));
        }
        let room = |len| {
            if options.fill_cache {
                self.cache.draft(len, 0)
            } else {
                Draft::try_on_heap(len, 0)
            }
        };
        let mut draft = room(PAGE_BYTES)?;
        if let Some(ahead) = ahead
            && let Some(stored) = ahead.bytes(&*self.file, offset, PAGE_BYTES, self.tail_start)?
            && stored.len() == PAGE_BYTES
        {
            draft.bytes_mut().copy_from_slice(stored);
        } else {
            self.read(offset, draft.bytes_mut())?;
        }
        let len = stored_bytes(draft.bytes());
        if len > PAGE_BYTES {
            let left = self.tail_start - offset;
            if len as u64 > left {
                return Err(self.damaged(at));
            }
            draft = room(len)?;
            self.read(offset, draft.bytes_mut())?;
        }
        if options.verify_checksums && !is_sound(draft.bytes()) {
            // A second time, should the damage have been on the way.
            self.read(offset, draft.bytes_mut())?;
            if stored_bytes(draft.bytes()) != len || !is_sound(draft.bytes()) {
                return Err(self.damaged(at));
            }
        }
        let page = draft.share(PageMeta);
        Ok(if options.fill_cache {
            self.slots.fill(at as usize, page)
        } else {
            page
        })
    }

    /// Whether page `at` is not cached.
    #[inline]
    pub(crate) fn lacks(&self, at: u32) -> bool {
        self.slots.is_empty(at as usize)
    }

    /// Room for a page.
    ///
    /// # Errors
    /// `Io` when the system gives no memory.
    pub(crate) fn page_draft(&self, options: &TableReadOptions) -> Result<Draft<PageMeta>> {
        if options.fill_cache {
            self.cache.draft(PAGE_BYTES, 0)
        } else {
            Draft::try_on_heap(PAGE_BYTES, 0)
        }
    }

    /// Caches page `at`, which was read to `draft`; not if it is damaged, or the first of several.
    pub(crate) fn keep_page(&self, at: u32, draft: Draft<PageMeta>, options: &TableReadOptions) {
        let is_whole = stored_bytes(draft.bytes()) == PAGE_BYTES;
        if is_whole && (!options.verify_checksums || is_sound(draft.bytes())) {
            self.cache.count_miss();
            self.slots.fill(at as usize, draft.share(PageMeta));
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let read = timed(Measure::BlockReadNanos, || self.file.read_at(offset, into))?;
        count(Measure::BlockReads, 1);
        count(Measure::BlockReadBytes, into.len() as u64);
        if read < into.len() {
            let error = Error::corruption("the file ends inside a page");
            return Err(error.with_file(&self.path).with_offset(offset));
        }
        Ok(())
    }

    /// The offset of page `at` in the file, which has a whole page there.
    pub(crate) fn page_offset(&self, at: u32) -> Option<u64> {
        let offset = u64::from(self.locator.block_of(at)?) * PAGE_BYTES as u64;
        (offset + PAGE_BYTES as u64 <= self.tail_start).then_some(offset)
    }

    /// Different user keys.
    pub(crate) fn user_keys(&self) -> u64 {
        self.keys.len()
    }

    /// Whether `user_key` is in the table.
    pub fn may_contain(&self, user_key: &[u8]) -> bool {
        self.keys.get(user_key).is_some()
    }

    /// Whether a key with `key`'s prefix may be in the table. True without an extractor, or when `key`
    /// has no prefix.
    pub fn may_contain_prefix(&self, key: &[u8]) -> bool {
        let prefix = self.prefix.as_ref().and_then(|by| by.prefix(key));
        let Some(prefix) = prefix.filter(|prefix| key.starts_with(prefix)) else {
            return true;
        };
        let mut first = Vec::new();
        self.keys.key(self.keys.seek(prefix), &mut first) && first.starts_with(prefix)
    }

    /// Every range tombstone in the table, as stored: by begin ascending, then newest first.
    #[inline]
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// The table's properties.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// About where in the file the entries at or after `internal_key` begin.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        let rank = self.keys.seek(user_key(internal_key));
        let place = self.locator.find(rank);
        let offset = place.and_then(|place| self.page_offset(place.page));
        offset.unwrap_or(self.tail_start)
    }

    /// At most `count_max` user keys that cut the table's keys into parts of one size, ascending.
    pub fn key_samples(&self, count_max: usize) -> Vec<Vec<u8>> {
        let step = self.keys.len().div_ceil(count_max as u64 + 1).max(1);
        let cuts = (1..=count_max as u64).map(|cut| cut * step);
        cuts.take_while(|&rank| rank < self.keys.len())
            .map(|rank| {
                let mut key = Vec::new();
                self.keys.key(rank, &mut key);
                key
            })
            .collect()
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Memory that keys, locator, a model of its own, properties and range tombstones take while the table is
    /// open, charged to the budget as `TableMeta`.
    pub fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// The id of the table's model, if it is in a file of its own.
    pub fn shared_model(&self) -> Option<u64> {
        self.shared_model
    }

    /// The order of the table's keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    #[cold]
    pub(super) fn damaged(&self, page: u32) -> Error {
        self.locate(Error::corruption("a page of rows is damaged"), page)
    }

    #[cold]
    pub(super) fn locate(&self, error: Error, page: u32) -> Error {
        let error = error.with_file(&self.path);
        match self.page_offset(page) {
            Some(offset) => error.with_offset(offset),
            None => error,
        }
    }
}

impl Drop for SearchableTable {
    fn drop(&mut self) {
        self.budget
            .release(MemoryUse::TableMeta, self.resident_bytes);
    }
}

impl std::fmt::Debug for SearchableTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchableTable")
            .field("path", &self.path)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
