//! What clients ask for, as commands, and what one step of a server would answer: the naive twin.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_resp::Value;

/// Members of a sorted set.
const MEMBERS: u64 = 4;

/// A call on a group of keys: a register, a counter, a list, a sorted set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Set(u64),
    Get,
    Increment,
    Count,
    Push(u64),
    Pop,
    /// For so many milliseconds.
    WaitAndPop(u64),
    List,
    Raise {
        member: u64,
        by: i64,
    },
    Scores,
    Exec(Vec<Call>),
}

impl Call {
    /// A call, with `unique` as what it writes.
    pub(crate) fn draw(rng: &mut Rng, unique: u64) -> Self {
        match rng.below(13) {
            10 | 11 => {
                let parts = (0..2 + rng.below(3)).map(|_| Self::simple(rng, unique));
                Self::Exec(parts.collect())
            }
            12 => Self::WaitAndPop(1 + rng.below(700)),
            _ => Self::simple(rng, unique),
        }
    }

    /// How long it may wait for its key.
    pub(crate) fn waits(&self) -> Duration {
        match self {
            Self::WaitAndPop(millis) => Duration::from_millis(*millis),
            _ => Duration::ZERO,
        }
    }

    fn simple(rng: &mut Rng, unique: u64) -> Self {
        match rng.below(10) {
            0 => Self::Set(unique),
            1 => Self::Get,
            2 => Self::Increment,
            3 => Self::Count,
            4 | 5 => Self::Push(unique),
            6 => Self::Pop,
            7 => Self::List,
            8 => Self::Raise {
                member: rng.below(MEMBERS),
                by: 1 + rng.below(9) as i64,
            },
            _ => Self::Scores,
        }
    }

    /// The calls that read all of a group.
    pub(crate) fn reads() -> [Self; 4] {
        [Self::Get, Self::Count, Self::List, Self::Scores]
    }

    /// The commands of the call on a group. All but the last are answered by what says nothing.
    pub(crate) fn commands(&self, group: usize) -> Vec<Vec<String>> {
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let one = |text: String| vec![words(text)];
        match self {
            Self::Set(value) => one(format!("SET r:{group} {value}")),
            Self::Get => one(format!("GET r:{group}")),
            Self::Increment => one(format!("INCR c:{group}")),
            Self::Count => one(format!("GET c:{group}")),
            Self::Push(value) => one(format!("RPUSH l:{group} {value}")),
            Self::Pop => one(format!("LPOP l:{group}")),
            Self::WaitAndPop(millis) => {
                one(format!("BLPOP l:{group} {}", *millis as f64 / 1_000.0))
            }
            Self::List => one(format!("LRANGE l:{group} 0 -1")),
            Self::Raise { member, by } => one(format!("ZINCRBY z:{group} {by} {member}")),
            Self::Scores => one(format!("ZRANGE z:{group} 0 -1 WITHSCORES")),
            Self::Exec(calls) => {
                let mut all = one("MULTI".to_owned());
                all.extend(calls.iter().flat_map(|call| call.commands(group)));
                all.push(words("EXEC".to_owned()));
                all
            }
        }
    }
}

fn text(value: impl ToString) -> Value {
    Value::Bulk(value.to_string().into_bytes())
}

/// What a group holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    register: Option<u64>,
    counter: i64,
    list: VecDeque<u64>,
    scores: BTreeMap<u64, i64>,
}

impl Group {
    /// Carries out a call in one step; the reply.
    pub(crate) fn apply(&mut self, call: &Call, group: usize) -> Value {
        match call {
            Call::Set(value) => {
                self.register = Some(*value);
                Value::Simple(b"OK".to_vec())
            }
            Call::Get => self.register.map_or(Value::Null, text),
            Call::Increment => {
                self.counter += 1;
                Value::Integer(self.counter)
            }
            Call::Count if self.counter == 0 => Value::Null,
            Call::Count => text(self.counter),
            Call::Push(value) => {
                self.list.push_back(*value);
                Value::Integer(self.list.len() as i64)
            }
            Call::Pop => self.list.pop_front().map_or(Value::Null, text),
            Call::WaitAndPop(_) => match self.list.pop_front() {
                None => Value::NullArray,
                Some(value) => Value::Array(vec![text(format!("l:{group}")), text(value)]),
            },
            Call::List => Value::Array(self.list.iter().map(text).collect()),
            Call::Raise { member, by } => {
                let score = self.scores.entry(*member).or_default();
                *score += by;
                text(*score)
            }
            Call::Scores => {
                let mut sorted: Vec<_> = self.scores.iter().collect();
                sorted.sort_by_key(|(member, score)| (**score, **member));
                let both = sorted
                    .into_iter()
                    .flat_map(|(member, score)| [text(member), text(score)]);
                Value::Array(both.collect())
            }
            Call::Exec(calls) => {
                let replies = calls.iter().map(|call| self.apply(call, group));
                Value::Array(replies.collect())
            }
        }
    }
}
