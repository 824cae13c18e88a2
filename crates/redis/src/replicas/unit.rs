//! The changes of a command, of an EXEC or of a script, as commands that have the same effect.

use drumlin_resp::{OwnedArgs, encode_command};

/// A command to be run by replicas.
#[derive(Debug)]
struct Step {
    db: u16,
    args: OwnedArgs,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    steps: Vec<Step>,
    /// They are not one transaction, as a command came by keys that had expired and did no more.
    is_loose: bool,
}

impl Unit {
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.is_loose = false;
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Takes all steps but the first `kept` back.
    pub(crate) fn truncate(&mut self, kept: usize) {
        self.steps.truncate(kept);
    }

    pub(crate) fn push(&mut self, db: u16, args: OwnedArgs) {
        self.steps.push(Step { db, args });
        self.is_loose = false;
    }

    /// The steps so far are not one transaction, unless more come.
    pub(crate) fn loosen(&mut self) {
        self.is_loose = true;
    }

    /// Appends the steps to the stream, which has `selected` a database, and forgets them. Several are one transaction.
    pub(crate) fn write(&mut self, selected: &mut Option<u16>, out: &mut Vec<u8>) {
        let is_loose = std::mem::take(&mut self.is_loose);
        let is_transaction = self.steps.len() > 1 && !is_loose;
        for (at, step) in self.steps.drain(..).enumerate() {
            if *selected != Some(step.db) {
                *selected = Some(step.db);
                encode_command(out, &["SELECT", &step.db.to_string()]);
            }
            if is_transaction && at == 0 {
                encode_command(out, &["MULTI"]);
            }
            let args: Vec<&[u8]> = step.args.args().iter().collect();
            encode_command(out, &args);
        }
        if is_transaction {
            encode_command(out, &["EXEC"]);
        }
    }
}
