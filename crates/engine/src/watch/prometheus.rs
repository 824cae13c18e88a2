//! Prometheus's text format, version 0.0.4: families of samples, each with a help and a type.

use std::fmt::{Display, Write as _};

use drumlin_base::histogram::Times;

/// What stands before every name.
const PREFIX: &str = "drumlin_engine_";

/// A text that grows family by family.
#[derive(Debug, Default)]
pub(crate) struct Text {
    out: String,
    /// The family that samples belong to.
    family: String,
}

impl Text {
    /// Begins a family of a type: counter, gauge or histogram.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.family = format!("{PREFIX}{name}");
        let family = &self.family;
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.out, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
    }

    /// A family of one gauge.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", help);
        self.sample(&[], value);
    }

    /// A family of one ticker: dots become underscores, and what stands before the first one goes.
    pub(crate) fn ticker(&mut self, ticker: &str, count: u64) {
        let name = format!("{}_total", plain_name(ticker));
        self.family(&name, "counter", &format!("The counter {ticker}."));
        self.sample(&[], count);
    }

    /// A family of one histogram, in seconds.
    pub(crate) fn times(&mut self, name: &str, times: &Times) {
        let plain = plain_name(name);
        let plain = plain.trim_end_matches("_micros");
        self.family(
            &format!("{plain}_seconds"),
            "histogram",
            &format!("The times of {name}."),
        );
        let count = times.count();
        for (end, seen) in times.up_to() {
            self.part("_bucket", &[("le", &end.to_string())], seen);
        }
        self.part("_bucket", &[("le", "+Inf")], count);
        self.part("_sum", &[], times.total().as_secs_f64());
        self.part("_count", &[], count);
    }

    /// A sample of the present family.
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.out.push_str(&self.family);
        self.out.push_str(suffix);
        for (at, (name, label)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{before}{name}=\"{}\"", escaped(label));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{after} {value}");
    }

    /// The text.
    pub(crate) fn take(self) -> String {
        self.out
    }
}

fn plain_name(name: &str) -> String {
    let name = name.trim_start_matches("rocksdb.");
    name.trim_start_matches("drumlin.").replace('.', "_")
}

/// A label's value: the format has escapes for three characters.
fn escaped(label: &str) -> String {
    if drumlin_base::bug!("labels-unescaped") {
        return String::from(label);
    }
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    label.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_below_their_family_and_labels_are_escaped() {
        let mut text = Text::default();
        text.ticker("rocksdb.wal.bytes", 7);
        text.family("it", "gauge", "Help.");
        text.sample(&[("a", "x\"\\\n"), ("b", "")], 0.5);
        assert_eq!(
            text.take(),
            "# HELP drumlin_engine_wal_bytes_total The counter rocksdb.wal.bytes.\n\
             # TYPE drumlin_engine_wal_bytes_total counter\n\
             drumlin_engine_wal_bytes_total 7\n\
             # HELP drumlin_engine_it Help.\n# TYPE drumlin_engine_it gauge\n\
             drumlin_engine_it{a=\"x\\\"\\\\\\n\",b=\"\"} 0.5\n"
        );
    }
}
