//! `$group`: documents of one key become one.

use std::collections::{HashMap, HashSet};

use drumlin_doc::{
    Builder, Code, Deviation, Document, Expression, Number, OwnedValue, Refusal, Scope, Value, add,
    compare, keystring, mean, merged,
};

use crate::sorting::too_much;
use crate::wire::limits::STAGE_BYTES_MAX;

use super::bucket::Buckets;

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
    DeviationOfAll,
    DeviationOfSample,
    Merge,
}

#[derive(Clone, Debug)]
enum State {
    Sum(OwnedValue),
    /// The sum of what are no decimals, that of those, and how many there are.
    Average(f64, Option<OwnedValue>, u64),
    One(Option<OwnedValue>),
    List(Vec<OwnedValue>, HashSet<Vec<u8>>),
    Deviation(Deviation),
    Merge(Vec<u8>),
}

/// See the module. Groups come out in the order in which their first documents came.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    key: Expression,
    buckets: Option<Buckets>,
    fields: Vec<(String, Kind, Expression)>,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<(OwnedValue, Vec<State>)>,
    bytes: usize,
}

impl Group {
    /// # Errors
    /// Of expressions; `InvalidPipelineOperator` for unknown accumulators, by name.
    pub(super) fn parse(of: Document<'_>, scope: &Scope) -> Result<Self, Refusal> {
        let id = of
            .get("_id")
            .ok_or_else(|| Refusal::bad_value("a group specification must include an _id"))?;
        let fields = of.iter().filter(|element| element.name != b"_id");
        let fields = fields.map(|element| accumulator(element.name_str(), element.value, scope));
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(Self::new(Expression::parse(id, scope)?, fields))
    }

    /// Groups by the bucket that the value of an expression is in.
    pub(super) fn of_buckets(
        key: Expression,
        buckets: Buckets,
        output: Option<Document<'_>>,
        scope: &Scope,
    ) -> Result<Self, Refusal> {
        let fields = match output {
            Some(output) => {
                let fields = output.iter();
                let fields = fields.map(|it| accumulator(it.name_str(), it.value, scope));
                fields.collect::<Result<_, _>>()?
            }
            None => vec![count()],
        };
        let mut group = Self::new(key, fields);
        group.buckets = Some(buckets);
        Ok(group)
    }

    fn new(key: Expression, fields: Vec<(String, Kind, Expression)>) -> Self {
        Self {
            key,
            buckets: None,
            fields,
            places: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
        }
    }

