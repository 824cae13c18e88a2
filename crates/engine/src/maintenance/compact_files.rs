//! A compaction of tables that a user names: RocksDB's `CompactFiles`.

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_table::{Codec, Compression};

use crate::background::compaction_job::{Orders, begin};
use crate::compaction::chosen::{self, Chosen};
use crate::compaction::{CancelToken, CompactionStyle};
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::watch::events::{CompactionInfo, Health};

/// How [`Db::compact_files`] goes about it.
#[derive(Clone, Debug, Default)]
pub struct CompactFilesOptions {
    /// Bytes at which a table ends, 1 KiB or more; `None`: as the family's settings say.
    pub file_bytes: Option<u64>,
    /// What tables are compressed with; `None`: as the family's settings say.
    pub compression: Option<Codec>,
    /// The most threads that write; `None`: as many as the background has.
    pub threads_max: Option<usize>,
    /// Whether tables may go to the output level as they are, where nothing is there.
    pub may_move: bool,
    /// Ends it.
    pub cancel: Option<CancelToken>,
}

impl Db {
    /// Compacts `tables` of `family`, by the numbers in their names ([`Db::live_tables`]), into `output_level`, on the calling
    /// thread. More tables are taken along where their keys must not be passed: of L0 all older ones, of the levels
    /// between and of the output level those in the same stretch of keys. Memtables are not flushed. Waits while
    /// the background is paused.
    ///
    /// # Errors
    /// `InvalidArgument` of tables that are not there or of a deeper level, of a level that is not there, and of a family of
    /// another database; `Aborted` where a running compaction has one of the tables or writes into that stretch (a later try
    /// may succeed), or when it was cancelled: nothing has changed then; `NotSupported` of a family with the FIFO style and of
    /// a codec that is not built in; `Io`, `Corruption`, `NoSpace`; `ReadOnly`, `Shutdown`.
    pub fn compact_files(
        &self,
        family: &ColumnFamily,
        tables: &[u64],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        store.check_own(&family.0)?;
        store.check_writable()?;
        if let Some(codec) = options.compression {
            codec.check_built()?;
            if store.id.leveldb && !matches!(codec, Codec::None | Codec::Snappy) {
                let message =
                    "a directory in LevelDB's format has tables with Snappy or without compression";
                return Err(Error::not_supported(message));
            }
        }
        if options
            .cancel
            .as_ref()
            .is_some_and(CancelToken::is_cancelled)
        {
            return Err(Error::new(
                ErrorKind::Aborted,
                "the compaction was cancelled",
            ));
        }
        let id = family.id();
        let plan = {
            let mut state = self
                .engine
                .background
                .wait_until(|state| state.pauses == 0)?;
            if store.health() == Health::Poisoned {
                return Err(store.refusal(&state));
            }
            let found = state.family_mut(id)?;
            let settings = found.family.settings();
            if matches!(settings.style, CompactionStyle::Fifo(_)) {
                let message = "tables of the FIFO style stay as they are until they are dropped";
                return Err(Error::not_supported(message));
            }
            let chosen = Chosen {
                tables,
                output_level,
                may_move: options.may_move,
            };
            let plan = chosen::plan(
                &found.version,
                &settings.compaction,
                &found.in_flight,
                &chosen,
            )?;
            if !begin(found, &plan) {
                let message = "another compaction has one of the tables";
                return Err(Error::new(ErrorKind::Aborted, message));
            }
            state.compactions_running += 1;
            plan
        };
        let orders = Orders {
            watcher: None,
            file_bytes: options.file_bytes,
            compression: options.compression.map(Compression::new),
            threads_max: options.threads_max,
            is_told: true,
        };
        let cancel = options.cancel.clone();
        let done = self
            .engine
            .background
            .run_chosen(id, &plan, orders, cancel)?;
        done.ok_or_else(|| Error::invalid_argument(format!("column family {id} was dropped")))
    }
}
