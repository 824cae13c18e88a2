//! gen: data as `key TAB value` lines.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use drumlin_base::checksum::Xxh3;
use drumlin_bench::datasets::{DataSet, DataSpec, Kind, add_record, totals};
use drumlin_bench::lineitem::{LineItemSpec, LineItems};
use drumlin_bench::text::{CommentText, POOL_BYTES_TPCH};
use drumlin_fs::{CreateOptions, Env, FileKind, WritableFile};
use serde_json::json;

use crate::args::{Data, GenLineItem, GenSet, LineItemShape, Text};
use crate::escape::Form;
use crate::failure::Outcome;
use crate::output::{Output, remark};
use crate::progress::Progress;
use crate::units;

/// Rows at scale factor 1, and the average bytes of one without its comment.
const ROWS_PER_SCALE: f64 = 6_000_000.0;
const ROW_BYTES_BESIDE_COMMENT: u64 = 90;

/// Writes the data asked for.
pub(crate) fn generate(data: &Data, out: &mut Output) -> Outcome {
    match data {
        Data::Lineitem(wanted) => to_file(&wanted.out, out, &mut |out| write_rows(wanted, out)),
        Data::English(wanted) => write_set(Kind::English, wanted, out),
        Data::Packages(wanted) => write_set(Kind::Packages, wanted, out),
        Data::Contents(wanted) => write_set(Kind::Contents, wanted, out),
        Data::Reviews(wanted) => write_set(Kind::Reviews, wanted, out),
        Data::Random(wanted) => write_set(Kind::Random, wanted, out),
    }
}

/// Has `write` write to the file `path`, or to `out` when that is `-`.
fn to_file(
    path: &Path,
    out: &mut Output,
    write: &mut dyn FnMut(&mut dyn Write) -> Outcome,
) -> Outcome {
    if path.as_os_str() == "-" {
        return write(out);
    }
    let mut file = BufWriter::with_capacity(1 << 20, FileWriter::create(path)?);
    write(&mut file)?;
    file.flush()?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.file.close()?)
}

/// Writes a data set's records as lines that `drumlin load` reads, and remarks their totals.
fn write_set(kind: Kind, wanted: &GenSet, out: &mut Output) -> Outcome {
    let spec = DataSpec {
        kind,
        bytes: wanted.bytes,
        seed: wanted.seed,
        docs: wanted.docs.clone(),
    };
    let set = spec.make(&Env::system())?;
    if !wanted.totals {
        to_file(&wanted.out, out, &mut |out| write_records(&*set, out))?;
    }
    let sums = totals(&*set);
    let text = format!(
        "{}: {} records, {} of keys, {} of values, checksum {:016x}",
        set.title(),
        units::count(sums.records),
        units::bytes(sums.key_bytes),
        units::bytes(sums.value_bytes),
        sums.checksum,
    );
    if wanted.totals {
        let checksum = format!("{:016x}", sums.checksum);
        return out.fact(
            text,
            json!({
                "data": set.title(), "records": sums.records, "key_bytes": sums.key_bytes,
                "value_bytes": sums.value_bytes, "checksum": checksum,
            }),
        );
    }
    remark(text);
    Ok(())
}

fn write_records(set: &dyn DataSet, out: &mut dyn Write) -> Outcome {
    let (mut bytes, mut line) = (Vec::new(), Vec::new());
    for index in 0..set.len() {
        line.clear();
        set.write_key(index, &mut bytes);
        Form::Plain.write(&bytes, &mut line);
        line.push(b'\t');
        set.write_value(index, &mut bytes);
        Form::Plain.write(&bytes, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(out.flush()?)
}

fn write_rows(wanted: &GenLineItem, out: &mut dyn Write) -> Outcome {
    let spec = LineItemSpec {
        part: wanted.part,
        parts: wanted.parts,
        ..wanted.shape.spec(wanted.rows, wanted.bytes)
    };
    let mut items = wanted.shape.rows(&spec, POOL_BYTES_TPCH)?;
    let text = Arc::clone(items.text());
    let rows_max = wanted.rows.unwrap_or(u64::MAX);
    let bytes_max = wanted.bytes.unwrap_or(u64::MAX);
    // A bar would be drawn over lines that go to the same terminal.
    let mut progress = Progress::new("generating", wanted.bytes);
    let (mut key, mut line) = (Vec::new(), Vec::new());
    let (mut rows, mut bytes, mut checksum) = (0u64, 0u64, Xxh3::new());
    for row in items.by_ref() {
        row.write_key(&mut key);
        row.write_value(&text, &mut line);
        let row_bytes = (key.len() + line.len()) as u64;
        if rows >= rows_max || bytes + row_bytes > bytes_max {
            break;
        }
        add_record(&mut checksum, &key, &line);
        key.push(b'\t');
        line.push(b'\n');
        out.write_all(&key)?;
        out.write_all(&line)?;
        rows += 1;
        bytes += row_bytes;
        progress.advance(row_bytes);
    }
    progress.finish();
    out.flush()?;
    remark(format!(
        "{} rows, {} of keys and values, checksum {:016x}, scale factor {}; {} rows left out because an \
         earlier line of their order has the same key",
        units::count(rows),
        units::bytes(bytes),
        checksum.finish(),
        spec.scale_factor,
        units::count(items.repeated()),
    ));
    Ok(())
}

impl LineItemShape {
    /// The spec for about so many rows or bytes.
    pub(crate) fn spec(&self, rows: Option<u64>, bytes: Option<u64>) -> LineItemSpec {
        let row_bytes = ROW_BYTES_BESIDE_COMMENT + u64::from(self.comment_bytes);
        let by_bytes = bytes.map(|bytes| bytes / row_bytes);
        let rows = rows.into_iter().chain(by_bytes).min().unwrap_or(0);
        let enough = (rows as f64 * 1.01 / ROWS_PER_SCALE).ceil().max(1.0);
        LineItemSpec {
            scale_factor: self.scale_factor.unwrap_or(enough),
            comment_bytes: self.comment_bytes,
            seed: self.seed,
            ..LineItemSpec::default()
        }
    }

    /// The rows of `spec`, with a pool of `pool_bytes` unless told otherwise.
    pub(crate) fn rows(&self, spec: &LineItemSpec, pool_bytes: u64) -> Outcome<LineItems> {
        let text = match self.text {
            Text::Fresh => CommentText::fresh(),
            Text::Pool => {
                let bytes = self.pool_bytes.unwrap_or(pool_bytes);
                CommentText::pool(bytes, spec.comment_bytes_max())?
            }
        };
        Ok(LineItems::new(spec, Arc::new(text))?)
    }
}

/// A new file through the engine's file system.
struct FileWriter {
    file: Box<dyn WritableFile>,
}

impl FileWriter {
    fn create(path: &Path) -> Outcome<Self> {
        let options = CreateOptions::new(FileKind::Other);
        let file = Env::system().files.create(path, options)?;
        Ok(Self { file })
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
