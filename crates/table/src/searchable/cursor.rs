//! A cursor over a searchable table, both ways.
//!
//! It holds the keys of a block decoded together, the page it stands in, and the versions of its key.
//! Not shared between threads; see [`InternalIterator`] for the contract.

use std::cell::OnceCell;
use std::sync::Arc;

use drumlin_base::key::{ValueKind, split_internal, tag_kind, user_key};
use drumlin_base::{Error, InternalIterator, PinnedSlice, Result, ValueCode};
use drumlin_fs::RandomAccessFile;
use drumlin_succinct::KeyWalk;

use super::coded::expansion;
use super::page::row_range;
use super::row::{PLAIN_TAG, Version, Versions};
use super::table::{Page, SearchableTable};
use crate::cache::ReadAhead;
use crate::options::TableReadOptions;

/// Walks a table's entries both ways.
pub struct SearchableTableIter {
    table: Arc<SearchableTable>,
    options: TableReadOptions,
    walk: KeyWalk,
    page: Option<(u32, Page)>,
    /// The versions of the present key, newest first.
    versions: Vec<Version>,
    /// The present one.
    at: usize,
    valid: bool,
    /// The internal key under the cursor.
    key: Vec<u8>,
    /// The value under the cursor, if it is coded.
    decoded: Vec<u8>,
    /// The same in a cursor that decodes only when asked to. Holds `None` where decoding failed.
    decoded_late: OnceCell<Option<Vec<u8>>>,
    /// Whether the table has the model whose codes were asked for.
    gives_codes: bool,
    /// Bytes of a value for each byte of its code, about.
    expansion: f64,
    ahead: ReadAhead,
    error: Option<Error>,
}

impl SearchableTable {
    /// A cursor over the table's entries, not yet positioned.
    pub fn iter(self: &Arc<Self>, options: TableReadOptions) -> SearchableTableIter {
        SearchableTableIter::new(Arc::clone(self), options)
    }
}

impl SearchableTableIter {
    pub(super) fn new(table: Arc<SearchableTable>, options: TableReadOptions) -> Self {
        Self {
            options,
            walk: KeyWalk::default(),
            page: None,
            versions: Vec::new(),
            at: 0,
            valid: false,
            key: Vec::new(),
            decoded: Vec::new(),
            decoded_late: OnceCell::new(),
            gives_codes: options.codes_of.is_some() && options.codes_of == table.shared_model,
            expansion: match options.codes_of {
                Some(_) => expansion(table.properties()),
                None => 1.0,
            },
            ahead: ReadAhead::new(options.readahead_bytes),
            error: None,
            table,
        }
    }

    /// The value under the cursor, pinned in its memory; a copy if it was decoded.
    ///
    /// Requires: the cursor is valid.
    pub fn pin_value(&self) -> PinnedSlice {
        let in_page = || {
            let version = self.versions.get(self.at)?;
            let (_, page) = self.page.as_ref()?;
            if self.table.is_coded(version) {
                None
            } else {
                PinnedSlice::of_shared(page, version.range.clone())
            }
        };
        in_page().unwrap_or_else(|| PinnedSlice::owned(self.value().to_vec()))
    }

    /// User key and tag under the cursor, for callers that need both.
    ///
    /// Requires: the cursor is valid.
    #[inline]
    pub fn parts(&self) -> (&[u8], u64) {
        split_internal(&self.key).expect("the key of a valid cursor has a tag")
    }

    /// Reads ahead from `file`, another handle of the table's file. Other reads use the table's own
    /// handle.
    pub fn read_through(&mut self, file: Arc<dyn RandomAccessFile>) {
        self.ahead.through(file);
    }

    /// The table walked.
    pub fn table(&self) -> &Arc<SearchableTable> {
        &self.table
    }

    /// Forgets where the cursor was and any error.
    fn reset(&mut self) {
        self.error = None;
        self.valid = false;
    }

