//! The tables of a comparison, as Markdown and as JSON.

use std::fmt::Write as _;

use super::contest::Standing;
use super::result::{Rounds, Summary};

/// The column every other is compared with.
const OURS: &str = "drumlin";

/// Median with its range for every line and engine; beside each peer its median over ours, so that
/// `2.0x` says it took twice our time.
pub(super) fn markdown(standing: &Standing) -> String {
    let mut text =
        String::from("Microseconds an operation: median (least-greatest) of the rounds, ");
    text.push_str("and the engine's median over Drumlin's.\n\n");
    table(&mut text, standing, |_| true, cell);
    text.push_str("\nSeconds until the engine was idle after a line that writes: median.\n\n");
    table(
        &mut text,
        standing,
        |row| standing.writes[row],
        |rounds, _| {
            rounds
                .settle_seconds()
                .map(|seconds| format!("{:.1}", seconds.median))
        },
    );
    text.push('\n');
    for line in standing.versions.iter().chain(&standing.setting) {
        writeln!(text, "- {}", squeeze(line)).expect("a String takes everything");
    }
    text
}

fn table(
    text: &mut String,
    standing: &Standing,
    is_shown: impl Fn(usize) -> bool,
    cell: impl Fn(&Rounds, Option<Summary>) -> Option<String>,
) {
    let ours = standing.engines.iter().position(|name| name == OURS);
    writeln!(text, "| line | {} |", standing.engines.join(" | ")).expect("a String");
    writeln!(text, "| --- |{}", " ---: |".repeat(standing.engines.len())).expect("a String");
    for (row, line) in standing
        .lines
        .iter()
        .enumerate()
        .filter(|(row, _)| is_shown(*row))
    {
        write!(text, "| {line} |").expect("a String takes everything");
        for (column, rounds) in standing.rounds[row].iter().enumerate() {
            let base = ours.filter(|ours| *ours != column);
            let base = base.and_then(|ours| standing.rounds[row][ours].micros());
            let cell = cell(rounds, base).unwrap_or_else(|| "-".to_owned());
            write!(text, " {cell} |").expect("a String takes everything");
        }
        text.push('\n');
    }
}

fn cell(rounds: &Rounds, ours: Option<Summary>) -> Option<String> {
    let Summary { median, min, max } = rounds.micros()?;
    let mut cell = format!("{} ({}-{})", short(median), short(min), short(max));
    if let Some(ours) = ours.filter(|ours| ours.median > 0.0) {
        write!(cell, " {:.2}x", median / ours.median).expect("a String takes everything");
    }
    Some(cell)
}

/// Three digits that matter.
fn short(micros: f64) -> String {
    match micros {
        ..1.0 => format!("{micros:.3}"),
        ..10.0 => format!("{micros:.2}"),
        ..100.0 => format!("{micros:.1}"),
        _ => format!("{micros:.0}"),
    }
}

/// `text` with single spaces.
pub(crate) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every round of every line and engine.
pub(super) fn json(standing: &Standing) -> String {
    let mut text = String::from("{\n  \"setting\": [");
    strings(&mut text, &standing.setting);
    text.push_str("],\n  \"engines\": [");
    strings(&mut text, &standing.engines);
    text.push_str("],\n  \"versions\": [");
    strings(&mut text, &standing.versions);
    text.push_str("],\n  \"lines\": [\n");
    for (row, line) in standing.lines.iter().enumerate() {
        let comma = if row + 1 < standing.lines.len() {
            ","
        } else {
            ""
        };
        write!(text, "    {{\"line\": {}, \"engines\": {{", quoted(line)).expect("a String");
        let mut separator = "";
        for (column, rounds) in standing.rounds[row].iter().enumerate() {
            let name = quoted(&standing.engines[column]);
            write!(text, "{separator}{name}: [{}]", outcomes(rounds)).expect("a String");
            separator = ", ";
        }
        writeln!(text, "}}}}{comma}").expect("a String takes everything");
    }
    text.push_str("  ]\n}\n");
    text
}

fn outcomes(rounds: &Rounds) -> String {
    let outcomes = rounds.0.iter().map(|outcome| {
        let null = || "null".to_owned();
        let found = outcome.found.map_or_else(null, |found| found.to_string());
        let settle = outcome.settle_seconds;
        let settle = settle.map_or_else(null, |seconds| format!("{seconds:.2}"));
        format!(
            "{{\"micros\": {:.4}, \"operations\": {}, \"found\": {found}, \"settle_seconds\": {settle}}}",
            outcome.micros, outcome.operations,
        )
    });
    outcomes.collect::<Vec<_>>().join(", ")
}

fn strings(text: &mut String, parts: &[String]) {
    let parts: Vec<String> = parts.iter().map(|part| quoted(&squeeze(part))).collect();
    text.push_str(&parts.join(", "));
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if u32::from(character) < 0x20 => quoted.push(' '),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::result::Outcome;
    use super::*;

    fn standing() -> Standing {
        let rounds = |micros: &[f64]| {
            let outcomes = micros.iter().map(|micros| Outcome {
                micros: *micros,
                operations: 10,
                ..Outcome::default()
            });
            Rounds(outcomes.collect())
        };
        Standing {
            engines: vec!["drumlin".to_owned(), "lmdb".to_owned()],
            versions: vec!["Drumlin:    1".to_owned(), "a \"b\"".to_owned()],
            lines: vec!["fillseq".to_owned(), "compact after fillseq".to_owned()],
            writes: vec![true, true],
            rounds: vec![
                vec![rounds(&[1.0, 3.0, 2.0]), rounds(&[5.0])],
                vec![rounds(&[1500.0]), rounds(&[])],
            ],
            setting: Vec::new(),
        }
    }

    #[test]
    fn a_row_has_median_range_and_ratio_and_a_dash_for_what_an_engine_lacks() {
        let text = markdown(&standing());
        assert!(
            text.contains("| fillseq | 2.00 (1.00-3.00) | 5.00 (5.00-5.00) 2.50x |"),
            "{text}"
        );
        assert!(
            text.contains("| compact after fillseq | 1500 (1500-1500) | - |"),
            "{text}"
        );
        assert!(text.contains("- Drumlin: 1\n"), "{text}");
    }

    #[test]
    fn json_escapes_and_keeps_every_round() {
        let text = json(&standing());
        assert!(text.contains("\"a \\\"b\\\"\""), "{text}");
        assert_eq!(text.matches("\"micros\"").count(), 5);
        assert!(text.contains("\"lmdb\": []"), "{text}");
    }
}
