//! Columns for the fields of a sample.
//!
//! Each field gets the type that takes the fewest bits over the sample, and a record that does not fit
//! costs as much as a record without a template. Numbers are tried alone and counted from every earlier
//! number, by sum and by product: a receipt follows its shipping by days, a price is a quantity times
//! something.

use std::collections::HashMap;

use super::column::{CHOICES_MAX, COLUMNS_MAX, Column, Relation, choice_bits};
use super::number::Style;

/// Bits that a record which does not fit costs.
const MISS_BITS: u64 = 500;
/// Bits that a digit and any other byte of a text cost, about, and each text besides.
const TEXT_BITS: (u64, u64, u64) = (4, 2, 8);
/// Different styles that one field's values are counted for.
const STYLES_TRIED: usize = 16;
/// A relation is not worth it for less than this many bits a record.
const RELATION_BITS_MIN: u64 = 1;
/// Records by which relations are looked over before one is judged by all. There are as many relations as
/// pairs of columns: all judged by all records, sixty columns of numbers took ten seconds.
const ROUGH_RECORDS: usize = 512;

/// Types for the columns of `rows`, each the fields between `literals`: the literals that remain and the
/// columns between them. A field that never varies becomes literal. None when there are no rows, or too
/// many fields.
pub fn type_columns(
    literals: &[Vec<u8>],
    rows: &[Vec<&[u8]>],
) -> Option<(Vec<Vec<u8>>, Vec<Column>)> {
    let first_row = rows.first()?;
    let mut kept = Vec::new();
    let mut joined: Vec<Vec<u8>> = vec![literals.first()?.clone()];
    for (field, literal) in literals.iter().skip(1).enumerate() {
        let value = *first_row.get(field)?;
        let constant = rows.iter().all(|row| row.get(field) == Some(&value));
        if constant {
            let last = joined.last_mut()?;
            last.extend_from_slice(value);
            last.extend_from_slice(literal);
        } else {
            kept.push(field);
            joined.push(literal.clone());
        }
    }
    (kept.len() <= COLUMNS_MAX).then_some(())?;
    let mut numbers: Vec<Vec<Option<i64>>> = Vec::new();
    let mut columns = Vec::new();
    for (field, literal) in kept.iter().zip(&mut joined) {
        let values = rows.iter().filter_map(|row| row.get(*field).copied());
        let values: Vec<&[u8]> = values.collect();
        let mut typed = column(&values, &numbers);
        if typed.0 == Column::Text {
            // The common prefix of all values may hide a number behind it.
            let prefix = common_prefix(&values);
            let rest = values.iter().filter_map(|value| value.strip_prefix(prefix));
            let without = column(&rest.collect::<Vec<_>>(), &numbers);
            if without.0 != Column::Text {
                literal.extend_from_slice(prefix);
                typed = without;
            }
        }
        columns.push(typed.0);
        numbers.push(typed.1);
    }
    Some((joined, columns))
}

/// The common prefix of `values`, up to a digit that may belong to a number.
fn common_prefix<'v>(values: &[&'v [u8]]) -> &'v [u8] {
    let first = values.first().copied().unwrap_or_default();
    let shared = |len: usize, value: &&[u8]| {
        let same = first.iter().zip(*value).take(len);
        same.take_while(|(a, b)| a == b).count()
    };
    let (mut prefix, _) = first.split_at(values.iter().fold(first.len(), shared));
    while let Some((b'0'..=b'9', shorter)) = prefix.split_last() {
        prefix = shorter;
    }
    prefix
}

/// The cheapest column for `values`, and their numbers if it is one of numbers.
fn column(values: &[&[u8]], earlier: &[Vec<Option<i64>>]) -> (Column, Vec<Option<i64>>) {
    let bytes = values.iter().copied().flatten();
    let text_cost: u64 = bytes
        .map(|byte| {
            if byte.is_ascii_digit() {
                TEXT_BITS.0
            } else {
                TEXT_BITS.1
            }
        })
        .sum();
    let text_cost = text_cost + values.len() as u64 * TEXT_BITS.2;
    let mut best = (text_cost, Column::Text);
    if let Some(choice) = choice(values)
        && choice.0 < best.0
    {
        best = choice;
    }
    let style = common_style(values);
    let parsed: Vec<Option<i64>> = match style {
        Some(style) => values.iter().map(|value| style.parse(value)).collect(),
        None => vec![None; values.len()],
    };
    if let Some(style) = style {
        let number = number(style, &parsed, earlier);
        // Of equal ones the number: it takes values the sample did not have.
        if number.0 <= best.0 {
            return (number.1, parsed);
        }
    }
    (best.1, vec![None; values.len()])
}

