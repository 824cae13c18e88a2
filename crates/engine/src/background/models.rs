//! The models of searchable tables: which one a job writes with, and which files of models go.

use std::sync::Arc;

use drumlin_base::{KeyOrder, Result};
use drumlin_table::{Effort, Table, TableFormat};

use crate::background::background::Background;
use crate::caches::models::{Appointment, ModelHold, Scope, Wanted, Within, large_scopes};
use crate::compaction::output::{JobContext, ScopeModel};
use crate::compaction::{CompactionStyle, Leveled, ManualRange, Plan};
use crate::family::column_family::{ColumnFamily, Family};
use crate::store::state::FamilyState;
use crate::version::Version;
use crate::watch::reason::Reason;

/// A job with this many times the values from which on a family gets a model gives a scope one: its tables are then
/// not too small either.
const SCOPE_FACTOR: u64 = 4;

impl Background {
    /// Gives the job of `plan` a model for its tables, if these are searchable, and for those of each of its large
    /// scopes. To be kept until the tables are installed.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading inputs and models; `Io`, `NoSpace` of writing a new one.
    pub(crate) fn give_model(
        &self,
        family: &Family,
        version: &Version,
        plan: &Plan,
        context: &mut JobContext,
    ) -> Result<Vec<ModelHold>> {
        let Some(writer) = context.writers.get_mut(plan.output_level) else {
            return Ok(Vec::new());
        };
        // Keys in another order get block-based tables, whatever is asked for.
        let is_bytewise = matches!(writer.order, KeyOrder::Bytewise);
        if writer.format != TableFormat::Searchable || !is_bytewise {
            return Ok(Vec::new());
        }
        let inputs = plan.files().map(|(_, file)| context.tables.find(file));
        let inputs: Vec<_> = inputs.collect::<Result<_>>()?;
        let effort = match self.is_pressed(plan) && !is_mostly_coded(&inputs) {
            true => Effort::Fast,
            false => Effort::Small,
        };
        let number = || (context.numbers)();
        let caches = &self.store.caches;
        let choose = |within, job_bytes| {
            let wanted = Wanted {
                within,
                job_bytes,
                ..self.wanted(family, version, &inputs, effort)
            };
            caches.chooser.choose(&caches.models, &wanted, number)
        };
        let has_scopes = match effort {
            Effort::Small => scope_bytes(family) > 0,
            // These tables will soon be written again.
            Effort::Fast => false,
        };
        let scopes = match has_scopes {
            true => scopes_of(family, plan, &inputs),
            false => Vec::new(),
        };
        let (scopes, bytes): (Vec<Scope>, Vec<u64>) = scopes.into_iter().unzip();
        let rest = value_bytes(&inputs).saturating_sub(bytes.iter().sum());
        let mut held = Vec::new();
        let others = match has_scopes {
            false => choose(Within::All, rest)?,
            true if rest == 0 && !scopes.is_empty() => None,
            true => choose(Within::Outside(&scopes), rest)?,
        };
        writer.model = others.as_ref().map(|held| Arc::clone(held.model()));
        held.extend(others);
        for (scope, bytes) in scopes.iter().zip(bytes) {
            let Some(own) = choose(Within::Scope(scope), bytes)? else {
                continue;
            };
            let model = Arc::clone(own.model());
            if writer.model.as_ref().map(|model| model.id()) != Some(model.id()) {
                context.scopes.push(ScopeModel {
                    first: scope.first().to_vec(),
                    limit: scope.limit(),
                    model,
                });
                held.push(own);
            }
        }
        Ok(held)
    }

