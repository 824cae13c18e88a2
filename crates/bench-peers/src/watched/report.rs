//! The tables of watched loads, as Markdown and as JSON.

use std::fmt::Write as _;

use drumlin_bench::watch;

use super::contest::{Entry, Standing};
use crate::compare::{quoted, squeeze};

/// One table for each size of value, one row for each run; then the setting.
pub(super) fn markdown(standing: &Standing) -> String {
    let mut text = String::new();
    for table in &standing.tables {
        writeln!(text, "{}\n", capital(&table.title)).expect("a String takes everything");
        let rounds = table.entries.iter().map(|entry| entry.round).max();
        let names = table
            .entries
            .iter()
            .map(|entry| name(entry, rounds.unwrap_or(1)));
        let names: Vec<String> = names.collect();
        let loads: Vec<(&str, &watch::Report)> = names
            .iter()
            .zip(&table.entries)
            .map(|(name, entry)| (name.as_str(), &entry.report))
            .collect();
        text.push_str(&watch::markdown(&loads));
        text.push('\n');
    }
    for line in &standing.setting {
        writeln!(text, "- {}", squeeze(line)).expect("a String takes everything");
    }
    text
}

fn name(entry: &Entry, rounds: usize) -> String {
    if rounds == 1 {
        entry.engine.to_owned()
    } else {
        format!("{}, round {}", entry.engine, entry.round)
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// Every second of every run.
pub(super) fn json(standing: &Standing) -> String {
    let setting: Vec<String> = standing
        .setting
        .iter()
        .map(|line| quoted(&squeeze(line)))
        .collect();
    let tables: Vec<String> = standing
        .tables
        .iter()
        .map(|table| {
            let runs: Vec<String> = table.entries.iter().map(run).collect();
            format!(
                "{{\"title\": {}, \"runs\": [\n{}\n]}}",
                quoted(&table.title),
                runs.join(",\n")
            )
        })
        .collect();
    format!(
        "{{\"setting\": [{}], \"tables\": [\n{}\n]}}\n",
        setting.join(", "),
        tables.join(",\n")
    )
}

fn run(entry: &Entry) -> String {
    format!(
        "{{\"engine\": {}, \"round\": {}, \"report\": {}}}",
        quoted(entry.engine),
        entry.round,
        watch::json(&entry.report)
    )
}

#[cfg(test)]
mod tests {
    use drumlin_bench::watch::Report;

    use super::super::contest::Table;
    use super::*;

    fn standing(rounds: usize) -> Standing {
        let entry = |round| Entry {
            engine: "drumlin",
            round,
            report: Report {
                writes: 30,
                length: 3.0,
                ..Report::default()
            },
        };
        Standing {
            tables: vec![Table {
                title: "random writes".to_owned(),
                entries: (1..=rounds).map(entry).collect(),
            }],
            setting: vec!["two   words".to_owned()],
        }
    }

    #[test]
    fn rows_name_their_round_when_there_are_several() {
        let text = markdown(&standing(1));
        assert!(text.starts_with("Random writes\n\n| store |"), "{text}");
        assert!(text.contains("\n| drumlin | 10 | 0.0 |"), "{text}");
        assert!(text.ends_with("\n- two words\n"), "{text}");
        let text = markdown(&standing(2));
        assert!(text.contains("\n| drumlin, round 2 | 10 |"), "{text}");
    }

    #[test]
    fn json_is_balanced_and_has_every_run() {
        let text = json(&standing(2));
        assert_eq!(text.matches("\"engine\": \"drumlin\"").count(), 2);
        for (open, close) in [('{', '}'), ('[', ']')] {
            assert_eq!(text.matches(open).count(), text.matches(close).count());
        }
    }
}
