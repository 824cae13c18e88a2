//! A line of the log.

use std::fmt::Write;

use super::civil::civil;
use super::level::Level;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// What a line tells.
pub(super) struct Line<'a> {
    pub(super) level: Level,
    /// The name of what happened.
    pub(super) event: &'a str,
    pub(super) message: &'a str,
    pub(super) fields: &'a [(&'a str, String)],
    pub(super) micros: u64,
    /// The process, and the role of the server: `M` or `S`.
    pub(super) process: u32,
    pub(super) role: char,
}

impl Line<'_> {
    /// As Redis writes it, with the fields behind.
    pub(super) fn text(&self) -> String {
        let (at, millis) = (civil(self.micros / 1_000_000), self.micros / 1_000 % 1_000);
        let month = usize::try_from(at.month - 1).ok();
        let month = month.and_then(|it| MONTHS.get(it)).unwrap_or(&"");
        let mut text = format!(
            "{}:{} {:02} {month} {} {:02}:{:02}:{:02}.{millis:03} {} {}",
            self.process,
            self.role,
            at.day,
            at.year,
            at.hour,
            at.minute,
            at.second,
            self.level.mark(),
            one_line(self.message),
        );
        for (name, value) in self.fields {
            let _ = write!(text, " {name}={}", one_line(value));
        }
        text.push('\n');
        text
    }

    /// As an object of JSON.
    pub(super) fn json(&self) -> String {
        let (at, millis) = (civil(self.micros / 1_000_000), self.micros / 1_000 % 1_000);
        let mut text = format!(
            "{{\"time\":\"{}-{:02}-{:02}T{:02}:{:02}:{:02}.{millis:03}Z\",\"level\":\"{}\",\"process\":{},\
             \"role\":\"{}\",\"event\":{},\"message\":{}",
            at.year,
            at.month,
            at.day,
            at.hour,
            at.minute,
            at.second,
            self.level.name(),
            self.process,
            self.role,
            quoted(self.event),
            quoted(self.message),
        );
        for (name, value) in self.fields {
            let _ = write!(text, ",{}:{}", quoted(name), quoted(value));
        }
        text.push_str("}\n");
        text
    }
}

/// A text without the ends of lines, by which somebody could make up lines of a log.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{Level, Line};

    /// Goal: a line is one line, in both forms. Method: a message and a field with ends of lines and quotes.
    #[test]
    fn a_line_is_one_line() {
        let fields = [("address", "1.2.3.4:5\r\n6".to_owned())];
        let line = Line {
            level: Level::Warning,
            event: "refused",
            message: "a \"client\"\nwas refused",
            fields: &fields,
            micros: 1_709_164_801_002_003,
            process: 7,
            role: 'M',
        };
        assert_eq!(
            line.text(),
            "7:M 29 Feb 2024 00:00:01.002 # a \"client\" was refused address=1.2.3.4:5  6\n"
        );
        assert_eq!(
            line.json(),
            "{\"time\":\"2024-02-29T00:00:01.002Z\",\"level\":\"warning\",\"process\":7,\"role\":\"M\",\
             \"event\":\"refused\",\"message\":\"a \\\"client\\\"\\u000awas refused\",\
             \"address\":\"1.2.3.4:5\\u000d\\u000a6\"}\n"
        );
    }
}