/// The few values there are, the most frequent first.
fn choice(values: &[&[u8]]) -> Option<(u64, Column)> {
    let mut uses: HashMap<&[u8], u64> = HashMap::new();
    for value in values {
        *uses.entry(value).or_default() += 1;
        (uses.len() <= CHOICES_MAX).then_some(())?;
    }
    let mut uses: Vec<(&[u8], u64)> = uses.into_iter().collect();
    uses.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let stored: u64 = uses
        .iter()
        .map(|(value, _)| 8 * value.len() as u64 + 8)
        .sum();
    let cost = values.len() as u64 * u64::from(choice_bits(uses.len())) + stored;
    // Values seen once speak of others that were not seen.
    let once = uses.iter().filter(|(_, uses)| *uses == 1).count() as u64;
    let values = uses.into_iter().map(|(value, _)| value.to_vec()).collect();
    Some((cost + once * MISS_BITS, Column::Choice { values }))
}

/// The style that most of some values could have.
fn common_style(values: &[&[u8]]) -> Option<Style> {
    let mut uses: Vec<(Style, usize)> = Vec::new();
    for style in values.iter().filter_map(|value| Style::guess(value)) {
        match uses.iter().position(|(known, _)| *known == style) {
            Some(known) => uses[known].1 += 1,
            None if uses.len() < STYLES_TRIED => uses.push((style, 1)),
            None => {}
        }
    }
    let padded = uses.iter().find(|(style, _)| {
        let width = |value: &&[u8]| *style == Style::Padded(value.len().min(255) as u8);
        matches!(style, Style::Padded(_)) && values.iter().all(width)
    });
    if let Some((style, _)) = padded {
        // Values of one length, some with zeros in front: the others only happen to have none.
        return Some(*style).filter(|style| Style::from_bytes(style.bytes()).is_some());
    }
    let known = uses.into_iter().filter(|&(style, _)| {
        // Only styles that can be stored and read back.
        Style::from_bytes(style.bytes()).is_some()
    });
    known
        .max_by_key(|(_, count)| *count)
        .map(|(style, _)| style)
}

/// The cheapest column of numbers.
fn number(style: Style, parsed: &[Option<i64>], earlier: &[Vec<Option<i64>>]) -> (u64, Column) {
    let (mut cost, range) = narrowest(parsed.iter().copied());
    let mut best = (range, Relation::Alone);
    let step = parsed.len().div_ceil(ROUGH_RECORDS).max(1);
    let rough_least = RELATION_BITS_MIN * parsed.len().div_ceil(step) as u64 / 2;
    let (mut rough_cost, _) = narrowest(parsed.iter().step_by(step).copied());
    for (other, theirs) in earlier.iter().enumerate() {
        if theirs.iter().all(Option::is_none) {
            continue;
        }
        for relation in [Relation::Sum(0), Relation::Product(0)] {
            let solved = || {
                let both = parsed.iter().zip(theirs);
                both.map(|(number, their)| relation.solve((*number)?, &[(*their)?]))
            };
            let (their_rough_cost, _) = narrowest(solved().step_by(step));
            if their_rough_cost.saturating_add(rough_least) > rough_cost {
                continue;
            }
            let (their_cost, range) = narrowest(solved());
            let least = RELATION_BITS_MIN * parsed.len() as u64;
            if their_cost.saturating_add(least) <= cost {
                let relation = match relation {
                    Relation::Sum(_) => Relation::Sum(other),
                    _ => Relation::Product(other),
                };
                (cost, best) = (their_cost, (range, relation));
                rough_cost = their_rough_cost;
            }
        }
    }
    let ((base, bits), relation) = best;
    let column = Column::Number {
        style,
        base,
        bits,
        relation,
    };
    (cost, column)
}

