//! Prometheus's text format, version 0.0.4: families of samples, each with a help and a type.

use std::fmt::{Display, Write};

use crate::powers::Powers;

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, but for a restart and CONFIG RESETSTAT.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Values, by how many were at most so large.
    Histogram,
}

/// A label: its name and its value.
pub type Label<'a> = (&'static str, &'a str);

/// A text that grows family by family.
#[derive(Debug, Default)]
pub struct Text {
    out: String,
    /// The family that samples belong to.
    family: String,
}

impl Text {
    /// Adds families that are written already.
    pub fn append(&mut self, families: &str) {
        self.out.push_str(families);
    }

    /// Begins a family.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.family = format!("drumlin_{name}");
        let family = &self.family;
        // Writing to a String cannot fail.
        let _ = write!(self.out, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
    }

    /// A family of one sample.
    pub fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// A sample of the present family.
    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.part("", labels, value);
    }

    /// A sample of a histogram: its buckets, each with its end, then their sum and their count.
    pub fn histogram(
        &mut self,
        labels: &[Label<'_>],
        up_to: impl Iterator<Item = (f64, u64)>,
        sum: impl Display,
        count: u64,
    ) {
        for (end, seen) in up_to {
            let end = end.to_string();
            let with_end = [labels, &[("le", end.as_str())]].concat();
            self.part("_bucket", &with_end, seen);
        }
        let with_end = [labels, &[("le", "+Inf")]].concat();
        self.part("_bucket", &with_end, count);
        self.part("_sum", labels, sum);
        self.part("_count", labels, count);
    }

    /// A family of one histogram, of values of so many units.
    pub fn powers(&mut self, name: &str, help: &str, powers: &Powers, unit: f64) {
        self.family(name, Kind::Histogram, help);
        let up_to = powers.up_to().map(|(end, seen)| (end as f64 / unit, seen));
        let sum = powers.sum() as f64 / unit;
        self.histogram(&[], up_to, sum, powers.count());
    }

    fn part(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        self.out.push_str(&self.family);
        self.out.push_str(suffix);
        let mut before = '{';
        for (name, text) in labels {
            self.out.push(before);
            self.out.push_str(name);
            self.out.push_str("=\"");
            for letter in text.chars() {
                match letter {
                    '\\' | '"' => self.out.extend(['\\', letter]),
                    '\n' => self.out.push_str("\\n"),
                    other => self.out.push(other),
                }
            }
            self.out.push('"');
            before = ',';
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }

    /// The text.
    pub fn take(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Powers, Text};

    /// Goal: the text is as Prometheus's format has it. Method: a label that needs escapes, and a histogram.
    #[test]
    fn families_are_written_as_the_format_has_them() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "Of a.");
        text.sample(&[("of", "x\"\\\n"), ("to", "y")], 7);
        text.one("b", Kind::Gauge, "Of b.", 0.5);
        let mut powers = Powers::default();
        powers.record(3);
        text.powers("c_seconds", "Of c.", &powers, 1e6);
        let text = text.take();
        assert!(
            text.starts_with(
                "# HELP drumlin_a_total Of a.\n# TYPE drumlin_a_total counter\n\
                 drumlin_a_total{of=\"x\\\"\\\\\\n\",to=\"y\"} 7\n\
                 # HELP drumlin_b Of b.\n# TYPE drumlin_b gauge\ndrumlin_b 0.5\n\
                 # HELP drumlin_c_seconds Of c.\n# TYPE drumlin_c_seconds histogram\n\
                 drumlin_c_seconds_bucket{le=\"0.000001\"} 0\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with(
                "drumlin_c_seconds_bucket{le=\"8.388608\"} 1\n\
                 drumlin_c_seconds_bucket{le=\"+Inf\"} 1\n\
                 drumlin_c_seconds_sum 0.000003\ndrumlin_c_seconds_count 1\n"
            ),
            "{text}"
        );
    }
}
