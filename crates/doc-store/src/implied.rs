//! Whether one condition follows from others: then a partial index has all that a query asks for. Where it is not seen, no harm is
//! done.

use std::cmp::Ordering;

use drumlin_doc::{Filter, OwnedValue, Path, Predicate, Test, class, compare};

/// Whether documents for which all of `fields` hold are ones that `filter` finds.
pub(crate) fn follows(filter: &Filter, fields: &[(&Path, &Test)]) -> bool {
    match filter {
        Filter::And(parts) => parts.iter().all(|part| follows(part, fields)),
        Filter::Or(parts) => parts.iter().any(|part| follows(part, fields)),
        Filter::Field(path, test) => {
            let own = fields.iter().filter(|(of, _)| *of == path);
            let own: Vec<&Test> = own.map(|(_, test)| *test).collect();
            of_test(test, &own)
        }
        Filter::Nor(_) | Filter::Expression(_) | Filter::Schema(_) => false,
    }
}

fn of_test(test: &Test, known: &[&Test]) -> bool {
    if let Test::All(tests) = test {
        return tests.iter().all(|test| of_test(test, known));
    }
    known.iter().any(|known| match known {
        Test::All(tests) => tests.iter().any(|known| of_test(test, &[known])),
        known => *known == test || of_one(test, known),
    })
}

fn of_one(test: &Test, known: &Test) -> bool {
    let Test::Any(known) = known else {
        return false;
    };
    match (test, known) {
        (Test::Exists, Predicate::Equal(value)) => !value.get().is_null(),
        (Test::Exists, Predicate::In(values)) => values.iter().all(|it| !it.get().is_null()),
        (Test::Exists, Predicate::Less(value) | Predicate::Greater(value)) => {
            !value.get().is_null()
        }
        (Test::Exists, Predicate::LessOrEqual(value) | Predicate::GreaterOrEqual(value)) => {
            !value.get().is_null()
        }
        (Test::Exists, Predicate::Regex(_) | Predicate::Type(_) | Predicate::Mod(..)) => true,
        (Test::Any(wanted), Predicate::In(values)) if !values.is_empty() => values
            .iter()
            .all(|value| of_predicate(wanted, &Predicate::Equal(value.clone()))),
        (Test::Any(wanted), known) => of_predicate(wanted, known),
        _ => false,
    }
}

/// Whether each value for which `known` holds is one for which `wanted` holds. An array is looked at by its elements, and one of
/// them is enough for both.
fn of_predicate(wanted: &Predicate, known: &Predicate) -> bool {
    let order = |a: &OwnedValue, b: &OwnedValue| {
        (class(a.kind) == class(b.kind)).then(|| compare(a.get(), b.get()))
    };
    let is = |a: &OwnedValue, b: &OwnedValue, wanted: &[Ordering]| {
        order(a, b).is_some_and(|order| wanted.contains(&order))
    };
    const UP: &[Ordering] = &[Ordering::Greater];
    const UP_OR_SAME: &[Ordering] = &[Ordering::Greater, Ordering::Equal];
    const DOWN: &[Ordering] = &[Ordering::Less];
    const DOWN_OR_SAME: &[Ordering] = &[Ordering::Less, Ordering::Equal];
    let is_number = |value: &OwnedValue| {
        drumlin_doc::Number::of(value.get()).is_none_or(|number| !number.is_nan())
    };
    match (wanted, known) {
        (Predicate::Equal(bound), Predicate::Equal(value)) => is(value, bound, &[Ordering::Equal]),
        (Predicate::In(values), Predicate::Equal(value)) => {
            values.iter().any(|it| is(value, it, &[Ordering::Equal]))
        }
        // What is no number is neither above nor below one.
        (_, Predicate::Equal(value)) if !is_number(value) => false,
        (Predicate::Greater(bound), Predicate::Equal(value) | Predicate::GreaterOrEqual(value)) => {
            is(value, bound, UP)
        }
        (Predicate::Greater(bound), Predicate::Greater(value)) => is(value, bound, UP_OR_SAME),
        (
            Predicate::GreaterOrEqual(bound),
            Predicate::Equal(value) | Predicate::Greater(value) | Predicate::GreaterOrEqual(value),
        ) => is(value, bound, UP_OR_SAME),
        (Predicate::Less(bound), Predicate::Equal(value) | Predicate::LessOrEqual(value)) => {
            is(value, bound, DOWN)
        }
        (Predicate::Less(bound), Predicate::Less(value)) => is(value, bound, DOWN_OR_SAME),
        (
            Predicate::LessOrEqual(bound),
            Predicate::Equal(value) | Predicate::Less(value) | Predicate::LessOrEqual(value),
        ) => is(value, bound, DOWN_OR_SAME),
        _ => false,
    }
}