    fn wanted<'a>(
        &'a self,
        family: &'a Family,
        version: &'a Version,
        inputs: &'a [Arc<Table>],
        effort: Effort,
    ) -> Wanted<'a> {
        Wanted {
            family: family.id,
            tables: &family.reads.tables,
            version,
            inputs,
            within: Within::All,
            scope_bytes: scope_bytes(family),
            job_bytes: value_bytes(inputs),
            effort,
            from_bytes: family.settings().tuning.shared_model_from_bytes,
            budget: &self.store.caches.budget,
        }
    }

    /// Whether writers are being slowed down and wait for `plan`, among others.
    pub(crate) fn is_pressed(&self, plan: &Plan) -> bool {
        plan.reason.is_for_writers() && self.store.watch.board.allowed().is_finite()
    }

    /// Has all jobs of the family write with one model, the best for all of it, while the appointment lasts. `None` where it
    /// has too little, or scopes: each has its own.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading tables and models; `Io`, `NoSpace` of writing a new one.
    pub(crate) fn appoint_model(&self, family: &ColumnFamily) -> Result<Option<Appointment<'_>>> {
        if scope_bytes(&family.0) > 0 {
            return Ok(None);
        }
        let version = Arc::clone(&self.store.lock_state().family_mut(family.id())?.version);
        let _pending = self.store.begin_job()?;
        let tables = version
            .files()
            .map(|(_, file)| family.0.reads.tables.find(file));
        let tables: Vec<_> = tables.collect::<Result<_>>()?;
        let wanted = self.wanted(&family.0, &version, &tables, Effort::Small);
        self.store
            .caches
            .chooser
            .appoint(&self.store.caches.models, &wanted, || {
                self.store.files.numbers.take()
            })
    }

    /// The plan that writes the next tables of the family again that were written under pressure. None
    /// while the family is as it was when there was no space for that.
    pub(crate) fn recode_plan(&self, family: &FamilyState) -> Option<Plan> {
        let settings = family.family.settings();
        let style = &settings.compaction.style;
        let is_left_alone = matches!(style, CompactionStyle::Manual | CompactionStyle::Fifo(_))
            && !drumlin_base::bug!("left-alone-and-written-well");
        if is_left_alone || !family.may_have_space() {
            return None;
        }
        let fast = self.store.caches.models.fast_ids();
        if fast.is_empty() || drumlin_base::bug!("written-cheaply-for-ever") {
            return None;
        }
        let mut files = family.version.files();
        let (level, file) = files.find(|(level, file)| {
            let is_fast = file.model().is_some_and(|id| fast.contains(&id));
            *level > 0 && is_fast && !file.is_compacting()
        })?;
        let range = ManualRange {
            level,
            output_level: level,
            begin: Some(file.smallest_user_key()),
            end: Some(file.largest_user_key()),
        };
        let options = &settings.compaction;
        let plan = Leveled.plan_manual(&family.version, options, &family.in_flight, &range)?;
        Some(Plan {
            reason: Reason::Recode,
            ..plan
        })
    }

    /// Looks up the models of tables for which the MANIFEST names none: another engine may have
    /// written it anew. Refuses a table that names a missing model.
    ///
    /// # Errors
    /// `Corruption` when a model is missing.
    pub(crate) fn check_models(&self) -> Result<()> {
        let state = self.store.lock_state();
        for family in state.families.values() {
            let tables = &family.family.reads.tables;
            for (_, file) in family.version.files() {
                match file.model() {
                    Some(id) => self.store.caches.models.check(id)?,
                    None if self.store.caches.models.is_empty() => {}
                    None => match tables.model_of(file.number) {
                        Ok(Some(id)) => file.note_model(id),
                        Ok(None) => {}
                        // Reading it will show it; until then its model is unknown.
                        Err(_) => self.store.caches.models.keep_all(),
                    },
                }
            }
        }
        Ok(())
    }
}

/// Whether most of the input is in tables of a shared model: copying its rows is cheaper
/// than any coder.
fn is_mostly_coded(inputs: &[Arc<Table>]) -> bool {
    let coded = inputs.iter().filter(|table| table.shared_model().is_some());
    value_bytes(coded) > value_bytes(inputs) / 2
}

/// Bytes of the values of `tables`.
fn value_bytes<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> u64 {
    let held = |table: &Arc<Table>| table.properties().raw_value_size;
    tables.into_iter().map(held).sum()
}

