//! Options of collections: those of `create`, of `collMod`, and of what makes a collection capped.

use drumlin_doc::{Builder, Code, Document, Refusal, coerced};
use drumlin_doc_store::{
    Bounds, CollectionOptions, Outcome, ValidationAction, ValidationLevel, Validator, View,
};

use crate::pipeline::{Pipeline, Stage};

use super::aggregate::running;
use super::call::Call;
use super::shape::Shape;

/// The most bytes of a capped collection.
const SIZE_BYTES_MAX: i64 = 1 << 50;
/// What sizes are rounded up to.
const SIZE_STEP_BYTES: u64 = 256;

fn invalid(text: &str) -> Refusal {
    Refusal::new(Code::InvalidOptions, text)
}

/// A size in bytes, if it is said.
fn size(call: &Call<'_>, field: &str) -> Result<Option<u64>, Refusal> {
    let Some(bytes) = call.body.get(field).and_then(coerced) else {
        return Ok(None);
    };
    let wrong = || {
        let text = format!("Size has to be between 1 and {SIZE_BYTES_MAX} bytes, not {bytes}");
        Refusal::bad_value(text)
    };
    let bytes = Some(bytes).filter(|bytes| (1..=SIZE_BYTES_MAX).contains(bytes));
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
    Ok(Some(
        bytes.ok_or_else(wrong)?.next_multiple_of(SIZE_STEP_BYTES),
    ))
}

/// A number of documents, if it is said: `None` in it for any number.
fn documents_max(call: &Call<'_>, field: &str) -> Result<Option<Option<u64>>, Refusal> {
    let Some(most) = call.body.get(field).and_then(coerced) else {
        return Ok(None);
    };
    match i32::try_from(most.max(0)) {
        Ok(most) => Ok(Some(u64::try_from(most).ok().filter(|most| *most > 0))),
        Err(_) => {
            let text = "max in a capped collection has to be < 2^31 or not set";
            Err(Refusal::bad_value(text))
        }
    }
}

/// The bounds that a command which makes a capped collection names.
///
/// # Errors
/// `InvalidOptions` without a size; `BadValue`, `TypeMismatch`.
pub(super) fn bounds_of(call: &Call<'_>) -> Result<Bounds, Refusal> {
    call.check(&[("size", Shape::Number), ("max", Shape::Number)])?;
    let size_bytes = size(call, "size")?;
    Ok(Bounds {
        size_bytes: size_bytes
            .ok_or_else(|| invalid("the 'size' field is required when 'capped' is true"))?,
        documents_max: documents_max(call, "max")?.flatten(),
    })
}

/// The options of `create`.
///
/// # Errors
/// `InvalidOptions` for those that do not go together; `BadValue`, `TypeMismatch`.
pub(super) fn of_create(call: &Call<'_>) -> Result<CollectionOptions, Refusal> {
    call.check(&[("capped", Shape::Truth)])?;
    let bounds = match call.flag("capped") {
        true => Some(bounds_of(call)?),
        false => None,
    };
    call.check(&[("size", Shape::Number), ("max", Shape::Number)])?;
    let is_said = |name: &str| call.body.get(name).is_some_and(|value| !value.is_null());
    if bounds.is_none() && (is_said("size") || is_said("max")) {
        let text = "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";
        return Err(invalid(text));
    }
    let mut options = CollectionOptions {
        capped: bounds,
        ..CollectionOptions::default()
    };
    let is_said = |name: &str| call.body.get(name).is_some_and(|value| !value.is_null());
    let validation = validation(call)?;
    let (on, pipeline) = view(call)?;
    match on {
        None if pipeline.is_some() => {
            let text = "'pipeline' requires 'viewOn' to also be specified";
            return Err(invalid(text));
        }
        None => validation.apply(&mut options),
        Some(on) => {
            let of_collections = [
                "idIndex",
                "capped",
                "size",
                "max",
                "validator",
                "validationLevel",
                "validationAction",
            ];
            if let Some(option) = of_collections.into_iter().find(|name| is_said(name)) {
                return Err(invalid(&format!("a view has no '{option}'")));
            }
            options.view = Some(View {
                on,
                pipeline: pipeline.unwrap_or_else(|| Document::EMPTY.0.to_vec()),
            });
        }
    }
    Ok(options)
}

