//! The log of a server. What happens often is told once, and then how often.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::level::Level;
use super::line::Line;
use super::sink::LogSink;
use crate::config::Config;

/// Time in which what happens again is only counted.
const QUIET_MICROS: u64 = 10_000_000;

/// What has happened since it was told.
#[derive(Clone, Copy, Debug)]
struct Again {
    until: u64,
    count: u64,
    level: Level,
}

/// See the module. Without a sink it costs nothing.
#[derive(Debug)]
pub(crate) struct Journal {
    sink: Option<Arc<dyn LogSink>>,
    least: Level,
    is_json: bool,
    /// The wall clock, and the role: those of the server, as of the present turn.
    pub(crate) micros: u64,
    pub(crate) role: char,
    again: BTreeMap<&'static str, Again>,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            sink: None,
            least: Level::Notice,
            is_json: false,
            micros: 0,
            role: 'M',
            again: BTreeMap::new(),
        }
    }
}

impl Journal {
    /// Has lines go to `sink`.
    pub(crate) fn go_to(&mut self, sink: Arc<dyn LogSink>) {
        self.sink = Some(sink);
    }

    /// Takes over what the configuration says.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.least = Level::named(config.get("loglevel")).unwrap_or(Level::Notice);
        self.is_json = config.get("log-format") == "json";
    }

    /// Whether lines of this level are written.
    pub(crate) fn takes(&self, level: Level) -> bool {
        self.sink.is_some() && level >= self.least && level != Level::Nothing
    }

    /// Writes a line.
    pub(crate) fn tell(&self, level: Level, event: &str, message: &str, fields: &[(&str, String)]) {
        let Some(sink) = self.sink.as_ref().filter(|_| self.takes(level)) else {
            return;
        };
        let line = Line {
            level,
            event,
            message,
            fields,
            micros: self.micros,
            process: std::process::id(),
            role: self.role,
        };
        sink.line(&match self.is_json {
            true => line.json(),
            false => line.text(),
        });
    }

    /// Writes a line about what may happen often: only the first in ten seconds. The others are counted.
    pub(crate) fn tell_once(
        &mut self,
        level: Level,
        event: &'static str,
        message: &str,
        fields: &[(&str, String)],
    ) {
        if let Some(again) = self.again.get_mut(event) {
            again.count += 1;
            return;
        }
        let until = self.micros + QUIET_MICROS;
        let count = 0;
        self.again.insert(
            event,
            Again {
                until,
                count,
                level,
            },
        );
        self.tell(level, event, message, fields);
    }

    /// Tells how often what was told once has happened since.
    pub(crate) fn tell_counts(&mut self) {
        let now = self.micros;
        let over = self.again.iter().filter(|(_, again)| again.until <= now);
        let over: Vec<_> = over.map(|(event, again)| (*event, *again)).collect();
        for (event, again) in over {
            self.again.remove(event);
            if again.count > 0 {
                let fields = [("count", again.count.to_string())];
                self.tell(again.level, event, "the same again", &fields);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::{Journal, Level, LogSink};

    #[derive(Debug, Default)]
    struct Lines(Mutex<String>);

    impl LogSink for Lines {
        fn line(&self, line: &str) {
            self.0.lock().push_str(line);
        }
    }

    /// Goal: a flood is two lines. Method: a hundred times the same, and something else.
    #[test]
    fn what_happens_often_is_told_once_and_counted() {
        let lines = Arc::new(Lines::default());
        let mut journal = Journal::default();
        journal.tell(Level::Warning, "a", "nobody hears it", &[]);
        journal.go_to(Arc::<Lines>::clone(&lines));
        for _ in 0..100 {
            journal.tell_once(Level::Notice, "a", "first", &[]);
        }
        journal.tell(Level::Verbose, "b", "below the level", &[]);
        journal.tell_counts();
        assert_eq!(lines.0.lock().lines().count(), 1);
        journal.micros += 10_000_000;
        journal.tell_counts();
        journal.tell_counts();
        let said = lines.0.lock().clone();
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.ends_with("* the same again count=99\n"), "{said}");
    }
}
