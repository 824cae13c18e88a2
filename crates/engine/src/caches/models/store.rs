//! Model files of a directory: `NNNNNNNNNNNNNNNN.model`, named after the model's id.
//!
//! A file is written whole, synced, and gets its name before any table refers to it. It stays as
//! long as a held version has a table that names it, or a job holds it. The store knows the jobs;
//! [`ModelStore::remove_unused`] is given the ids that versions name. A model is loaded at the first
//! table that names it and stays in memory, charged to the budget, as long as its file.
//!
//! Thread safety: any thread. `writing` is taken before `known`; neither is held while a lock of the
//! engine is taken.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, MemoryBudget, MemoryUse, Result};
use drumlin_fs::{CreateOptions, FileKind, FileSystem};
use drumlin_table::{Effort, Model, ModelFacts, ModelSource};

use crate::files::names::{self, FileName};
use crate::version::obsolete::remove_files;

/// The largest model file that is read: twice the largest dictionary.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// The model files of one directory.
pub(crate) struct ModelStore {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    budget: Arc<MemoryBudget>,
    /// Held while a file is written.
    writing: Mutex<()>,
    known: Mutex<HashMap<u64, Entry>>,
    /// Whether a hold was dropped since the last search for unused files.
    changed: AtomicBool,
}

#[derive(Default)]
struct Entry {
    loaded: Option<Loaded>,
    /// How many jobs hold it.
    holds: usize,
    /// Its codes are larger than they need be.
    is_fast: bool,
}

struct Loaded {
    model: Arc<Model>,
    facts: ModelFacts,
    charged: usize,
}

/// Keeps a model's file while a job writes tables that name it.
pub(crate) struct ModelHold {
    store: Arc<ModelStore>,
    model: Arc<Model>,
    facts: ModelFacts,
}

impl ModelStore {
    /// The models in `dir`, as a listing of it names them.
    ///
    /// # Errors
    /// `Io` of listing the directory.
    pub(crate) fn open(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Arc<Self>> {
        let mut known = HashMap::new();
        for name in files.list(dir)? {
            if let Some(FileName::Model(id)) = FileName::parse(&name) {
                let entry = Entry {
                    is_fast: is_fast(&*files, &dir.join(&name)),
                    ..Entry::default()
                };
                known.insert(id, entry);
            }
        }
        Ok(Arc::new(Self {
            files,
            dir: dir.to_path_buf(),
            budget: Arc::clone(budget),
            writing: Mutex::new(()),
            known: Mutex::new(known),
            changed: AtomicBool::new(true),
        }))
    }

    /// Whether there is no model file.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.lock().is_empty()
    }

    /// Checks that there is a file of the model `id`.
    ///
    /// # Errors
    /// `Corruption` when there is none.
    pub(crate) fn check(&self, id: u64) -> Result<()> {
        if self.known.lock().contains_key(&id) {
            Ok(())
        } else {
            Err(self.missing(id))
        }
    }