    /// The count of each value of an expression, as `$sortByCount` has it.
    pub(super) fn counts(of: Value<'_>, scope: &Scope) -> Result<Self, Refusal> {
        Ok(Self::new(Expression::parse(of, scope)?, vec![count()]))
    }

    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`; `CommandNotSupported` for deviations of decimals.
    pub(super) fn push(&mut self, document: Document<'_>) -> Result<(), Refusal> {
        let key = self.key.eval(document)?.unwrap_or_else(OwnedValue::null);
        let key = match &self.buckets {
            Some(buckets) => buckets.of(key)?,
            None => key,
        };
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
                self.bytes += state.take(*kind, expression.eval(document)?)?;
            }
        }
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("$group")),
            false => Ok(()),
        }
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The groups.
    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        if self.buckets.is_some() {
            self.groups.sort_by(|a, b| compare(a.0.get(), b.0.get()));
        }
        let fields = self.fields;
        let one = |(key, states): (OwnedValue, Vec<State>)| {
            let mut out = Builder::new();
            out.value("_id", key.get());
            for ((name, kind, _), state) in fields.iter().zip(states) {
                out.value(name, state.finish(*kind).get());
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
            Self::Average => State::Average(0.0, None, 0),
            Self::Push | Self::AddToSet => State::List(Vec::new(), HashSet::new()),
            Self::DeviationOfAll | Self::DeviationOfSample => {
                State::Deviation(Deviation::default())
            }
            Self::Merge => State::Merge(Document::EMPTY.0.to_vec()),
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
            (Self::Average(sum, decimals, count), Some(value)) if value.kind.is_number() => {
                match (Number::of(value.get()).and_then(Number::as_f64), &decimals) {
                    (Some(number), _) => *sum += number,
                    (None, Some(before)) => *decimals = Some(add(before.get(), value.get())?),
                    (None, None) => *decimals = Some(value),
                }
                *count += 1;
                Ok(0)
            }
            (Self::Sum(_) | Self::Average(..), _) => Ok(0),
            (Self::Deviation(state), value) => {
                let number = value.filter(|value| value.kind.is_number());
                if let Some(number) = number {
                    let double = Number::of(number.get()).and_then(Number::as_f64);
                    state.add(
                        double
                            .ok_or_else(|| Refusal::not_supported("a deviation of decimal128"))?,
                    );
                }
                Ok(0)
            }
            (Self::Merge(all), value) => merge(all, value),
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

    fn finish(self, kind: Kind) -> OwnedValue {
        match self {
            Self::Sum(sum) => sum,
            Self::Average(_, _, 0) => Value::NULL.to_owned(),
            Self::Average(sum, decimals, count) => {
                let double = OwnedValue::double(sum);
                let all = match decimals {
                    Some(decimals) if sum == 0.0 => decimals,
                    Some(decimals) => add(decimals.get(), double.get()).unwrap_or(double),
                    None => double,
                };
                mean(all.get(), count)
            }
            Self::One(one) => one.unwrap_or_else(|| Value::NULL.to_owned()),
            Self::List(list, _) => OwnedValue::array(list),
            Self::Deviation(state) => state.value(kind == Kind::DeviationOfSample),
            Self::Merge(all) => OwnedValue::document(all),
        }
    }
}

/// Takes the fields of a document over those that are there.
fn merge(all: &mut Vec<u8>, value: Option<OwnedValue>) -> Result<usize, Refusal> {
    let Some(value) = value.filter(|value| !value.get().is_null()) else {
        return Ok(0);
    };
    if value.kind != drumlin_doc::Kind::Document {
        let kind = value.kind.name();
        let text = format!("$mergeObjects requires object inputs, but input is of type {kind}");
        return Err(Refusal::new(Code::MergeObjects, text));
    }
    let before = all.len();
    *all = merged(Document(all), Document(&value.bytes));
    Ok(all.len().saturating_sub(before))
}

fn count() -> (String, Kind, Expression) {
    let one = Expression::Literal(OwnedValue::int32(1));
    ("count".to_owned(), Kind::Sum, one)
}

fn accumulator(
    name: &str,
    value: Value<'_>,
    scope: &Scope,
) -> Result<(String, Kind, Expression), Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let operator = value
        .as_document()
        .filter(|_| value.kind == drumlin_doc::Kind::Document);
    let Some(operator) = operator.filter(|it| !it.is_empty()) else {
        let text = format!("The field '{name}' must be an accumulator object");
        return refuse(Code::AccumulatorShape, text);
    };
    if name.contains('.') {
        let text = format!("The field name '{name}' cannot contain '.'");
        return refuse(Code::AccumulatorDot, text);
    }
    if name.starts_with('$') {
        let text = format!("The field name '{name}' cannot be an operator name");
        return refuse(Code::AccumulatorDollar, text);
    }
    if operator.iter().count() != 1 {
        let text = format!("The field '{name}' must specify one accumulator");
        return refuse(Code::AccumulatorCount, text);
    }
    let first = operator.iter().next();
    let (operator, value) = first.map_or(("", Value::NULL), |it| (it.name_str(), it.value));
    let kind = match operator {
        "$sum" => Kind::Sum,
        "$count" => return Ok((name.to_owned(), Kind::Sum, count().2)),
        "$avg" => Kind::Average,
        "$min" => Kind::Min,
        "$max" => Kind::Max,
        "$first" => Kind::First,
        "$last" => Kind::Last,
        "$push" => Kind::Push,
        "$addToSet" => Kind::AddToSet,
        "$stdDevPop" => Kind::DeviationOfAll,
        "$stdDevSamp" => Kind::DeviationOfSample,
        "$mergeObjects" => Kind::Merge,
        other => {
            let text =
                format!("unknown group operator '{other}': it is not supported by this server");
            return refuse(Code::AccumulatorUnknown, text);
        }
    };
    if value.kind == drumlin_doc::Kind::Array
        && value.as_array().is_some_and(|it| it.iter().count() != 1)
    {
        let text = format!("The {operator} accumulator is a unary operator");
        return refuse(Code::AccumulatorUnary, text);
    }
    Ok((name.to_owned(), kind, Expression::parse(value, scope)?))
}
