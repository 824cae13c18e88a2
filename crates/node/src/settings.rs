//! Options from an object.

use drumlin::{
    Codec, Compression, DirectoryFormat, Error, ErrorKind, Options, Result, TableFormat,
};
use napi_derive::napi;

/// Options of a database that is to be opened.
#[napi(object)]
pub(crate) struct Settings {
    pub create_if_missing: Option<bool>,
    pub error_if_exists: Option<bool>,
    pub read_only: Option<bool>,
    /// In bytes.
    pub memory_budget: Option<f64>,
    pub max_open_files: Option<u32>,
    pub background_threads: Option<u32>,
    pub compression: Option<String>,
    pub format: Option<String>,
    pub table_format: Option<String>,
}

impl Settings {
    /// What the engine calls them.
    ///
    /// # Errors
    /// `InvalidArgument` with the option's name.
    pub(crate) fn options(&self) -> Result<Options> {
        let mut options = Options {
            create_if_missing: self.create_if_missing.unwrap_or(true),
            error_if_exists: self.error_if_exists.unwrap_or(false),
            ..Options::default()
        };
        options.memory_budget = self.memory_budget.map(bytes).transpose()?;
        options.max_open_files = self.max_open_files.map(usize_of);
        options.background_threads = self.background_threads.map(usize_of);
        if let Some(name) = &self.compression {
            options.compression = Compression::new(name.parse::<Codec>()?);
        }
        options.format = match self.format.as_deref() {
            None | Some("auto") => DirectoryFormat::Auto,
            Some("rocksdb") => DirectoryFormat::RocksDb,
            Some("leveldb") => DirectoryFormat::LevelDb,
            Some(other) => {
                return Err(none(
                    "format",
                    other,
                    "\"auto\", \"rocksdb\" or \"leveldb\"",
                ));
            }
        };
        options.family.table_format = match self.table_format.as_deref() {
            None => None,
            Some("block") => Some(TableFormat::Block),
            Some("plain") => Some(TableFormat::Plain),
            Some("searchable") => Some(TableFormat::Searchable),
            Some(other) => {
                let known = "\"block\", \"plain\" or \"searchable\"";
                return Err(none("tableFormat", other, known));
            }
        };
        Ok(options)
    }
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a whole number in the range that doubles hold exactly"
)]
fn bytes(number: f64) -> Result<usize> {
    let is_whole = (0.0..9.0e15).contains(&number) && number.fract() == 0.0;
    match is_whole {
        true => Ok(number as usize),
        false => {
            let text = format!("memoryBudget is {number}: it is a number of bytes");
            Err(Error::new(ErrorKind::InvalidArgument, text))
        }
    }
}

fn none(option: &str, given: &str, known: &str) -> Error {
    let text = format!("there is no {option} {given:?}: it is {known}");
    Error::new(ErrorKind::InvalidArgument, text)
}
