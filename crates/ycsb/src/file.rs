//! The file workload: records from a file of delimited fields, requests from a file of keys.
//!
//! The load adds each line of `datafile` as a record. `keyfields` (numbers from 0, `0,1,2`) say which
//! of its fields, joined by `keydelimiter`, are the key; the others are the record's fields. The run
//! asks for the keys in `keyfile`, one a line, or for those of the data file without one, in the
//! request distribution; `batchread` of them at once if that is above 1; and writes records of the
//! data file beside, from its front on, in the share `insertproportion`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use drumlin_base::rng::Rng;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Env, RandomAccessFile};

use crate::binding::Client;
use crate::choosers::Chooser;
use crate::fields::Fields;
use crate::measurements::{Kind, Return};
use crate::properties::Properties;
use crate::workload::{Stopwatch, Workload, found, rng_of_thread};

/// Bytes a thread takes from the file at a time; no line is longer.
const PIECE_BYTES: usize = 1 << 20;

/// Lines of a file, given out in pieces to threads.
#[derive(Debug)]
struct Lines {
    file: Arc<dyn RandomAccessFile>,
    /// Where the next piece begins.
    at: Mutex<u64>,
}

impl Lines {
    fn open(path: &str, env: &Env) -> Result<Self> {
        let file = env
            .files
            .open(Path::new(path))
            .map_err(|error| error.context(path))?;
        Ok(Self {
            file,
            at: Mutex::default(),
        })
    }

    /// Replaces `piece` by whole lines; empty at the end of the file.
    fn next(&self, piece: &mut Vec<u8>) -> Result<()> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        piece.resize(PIECE_BYTES, 0);
        let read = self.file.read_at(*at, piece)?;
        piece.truncate(read);
        let is_last = *at + read as u64 >= self.file.size();
        if !is_last {
            let end = piece.iter().rposition(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| {
                let message = format!("a line is longer than {PIECE_BYTES} bytes");
                Error::new(ErrorKind::TooLarge, message)
            })?;
            piece.truncate(end + 1);
        }
        *at += piece.len() as u64;
        Ok(())
    }

    fn rewind(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }
}

/// How a line becomes a record.
#[derive(Debug)]
struct Layout {
    delimiter: u8,
    key_delimiter: Vec<u8>,
    key_fields: Vec<usize>,
    names: Vec<Vec<u8>>,
}

impl Layout {
    fn new(properties: &Properties) -> Result<Self> {
        let delimiter = properties.text("delimiter", "\\t");
        let delimiter = match delimiter.as_str() {
            "\\t" | "tab" => b'\t',
            text => match text.as_bytes() {
                [byte] => *byte,
                _ => {
                    let message = format!("delimiter={text}: one byte is wanted, or \\t");
                    return Err(Error::invalid_argument(message));
                }
            },
        };
        let key_fields = properties.text("keyfields", "0");
        let key_fields: std::result::Result<Vec<usize>, _> = key_fields
            .split(',')
            .map(|number| number.trim().parse())
            .collect();
        let key_fields = key_fields.map_err(|_| {
            Error::invalid_argument("keyfields: numbers from 0 are wanted, as 0,1,2")
        })?;
        let names = properties.text("fieldnames", "");
        let names = names.split(',').filter(|name| !name.is_empty());
        Ok(Self {
            delimiter,
            key_delimiter: properties
                .get("keydelimiter")
                .unwrap_or(" ")
                .as_bytes()
                .to_vec(),
            key_fields,
            names: names.map(|name| name.trim().as_bytes().to_vec()).collect(),
        })
    }

    /// The key and the other fields of `line`; false when the line has too few fields.
    fn split(&self, line: &[u8], key: &mut Vec<u8>, record: &mut Fields) -> bool {
        key.clear();
        record.clear();
        for (number, field) in self.key_fields.iter().enumerate() {
            let Some(part) = line.split(|byte| *byte == self.delimiter).nth(*field) else {
                return false;
            };
            if number > 0 {
                key.extend_from_slice(&self.key_delimiter);
            }
            key.extend_from_slice(part);
        }
        for (number, part) in line.split(|byte| *byte == self.delimiter).enumerate() {
            if self.key_fields.contains(&number) {
                continue;
            }
            match self.names.get(number) {
                Some(name) => record.push(name, part),
                None => record.push(format!("field{number}").as_bytes(), part),
            }
        }
        true
    }
}

/// The keys asked for, one behind the other.
#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u64);
    }

    fn get(&self, index: u64) -> &[u8] {
        let end = |index: u64| self.ends.get(index as usize).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(index)).unwrap_or_default()
    }

    /// Of a file with a key a line, or of the records of the data file.
    fn read(lines: &Lines, layout: Option<&Layout>) -> Result<Self> {
        let mut keys = Self::default();
        let (mut piece, mut key, mut record) = (Vec::new(), Vec::new(), Fields::default());
        loop {
            lines.next(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            for line in piece
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                match layout {
                    None => keys.push(line),
                    Some(layout) if layout.split(line, &mut key, &mut record) => keys.push(&key),
                    Some(_) => {}
                }
            }
        }
        lines.rewind();
        Ok(keys)
    }
}

