//! `$group`: documents of one key become one.

use std::collections::{HashMap, HashSet};

use drumlin_doc::{
    Builder, Code, Document, Number, OwnedValue, Refusal, Value, add, compare, keystring,
};

use crate::query::too_much;
use crate::wire::limits::STAGE_BYTES_MAX;

use super::expression::{Expression, array};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Average,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
}

#[derive(Clone, Debug)]
enum State {
    Sum(OwnedValue),
    Average(f64, u64),
    One(Option<OwnedValue>),
    List(Vec<OwnedValue>, HashSet<Vec<u8>>),
}

/// See the module. Groups come out in the order in which their first documents came.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    key: Expression,
    fields: Vec<(String, Kind, Expression)>,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<(OwnedValue, Vec<State>)>,
    bytes: usize,
}

impl Group {
    /// # Errors
    /// Of expressions; `InvalidPipelineOperator` for unknown accumulators, by name.
    pub(super) fn parse(of: Document<'_>) -> Result<Self, Refusal> {
        let id = of
            .get("_id")
            .ok_or_else(|| Refusal::bad_value("a group specification must include an _id"))?;
        let mut fields = Vec::new();
        for element in of.iter().filter(|element| element.name != b"_id") {
            let name = element.name_str();
            let wrong =
                || Refusal::bad_value(format!("The field '{name}' must be an accumulator object"));
            let accumulator = element
                .value
                .as_document()
                .and_then(|it| it.iter().next())
                .ok_or_else(wrong)?;
            if name.contains('.') || name.starts_with('$') {
                return Err(Refusal::bad_value(format!(
                    "The field name '{name}' cannot be used in $group"
                )));
            }
            let kind = match accumulator.name_str() {
                "$sum" => Kind::Sum,
                "$count" => {
                    fields.push((
                        name.to_owned(),
                        Kind::Sum,
                        Expression::Literal(OwnedValue::int32(1)),
                    ));
                    continue;
                }
                "$avg" => Kind::Average,
                "$min" => Kind::Min,
                "$max" => Kind::Max,
                "$first" => Kind::First,
                "$last" => Kind::Last,
                "$push" => Kind::Push,
                "$addToSet" => Kind::AddToSet,
                other => {
                    let text = format!(
                        "unknown group operator '{other}': it is not supported by this server"
                    );
                    return Err(Refusal::new(Code::InvalidPipelineOperator, text));
                }
            };
            fields.push((name.to_owned(), kind, Expression::parse(accumulator.value)?));
        }
        Ok(Self::new(Expression::parse(id)?, fields))
    }

    fn new(key: Expression, fields: Vec<(String, Kind, Expression)>) -> Self {
        Self {
            key,
            fields,
            places: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
        }
    }

    /// The count of each value of an expression, as `$sortByCount` has it.
    pub(super) fn counts(of: Value<'_>) -> Result<Self, Refusal> {
        let one = Expression::Literal(OwnedValue::int32(1));
        Ok(Self::new(
            Expression::parse(of)?,
            vec![("count".to_owned(), Kind::Sum, one)],
        ))
    }

    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`; `CommandNotSupported` for sums of decimals.
    pub(super) fn push(&mut self, document: Document<'_>) -> Result<(), Refusal> {
        let key = self
            .key
            .eval(document)
            .unwrap_or_else(|| Value::NULL.to_owned());
        let bytes = keystring::key_of(key.get());
        let place = match self.places.get(&bytes) {
            Some(place) => *place,
            None => {
                self.bytes += 2 * bytes.len() + 200 * (1 + self.fields.len());
                self.places.insert(bytes, self.groups.len());
                self.groups.push((
                    key,
                    self.fields
                        .iter()
                        .map(|(_, kind, _)| kind.begin())
                        .collect(),
                ));
                self.groups.len() - 1
            }
        };
        if let Some((_, states)) = self.groups.get_mut(place) {
            for (state, (_, kind, expression)) in states.iter_mut().zip(&self.fields) {
                self.bytes += state.take(*kind, expression.eval(document))?;
            }
        }
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("$group")),
            false => Ok(()),
        }
    }

    /// The groups.
    pub(super) fn finish(self) -> Vec<Vec<u8>> {
        let fields = self.fields;
        let one = |(key, states): (OwnedValue, Vec<State>)| {
            let mut out = Builder::new();
            out.value("_id", key.get());
            for ((name, _, _), state) in fields.iter().zip(states) {
                out.value(name, state.finish().get());
            }
            out.finish()
        };
        self.groups.into_iter().map(one).collect()
    }
}

impl Kind {
    fn begin(self) -> State {
        match self {
            Self::Sum => State::Sum(OwnedValue::int32(0)),
            Self::Average => State::Average(0.0, 0),
            Self::Push | Self::AddToSet => State::List(Vec::new(), HashSet::new()),
            _ => State::One(None),
        }
    }
}

impl State {
    /// Takes a value in; how many bytes more are kept.
    fn take(&mut self, kind: Kind, value: Option<OwnedValue>) -> Result<usize, Refusal> {
        let size = value.as_ref().map_or(0, |value| value.bytes.len() + 32);
        match (self, value) {
            (Self::Sum(sum), Some(value)) if value.kind.is_number() => {
                *sum = match add(sum.get(), value.get()) {
                    // Beyond 64 bits it goes on as a double.
                    Err(refusal) if refusal.code == Code::BadValue => {
                        let double =
                            |value: &OwnedValue| Number::of(value.get()).and_then(Number::as_f64);
                        OwnedValue::double(
                            double(sum).unwrap_or_default() + double(&value).unwrap_or_default(),
                        )
                    }
                    other => other?,
                };
                Ok(0)
            }
            (Self::Average(sum, count), Some(value)) if value.kind.is_number() => {
                let number = Number::of(value.get()).and_then(Number::as_f64);
                *sum += number.ok_or_else(|| Refusal::not_supported("$avg of decimal128"))?;
                *count += 1;
                Ok(0)
            }
            (Self::Sum(_) | Self::Average(..), _) => Ok(0),
            (Self::One(one), value) => {
                let is_null = value
                    .as_ref()
                    .is_none_or(|value| value.kind == drumlin_doc::Kind::Null);
                let is_better = match (kind, one.as_ref(), &value) {
                    (Kind::First, now, _) => now.is_none(),
                    (Kind::Last, ..) => true,
                    (_, _, _) if is_null => false,
                    (_, None, _) => true,
                    (Kind::Min, Some(now), Some(value)) => compare(value.get(), now.get()).is_lt(),
                    (_, Some(now), Some(value)) => compare(value.get(), now.get()).is_gt(),
                    _ => false,
                };
                if is_better {
                    *one = Some(value.unwrap_or_else(|| Value::NULL.to_owned()));
                    return Ok(size);
                }
                Ok(0)
            }
            (Self::List(list, seen), Some(value)) => {
                let is_new = kind == Kind::Push || seen.insert(keystring::key_of(value.get()));
                if is_new {
                    list.push(value);
                }
                Ok(if is_new { 2 * size } else { 0 })
            }
            (Self::List(..), None) => Ok(0),
        }
    }

    fn finish(self) -> OwnedValue {
        match self {
            Self::Sum(sum) => sum,
            Self::Average(_, 0) => Value::NULL.to_owned(),
            #[expect(clippy::cast_precision_loss, reason = "a mean is a double")]
            Self::Average(sum, count) => OwnedValue::double(sum / count as f64),
            Self::One(one) => one.unwrap_or_else(|| Value::NULL.to_owned()),
            Self::List(list, _) => array(list.into_iter()),
        }
    }
}
