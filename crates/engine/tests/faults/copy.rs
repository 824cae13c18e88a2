//! A copy of a database that is built from its changes alone, and its comparison with the original.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    ChangeBatch, ChangeEntry, ColumnFamily, Db, Env, FamilyOptions, Options, ReadOptions, Result,
    SeqNo, StringAppend, WriteBatch, WriteOptions,
};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

/// The rows of a family.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) db: Db,
    /// The copy's families by the original's ids.
    families: BTreeMap<u32, ColumnFamily>,
    /// Where it goes on.
    pub(crate) position: SeqNo,
    /// What programs put into their batches for the log.
    pub(crate) log_data: Vec<Vec<u8>>,
    files: StrictMemFileSystem,
}

/// Options of the families on both sides.
pub(crate) fn family_options() -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(StringAppend::new(","))),
        ..FamilyOptions::default()
    }
}

impl Copy {
    /// Of an empty database, whose changes begin at 1.
    pub(crate) fn new() -> Self {
        let files = StrictMemFileSystem::new();
        let options = Options {
            env: Env::system().with_files(Arc::new(files.clone())),
            background_threads: Some(0),
            memory_budget: Some(8 << 20),
            family: family_options(),
            ..Options::default()
        };
        let db = Db::open("/copy", options).expect("a database in memory");
        let families = BTreeMap::from([(0, db.default_family().clone())]);
        Self {
            db,
            families,
            position: 1,
            log_data: Vec::new(),
            files,
        }
    }

    /// Applies a batch of the original, whose files are in `files`. Its numbers follow those before.
    pub(crate) fn apply(&mut self, batch: &ChangeBatch, files: &dyn FileSystem) -> Result<()> {
        assert_eq!(batch.seqno(), self.position, "no gap, and nothing twice");
        let mut writes = WriteBatch::new();
        let mut taken = 0;
        for entry in batch.entries() {
            taken += 1;
            let entry = entry?;
            match entry {
                ChangeEntry::FamilyCreated { family, name, .. } => {
                    let made = self.db.create_family(name, family_options())?;
                    assert!(self.families.insert(family, made).is_none(), "a new id");
                }
                ChangeEntry::FamilyDropped { family } => {
                    let dropped = self.families.remove(&family).expect("it was created");
                    self.db.drop_family(&dropped)?;
                }
                ChangeEntry::Ingested { family, tables } => {
                    taken += tables.len() as u64 - 1;
                    for table in tables {
                        let own = Path::new("/table.sst");
                        carry(files, table, &self.files, own)?;
                        let family = &self.families[&family];
                        self.db.ingest(family, &[own.to_path_buf()], true)?;
                    }
                }
                ChangeEntry::LogData(data) => {
                    taken -= 1;
                    self.log_data.push(data.to_vec());
                }
                write => self.add(&mut writes, &write)?,
            }
        }
        assert_eq!(batch.seqno() + taken - 1, batch.last_seqno());
        if !writes.is_empty() {
            self.db.write(writes, &WriteOptions::default())?;
        }
        self.position = batch.last_seqno() + 1;
        Ok(())
    }

    fn add(&self, writes: &mut WriteBatch, entry: &ChangeEntry<'_>) -> Result<()> {
        // A write that raced with the drop of its family did nothing.
        let own = |family: &u32| self.families.get(family).map(ColumnFamily::id);
        match entry {
            ChangeEntry::Put { family, key, value } => {
                own(family).map_or(Ok(()), |id| writes.put_cf(id, key, value))
            }
            ChangeEntry::Delete { family, key } => {
                own(family).map_or(Ok(()), |id| writes.delete_cf(id, key))
            }
            ChangeEntry::SingleDelete { family, key } => {
                own(family).map_or(Ok(()), |id| writes.single_delete_cf(id, key))
            }
            ChangeEntry::Merge {
                family,
                key,
                operand,
            } => own(family).map_or(Ok(()), |id| writes.merge_cf(id, key, operand)),
            ChangeEntry::DeleteRange { family, begin, end } => {
                own(family).map_or(Ok(()), |id| writes.delete_range_cf(id, begin, end))
            }
            other => panic!("{other:?} is no write of these tests"),
        }
    }

    /// Applies all that is there.
    pub(crate) fn follow(&mut self, db: &Db, files: &dyn FileSystem) -> Result<()> {
        let changes = db.changes(self.position)?;
        for batch in changes {
            self.apply(&batch?, files)?;
        }
        Ok(())
    }

    /// Every family has the same rows.
    pub(crate) fn assert_equals(&self, db: &Db, place: &str) {
        assert_eq!(contents(&self.db), contents(db), "{place}");
    }
}

/// The rows of each family, by its name.
pub(crate) fn contents(db: &Db) -> BTreeMap<String, Rows> {
    try_contents(db).expect("the families can be read")
}

/// The same, where reads may fail.
pub(crate) fn try_contents(db: &Db) -> Result<BTreeMap<String, Rows>> {
    let families = db.families();
    let all = families.iter().map(|family| {
        let mut rows = Rows::new();
        let mut iter = db.iter_cf(family, ReadOptions::default());
        iter.seek_to_first();
        while iter.valid() {
            rows.insert(iter.key().to_vec(), iter.value().to_vec());
            iter.next();
        }
        iter.status()?;
        Ok((family.name().to_owned(), rows))
    });
    all.collect()
}

fn carry(from: &dyn FileSystem, source: &Path, to: &dyn FileSystem, target: &Path) -> Result<()> {
    let bytes = from.read_file(source, 1 << 30)?;
    match to.remove(target) {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    let mut file = to.create(target, CreateOptions::new(FileKind::Table))?;
    file.append(&bytes)?;
    file.sync()?;
    file.close()
}