/// What a command says of a validator.
struct SaidOfValidation {
    /// `None` in it takes one away.
    validator: Option<Option<Validator>>,
    level: Option<ValidationLevel>,
    action: Option<ValidationAction>,
}

impl SaidOfValidation {
    fn is_any(&self) -> bool {
        self.validator.is_some() || self.level.is_some() || self.action.is_some()
    }

    fn apply(self, options: &mut CollectionOptions) {
        if let Some(validator) = self.validator {
            options.validator = validator;
        }
        options.validation_level = self.level.or(options.validation_level);
        options.validation_action = self.action.or(options.validation_action);
    }
}

/// # Errors
/// `TypeMismatch`, `BadValue`; of filters; `InvalidOptions` in databases of the server.
fn validation(call: &Call<'_>) -> Result<SaidOfValidation, Refusal> {
    call.check(&[
        ("validator", Shape::Document),
        ("validationLevel", Shape::Text),
        ("validationAction", Shape::Text),
    ])?;
    let validator = call.document("validator")?;
    if validator.is_some() && matches!(call.database, "admin" | "local" | "config") {
        let text = format!(
            "Document validators are not allowed in the {} database",
            call.database
        );
        return Err(Refusal::new(Code::InvalidOptions, text));
    }
    let validator = validator.map(|given| match given.is_empty() {
        true => Ok(None),
        false => Validator::new(given).map(Some),
    });
    let text = |name: &str| call.body.get(name).and_then(|value| value.as_str());
    let wrong = |field: &str, given: &str| {
        let text = format!("Enumeration value '{given}' for field '{field}' is not a valid value.");
        Refusal::bad_value(text)
    };
    let level = text("validationLevel")
        .map(|given| ValidationLevel::named(given).ok_or_else(|| wrong("validationLevel", given)));
    let action = text("validationAction").map(|given| match given {
        "errorAndLog" => Err(Refusal::not_supported("the validationAction errorAndLog")),
        _ => ValidationAction::named(given).ok_or_else(|| wrong("validationAction", given)),
    });
    Ok(SaidOfValidation {
        validator: validator.transpose()?,
        level: level.transpose()?,
        action: action.transpose()?,
    })
}

/// What a command says of a view: what it is of, and its pipeline, an array.
///
/// # Errors
/// `TypeMismatch`, `BadValue`, `InvalidNamespace`; of stages; `OptionNotSupportedOnView` for those that write.
fn view(call: &Call<'_>) -> Result<(Option<String>, Option<Vec<u8>>), Refusal> {
    call.check(&[("viewOn", Shape::Text), ("pipeline", Shape::Array)])?;
    let on = call.body.get("viewOn").and_then(|value| value.as_str());
    if on == Some("") {
        return Err(Refusal::bad_value("'viewOn' cannot be empty"));
    }
    if on.is_some_and(|on| on.starts_with("system.")) {
        let text = format!(
            "'viewOn' is for no collection of the server's: {}",
            on.unwrap_or_default()
        );
        return Err(Refusal::new(Code::Unauthorized, text));
    }
    if on.is_some_and(|on| on.starts_with(['$', '.']) || on.contains('\0')) {
        let text = format!("Invalid namespace for 'viewOn': {}", on.unwrap_or_default());
        return Err(Refusal::new(Code::InvalidNamespace, text));
    }
    let given = call.body.get("pipeline").filter(|value| !value.is_null());
    let Some(given) = given else {
        return Ok((on.map(str::to_owned), None));
    };
    let stages = call.documents("pipeline")?;
    for stage in &stages {
        let first = stage.iter().next();
        let name = first.map(|it| it.name_str()).unwrap_or_default();
        if matches!(name, "$out" | "$merge") {
            let text = format!("The aggregation stage {name} cannot be used in a view definition");
            return Err(Refusal::new(Code::OptionNotSupportedOnView, text));
        }
    }
    let reads = call.shared.store.reads();
    let parsed = Pipeline::parse(&stages, &running(call, &reads)?)?;
    if matches!(parsed.first(), Some(Stage::Documents(_))) {
        let text = "$documents is not of a collection: there is no view of it";
        return Err(Refusal::new(Code::InvalidNamespace, text));
    }
    Ok((on.map(str::to_owned), Some(given.bytes.to_vec())))
}

