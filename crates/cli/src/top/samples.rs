//! Prometheus's text format, as much of it as pages of ours use: samples with labels and numbers. Bytes of somebody
//! else's server are claims: a line that is no sample is passed over.

use std::collections::BTreeMap;

/// Samples of one name that are kept at most; a page of a store has some hundreds in all.
const SAMPLES_MAX: usize = 100_000;

/// The labels of a sample.
pub(super) type Labels = BTreeMap<String, String>;

/// One page.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    named: BTreeMap<String, Vec<(Labels, f64)>>,
    count: usize,
}

impl Samples {
    /// The samples in `text`.
    pub(super) fn parse(text: &str) -> Self {
        let mut samples = Self::default();
        for line in text.lines() {
            if samples.count == SAMPLES_MAX {
                break;
            }
            if let Some((name, labels, value)) = sample(line) {
                let named = samples.named.entry(name.to_owned()).or_default();
                named.push((labels, value));
                samples.count += 1;
            }
        }
        samples
    }

    /// Whether the page has anything of an engine of ours.
    pub(super) fn has_engine(&self) -> bool {
        self.number("drumlin_engine_newest_seqno").is_some()
    }

    /// The first sample of `name`.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.all(name).first().map(|(_, value)| *value)
    }

    /// All samples of `name`, in the order of the page.
    pub(super) fn all(&self, name: &str) -> &[(Labels, f64)] {
        self.named.get(name).map_or(&[], Vec::as_slice)
    }

    /// The sum of the samples of `name` whose label `label` is `value`.
    pub(super) fn sum_where(&self, name: &str, label: &str, value: &str) -> f64 {
        let fits = self.all(name).iter();
        let fits = fits.filter(|(labels, _)| labels.get(label).is_some_and(|it| it == value));
        fits.map(|(_, number)| number).sum()
    }

    /// The sum of the samples of `name`.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.all(name).iter().map(|(_, number)| number).sum()
    }
}

/// `name{label="value",…} number`, with a moment behind it or none.
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Labels::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

/// Labels up to the closing brace, and what is behind it.
fn labels(mut text: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.insert(name.to_owned(), value);
        text = rest;
    }
}

/// A value up to the quote that ends it, and what is behind that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels_and_all_else_is_passed_over() {
        let text = "# HELP a b\n# TYPE a counter\na 1\na{x=\"1\",y=\"q\\\"\\\\\\n,}\"} 2.5 1700000000\n\
                    b{} NaN\nno number\nc{open=\"\n{\n\nd{x=\"1\"}\ne 7\n";
        let samples = Samples::parse(text);
        assert_eq!(samples.all("a").len(), 2);
        assert_eq!(samples.number("a"), Some(1.0));
        let (labels, value) = &samples.all("a")[1];
        assert_eq!(labels.get("y").map(String::as_str), Some("q\"\\\n,}"));
        assert_eq!((*value, samples.sum("a")), (2.5, 3.5));
        assert_eq!(samples.sum_where("a", "x", "1"), 2.5);
        assert!(samples.number("b").is_some_and(f64::is_nan));
        assert_eq!(samples.number("c"), None);
        assert_eq!(samples.number("d"), None);
        assert_eq!(samples.number("e"), Some(7.0));
        for end in 0..text.len() {
            // Whatever a connection that was cut has brought.
            if let Some(part) = text.get(..end) {
                Samples::parse(part);
            }
        }
    }
}
