//! Where lines come from: a file through the engine's file system, or standard input.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use drumlin_fs::{Env, RandomAccessFile};

use crate::failure::Outcome;

const BUFFER_BYTES: usize = 1 << 20;

/// Lines to read, and how many bytes they have if that is known.
pub(crate) struct Input {
    pub(crate) reader: Box<dyn BufRead>,
    pub(crate) bytes: Option<u64>,
}

/// Opens `path`, or standard input for `-`.
pub(crate) fn open(path: &Path, env: &Env) -> Outcome<Input> {
    if path.as_os_str() == "-" {
        let reader = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
        return Ok(Input {
            reader: Box::new(reader),
            bytes: None,
        });
    }
    let file = FileReader {
        file: env.files.open(path)?,
        offset: 0,
    };
    Ok(Input {
        bytes: Some(file.file.size()),
        reader: Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
    })
}

/// A file read from front to back.
struct FileReader {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self
            .file
            .read_at(self.offset, buffer)
            .map_err(io::Error::other)?;
        self.offset += read as u64;
        Ok(read)
    }
}
