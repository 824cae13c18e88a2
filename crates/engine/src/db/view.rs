//! One moment of the whole database, for reads of several keys and families.

use std::fmt;
use std::sync::Arc;

use drumlin_base::{Error, PinnedSlice, Result, SeqNo};

use crate::db::engine::Engine;
use crate::db::handle::{Db, FamilySource};
use crate::family::column_family::{ColumnFamily, Family};
use crate::family::moment::Moment;
use crate::family::super_version::{SuperVersion, SuperVersions};
use crate::options::settings::ReadOptions;
use crate::read::{self, DbIterator, ReadView, RefreshSource};

/// All families as they were when [`Db::view`] was called: every read of a view is as of one sequence number.
///
/// Taking one takes no lock: it costs a few loads and two counted references, the first after a flush, a compaction
/// or a change of families one for each family. Unlike a [`crate::Snapshot`] it holds back no compaction; it keeps
/// the memory and files that it may read instead, so it is for a command or a request, not for hours. It goes on
/// reading after its families are dropped or the database is closed. Any number of threads may read it at once. In a
/// forked child its reads are refused.
#[derive(Clone)]
pub struct View {
    engine: Arc<Engine>,
    moment: Arc<Moment<SuperVersions>>,
    seqno: SeqNo,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({})", self.seqno)
    }
}

impl Db {
    /// The present moment of all families.
    pub fn view(&self) -> View {
        let store = &self.engine.store;
        let moments = &store.caches.moments;
        loop {
            let moment = moments.load(|| {
                let _settled = store.settled();
                store.super_versions()
            });
            let seqno = store.visible_seqno();
            // Else the number may count entries of a memtable that the moment does not have.
            if moments.is_present(&moment) {
                return View {
                    engine: Arc::clone(&self.engine),
                    moment,
                    seqno,
                };
            }
        }
    }
}

impl View {
    /// The newest sequence number that the view shows.
    pub fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// The value of `key`, as [`Db::get_cf`] gives it. A family that came later than the view is empty in it.
    ///
    /// # Errors
    /// As [`Db::get_cf`]; `InvalidArgument` where `options` have a snapshot.
    pub fn get_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedSlice>> {
        let Some(read) = self.read(&family.0, options)? else {
            return Ok(None);
        };
        let mut answer = Ok(None);
        read::get_to(read, key.as_ref(), || options.for_tables(), &mut answer);
        answer
    }

    /// The values of `keys`, in their order.
    ///
    /// # Errors
    /// Of each key, as of [`View::get_cf`].
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        match self.read(&family.0, options) {
            Ok(Some(read)) => read::multi_get(read, keys, &options.for_tables()),
            Ok(None) => keys.iter().map(|_| Ok(None)).collect(),
            Err(error) => keys.iter().map(|_| Err(error.duplicate())).collect(),
        }
    }

    /// A cursor over the family. [`DbIterator::refresh`] moves it to the present.
    ///
    /// Where a get would be refused, its status is that error.
    pub fn iter_cf(&self, family: &ColumnFamily, options: &ReadOptions) -> DbIterator {
        let Family { reads, .. } = &*family.0;
        self.engine.store.watch.statistics.iterators.bump();
        let walked = options.for_iterators();
        let source =
            || Arc::new(FamilySource::new(&self.engine, &family.0)) as Arc<dyn RefreshSource>;
        let empty = || SuperVersion::empty(family.0.options.order.clone());
        match self.super_version(&family.0, options) {
            Ok(Some(super_version)) => {
                DbIterator::over_present(reads, super_version, self.seqno, None, walked, source)
            }
            Ok(None) => DbIterator::new(Arc::clone(reads), empty(), self.seqno, walked)
                .with_source(source()),
            Err(error) => DbIterator::refused(reads, empty(), walked, error),
        }
    }

    /// `None` for a family that the view does not have.
    fn read<'a>(
        &'a self,
        family: &'a Family,
        options: &ReadOptions,
    ) -> Result<Option<ReadView<'a>>> {
        let seqno = match drumlin_base::bug!("views-read-the-present") {
            true => self.engine.store.visible_seqno(),
            false => self.seqno,
        };
        let super_version = self.super_version(family, options)?;
        Ok(super_version.map(|super_version| ReadView {
            super_version,
            context: &family.reads,
            seqno,
        }))
    }

    fn super_version(
        &self,
        family: &Family,
        options: &ReadOptions,
    ) -> Result<Option<&Arc<SuperVersion>>> {
        let store = &self.engine.store;
        store.id.process.check()?;
        store.check_own(family)?;
        if options.snapshot.is_some() {
            let message = "a view is read as of its own moment, not of a snapshot";
            return Err(Error::invalid_argument(message));
        }
        let all = &self.moment.of;
        let found = all.binary_search_by_key(&family.id, |(id, _)| *id);
        Ok(found.ok().map(|index| &all[index].1))
    }
}
