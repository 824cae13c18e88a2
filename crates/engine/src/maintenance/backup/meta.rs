//! Meta files: what a backup consists of, as text; on disk, see `docs/format/backup.md`.
//!
//! Version 1 of RocksDB's schema is written, which every RocksDB since 2013 reads, and 2 where files are left out, which those since 7.10
//! read; 1 and 2 are read.

use std::fmt::Write as _;

use drumlin_base::{Error, Result};

use super::layout;

/// On disk.
const SCHEMA_VERSION: &str = "schema_version ";
const NOTE: &str = "metadata";
const CRC32C: &str = "crc32";
const SIZE: &str = "size";
const EXCLUDED: &str = "ni::excluded";
const MUST_BE_KNOWN: &str = "ni::";
const FOOTER: &str = "// FOOTER";

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaFile {
    /// Its path below the backup directory.
    pub path: String,
    /// CRC-32C of all of it, unmasked.
    pub crc32c: Option<u32>,
    /// Its size, where the meta file tells.
    pub size: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When the backup was begun.
    pub unix_seconds: u64,
    /// The last sequence number in it.
    pub seqno: u64,
    /// What the program that made it wanted to remember.
    pub note: Vec<u8>,
    /// Its files.
    pub files: Vec<MetaFile>,
    /// Files that belong to it and were left out.
    pub excluded: Vec<String>,
}

impl Meta {
    /// The text of a meta file, of schema 1 unless files are left out. Requires: every file has a checksum.
    pub fn encode(&self) -> String {
        let mut text = match self.excluded.is_empty() {
            true => String::new(),
            false => format!("{SCHEMA_VERSION}2.1\n"),
        };
        let _ = writeln!(text, "{}\n{}", self.unix_seconds, self.seqno);
        if !self.note.is_empty() {
            text.push_str(NOTE);
            text.push(' ');
            for byte in &self.note {
                // Writing to a String cannot fail.
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.files.len());
        for file in &self.files {
            let crc32c = file.crc32c.unwrap_or_default();
            let _ = writeln!(text, "{} {CRC32C} {crc32c}", file.path);
        }
        for path in &self.excluded {
            let _ = writeln!(text, "{path} {EXCLUDED} true");
        }
        text
    }

    /// What the bytes of a meta file say.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` of a schema or a field that must be understood and is not.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let mut lines = text.split('\n').peekable();
        let schema = match lines.next_if(|line| line.starts_with(SCHEMA_VERSION)) {
            Some(line) => schema_of(line)?,
            None => Schema::One,
        };
        let mut meta = Self {
            unix_seconds: number(lines.next(), "the time")?,
            seqno: number(lines.next(), "the sequence number")?,
            ..Self::default()
        };
        let count = meta.decode_fields(&mut lines, schema)?;
        for line in lines.by_ref() {
            if schema == Schema::Two && line == FOOTER {
                break;
            }
            meta.decode_file(line, schema)?;
        }
        for line in lines {
            field(line)?;
        }
        match meta.files.len() as u64 == count {
            true => Ok(meta),
            false => Err(damaged(format!(
                "it names {} files and says that there are {count}",
                meta.files.len()
            ))),
        }
    }

    /// The fields before the files; how many files there are.
    fn decode_fields<'a>(
        &mut self,
        lines: &mut impl Iterator<Item = &'a str>,
        schema: Schema,
    ) -> Result<u64> {
        loop {
            let line = lines.next();
            if line.is_some_and(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
                return number(line, "the number of files");
            }
            let Some(line) = line else {
                return Err(damaged("it ends before the number of files"));
            };
            match field(line)? {
                (NOTE, digits) => self.note = from_hex(digits)?,
                _ if schema == Schema::Two => {}
                (name, _) => return Err(damaged(format!("a field '{}'", name.escape_debug()))),
            }
        }
    }

    fn decode_file(&mut self, line: &str, schema: Schema) -> Result<()> {
        let mut words = line.split(' ');
        let path = words.next().unwrap_or_default().to_owned();
        if layout::name_in_store(&path).is_none() {
            return Err(damaged(format!(
                "no file of a backup: '{}'",
                path.escape_debug()
            )));
        }
        let mut file = MetaFile {
            path,
            crc32c: None,
            size: None,
        };
        let mut excluded = false;
        while let Some(name) = words.next() {
            let Some(value) = words.next() else {
                return Err(damaged(format!("{}: {name} without a value", file.path)));
            };
            match (name, schema) {
                (CRC32C, _) => file.crc32c = Some(number(Some(value), CRC32C)?),
                (_, Schema::One) => return Err(damaged(format!("{}: too many words", file.path))),
                (SIZE, _) => file.size = Some(number(Some(value), SIZE)?),
                (EXCLUDED, _) => excluded = flag(value)?,
                (name, _) => refuse_unknown(name)?,
            }
        }
        if schema == Schema::One && file.crc32c.is_none() {
            return Err(damaged(format!("{}: no checksum", file.path)));
        }
        match excluded {
            true => self.excluded.push(file.path),
            false => self.files.push(file),
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schema {
    One,
    Two,
}

fn schema_of(line: &str) -> Result<Schema> {
    let version = line.strip_prefix(SCHEMA_VERSION).unwrap_or_default();
    if version == "2" || version.starts_with("2.") {
        return Ok(Schema::Two);
    }
    let version = version.escape_debug();
    Err(Error::not_supported(format!("backups of schema {version}")))
}

fn field(line: &str) -> Result<(&str, &str)> {
    let found = line.split_once(' ');
    let (name, value) = found.ok_or_else(|| damaged("a field without a value"))?;
    refuse_unknown(name)?;
    Ok((name, value))
}

fn refuse_unknown(name: &str) -> Result<()> {
    match name.starts_with(MUST_BE_KNOWN) {
        true => Err(Error::not_supported(format!(
            "backups with the field {}, from a later RocksDB",
            name.escape_debug()
        ))),
        false => Ok(()),
    }
}

fn flag(value: &str) -> Result<bool> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::not_supported(format!(
            "{EXCLUDED} of '{}'",
            value.escape_debug()
        ))),
    }
}