    /// The ids of all model files.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.known.lock().keys().copied().collect()
    }

    /// The model `id`, its file held.
    ///
    /// # Errors
    /// `Corruption` when it is missing or damaged; `Io`.
    pub(crate) fn hold(self: &Arc<Self>, id: u64) -> Result<ModelHold> {
        let mut known = self.known.lock();
        let entry = known.get_mut(&id).ok_or_else(|| self.missing(id))?;
        let loaded = self.load(entry, id)?;
        let (model, facts) = (Arc::clone(&loaded.model), loaded.facts);
        entry.holds += 1;
        Ok(self.held(model, facts))
    }

    /// Writes the file of `model`, unless it is there, and holds it. `number` is a file number that
    /// nobody else has, for the time until the file has its own name.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; nothing is left behind.
    pub(crate) fn write(
        self: &Arc<Self>,
        model: Model,
        facts: ModelFacts,
        number: u64,
    ) -> Result<ModelHold> {
        let id = model.id();
        let writing = self.writing.lock();
        let known = self.known.lock().get(&id).map(|entry| entry.is_fast);
        // Few values may give the same model to either effort. Its codes are then as small as they need be, or the
        // tables that name it would be rewritten with it for ever.
        let is_better = known == Some(true)
            && facts.effort == Effort::Small
            && !drumlin_base::bug!("same-model-stays-cheap");
        if is_better {
            self.write_file(&model, &facts, number)?;
        }
        if let Some(entry) = self.known.lock().get_mut(&id) {
            if is_better {
                entry.is_fast = false;
                entry.loaded.iter_mut().for_each(|it| it.facts = facts);
            }
            entry.holds += 1;
            let loaded = self.load(entry, id);
            return match loaded.map(|loaded| (Arc::clone(&loaded.model), loaded.facts)) {
                Ok((model, facts)) => Ok(self.held(model, facts)),
                Err(error) => {
                    entry.holds -= 1;
                    Err(error)
                }
            };
        }
        self.write_file(&model, &facts, number)?;
        let model = Arc::new(model);
        let charged = model.memory();
        self.budget.charge(MemoryUse::TableMeta, charged);
        let loaded = Loaded {
            model: Arc::clone(&model),
            facts,
            charged,
        };
        let entry = Entry {
            is_fast: loaded.facts.effort == Effort::Fast,
            loaded: Some(loaded),
            holds: 1,
        };
        self.known.lock().insert(id, entry);
        drop(writing);
        Ok(self.held(model, facts))
    }

    /// Has the model `id` of `other` as well, and holds it. `number` is as for [`ModelStore::write`].
    ///
    /// # Errors
    /// As [`ModelStore::write`]; `Corruption` when it is missing or damaged there.
    pub(crate) fn take_in(
        self: &Arc<Self>,
        other: &Self,
        id: u64,
        number: u64,
    ) -> Result<ModelHold> {
        let (model, facts) = other.read(id)?;
        self.write(model, facts, number)
    }

    fn held(self: &Arc<Self>, model: Arc<Model>, facts: ModelFacts) -> ModelHold {
        ModelHold {
            store: Arc::clone(self),
            model,
            facts,
        }
    }

    fn write_file(&self, model: &Model, facts: &ModelFacts, number: u64) -> Result<()> {
        let temp = names::temp(&self.dir, number);
        let path = names::model(&self.dir, model.id());
        let written = (|| {
            let mut file = self
                .files
                .create(&temp, CreateOptions::new(FileKind::Other))?;
            file.append(&facts.encode(model))?;
            file.sync()?;
            file.close()?;
            self.files.rename(&temp, &path)?;
            self.files.sync_dir(&self.dir)
        })();
        written.map_err(|error| {
            // The first error is the one that matters; leftovers go at the next open.
            let _ = self.files.remove(&temp);
            error.with_file(&path)
        })
    }

    /// Reads the model's file again, even if the model is in memory.
    ///
    /// # Errors
    /// `Corruption` when it is missing or damaged; `Io`.
    pub(crate) fn verify(&self, id: u64) -> Result<()> {
        self.read(id).map(drop)
    }

    fn read(&self, id: u64) -> Result<(Model, ModelFacts)> {
        let path = names::model(&self.dir, id);
        let bytes = self
            .files
            .read_file(&path, FILE_BYTES_MAX)
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => error.with_kind(ErrorKind::Corruption),
                _ => error,
            })?;
        let (model, facts) = ModelFacts::decode(&bytes).map_err(|error| error.with_file(&path))?;
        if model.id() != id && !drumlin_base::bug!("model-of-another-id-taken") {
            let message = format!("the file holds the model {:016x}", model.id());
            return Err(Error::corruption(message).with_file(&path));
        }
        Ok((model, facts))
    }

    fn load<'e>(&self, entry: &'e mut Entry, id: u64) -> Result<&'e Loaded> {
        if entry.loaded.is_none() {
            let (model, facts) = self.read(id)?;
            let charged = model.memory();
            self.budget.charge(MemoryUse::TableMeta, charged);
            entry.loaded = Some(Loaded {
                model: Arc::new(model),
                facts,
                charged,
            });
        }
        entry.loaded.as_ref().ok_or_else(|| self.missing(id))
    }

    fn missing(&self, id: u64) -> Error {
        Error::corruption("a model that tables name is missing")
            .with_file(&names::model(&self.dir, id))
    }

    /// The ids of models made for cheap codes. Tables that name one are rewritten when the store is quiet.
    pub(crate) fn fast_ids(&self) -> HashSet<u64> {
        let known = self.known.lock();
        let fast = known.iter().filter(|(_, entry)| entry.is_fast);
        fast.map(|(id, _)| *id).collect()
    }

    /// Keeps every file for good, because the tables that name them are not known.
    pub(crate) fn keep_all(&self) {
        for entry in self.known.lock().values_mut() {
            entry.holds += 1;
        }
    }

    /// Whether a hold was dropped since the last call, so that a file may be unused.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Removes the files that no job holds and that are not `in_use`, and gives their number. Bypasses the
    /// trash, because the same model may be learned again and then has the same name.
    ///
    /// # Errors
    /// The first failure; the remaining files go at the next open.
    pub(crate) fn remove_unused(&self, in_use: &HashSet<u64>) -> Result<usize> {
        let Some(_writing) = self.writing.try_lock() else {
            self.changed.store(true, Ordering::Release);
            return Ok(0);
        };
        let mut unused = Vec::new();
        self.known.lock().retain(|&id, entry| {
            let is_held = entry.holds > 0 && !drumlin_base::bug!("held-model-removed");
            let stays = is_held || in_use.contains(&id);
            if !stays {
                unused.push(names::model(&self.dir, id));
                if let Some(loaded) = &entry.loaded {
                    self.budget.release(MemoryUse::TableMeta, loaded.charged);
                }
            }
            stays
        });
        remove_files(&*self.files, &self.dir, &unused)
    }

    fn let_go(&self, id: u64) {
        if let Some(entry) = self.known.lock().get_mut(&id) {
            entry.holds = entry.holds.saturating_sub(1);
            // Encoding may have built tables that decoding does not need.
            if let Some(loaded) = &mut entry.loaded {
                let memory = loaded.model.memory();
                self.budget.charge(MemoryUse::TableMeta, memory);
                self.budget.release(MemoryUse::TableMeta, loaded.charged);
                loaded.charged = memory;
            }
        }
        self.changed.store(true, Ordering::Release);
    }
}