/// The workload under its properties.
#[derive(Debug)]
pub(crate) struct FileWorkload {
    data: Lines,
    layout: Layout,
    keys: Keys,
    chooser: Option<Chooser>,
    batch: usize,
    insert_share: f64,
    seed: u64,
}

impl FileWorkload {
    /// The workload of `properties`; `for_run` when its requests are wanted too.
    ///
    /// # Errors
    /// `InvalidArgument`; `NotFound` and `Io` of the files.
    pub(crate) fn new(properties: &Properties, for_run: bool, env: &Env) -> Result<Self> {
        let path = properties.get("datafile");
        let path = path.ok_or_else(|| Error::invalid_argument("workload=file needs a datafile"))?;
        let data = Lines::open(path, env)?;
        let layout = Layout::new(properties)?;
        let mut keys = Keys::default();
        let mut chooser = None;
        if for_run {
            keys = match properties.get("keyfile") {
                Some(path) => Keys::read(&Lines::open(path, env)?, None)?,
                None => Keys::read(&data, Some(&layout))?,
            };
            if keys.ends.is_empty() {
                return Err(Error::invalid_argument("there is no key to ask for"));
            }
            chooser = Some(Chooser::new(properties, keys.ends.len() as u64, 0)?);
        }
        Ok(Self {
            data,
            layout,
            keys,
            chooser,
            batch: properties.number::<usize>("batchread", 1)?.max(1),
            insert_share: properties.number("insertproportion", 0.0)?,
            seed: properties.number("seed", 0)?,
        })
    }

    /// Writes the next record of the file; false at its end.
    fn insert(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<bool> {
        loop {
            let Thread {
                piece,
                at,
                key,
                record,
                ..
            } = thread;
            if *at >= piece.len() {
                self.data.next(piece)?;
                *at = 0;
                if piece.is_empty() {
                    return Ok(false);
                }
            }
            let rest = piece.get(*at..).unwrap_or_default();
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            *at += line.len() + 1;
            if line.is_empty() {
                continue;
            }
            if !self.layout.split(line, key, record) {
                let line =
                    String::from_utf8_lossy(line.get(..line.len().min(60)).unwrap_or_default())
                        .into_owned();
                let message = format!("a line has fewer fields than keyfields name: {line}");
                return Err(Error::invalid_argument(message));
            }
            watch.time(Kind::Insert, || {
                client.insert(key, record)?;
                Ok(((), Return::Ok))
            })?;
            return Ok(true);
        }
    }
}

/// One thread's state.
#[derive(Debug)]
pub(crate) struct Thread {
    rng: Rng,
    chooser: Option<Chooser>,
    piece: Vec<u8>,
    at: usize,
    key: Vec<u8>,
    keys: Vec<Vec<u8>>,
    record: Fields,
}

impl Workload for FileWorkload {
    type Thread = Thread;

    fn thread(&self, index: u64) -> Thread {
        Thread {
            rng: rng_of_thread(self.seed, index),
            chooser: self.chooser.clone(),
            piece: Vec::new(),
            at: 0,
            key: Vec::new(),
            keys: vec![Vec::new(); self.batch],
            record: Fields::default(),
        }
    }

    fn load_one(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<bool> {
        self.insert(thread, client, watch)
    }

    fn run_one(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        if self.insert_share > 0.0 && thread.rng.unit() < self.insert_share {
            if !self.insert(thread, client, watch)? {
                self.data.rewind();
            }
            return Ok(());
        }
        let Thread {
            rng,
            chooser,
            keys,
            record,
            ..
        } = thread;
        let last = self.keys.ends.len() as u64 - 1;
        for key in keys.iter_mut() {
            let number = chooser
                .as_mut()
                .map_or(0, |chooser| chooser.next(last, rng));
            key.clear();
            key.extend_from_slice(self.keys.get(number));
        }
        if let [key] = keys.as_slice() {
            return watch.time(Kind::Read, || {
                let is_there = client.read(key, None, record)?;
                Ok(((), found(is_there)))
            });
        }
        watch.time(Kind::BatchRead, || {
            let count = client.read_batch(keys, &mut |_, _| {})?;
            Ok(((), found(count == keys.len())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_key_and_the_fields_that_are_left() {
        let mut properties = Properties::default();
        properties.set("keyfields", "2,0");
        properties.set("fieldnames", "id,score,user,text");
        properties.set("delimiter", "|");
        let layout = Layout::new(&properties).expect("sound");
        let (mut key, mut record) = (Vec::new(), Fields::default());
        assert!(layout.split(b"7|4.5|ann|fine film|extra", &mut key, &mut record));
        assert_eq!(key, b"ann 7");
        let fields: Vec<_> = record.iter().collect();
        let expected: [(&[u8], &[u8]); 3] = [
            (b"score", b"4.5"),
            (b"text", b"fine film"),
            (b"field4", b"extra"),
        ];
        assert_eq!(fields, expected);
        assert!(!layout.split(b"7|4.5", &mut key, &mut record));
        for (name, value) in [("keyfields", "a"), ("delimiter", "ab")] {
            let mut bad = properties.clone();
            bad.set(name, value);
            assert!(Layout::new(&bad).is_err());
        }
    }
}