/// `collMod`.
pub(super) fn modify(call: &Call<'_>) -> Outcome<Builder> {
    let unserved = [
        "index",
        "expireAfterSeconds",
        "changeStreamPreAndPostImages",
        "timeseries",
        "dryRun",
        "recordPreImages",
    ];
    let known = [
        "cappedSize",
        "cappedMax",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
    ];
    call.accept(&known, &unserved)?;
    call.check(&[("cappedSize", Shape::Number), ("cappedMax", Shape::Number)])?;
    let name = call.collection()?;
    let size_bytes = size(call, "cappedSize")?;
    let documents_max = documents_max(call, "cappedMax")?;
    let validation = validation(call)?;
    let (on, pipeline) = view(call)?;
    let is_of_view = on.is_some() || pipeline.is_some();
    let is_of_collection = size_bytes.is_some() || documents_max.is_some() || validation.is_any();
    call.shared.store.change_options(&name, |options| {
        match &mut options.view {
            None if is_of_view => {
                let text = "only a view has 'viewOn' and 'pipeline'";
                return Err(invalid(text));
            }
            Some(_) if is_of_collection => {
                let text = "a view has no options but 'viewOn' and 'pipeline'";
                return Err(invalid(text));
            }
            Some(view) => {
                view.on = on.unwrap_or_else(|| view.on.clone());
                view.pipeline = pipeline.unwrap_or_else(|| view.pipeline.clone());
            }
            None => {}
        }
        match &mut options.capped {
            None if size_bytes.is_some() || documents_max.is_some() => {
                let text = "only a capped collection has 'cappedSize' and 'cappedMax'";
                return Err(invalid(text));
            }
            None => {}
            Some(bounds) => {
                bounds.size_bytes = size_bytes.unwrap_or(bounds.size_bytes);
                bounds.documents_max = documents_max.unwrap_or(bounds.documents_max);
            }
        }
        validation.apply(options);
        Ok(())
    })?;
    Ok(Builder::new())
}

/// `convertToCapped`, and `cloneCollectionAsCapped`, which leaves the collection as it is.
pub(super) fn convert(call: &Call<'_>) -> Outcome<Builder> {
    let known = ["size", "max", "toCollection", "bypassDocumentValidation"];
    call.accept(&known, &[])?;
    call.check(&[("toCollection", Shape::Text)])?;
    let from = call.collection()?;
    let size_bytes = match call.body.get("size").and_then(coerced) {
        Some(1..) => size(call, "size")?,
        _ => None,
    };
    let wrong = || invalid("Capped collection size must be greater than zero");
    let bounds = Bounds {
        size_bytes: size_bytes.ok_or_else(wrong)?,
        documents_max: None,
    };
    let to = match call.name {
        "convertToCapped" => from.clone(),
        _ => call.collection_of(call.body.get("toCollection"))?,
    };
    if call.name != "convertToCapped" && from == to {
        let text =
            format!("cloneCollectionAsCapped failed - destination collection {to} already exists");
        return Err(Refusal::new(Code::NamespaceExists, text).into());
    }
    call.shared.store.convert_to_capped(&from, &to, bounds)?;
    call.shared.tell_dropped();
    Ok(Builder::new())
}
