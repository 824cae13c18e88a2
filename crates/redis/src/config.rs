//! The configuration: Redis's file format and names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drumlin_base::{Error, Result};
use drumlin_fs::Env;
use drumlin_resp::{integer, split_words};

use crate::config_names::{ENTRIES, Entry, HIDDEN, Kind, find};
use crate::replica::state::Primary;

/// Longest configuration file.
pub(crate) const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Names that only those set who may set names that are protected.
const PROTECTED: [&str; 2] = ["dir", "dbfilename"];

/// Names whose value is several words. That of any other is one, in quotes if it has blanks.
pub(crate) const OF_WORDS: [&str; 7] = [
    "bind",
    "client-output-buffer-limit",
    "latency-tracking-info-percentiles",
    "oom-score-adj-values",
    "replicaof",
    "save",
    "slaveof",
];

/// When replies may tell of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// Once they outlive a power cut.
    Always,
    /// At once; a power cut takes those of the last second.
    EverySecond,
    /// At once; the system syncs when it likes.
    No,
}

/// How much may wait for a client of a class, from `client-output-buffer-limit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutLimits {
    pub(crate) hard_bytes: u64,
    /// So much may wait for so long.
    pub(crate) soft_bytes: u64,
    pub(crate) soft_time: Duration,
}

/// Values by name. Cheap enough to ask on a command of an operator, not on each GET: the server keeps what it asks often.
#[derive(Clone, Debug)]
pub struct Config {
    values: BTreeMap<&'static str, String>,
    /// The file that it was read from.
    file: Option<PathBuf>,
    users: Vec<UserLine>,
    /// Old and new names of commands, in lower case.
    renames: Vec<(String, String)>,
}

/// A user, as a line of the configuration has it.
#[derive(Clone, Debug)]
pub(crate) struct UserLine {
    /// The name and the rules.
    pub(crate) words: Vec<Vec<u8>>,
    /// Where it is, for errors.
    pub(crate) place: String,
}

impl Default for Config {
    fn default() -> Self {
        let values = ENTRIES
            .iter()
            .map(|entry| (entry.name, entry.default.to_owned()));
        Self {
            values: values.collect(),
            file: None,
            users: Vec::new(),
            renames: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a file of lines `name value ...`, as Redis's own are.
    ///
    /// # Errors
    /// `InvalidArgument` that names the line; the file system's.
    pub fn read_file(&mut self, env: &Env, path: &Path) -> Result<()> {
        let text = env.files.read_file(path, CONFIG_BYTES_MAX)?;
        self.file = Some(path.to_owned());
        self.read_text(&text, path)
    }

    /// Reads the text of the file at `path`.
    pub(crate) fn read_text(&mut self, text: &[u8], path: &Path) -> Result<()> {
        // The first of several lines of this name takes the place of the default, the others add to it.
        let mut has_save = false;
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let place = format!("line {} of {}", number + 1, path.display());
            let before = has_save.then(|| self.get("save").to_owned());
            let read = self.read_line(line, &place).map(|name| {
                if name.eq_ignore_ascii_case(b"save") {
                    has_save = true;
                    self.add_to_saves(before.as_deref());
                }
            });
            read.map_err(|reason| {
                let place = format!("line {} of the configuration", number + 1);
                let shown = shown(line);
                Error::invalid_argument(format!("{place}, '{shown}': {reason}")).with_file(path)
            })?;
        }
        Ok(())
    }

    /// Puts the points of `before` in front of those that a line has just set; a line without any takes them all away.
    fn add_to_saves(&mut self, before: Option<&str>) {
        let set = self.get("save");
        if let Some(before) = before.filter(|it| !it.is_empty() && !set.is_empty()) {
            let both = format!("{before} {set}");
            self.values.insert("save", both);
        }
    }

    /// Sets what a line says; its name.
    fn read_line(&mut self, line: &[u8], place: &str) -> std::result::Result<Vec<u8>, String> {
        let words = split_words(line).ok_or("unbalanced quotes")?;
        let (name, values) = words.split_first().ok_or("no name")?;
        if values.is_empty() {
            return Err("a name without a value".to_owned());
        }
        self.set_words(name, values, place)?;
        Ok(name.clone())
    }

    /// Sets a value of one or several words, or one of the names that may come several times.
    fn set_words(
        &mut self,
        name: &[u8],
        values: &[Vec<u8>],
        place: &str,
    ) -> std::result::Result<(), String> {
        let text = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_lowercase();
        match (name.to_ascii_lowercase().as_slice(), values) {
            (b"user", [user, ..]) => {
                if self.users.iter().any(|it| it.words.first() == Some(user)) {
                    return Err("Duplicate user found. A user can only be defined once".to_owned());
                }
                self.users.push(UserLine {
                    words: values.to_vec(),
                    place: place.to_owned(),
                });
                Ok(())
            }
            (b"rename-command", [old, new]) => {
                self.renames.push((text(old), text(new)));
                Ok(())
            }
            (b"rename-command", _) => Err("an old and a new name".to_owned()),
            (lower, [_, _, ..]) if !OF_WORDS.iter().any(|it| it.as_bytes() == lower) => {
                Err("wrong number of arguments".to_owned())
            }
            _ => self.set_one(name, &values.join(&b' ')),
        }
    }

    /// Sets a value before the server runs.
    ///
    /// # Errors
    /// A sentence.
    pub fn set_at_start(&mut self, name: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        let has_words = [b"user".as_slice(), b"rename-command"];
        if has_words.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            let words = split_words(value).ok_or("unbalanced quotes")?;
            return self.set_words(name, &words, "the command line");
        }
        self.set_one(name, value)
    }

