//! The models of searchable tables: which one a job writes with, and which files of models go.

use std::sync::Arc;

use drumlin_base::Result;
use drumlin_table::{Effort, TableFormat};

use crate::column_family::Family;
use crate::compaction::Plan;
use crate::compaction::output::JobContext;
use crate::engine::{Engine, State};
use crate::models::{ModelHold, Wanted};
use crate::version::Version;

impl Engine {
    /// Gives the job of `plan` a model for its tables, if these are searchable. To be kept until the
    /// tables are installed.
    ///
    /// # Errors
    /// `Corruption`, `Io` of reading inputs and models; `Io`, `NoSpace` of writing a new one.
    pub(crate) fn give_model(
        &self,
        family: &Family,
        version: &Version,
        plan: &Plan,
        context: &mut JobContext,
    ) -> Result<Option<ModelHold>> {
        let Some(writer) = context.writers.get_mut(plan.output_level) else {
            return Ok(None);
        };
        if writer.format != TableFormat::Searchable {
            return Ok(None);
        }
        let inputs = plan.files().map(|(_, file)| context.tables.find(file));
        let inputs: Vec<_> = inputs.collect::<Result<_>>()?;
        let wanted = Wanted {
            family: family.id,
            version,
            inputs: &inputs,
            effort: Effort::Small,
            from_bytes: family.tuning.shared_model_from_bytes,
            budget_bytes: self.budget.limit_bytes() as u64,
        };
        let number = || (context.numbers)();
        let held = self.chooser.choose(&self.models, &wanted, number)?;
        writer.model = held.as_ref().map(|held| Arc::clone(held.model()));
        Ok(held)
    }

    /// Removes the files of models that no table names any more; how many went.
    pub(crate) fn remove_unused_models(&self, state: &State) -> usize {
        if self.models.is_empty() {
            return 0;
        }
        let Some(in_use) = state.versions.models_in_use() else {
            return 0;
        };
        self.models.remove_unused(&in_use).unwrap_or_else(|error| {
            self.file_stays(&error);
            0
        })
    }

    /// Looks up the models of tables of which the MANIFEST does not tell it: another engine may have
    /// written it anew. Refuses what names a model that is missing.
    ///
    /// # Errors
    /// `Corruption` when a model is missing.
    pub(crate) fn check_models(&self) -> Result<()> {
        let state = self.lock_state();
        for family in state.families.values() {
            let tables = &family.family.reads.tables;
            for (_, file) in family.version.files() {
                match file.model() {
                    Some(id) => self.models.check(id)?,
                    None if self.models.is_empty() => {}
                    None => match tables.model_of(file.number) {
                        Ok(Some(id)) => file.note_model(id),
                        Ok(None) => {}
                        // Reading it will tell; until then nobody knows what it needs.
                        Err(_) => self.models.keep_all(),
                    },
                }
            }
        }
        Ok(())
    }
}