    /// Goes to the key of `rank`, on no version yet. False at the end, and on an error.
    #[inline]
    fn enter(&mut self, rank: u64) -> bool {
        self.valid = false;
        if rank >= self.table.keys.len() {
            return false;
        }
        match self.load(rank) {
            Ok(()) => true,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }

    fn load(&mut self, rank: u64) -> Result<()> {
        let table = &self.table;
        if !self.walk.go_to(&table.keys, rank) {
            let error = Error::corruption("a block of keys is damaged");
            return Err(error.with_file(&table.path));
        }
        let place = table.locator.find(rank).ok_or_else(|| table.damaged(0))?;
        if self.page.as_ref().is_none_or(|(at, _)| *at != place.page) {
            self.page = None;
            let ahead = Some(&mut self.ahead);
            let page = table.page(place.page, &self.options, ahead)?;
            self.page = Some((place.page, page.into_handle()));
        }
        let (_, page) = self.page.as_ref().expect("the page was put there");
        let row = row_range(page.bytes(), place.row).ok_or_else(|| table.damaged(place.page))?;
        self.versions.clear();
        if !place.versioned {
            self.versions.push(Version {
                tag: table.shown_tag(PLAIN_TAG),
                range: row,
            });
            return Ok(());
        }
        let mut versions = Versions::new(page.bytes(), row);
        self.versions.extend(versions.by_ref().map(|mut version| {
            version.tag = table.shown_tag(version.tag);
            version
        }));
        if versions.is_sound() && !self.versions.is_empty() {
            Ok(())
        } else {
            Err(table.damaged(place.page))
        }
    }

    /// Stands on version `at` of the present key.
    #[inline]
    fn settle(&mut self, at: usize) {
        self.at = at;
        let version = self.versions.get(at).expect("an entered key has versions");
        let (number, page) = self.page.as_ref().expect("an entered key has a page");
        self.key.clear();
        self.key.extend_from_slice(self.walk.key());
        self.key.extend_from_slice(&version.tag.to_le_bytes());
        self.valid = true;
        if self.gives_codes {
            self.decoded_late.take();
        } else if self.table.is_coded(version) {
            self.decoded.clear();
            let decoded = &mut self.decoded;
            let outcome = self.table.decode(page, *number, &version.range, decoded);
            if let Err(error) = outcome {
                self.valid = false;
                self.error = Some(error);
            }
        }
    }

    /// The value of `version` in `page`, from a cursor that gives codes.
    #[cold]
    fn decode_late(&self, number: u32, page: &Page, version: &Version) -> &[u8] {
        let decoded = self.decoded_late.get_or_init(|| {
            let mut out = Vec::new();
            let outcome = self.table.decode(page, number, &version.range, &mut out);
            outcome.ok().map(|()| out)
        });
        decoded.as_deref().unwrap_or_default()
    }

    /// Ends the walk if the value under the cursor could not be decoded; false then.
    #[inline]
    fn check_late(&mut self) -> bool {
        if !matches!(self.decoded_late.get(), Some(None)) {
            return true;
        }
        self.valid = false;
        self.error = Some(
            self.table
                .damaged(self.page.as_ref().map_or(0, |(at, _)| *at)),
        );
        false
    }

    fn enter_first_version(&mut self, rank: u64) {
        if self.enter(rank) {
            self.settle(0);
        }
    }

    fn enter_last_version(&mut self, rank: u64) {
        if self.enter(rank) {
            self.settle(self.versions.len().saturating_sub(1));
        }
    }
}

impl InternalIterator for SearchableTableIter {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) {
        self.reset();
        self.enter_first_version(0);
    }

    fn seek_to_last(&mut self) {
        self.reset();
        if let Some(last) = self.table.keys.len().checked_sub(1) {
            self.enter_last_version(last);
        }
    }

    fn seek(&mut self, target: &[u8]) {
        self.reset();
        let (sought, tag) = split_internal(target).unwrap_or((target, 0));
        let rank = self.table.keys.seek(sought);
        if !self.enter(rank) {
            return;
        }
        if self.walk.key() != sought {
            return self.settle(0);
        }
        // Newer versions have higher tags and come first.
        match self.versions.iter().position(|version| version.tag <= tag) {
            Some(at) => self.settle(at),
            None => self.enter_first_version(rank + 1),
        }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        self.reset();
        let (sought, tag) = split_internal(target).unwrap_or((target, 0));
        let rank = self.table.keys.seek(sought);
        if self.enter(rank) && self.walk.key() == sought {
            let until = self.versions.iter().position(|version| version.tag < tag);
            let until = until.unwrap_or(self.versions.len());
            if let Some(at) = until.checked_sub(1) {
                return self.settle(at);
            }
        }
        if self.error.is_none()
            && let Some(before) = rank.checked_sub(1)
        {
            self.enter_last_version(before);
        }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        if !self.check_late() {
            return;
        }
        if self.at + 1 < self.versions.len() {
            self.settle(self.at + 1)
        } else {
            self.enter_first_version(self.walk.rank() + 1)
        }
    }

    #[inline]
    fn prev(&mut self) {
        debug_assert!(self.valid());
        if !self.check_late() {
            return;
        }
        if let Some(newer) = self.at.checked_sub(1) {
            return self.settle(newer);
        }
        match self.walk.rank().checked_sub(1) {
            Some(before) => self.enter_last_version(before),
            None => self.valid = false,
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let (Some(version), Some((number, page))) = (self.versions.get(self.at), &self.page) else {
            return &[];
        };
        match self.table.is_coded(version) {
            true if self.gives_codes => self.decode_late(*number, page, version),
            true => &self.decoded,
            false => page
                .bytes()
                .get(version.range.clone())
                .expect("a version that was decoded is in its page"),
        }
    }

    #[inline]
    fn code(&self) -> Option<ValueCode<'_>> {
        let version = self.versions.get(self.at).filter(|_| self.gives_codes)?;
        if tag_kind(version.tag) != ValueKind::Value as u8 {
            return None;
        }
        let (_, page) = self.page.as_ref()?;
        let bytes = page.bytes().get(version.range.clone())?;
        Some(ValueCode {
            model: self.table.model.id(),
            bytes,
            value_bytes: bytes.len() as f64 * self.expansion,
            value_bytes_max: self.table.value_bytes_max,
        })
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for SearchableTableIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchableTableIter")
            .field("table", &self.table)
            .field("key", &user_key(&self.key))
            .finish_non_exhaustive()
    }
}