    fn set_one(&mut self, name: &[u8], value: &[u8]) -> std::result::Result<(), String> {
        let entry = find(name).ok_or_else(|| {
            format!(
                "there is no configuration '{}'",
                String::from_utf8_lossy(name)
            )
        })?;
        self.put(entry, value)
    }

    /// Sets values while the server runs: all of them or, on an error, none.
    ///
    /// # Errors
    /// The error of Redis's reply.
    pub(crate) fn set_all(
        &mut self,
        pairs: &[(&[u8], &[u8])],
        may_set_protected: bool,
    ) -> std::result::Result<(), String> {
        let mut changed = self.clone();
        for (at, (name, value)) in pairs.iter().enumerate() {
            let shown = String::from_utf8_lossy(name);
            let entry = find(name).ok_or_else(|| {
                format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'")
            })?;
            let failed = |reason: &str| {
                format!("ERR CONFIG SET failed (possibly related to argument '{shown}') - {reason}")
            };
            if PROTECTED.contains(&entry.name) && !may_set_protected {
                return Err(failed("can't set protected config"));
            }
            // Redis lets it change: tools set it to what it is.
            let may_stay =
                entry.name == "crash-memcheck-enabled" && self.get(entry.name).as_bytes() == *value;
            if !entry.is_settable && !may_stay {
                return Err(failed("can't set immutable config"));
            }
            if pairs
                .iter()
                .take(at)
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
            {
                return Err(failed("duplicate parameter"));
            }
            changed
                .put(entry, value)
                .map_err(|reason| failed(&reason))?;
        }
        *self = changed;
        Ok(())
    }