/// Decimal digits and nothing else.
fn number<N: std::str::FromStr>(text: Option<&str>, what: &str) -> Result<N> {
    let text = text.unwrap_or_default();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse().ok().filter(|_| is_number);
    parsed.ok_or_else(|| damaged(format!("{what} is '{}'", text.escape_debug())))
}

fn from_hex(digits: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| damaged("the note is no hex"))
}

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::corruption(format!("the meta file of a backup is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use drumlin_base::ErrorKind;

    use super::*;

    fn meta() -> Meta {
        let file = |path: &str, crc32c| MetaFile {
            path: path.to_owned(),
            crc32c: Some(crc32c),
            size: None,
        };
        Meta {
            unix_seconds: 1_700_000_000,
            seqno: 17,
            note: b"before the move".to_vec(),
            files: vec![
                file("private/1/CURRENT", 0),
                file("shared_checksum/000007_sABC_9.sst", u32::MAX),
            ],
            excluded: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = meta().encode();
        assert_eq!(
            text,
            "1700000000\n17\nmetadata 6265666F726520746865206D6F7665\n2\n\
             private/1/CURRENT crc32 0\nshared_checksum/000007_sABC_9.sst crc32 4294967295\n"
        );
        assert_eq!(Meta::decode(text.as_bytes()).unwrap(), meta());
        let mut partial = meta();
        partial.excluded = vec!["shared_checksum/000008_sABC_9.sst".to_owned()];
        let text = partial.encode();
        assert!(
            text.starts_with("schema_version 2.1\n1700000000\n"),
            "{text}"
        );
        let last = "\nshared_checksum/000008_sABC_9.sst ni::excluded true\n";
        assert!(text.ends_with(last), "{text}");
        assert_eq!(Meta::decode(text.as_bytes()).unwrap(), partial);
    }

    #[test]
    fn schema_2_is_read() {
        let text = "schema_version 2.1\n5\n6\ncolour blue\n1\n\
                    private/1/CURRENT temp kWarm size 16 crc32 7 later x\n\
                    shared_checksum/000007_sABC_9.sst ni::excluded true\n// FOOTER\nsum 1\n";
        let meta = Meta::decode(text.as_bytes()).unwrap();
        assert_eq!((meta.unix_seconds, meta.seqno), (5, 6));
        assert_eq!(meta.files[0].size, Some(16));
        assert_eq!(meta.files[0].crc32c, Some(7));
        assert_eq!(meta.excluded, ["shared_checksum/000007_sABC_9.sst"]);
    }

    #[test]
    fn damage_and_strangers_are_told_apart() {
        let good = "5\n6\n1\nprivate/1/CURRENT crc32 7\n";
        assert!(Meta::decode(good.as_bytes()).is_ok());
        for (from, to, kind) in [
            ("5\n", "", ErrorKind::Corruption),
            ("5\n", "\n", ErrorKind::Corruption),
            ("5\n", "+5\n", ErrorKind::Corruption),
            ("\n1\n", "\n2\n", ErrorKind::Corruption),
            ("\n1\n", "\ncolour blue\n1\n", ErrorKind::Corruption),
            ("\n1\n", "\nmetadata 6\n1\n", ErrorKind::Corruption),
            ("private/1", "private/1/../..", ErrorKind::Corruption),
            ("crc32 7", "crc32", ErrorKind::Corruption),
            ("crc32 7", "crc32 4294967296", ErrorKind::Corruption),
            ("crc32 7", "crc32 7 size 4", ErrorKind::Corruption),
            (" crc32 7", "", ErrorKind::Corruption),
            ("5\n", "schema_version 3\n5\n", ErrorKind::NotSupported),
            (
                "5\n6\n",
                "schema_version 2\n5\n6\nni::escape x\n",
                ErrorKind::NotSupported,
            ),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_eq!(
                Meta::decode(bad.as_bytes()).unwrap_err().kind(),
                kind,
                "{bad}"
            );
        }
    }
}