/// How many first bytes of the family's keys name a scope; 0 where it has none.
fn scope_bytes(family: &Family) -> usize {
    // The versions of a key, each a key here, are judged together.
    match family.options.order.timestamp_bytes() {
        0 => family.options.scope_bytes.unwrap_or(0),
        _ => 0,
    }
}

/// The scopes of which `plan` has enough for a model of their own, ascending, each with the bytes of its values.
fn scopes_of(family: &Family, plan: &Plan, inputs: &[Arc<Table>]) -> Vec<(Scope, u64)> {
    let files = plan.files().map(|(_, file)| &**file);
    let inputs: Vec<_> = files.zip(inputs).collect();
    let from_bytes = family.settings().tuning.shared_model_from_bytes;
    let bytes_min = from_bytes.saturating_mul(SCOPE_FACTOR);
    large_scopes(&inputs, scope_bytes(family), bytes_min)
}

#[cfg(test)]
mod tests {
    use drumlin_fs::{Env, FileSystem, StrictMemFileSystem};

    use super::*;
    use crate::Db;
    use crate::background::compaction_job::{Orders, begin};
    use crate::compaction::Work;
    use crate::db::engine::Engine;
    use crate::options::settings::{FamilyOptions, Options, ReadOptions, Tuning};

    fn options() -> Options {
        let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
        Options {
            family: FamilyOptions {
                table_format: Some(TableFormat::Searchable),
                ..FamilyOptions::default()
            },
            background_threads: Some(0),
            tuning: Tuning {
                shared_model_from_bytes: 0,
                target_file_bytes: 8 << 10,
                ..Tuning::default()
            },
            env: Env::system().with_files(files),
            ..Options::default()
        }
    }

    fn row(n: u32) -> (String, String) {
        let value = format!("{n}|{}|till and drumlins", n % 7);
        (format!("key{n:05}"), value)
    }

    fn version(engine: &Engine) -> Arc<Version> {
        let state = engine.store.lock_state();
        Arc::clone(&state.families.get(&0).unwrap().version)
    }

    fn named(engine: &Engine) -> Vec<Option<u64>> {
        let version = version(engine);
        version.files().map(|(_, file)| file.model()).collect()
    }

    /// Some tables, all of one model for cheap codes.
    fn write_cheaply(db: &Db) {
        let (engine, family) = (&*db.engine, db.default_family());
        for (key, value) in (0..4000).map(row) {
            db.put(key, value).unwrap();
        }
        db.flush().unwrap();
        let before = version(engine);
        let tables = before
            .files()
            .map(|(_, file)| family.0.reads.tables.find(file));
        let tables: Vec<_> = tables.collect::<Result<_>>().unwrap();
        let wanted = engine
            .background
            .wanted(&family.0, &before, &tables, Effort::Fast);
        let number = || engine.store.files.numbers.take();
        let appointed =
            engine
                .store
                .caches
                .chooser
                .appoint(&engine.store.caches.models, &wanted, number);
        db.compact_range(family, None, None).unwrap();
        drop((appointed, before, tables));
        let fast = engine.store.caches.models.fast_ids();
        let named = named(engine);
        let is_fast = |id: &Option<u64>| id.is_some_and(|id| fast.contains(&id));
        assert!(!named.is_empty() && named.iter().all(is_fast));
    }

    #[test]
    fn what_was_written_under_pressure_is_written_well_in_quiet() {
        let db = Db::open("/db", options()).unwrap();
        let engine = &*db.engine;
        write_cheaply(&db);
        let fast = engine.store.caches.models.fast_ids();
        let cheap = version(engine).bytes_total();

        db.wait_for_background().unwrap();
        let is_fast = |id: &Option<u64>| id.is_some_and(|id| fast.contains(&id));
        assert!(!named(engine).iter().any(is_fast), "a quiet store recodes");
        assert!(named(engine).iter().all(Option::is_some));
        assert!(version(engine).bytes_total() <= cheap);
        assert!(
            engine.store.caches.models.fast_ids().is_empty(),
            "the cheap model went"
        );
        let mut walk = db.iter(ReadOptions::default());
        walk.seek_to_first();
        for (key, value) in (0..4000).map(row) {
            assert_eq!(
                (walk.key(), walk.value()),
                (key.as_bytes(), value.as_bytes())
            );
            walk.next();
        }
        assert!(!walk.valid());
    }