    fn put(&mut self, entry: &Entry, value: &[u8]) -> std::result::Result<(), String> {
        let text = String::from_utf8_lossy(value).into_owned();
        let value = match entry.kind {
            Kind::Alias(name) => {
                let entry = find(name.as_bytes()).ok_or("the name it stands for is not known")?;
                return self.put(entry, value);
            }
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                word @ ("yes" | "no") => word.to_owned(),
                _ => return Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Number(least, most) => {
                let number = integer(value)
                    .ok_or("argument couldn't be parsed into an integer".to_owned())?;
                if !(least..=most).contains(&number) {
                    return Err(format!(
                        "argument must be between {least} and {most} inclusive"
                    ));
                }
                number.to_string()
            }
            Kind::Bytes => bytes_of(&text)
                .ok_or("argument must be a memory value".to_owned())?
                .to_string(),
            Kind::BytesOrPercent => match text.strip_suffix('%') {
                Some(percent) => match percent.parse::<u64>() {
                    Ok(percent) if percent <= 100 => format!("{percent}%"),
                    Ok(_) => {
                        return Err("percentage argument must be less or equal to 100".to_owned());
                    }
                    Err(_) => return Err("argument must be a memory or percent value".to_owned()),
                },
                None => bytes_of(&text)
                    .ok_or("argument must be a memory or percent value".to_owned())?
                    .to_string(),
            },
            Kind::Choice(words) => {
                let word = text.to_ascii_lowercase();
                match words.contains(&word.as_str()) {
                    true => word,
                    false => {
                        let words = words.join(", ");
                        return Err(format!("argument(s) must be one of the following: {words}"));
                    }
                }
            }
            Kind::Text if entry.name == "notify-keyspace-events" => {
                crate::notify::Classes::parse(value)
                    .ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned())?
                    .to_text()
            }
            Kind::Text if entry.name == "client-output-buffer-limit" => {
                out_limits_text(self.get(entry.name), &text)?
            }
            Kind::Text if entry.name == "replicaof" => primary(&text)?,
            Kind::Text if entry.name == "save" => save_points(&text)?,
            Kind::Text if entry.name == "latency-tracking-info-percentiles" => percentiles(&text)?,
            Kind::Text => text,
        };
        self.values.insert(entry.name, value);
        Ok(())
    }

    /// The value of `name`, which is one of the names.
    pub fn get(&self, name: &str) -> &str {
        let name = match find(name.as_bytes()).map(|entry| entry.kind) {
            Some(Kind::Alias(other)) => other,
            _ => name,
        };
        self.values.get(name).map_or("", String::as_str)
    }

    /// The users that it names.
    pub(crate) fn users(&self) -> &[UserLine] {
        &self.users
    }

    /// The old and the new names of commands, of which an empty one takes the command away.
    pub(crate) fn renames(&self) -> &[(String, String)] {
        &self.renames
    }

    /// Notes whom the server follows: `replicaof` tells it, and is written so.
    pub(crate) fn note_primary(&mut self, primary: Option<&Primary>) {
        let place = primary.map(|it| format!("{} {}", it.host, it.port));
        self.values.insert("replicaof", place.unwrap_or_default());
    }

    /// The file that it was read from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The value of `name` as a number; 0 where it is none.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    pub(crate) fn fsync(&self) -> Fsync {
        match self.get("appendfsync") {
            "always" => Fsync::Always,
            "no" => Fsync::No,
            _ => Fsync::EverySecond,
        }
    }

    /// The most that may wait to be sent to a replica.
    pub(crate) fn replica_limits(&self) -> OutLimits {
        self.out_limits(&["replica", "slave"])
    }

    /// The limits of a class with any of these names. None is the largest number.
    pub(crate) fn out_limits(&self, names: &[&str]) -> OutLimits {
        let value = self.get("client-output-buffer-limit");
        let words: Vec<&str> = value.split_whitespace().collect();
        let of_class = |limits: &&[&str]| limits.first().is_some_and(|it| names.contains(it));
        let limits = words.chunks(4).find(of_class).unwrap_or(&[]);
        let [hard_bytes, soft_bytes, seconds] = [1, 2, 3].map(|at| {
            let number = limits.get(at).and_then(|it| bytes_of(it));
            number.filter(|it| *it > 0).unwrap_or(u64::MAX)
        });
        OutLimits {
            hard_bytes,
            soft_bytes,
            soft_time: Duration::from_secs(seconds),
        }
    }

    /// Names and values that match any of `patterns`; hidden ones by their whole names only.
    pub(crate) fn matching<'a>(
        &'a self,
        patterns: &'a [&'a [u8]],
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let is_glob = |pattern: &[u8]| pattern.iter().any(|byte| b"[*?".contains(byte));
        let wanted = move |name: &str| {
            let (name, is_hidden) = (name.as_bytes(), HIDDEN.contains(&name));
            patterns
                .iter()
                .filter(|pattern| !is_hidden || !is_glob(pattern))
                .any(|pattern| crate::glob::matches(&pattern.to_ascii_lowercase(), name))
        };
        let names = ENTRIES
            .iter()
            .map(|entry| entry.name)
            .filter(move |name| wanted(name));
        names.map(|name| (name, self.get(name)))
    }
}

/// A line as errors show it: those that may have passwords by their first word only.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_secret = ["user", "requirepass", "masterauth"]
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it))
        || name.to_ascii_lowercase().ends_with("-pass");
    match is_secret {
        true => format!("{name} ..."),
        false => text.into_owned(),
    }
}

/// `client-output-buffer-limit` after `change`, which names some of the classes.
fn out_limits_text(present: &str, change: &str) -> std::result::Result<String, String> {
    const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let (mut shown, change) = (words(present), words(change));
    if change.is_empty() || change.len() % 4 != 0 {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    for limits in change.chunks(4) {
        let class = limits.first().map(|it| it.to_ascii_lowercase());
        let class = class.map(|it| it.replace("replica", "slave"));
        let place = CLASSES.iter().position(|it| Some(*it) == class.as_deref());
        let place = place.ok_or("Invalid client class specified in buffer limit configuration.")?;
        let bad = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        let numbers = limits.iter().skip(1).map(|it| bytes_of(it).ok_or(bad));
        for (at, number) in numbers.enumerate() {
            let number = number?.to_string();
            // The default has all classes in this order.
            if let Some(word) = shown.get_mut(place * 4 + 1 + at) {
                *word = number;
            }
        }
    }
    Ok(shown.join(" "))
}

/// Percentiles, as Redis writes them.
fn percentiles(text: &str) -> std::result::Result<String, String> {
    let mut shown = Vec::new();
    for word in text.split_whitespace() {
        let percentile: Option<f64> = word.parse().ok();
        let percentile = percentile.filter(|it| (0.0..=100.0).contains(it));
        let percentile = percentile.ok_or(
            "latency-tracking-info-percentiles should contain a list of percentiles \
                    between 0.0 and 100.0",
        )?;
        shown.push(percentile.to_string());
    }
    Ok(shown.join(" "))
}

/// A host and a port, or `no one`.
fn primary(text: &str) -> std::result::Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [] => Ok(String::new()),
        [no, one] if no.eq_ignore_ascii_case("no") && one.eq_ignore_ascii_case("one") => {
            Ok(String::new())
        }
        [host, _] if host.contains(['"', '\'', '\\']) => Err("Invalid host".to_owned()),
        [host, port] => match Primary::parse(host.as_bytes(), port.as_bytes()) {
            Ok(primary) => Ok(format!("{} {}", primary.host, primary.port)),
            Err(_) => Err("Invalid master port".to_owned()),
        },
        _ => Err("wrong number of arguments".to_owned()),
    }
}