/// The cheapest range of a power of two, with numbers outside counted as misses: its cost, then its
/// least number and its bits. The range's slack goes to both sides.
pub(super) fn narrowest(numbers: impl Iterator<Item = Option<i64>>) -> (u64, (i64, u32)) {
    let mut misses = 0;
    let mut sorted: Vec<i64> = Vec::new();
    for number in numbers {
        match number {
            Some(number) => sorted.push(number),
            None => misses += 1,
        }
    }
    sorted.sort_unstable();
    let mut best = (u64::MAX, (0, 0));
    for bits in 0..=64u32 {
        let (mut inside, mut from, mut best_from) = (0, 0, 0);
        for (to, &high) in sorted.iter().enumerate() {
            while bits < 64 && high.abs_diff(sorted[from]) >> bits != 0 {
                from += 1;
            }
            if to + 1 - from > inside {
                (inside, best_from) = (to + 1 - from, from);
            }
        }
        let outside = (sorted.len() - inside + misses) as u64;
        let total = (inside as u64 * u64::from(bits)).saturating_add(outside * MISS_BITS);
        if total < best.0 && inside > 0 {
            let (low, high) = (sorted[best_from], sorted[best_from + inside - 1]);
            let span = high.abs_diff(low);
            let full = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            let base = low.saturating_sub_unsigned(full.saturating_sub(span) / 4);
            let base = if low >= 0 { base.max(0) } else { base };
            best = (total, (base, bits));
        }
        if inside == sorted.len() {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::skeletons;
    use drumlin_base::rng::Rng;

    fn typed(records: &[String]) -> (Vec<Vec<u8>>, Vec<Column>) {
        let sample: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();
        let literals = skeletons(&sample).remove(0);
        let rows: Vec<Vec<&[u8]>> = sample
            .iter()
            .map(|record| record.split(|&byte| byte == b'|').collect())
            .collect();
        let (literals, columns) = type_columns(&literals, &rows).expect("rows");
        (literals, columns)
    }

    #[test]
    fn relations_are_found() {
        let mut rng = Rng::new(3);
        let records: Vec<String> = (0..3000)
            .map(|_| {
                let (quantity, price) = (1 + rng.below(50), 90_000 + rng.below(100_000));
                let day = rng.below(20_000);
                let total = quantity * price;
                let flag = ["A", "B", "C"][rng.below(3) as usize];
                format!(
                    "{quantity}|same|{}.{:02}|{}|{}|{flag}",
                    total / 100,
                    total % 100,
                    day + 17,
                    day + 20 + rng.below(4)
                )
            })
            .collect();
        let (literals, columns) = typed(&records);
        assert_eq!(literals[1], b"|same|");
        let relation = |column: &Column| match column {
            Column::Number { relation, bits, .. } => (*relation, *bits),
            other => panic!("not a number: {other:?}"),
        };
        assert_eq!(relation(&columns[0]), (Relation::Alone, 6));
        assert_eq!(relation(&columns[1]), (Relation::Product(0), 17));
        assert_eq!(relation(&columns[3]), (Relation::Sum(2), 2));
        assert!(matches!(&columns[4], Column::Choice { values } if values.len() == 3));
    }

    #[test]
    fn a_few_outliers_do_not_widen_a_column() {
        let numbers = (0..1000).map(|n| Some(if n == 500 { i64::MAX } else { n % 64 }));
        let (_, (base, bits)) = narrowest(numbers);
        assert_eq!((base, bits), (0, 6));
        let (_, (base, bits)) = narrowest([Some(i64::MIN), Some(i64::MAX)].into_iter());
        assert!(bits == 0 || (base == i64::MIN && bits == 64));
    }

    #[test]
    fn a_number_behind_a_prefix_is_a_number() {
        let mut rng = Rng::new(6);
        let records: Vec<String> = (0..3000)
            .map(|n| format!("{n}|user-{:08}|x", rng.below(50_000_000)))
            .collect();
        let (literals, columns) = typed(&records);
        assert_eq!(literals[1], b"|user-");
        assert!(matches!(
            &columns[1],
            Column::Number {
                style: Style::Padded(8),
                ..
            }
        ));
    }

    #[test]
    fn free_text_stays_text() {
        let mut rng = Rng::new(4);
        let records: Vec<String> = (0..500)
            .map(|n| format!("{n}|words of {} and {}", rng.next_u64(), rng.next_u64()))
            .collect();
        let (_, columns) = typed(&records);
        assert_eq!(columns[1], Column::Text);
    }
}
