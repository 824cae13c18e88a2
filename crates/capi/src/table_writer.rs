//! `rocksdb_sstfilewriter_t`.

use drumlin::{Error, KeyOrder, Result, SstFileWriter, TableWriterOptions};

use crate::options::OpenOptions;

/// What the handle holds.
pub(crate) struct TableWriter {
    options: OpenOptions,
    writer: Option<SstFileWriter>,
    bytes: u64,
}

impl TableWriter {
    fn new(options: &OpenOptions, order: Option<KeyOrder>) -> Self {
        let mut options = options.clone();
        options.order = order.unwrap_or(options.order);
        Self {
            options,
            writer: None,
            bytes: 0,
        }
    }

    fn writer_options(&self) -> Result<TableWriterOptions> {
        let family = self.options.to_family()?;
        let own = TableWriterOptions::default();
        let tuning = family.tuning.unwrap_or_default();
        Ok(TableWriterOptions {
            order: family.order,
            compression: family.compression.unwrap_or_default(),
            block_bytes: tuning.block_bytes,
            restart_interval: tuning.restart_interval,
            ..own
        })
    }

    /// Refuses a call with no `timestamp` where keys have some, and the other way round.
    fn check_timestamp(&self, timestamp: Option<&[u8]>) -> Result<()> {
        let expected = self.options.order.timestamp_bytes();
        match timestamp {
            None if expected > 0 => Err(Error::invalid_argument("Timestamp size mismatch")),
            Some(timestamp) if expected != timestamp.len() => {
                Err(Error::invalid_argument("Timestamp size mismatch"))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, add: impl FnOnce(&mut SstFileWriter) -> Result<()>) -> Result<()> {
        match &mut self.writer {
            Some(writer) => add(writer),
            None => Err(Error::invalid_argument("File is not opened")),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_sstfilewriter_file_size(
    writer: *mut drumlin_ffi::handle::Handle<TableWriter>,
    bytes: *mut u64,
) {
    const NAME: &str = "rocksdb_sstfilewriter_file_size";
    // SAFETY: the C program's promise.
    let writer = unsafe { drumlin_ffi::handle::get(writer, NAME) };
    // SAFETY: as above.
    unsafe { crate::error::set(bytes, 0, writer.bytes) };
}

pub(crate) mod calls {
    use std::ffi::CStr;
    use std::sync::Arc;

    use drumlin::{Error, KeyOrder, Result, SstFileWriter};
    use drumlin_ffi::bytes::path_of;

    use super::TableWriter;
    use crate::comparator::Ordered;
    use crate::fields::Envoptions;
    use crate::options::OpenOptions;
    use crate::timestamps::with;

    pub(crate) fn sstfilewriter_create(
        _env: Option<&Envoptions>,
        options: &OpenOptions,
    ) -> TableWriter {
        TableWriter::new(options, None)
    }

    pub(crate) fn sstfilewriter_create_with_comparator(
        _env: Option<&Envoptions>,
        options: &OpenOptions,
        order: Option<&Ordered>,
    ) -> TableWriter {
        let order = order.map(|order| KeyOrder::Custom(Arc::clone(&order.0) as Arc<_>));
        TableWriter::new(options, order)
    }

    pub(crate) fn sstfilewriter_open(writer: &mut TableWriter, name: &CStr) -> Result<()> {
        let env = writer.options.environment();
        let options = writer.writer_options()?;
        writer.bytes = 0;
        writer.writer = Some(SstFileWriter::create(&env, &path_of(name), options)?);
        Ok(())
    }

    pub(crate) fn sstfilewriter_add(
        writer: &mut TableWriter,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(None)?;
        writer.add(|writer| writer.put(key, value))
    }

    pub(crate) fn sstfilewriter_put(
        writer: &mut TableWriter,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(None)?;
        writer.add(|writer| writer.put(key, value))
    }

    pub(crate) fn sstfilewriter_merge(
        writer: &mut TableWriter,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(None)?;
        writer.add(|writer| writer.merge(key, operand))
    }

    pub(crate) fn sstfilewriter_delete(writer: &mut TableWriter, key: &[u8]) -> Result<()> {
        writer.check_timestamp(None)?;
        writer.add(|writer| writer.delete(key))
    }

    pub(crate) fn sstfilewriter_put_with_ts(
        writer: &mut TableWriter,
        key: &[u8],
        timestamp: &[u8],
        value: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(Some(timestamp))?;
        writer.add(|writer| writer.put(&with(key, timestamp), value))
    }

    pub(crate) fn sstfilewriter_delete_with_ts(
        writer: &mut TableWriter,
        key: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(Some(timestamp))?;
        writer.add(|writer| writer.delete(&with(key, timestamp)))
    }

    pub(crate) fn sstfilewriter_delete_range(
        writer: &mut TableWriter,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        writer.check_timestamp(None)?;
        writer.add(|writer| writer.delete_range(begin, end))
    }

    pub(crate) fn sstfilewriter_finish(writer: &mut TableWriter) -> Result<()> {
        let Some(open) = writer.writer.take() else {
            return Err(Error::invalid_argument("File is not opened"));
        };
        writer.bytes = open.finish()?;
        Ok(())
    }
}