/// Whether the file says that it was made for cheap codes. False for a file that cannot be read: its reader
/// will report that.
fn is_fast(files: &dyn FileSystem, path: &Path) -> bool {
    let mut trailer = [0; ModelFacts::TOLD_BYTES];
    let told = files.open(path).and_then(|file| {
        let at = file.size().saturating_sub(trailer.len() as u64);
        file.read_at(at, &mut trailer)
    });
    told.is_ok() && ModelFacts::effort_told(&trailer) == Some(Effort::Fast)
}

impl ModelSource for ModelStore {
    fn model(&self, id: u64) -> Result<Arc<Model>> {
        let mut known = self.known.lock();
        let entry = known.get_mut(&id).ok_or_else(|| self.missing(id))?;
        self.load(entry, id).map(|loaded| Arc::clone(&loaded.model))
    }
}

impl Drop for ModelStore {
    fn drop(&mut self) {
        for entry in self.known.lock().values() {
            if let Some(loaded) = &entry.loaded {
                self.budget.release(MemoryUse::TableMeta, loaded.charged);
            }
        }
    }
}

impl ModelHold {
    /// The model held.
    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Facts about how it was learned.
    pub(crate) fn facts(&self) -> &ModelFacts {
        &self.facts
    }
}

impl Drop for ModelHold {
    fn drop(&mut self) {
        self.store.let_go(self.model.id());
    }
}

