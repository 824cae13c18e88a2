//! `appendonly.aof.manifest`: one line a file, `file NAME seq NUMBER type b|h|i`.

use drumlin_base::{Error, Result};

/// Longest line; Redis's own bound.
const LINE_BYTES_MAX: usize = 1024;

/// A file that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, without a directory.
    pub name: String,
    /// Its number among those of its type.
    pub number: u64,
}

/// The content of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The state that the increments begin from.
    pub base: Option<Part>,
    /// Commands since the base, in order.
    pub increments: Vec<Part>,
    /// Files that a rewrite has replaced and that may be removed.
    pub history: Vec<Part>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Corruption where Redis refuses to start: an empty manifest, a line that is too long, has not all three facts or
    /// is of an unknown type, a name with a directory, a second base, increments whose numbers do not ascend. A last
    /// line without its end is refused too.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut manifest = Self::default();
        let Some(text) = text.strip_suffix(b"\n") else {
            return Err(Error::corruption(
                "a manifest is empty or ends within a line",
            ));
        };
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.first() == Some(&b'#') {
                continue;
            }
            let added = manifest.add(line);
            added.map_err(|error| error.context(format!("line {} of a manifest", number + 1)))?;
        }
        Ok(manifest)
    }

    fn add(&mut self, line: &[u8]) -> Result<()> {
        if line.len() >= LINE_BYTES_MAX {
            return Err(Error::corruption("it is too long"));
        }
        let damage = || Error::corruption("it does not say file, seq and type");
        let words = words(line).ok_or_else(damage)?;
        let (pairs, odd) = words.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(damage());
        }
        let fact = |name: &str| {
            let named = |[key, _]: &&[String; 2]| key.eq_ignore_ascii_case(name);
            pairs
                .iter()
                .rev()
                .find(named)
                .map(|[_, value]| value.as_str())
        };
        let name = fact("file").ok_or_else(damage)?.to_owned();
        let number: u64 = fact("seq")
            .and_then(|number| number.parse().ok())
            .ok_or_else(damage)?;
        let kind = fact("type").ok_or_else(damage)?;
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
            return Err(Error::corruption("its file is not a name in the directory"));
        }
        let last = self.increments.last().map_or(0, |part| part.number);
        let part = Part { name, number };
        match kind.as_bytes().first() {
            _ if number == 0 => return Err(damage()),
            Some(b'b') if self.base.is_some() => {
                return Err(Error::corruption("it is a second base"));
            }
            Some(b'b') => self.base = Some(part),
            Some(b'h') => self.history.push(part),
            Some(b'i') if number <= last => {
                return Err(Error::corruption("the numbers of increments do not ascend"));
            }
            Some(b'i') => self.increments.push(part),
            _ => return Err(Error::corruption("its type is unknown")),
        }
        Ok(())
    }

    /// The files in the order in which they are read, each with whether its tail may be cut.
    pub fn files(&self) -> impl Iterator<Item = (&Part, bool)> {
        let count = self.increments.len() + usize::from(self.base.is_some());
        let files = self.base.iter().chain(&self.increments).enumerate();
        files.map(move |(number, part)| (part, number + 1 == count))
    }

    /// The manifest as Redis writes it.
    pub fn to_text(&self) -> String {
        let lines = |parts: &[Part], kind: char| {
            let line = |part: &Part| {
                format!(
                    "file {} seq {} type {kind}\n",
                    quoted(&part.name),
                    part.number
                )
            };
            parts.iter().map(line).collect::<String>()
        };
        let base = lines(self.base.as_slice(), 'b');
        base + &lines(&self.history, 'h') + &lines(&self.increments, 'i')
    }
}

/// `name`, in quotes if it has to be.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte);
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let one = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", name.bytes().map(one).collect::<String>())
}

/// The words of a line: between spaces, or in quotes as on redis-cli's command line.
fn words(line: &[u8]) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let word;
        (word, rest) = match rest.split_first()? {
            (b'"', rest) => double_quoted(rest)?,
            (b'\'', rest) => single_quoted(rest)?,
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace);
                let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
                (word.to_vec(), rest)
            }
        };
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        rest = rest.trim_ascii_start();
        words.push(String::from_utf8(word).ok()?);
    }
    Some(words)
}

/// A word up to its closing quote, with escapes, and the rest.
fn double_quoted(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        let byte;
        (byte, rest) = rest.split_first()?;
        match byte {
            b'"' => return Some((word, rest)),
            b'\\' => {
                let escaped;
                (escaped, rest) = rest.split_first()?;
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    b'x' if rest
                        .iter()
                        .take(2)
                        .filter(|byte| byte.is_ascii_hexdigit())
                        .count()
                        == 2 =>
                    {
                        let digits;
                        (digits, rest) = rest.split_at_checked(2)?;
                        u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
                    }
                    other => *other,
                });
            }
            byte => word.push(*byte),
        }
    }
}

/// A word up to its closing quote, in which only a quote is escaped, and the rest.
fn single_quoted(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        if let Some(behind) = rest.strip_prefix(b"\\'") {
            word.push(b'\'');
            rest = behind;
            continue;
        }
        let byte;
        (byte, rest) = rest.split_first()?;
        match byte {
            b'\'' => return Some((word, rest)),
            byte => word.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, number: u64) -> Part {
        let name = name.to_owned();
        Part { name, number }
    }

    #[test]
    fn the_example_of_redis_reads_and_is_written_alike() {
        let text = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                    file appendonly.aof.1.incr.aof seq 1 type h\n\
                    file appendonly.aof.4.incr.aof seq 4 type i\n\
                    file appendonly.aof.5.incr.aof seq 5 type i\n";
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(manifest.base, Some(part("appendonly.aof.2.base.rdb", 2)));
        assert_eq!(manifest.history, [part("appendonly.aof.1.incr.aof", 1)]);
        let files: Vec<_> = manifest
            .files()
            .map(|(part, last)| (part.number, last))
            .collect();
        assert_eq!(files, [(2, false), (4, false), (5, true)]);
        assert_eq!(manifest.to_text(), text);
    }

    #[test]
    fn names_may_be_quoted_and_facts_unknown() {
        let text = b"# a comment\nfile \"a \\x41\\\"\" seq 1 type i startoffset 7\nFILE 'it\\'s' seq 2 type i\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.increments, [part("a A\"", 1), part("it's", 2)]);
        let again = Manifest::parse(manifest.to_text().as_bytes()).unwrap();
        assert_eq!(again, manifest);
    }

    #[test]
    fn what_redis_does_not_start_with_is_refused() {
        let long = format!("file {} seq 1 type i\n", "a".repeat(1024));
        let broken = [
            "",
            "\n",
            "file a seq 1 type i",
            "file a seq 1\n",
            "file a seq 1 type\n",
            "file a seq 0 type i\n",
            "file a seq x type i\n",
            "file a seq 1 type z\n",
            "file a/b seq 1 type i\n",
            "file .. seq 1 type i\n",
            "file \"a seq 1 type i\n",
            "file \"a\"b seq 1 type i\n",
            "file a seq 1 type b\nfile b seq 2 type b\n",
            "file a seq 2 type i\nfile b seq 2 type i\n",
            &long,
        ];
        for text in broken {
            assert!(Manifest::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