    /// Flushes rows and takes them down while writers are slowed.
    fn press_down(db: &Db, rows: std::ops::Range<u32>) {
        let engine = &*db.engine;
        for (key, value) in rows.map(row) {
            db.put(key, value).unwrap();
        }
        db.flush().unwrap();
        let plan = {
            let mut state = engine.store.lock_state();
            let family = state.family_mut(0).unwrap();
            let range = ManualRange {
                level: 0,
                output_level: 6,
                begin: None,
                end: None,
            };
            let settings = family.family.settings();
            let options = &settings.compaction;
            let plan = Leveled.plan_manual(&family.version, options, &family.in_flight, &range);
            let plan = Plan {
                reason: Reason::L0Full,
                work: Work::Rewrite,
                ..plan.expect("a table in L0")
            };
            assert!(begin(family, &plan));
            plan
        };
        engine.store.watch.board.allow(1.0);
        let orders = Orders::default();
        engine.background.run_compaction(0, &plan, orders).unwrap();
        engine.store.watch.board.allow(f64::INFINITY);
    }

    #[test]
    fn under_pressure_a_family_of_one_scope_keeps_its_cheap_model() {
        let scoped = |scope_bytes| Options {
            family: FamilyOptions {
                scope_bytes: Some(scope_bytes),
                ..options().family
            },
            ..options()
        };
        for scope_bytes in [0, 3] {
            let db = Db::open("/db", scoped(scope_bytes)).unwrap();
            press_down(&db, 0..4000);
            let first = named(&db.engine);
            let fast = db.engine.store.caches.models.fast_ids();
            assert!(first[0].is_some_and(|id| fast.contains(&id)), "{first:?}");
            press_down(&db, 4000..8000);
            let second = named(&db.engine);
            assert!(
                second.iter().all(|id| *id == first[0]),
                "{scope_bytes}: {first:?}, {second:?}"
            );
        }
    }

    #[test]
    fn tables_are_left_alone_where_nothing_is_compacted_unasked() {
        let options = Options {
            tuning: Tuning {
                automatic_compactions: false,
                ..options().tuning
            },
            ..options()
        };
        let db = Db::open("/db", options).unwrap();
        write_cheaply(&db);
        db.wait_for_background().unwrap();
        assert!(!db.engine.store.caches.models.fast_ids().is_empty());
    }

    #[test]
    fn what_has_no_room_to_be_written_well_waits_for_the_next_change() {
        let memory = StrictMemFileSystem::new();
        let files: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let mut options = options();
        options.env = Env::system().with_files(files);
        let db = Db::open("/db", options).unwrap();
        let engine = &*db.engine;
        write_cheaply(&db);
        memory.set_quota(memory.used_bytes());
        db.wait_for_background().unwrap();
        assert!(
            !engine.store.caches.models.fast_ids().is_empty(),
            "there was no space"
        );
        memory.set_quota(u64::MAX);
        db.put("key", "one more").unwrap();
        db.flush().unwrap();
        db.wait_for_background().unwrap();
        assert!(
            engine.store.caches.models.fast_ids().is_empty(),
            "now there is"
        );
    }

    #[test]
    fn no_model_is_learned_for_keys_in_another_order() {
        let mut options = options();
        options.family.order = KeyOrder::ReverseBytewise;
        let db = Db::open("/db", options).unwrap();
        for (key, value) in (0..4000).map(row) {
            db.put(key, value).unwrap();
        }
        let ids = Arc::clone(&db.engine.store.caches.models);
        let family = db.default_family();
        db.compact_range(family, None, None).unwrap();
        assert!(ids.is_empty());
    }
}