impl fmt::Debug for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStore")
            .field("dir", &self.dir)
            .field("models", &self.known.lock().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelHold")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use drumlin_fs::StrictMemFileSystem;

    use super::*;

    const FACTS: ModelFacts = ModelFacts {
        effort: Effort::Small,
        sample_bytes: 1,
        judged_bytes: 2,
        code_bytes: 3,
        data_bytes: 4,
    };

    fn store(files: &Arc<StrictMemFileSystem>) -> (Arc<ModelStore>, Arc<MemoryBudget>) {
        let budget = MemoryBudget::new(8 << 20);
        let files: Arc<dyn FileSystem> = Arc::clone(files) as Arc<dyn FileSystem>;
        files.create_dir_all(Path::new("/db")).unwrap();
        let store = ModelStore::open(files, Path::new("/db"), &budget).unwrap();
        (store, budget)
    }

    #[test]
    fn a_model_stays_while_it_is_held_or_in_use_and_its_memory_goes_with_it() {
        let files = Arc::new(StrictMemFileSystem::new());
        let (models, budget) = store(&files);
        let held = models.write(Model::raw(), FACTS, 7).unwrap();
        let id = held.model().id();
        let again = models.write(Model::raw(), FACTS, 8).unwrap();
        assert!(budget.used(MemoryUse::TableMeta) > 0);
        drop(held);
        assert_eq!(
            models.remove_unused(&HashSet::new()).unwrap(),
            0,
            "held still"
        );
        drop(again);
        assert_eq!(
            models.remove_unused(&HashSet::from([id])).unwrap(),
            0,
            "in use"
        );
        assert!(models.take_changed() && !models.take_changed());

        let (other, _) = store(&files);
        assert_eq!(other.model(id).unwrap().id(), id);
        assert_eq!(*other.hold(id).unwrap().facts(), FACTS);

        assert_eq!(models.remove_unused(&HashSet::new()).unwrap(), 1);
        assert!(!files.exists(&names::model(Path::new("/db"), id)).unwrap());
        assert_eq!(budget.used(MemoryUse::TableMeta), 0);
        assert!(models.model(id).is_err() && models.is_empty());
    }

    #[test]
    fn a_model_that_either_effort_gives_is_no_cheap_one_any_more() {
        let files = Arc::new(StrictMemFileSystem::new());
        let (models, _) = store(&files);
        let fast = ModelFacts {
            effort: Effort::Fast,
            ..FACTS
        };
        let id = models.write(Model::raw(), fast, 7).unwrap().model().id();
        assert_eq!(models.fast_ids(), HashSet::from([id]));
        let held = models.write(Model::raw(), FACTS, 8).unwrap();
        assert_eq!(*held.facts(), FACTS);
        assert!(models.fast_ids().is_empty());
        // Nor is it for who opens the store, or makes it for the other effort again.
        models.write(Model::raw(), fast, 9).unwrap();
        assert!(models.fast_ids().is_empty());
        let (other, _) = store(&files);
        assert!(other.fast_ids().is_empty());
        assert_eq!(*other.hold(id).unwrap().facts(), FACTS);
    }

    #[test]
    fn a_model_under_anothers_name_is_refused() {
        let files = Arc::new(StrictMemFileSystem::new());
        let (models, _) = store(&files);
        let id = models.write(Model::raw(), FACTS, 7).unwrap().model().id();
        let dir = Path::new("/db");
        files
            .rename(&names::model(dir, id), &names::model(dir, id + 1))
            .unwrap();
        let (models, _) = store(&files);
        assert!(models.model(id + 1).unwrap_err().is_corruption());
        assert!(models.model(id).unwrap_err().is_corruption());
    }
}