/// Pairs of seconds and changes.
fn save_points(text: &str) -> std::result::Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_pair = |pair: &[&str]| match pair {
        [seconds, changes] => {
            integer(seconds.as_bytes()).is_some_and(|it| it >= 1)
                && integer(changes.as_bytes()).is_some_and(|it| it >= 0)
        }
        _ => false,
    };
    match words.chunks(2).all(is_pair) {
        true => Ok(words.join(" ")),
        false => Err("Invalid save parameters".to_owned()),
    }
}

/// A size: digits and a unit, `k`, `m`, `g` of thousands and `kb`, `mb`, `gb` of 1,024s.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|byte: char| byte.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_set_together_or_not_at_all() {
        let mut config = Config::default();
        assert_eq!(config.number("port"), 6379);
        assert_eq!(
            config.set_all(&[(b"maxmemory", b"1gb"), (b"SLAVE-priority", b"7")], false),
            Ok(())
        );
        assert_eq!(config.number("maxmemory"), 1 << 30);
        assert_eq!(config.get("replica-priority"), "7");
        assert_eq!(config.get("slave-priority"), "7");
        let pairs: [(&[u8], &[u8]); 2] = [(b"maxmemory", b"5"), (b"appendfsync", b"sometimes")];
        assert!(config.set_all(&pairs, false).is_err());
        assert_eq!(config.number("maxmemory"), 1 << 30);
        assert!(config.set_all(&[(b"databases", b"17")], false).is_err());
        assert!(config.set_at_start(b"no-such-name", b"1").is_err());
        assert_eq!(config.fsync(), Fsync::EverySecond);
        let failed = |value: &[u8]| {
            let set = Config::default().set_all(&[(b"maxmemory-clients", value)], false);
            set.err().unwrap_or_default()
        };
        assert!(failed(b"200%").ends_with("percentage argument must be less or equal to 100"));
        assert!(failed(b"-1%").ends_with("argument must be a memory or percent value"));
    }

    #[test]
    fn hidden_names_are_told_to_who_knows_them() {
        let config = Config::default();
        let count = |pattern: &[u8]| config.matching(&[pattern]).count();
        assert_eq!([count(b"Key-Load-Delay"), count(b"key-load-dela?")], [1, 0]);
        assert_eq!([count(b"maxmemory"), count(b"maxmemor[y]")], [1, 1]);
    }

    #[test]
    fn limits_of_buffers_are_changed_class_by_class() {
        let mut config = Config::default();
        let mut set =
            |value: &str| config.set_at_start(b"client-output-buffer-limit", value.as_bytes());
        assert_eq!(set("replica 1mb 2kb 3 NORMAL 7 8 9"), Ok(()));
        assert!(set("normal 1 2").is_err_and(|it| it.starts_with("Wrong number")));
        assert!(set("nobody 1 2 3").is_err_and(|it| it.starts_with("Invalid client class")));
        assert!(set("normal 1 x 3").is_err_and(|it| it.starts_with("Error in hard")));
        assert_eq!(
            config.get("client-output-buffer-limit"),
            "normal 7 8 9 slave 1048576 2048 3 pubsub 33554432 8388608 60"
        );
        assert_eq!(config.out_limits(&["pubsub"]).soft_bytes, 8 << 20);
        assert_eq!(config.replica_limits().hard_bytes, 1 << 20);
    }

    #[test]
    fn every_default_is_a_value_that_can_be_set() {
        for entry in ENTRIES
            .iter()
            .filter(|entry| !matches!(entry.kind, Kind::Alias(_)))
        {
            let mut config = Config::default();
            assert_eq!(
                config.put(entry, entry.default.as_bytes()),
                Ok(()),
                "{}",
                entry.name
            );
            assert_eq!(config.get(entry.name), entry.default);
        }
    }
}
