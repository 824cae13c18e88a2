//! Options of collections: those of `create`, of `collMod`, and of what makes a collection capped.

use drumlin_doc::{Builder, Code, Refusal, coerced};
use drumlin_doc_store::{Bounds, CollectionOptions, Outcome};

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
    Ok(CollectionOptions { capped: bounds })
}

/// `collMod`.
pub(super) fn modify(call: &Call<'_>) -> Outcome<Builder> {
    let unserved = [
        "index",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "expireAfterSeconds",
        "changeStreamPreAndPostImages",
        "timeseries",
        "dryRun",
        "recordPreImages",
    ];
    call.accept(&["cappedSize", "cappedMax"], &unserved)?;
    call.check(&[("cappedSize", Shape::Number), ("cappedMax", Shape::Number)])?;
    let name = call.collection()?;
    let size_bytes = size(call, "cappedSize")?;
    let documents_max = documents_max(call, "cappedMax")?;
    call.shared.store.change_options(&name, |options| {
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
        Ok(())
    })?;
    Ok(Builder::new())
}

/// `convertToCapped`, and `cloneCollectionAsCapped`, which leaves the collection as it is.
pub(super) fn convert(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["size", "max", "toCollection"], &[])?;
    let from = call.collection()?;
    let to = match call.name {
        "convertToCapped" => from.clone(),
        _ => call.collection_of(call.body.get("toCollection"))?,
    };
    let bounds = Bounds {
        documents_max: None,
        ..bounds_of(call)?
    };
    call.shared.store.convert_to_capped(&from, &to, bounds)?;
    call.shared.tails.news(None);
    Ok(Builder::new())
}
