//! `$bucket`: values by the boundaries that they lie between.

use drumlin_doc::{Code, Document, Expression, OwnedValue, Refusal, Scope, Value, class, compare};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    /// Sorted, of one class.
    boundaries: Vec<OwnedValue>,
    other: Option<OwnedValue>,
}

impl Buckets {
    /// The boundary at the beginning of the bucket that has `value`, or the default.
    ///
    /// # Errors
    /// `Location40066` where there is neither.
    pub(super) fn of(&self, value: OwnedValue) -> Result<OwnedValue, Refusal> {
        let found = self.boundaries.windows(2).find(|pair| {
            let [low, high] = pair else { return false };
            compare(low.get(), value.get()).is_le() && compare(value.get(), high.get()).is_lt()
        });
        let bucket = found.and_then(|pair| pair.first()).or(self.other.as_ref());
        let none = || {
            let text = "$bucket found a value that is in no bucket, and there is no default";
            Refusal::new(Code::SwitchNoBranch, text)
        };
        bucket.cloned().ok_or_else(none)
    }
}

/// The expression of a bucket, and the buckets.
pub(super) fn parse(of: Document<'_>, scope: &Scope) -> Result<(Expression, Buckets), Refusal> {
    for element in of {
        if !matches!(
            element.name,
            b"groupBy" | b"boundaries" | b"default" | b"output"
        ) {
            let text = format!("Unrecognized option to $bucket: {}.", element.name_str());
            return Err(Refusal::new(Code::BucketUnknown, text));
        }
    }
    let missing = || {
        let text = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        Refusal::new(Code::BucketMissing, text)
    };
    let key = of.get("groupBy").ok_or_else(missing)?;
    let is_expression = key.as_str().is_some_and(|text| text.starts_with('$'))
        || key
            .as_document()
            .and_then(|it| it.iter().next())
            .is_some_and(|it| it.name.starts_with(b"$"));
    if !is_expression {
        let text =
            "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression";
        return Err(Refusal::new(Code::BucketKey, text));
    }
    let wanted = of.get("boundaries").ok_or_else(missing)?;
    let constant = |value: Value<'_>| {
        let value = Expression::parse(value, scope)?.eval(Document::EMPTY)?;
        Ok::<_, Refusal>(value.unwrap_or_else(OwnedValue::null))
    };
    let wrong = |code, text: &str| Refusal::new(code, text);
    let items = wanted.as_array().ok_or_else(|| {
        wrong(
            Code::BucketBoundaries,
            "The $bucket 'boundaries' field must be an array",
        )
    })?;
    let boundaries: Vec<OwnedValue> = items
        .iter()
        .map(|item| constant(item.value))
        .collect::<Result<_, _>>()?;
    if boundaries.len() < 2 {
        let text = "The $bucket 'boundaries' field must have at least 2 values";
        return Err(wrong(Code::BucketFew, text));
    }
    for pair in boundaries.windows(2) {
        let [low, high] = pair else { continue };
        if class(low.kind) != class(high.kind) {
            let text = "All values in the 'boundaries' option to $bucket must have the same type";
            return Err(wrong(Code::BucketTypes, text));
        }
        if compare(low.get(), high.get()).is_ge() {
            let text = "The 'boundaries' option to $bucket must be sorted in ascending order, with no value twice";
            return Err(wrong(Code::BucketOrder, text));
        }
    }
    let other = of.get("default").map(constant).transpose()?;
    if let (Some(other), Some(low), Some(high)) = (&other, boundaries.first(), boundaries.last()) {
        let is_within =
            compare(low.get(), other.get()).is_le() && compare(other.get(), high.get()).is_lt();
        if is_within && class(low.kind) == class(other.kind) {
            let text = "The $bucket 'default' field must be outside of the boundaries";
            return Err(wrong(Code::BucketDefault, text));
        }
    }
    Ok((
        Expression::parse(key, scope)?,
        Buckets { boundaries, other },
    ))
}
