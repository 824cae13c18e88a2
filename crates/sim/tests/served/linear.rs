//! Whether a history could have come from one step a call, each between its beginning and its reply.
//!
//! The search of Wing and Gong with Lowe's memory of states that led nowhere: of the calls that began before any other ended,
//! each is tried as the next step. A call without a reply may be a step at any time after its beginning, or never. `stateright`
//! has such a tester, but its calls without a reply keep their thread busy for ever, and here a client goes on after a power cut
//! or a connection that broke.

use std::collections::HashSet;

use drumlin_resp::Value;

use crate::call::{Call, Group};

/// States that are tried before a history counts as undecided.
const STATES_MAX: usize = 2_000_000;
/// Calls of a history: their set is one number.
const CALLS_MAX: usize = 128;

/// A call and what is known of it. Moments are places in the order of all beginnings and replies.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) call: Call,
    pub(crate) began: u64,
    pub(crate) answered: Option<(u64, Value)>,
}

/// Checks the history of a group.
///
/// # Errors
/// A sentence and the history, if no order of steps explains it.
pub(crate) fn check(group: usize, told: &[Told]) -> Result<(), String> {
    assert!(told.len() <= CALLS_MAX, "{} calls are many", told.len());
    let answered = |set: u128, index: usize| {
        let is_done = set & (1 << index) != 0;
        told[index].answered.is_some() && !is_done
    };
    let mut tried: HashSet<(u128, Group)> = HashSet::new();
    let mut open = vec![(0u128, Group::default())];
    let mut furthest = 0;
    while let Some((done, state)) = open.pop() {
        furthest = furthest.max(done.count_ones());
        let left = (0..told.len()).filter(|index| answered(done, *index));
        let ends = left.filter_map(|index| told[index].answered.as_ref().map(|(at, _)| *at));
        let Some(first_end) = ends.min() else {
            return Ok(());
        };
        for (index, next) in told.iter().enumerate() {
            if done & (1 << index) != 0 || next.began > first_end {
                continue;
            }
            let mut after = state.clone();
            let reply = after.apply(&next.call, group);
            let is_right = next
                .answered
                .as_ref()
                .is_none_or(|(_, told)| *told == reply);
            // Without a reply and without an effect it is no step that matters.
            let is_idle = next.answered.is_none() && after == state;
            let step = (done | 1 << index, after);
            if is_right && !is_idle && tried.insert(step.clone()) {
                open.push(step);
            }
        }
        if tried.len() > STATES_MAX {
            return Err(format!(
                "group {group} is undecided after {STATES_MAX} states"
            ));
        }
    }
    let lines: Vec<String> = told.iter().map(|told| format!("{told:?}")).collect();
    let lines = lines.join("\n");
    Err(format!(
        "group {group}: no order explains more than {furthest} steps of\n{lines}"
    ))
}

#[test]
fn what_cannot_have_been_is_seen() {
    let told = |call: Call, began, answered| Told {
        call,
        began,
        answered,
    };
    let ok = || Value::Simple(b"OK".to_vec());
    let one = || Value::Bulk(b"1".to_vec());
    let set = |value, from, to| told(Call::Set(value), from, Some((to, ok())));
    let get = |value, from, to| told(Call::Get, from, Some((to, value)));
    let open = |value, from| told(Call::Set(value), from, None);
    // Read while it is written, and never unread after that.
    check(0, &[set(1, 0, 3), get(one(), 1, 2)]).expect("it is read early");
    check(0, &[set(1, 0, 1), get(Value::Null, 2, 3)]).expect_err("it is lost");
    check(0, &[open(1, 0), get(one(), 1, 2), get(one(), 3, 4)]).expect("it took effect");
    check(0, &[open(1, 0), get(one(), 1, 2), get(Value::Null, 3, 4)]).expect_err("it goes back");
    let both = || Call::Exec(vec![Call::Push(7), Call::Increment]);
    let lengths = |n: i64| Value::Array(vec![Value::Integer(n), Value::Integer(n)]);
    let list = Value::Array(vec![Value::Bulk(b"7".to_vec())]);
    let exec = told(both(), 0, Some((5, lengths(1))));
    let half = [
        exec.clone(),
        told(Call::List, 1, Some((2, list.clone()))),
        told(Call::Count, 3, Some((4, Value::Null))),
    ];
    check(0, &half).expect_err("half of it is seen");
    let whole = [exec, told(Call::List, 1, Some((2, list)))];
    check(0, &whole).expect("all of it is seen");
}
