//! What the documents of a collection have to be like.

use drumlin_doc::{Builder, Code, Document, Filter, Kind, Refusal, Scope, unmet};

/// Longest validator: all of it may be asked of each document.
const VALIDATOR_BYTES_MAX: usize = 1 << 20;
/// Longest document that is looked at for what it does not meet: each part of a validator does so anew.
const LOOKED_AT_BYTES_MAX: usize = 256 << 10;
/// Longest validator that is taken apart for what is not met of it: each refusal parses it anew.
const TAKEN_APART_BYTES_MAX: usize = 64 << 10;
/// About how many refusals of a command say what is not met.
const DETAILED_MAX: usize = 100;
/// Longest part of a refusal that says what is not met: a command may have a hundred thousand of them.
const DETAILS_BYTES_MAX: usize = 4 << 10;

/// A filter that documents have to pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Validator {
    /// As it was given: a document.
    pub given: Vec<u8>,
    filter: Filter,
}

/// Which writes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationLevel {
    /// None.
    Off,
    /// Those of new documents, and of those that passed before.
    Moderate,
    /// All.
    Strict,
}

/// What becomes of a write that does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAction {
    /// It is refused.
    Error,
    /// It is done.
    Warn,
}

/// Whether a write is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// As the collection has it.
    #[default]
    Checked,
    /// As the collection has it; refusals do not say what is not met.
    CheckedBriefly,
    /// It is not.
    Bypassed,
}

impl Validation {
    /// It, in a command that has had so many statements refused.
    pub fn after(self, refused: usize) -> Self {
        match self {
            Self::Checked if refused >= DETAILED_MAX => Self::CheckedBriefly,
            it => it,
        }
    }
}

impl Validator {
    /// The one that `given` describes.
    ///
    /// # Errors
    /// `BadValue` for more than 1 MiB; of filters; `NearNotAllowed`; `CommandNotSupported` for `$$NOW` and `$rand`, which are not the
    /// same for each write.
    pub fn new(given: Document<'_>) -> Result<Self, Refusal> {
        match given.0.len() > VALIDATOR_BYTES_MAX {
            true => Err(Refusal::bad_value(format!(
                "the validator has {} bytes; the most is {VALIDATOR_BYTES_MAX}",
                given.0.len()
            ))),
            false => Self::of_any_size(given),
        }
    }

    /// As [`Validator::new`]; it may have been stored before there was a bound.
    ///
    /// # Errors
    /// The others of it.
    pub(crate) fn of_any_size(given: Document<'_>) -> Result<Self, Refusal> {
        let at = |now_ms: i64, seed: u64| {
            let scope = Scope {
                now_ms,
                seed,
                ..Scope::default()
            };
            Filter::without_near(given, &scope)
        };
        let filter = at(0, 0)?;
        match filter == at(1, 1)? {
            true => Ok(Self {
                given: given.0.to_vec(),
                filter,
            }),
            false => Err(Refusal::not_supported("$$NOW or $rand in a validator")),
        }
    }

    /// Whether a document passes.
    ///
    /// # Errors
    /// Of its expressions.
    pub(crate) fn passes(&self, document: Document<'_>) -> Result<bool, Refusal> {
        self.filter.matches(document)
    }

    /// The refusal of a document that does not pass.
    ///
    /// # Errors
    /// Of its expressions.
    pub(crate) fn refusal(
        &self,
        document: Document<'_>,
        validation: Validation,
    ) -> Result<Refusal, Refusal> {
        let is_short =
            document.0.len() <= LOOKED_AT_BYTES_MAX && self.given.len() <= TAKEN_APART_BYTES_MAX;
        let details = match is_short && validation != Validation::CheckedBriefly {
            true => Some(unmet(Document(&self.given), document)?),
            false => None,
        };
        let mut out = Builder::new();
        out.open(Kind::Document, "errInfo");
        if let Some(id) = document.get("_id") {
            out.value("failingDocumentId", id);
        }
        if let Some(details) = details.filter(|it| it.len() <= DETAILS_BYTES_MAX) {
            out.document("details", Document(&details));
        }
        out.close();
        Ok(Refusal {
            details: Some(out.finish()),
            ..Refusal::new(
                Code::DocumentValidationFailure,
                "Document failed validation",
            )
        })
    }
}
