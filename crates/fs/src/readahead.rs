//! Sequential reads through a buffer that grows as the scan goes on.

use std::sync::Arc;

use drumlin_base::Result;

use crate::file_system::RandomAccessFile;

/// The first read of a reader, and the one after each jump.
const WINDOW_BYTES_MIN: usize = 8 << 10;
/// The largest read at a time.
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// Reads a file front to back, asking the file system for ever larger pieces: 8 KiB, 16 KiB, up to
/// 256 KiB. A read that does not follow the one before it begins small again.
///
/// One thread at a time. A file that grows meanwhile is read to its new end.
#[derive(Debug)]
pub struct SequentialReader {
    file: Arc<dyn RandomAccessFile>,
    /// Where the next byte comes from.
    position: u64,
    /// Bytes of the file from `start`.
    buffer: Vec<u8>,
    start: u64,
    window_bytes: usize,
}

impl SequentialReader {
    /// A reader that begins at `position`.
    pub fn new(file: Arc<dyn RandomAccessFile>, position: u64) -> Self {
        Self {
            file,
            position,
            buffer: Vec::new(),
            start: position,
            window_bytes: WINDOW_BYTES_MIN,
        }
    }

    /// Offset in the file of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on at `position`, from the buffer if it is in there.
    pub fn seek(&mut self, position: u64) {
        let end = self.start + self.buffer.len() as u64;
        if !(self.start..=end).contains(&position) {
            self.buffer.clear();
            self.start = position;
            self.window_bytes = WINDOW_BYTES_MIN;
        }
        self.position = position;
    }

    /// The next bytes without going past them, at least one unless the file ends here.
    ///
    /// # Errors
    /// `Io`.
    pub fn peek(&mut self) -> Result<&[u8]> {
        let mut at = (self.position - self.start) as usize;
        if at >= self.buffer.len() {
            self.fill()?;
            at = 0;
        }
        debug_assert!(
            at <= self.buffer.len(),
            "the position is in the buffer or at its end"
        );
        Ok(self.buffer.split_at(at).1)
    }

    /// Fills `out`, less only at the end of the file, and returns the number of bytes read. Reads
    /// larger than the window bypass the buffer.
    ///
    /// # Errors
    /// `Io`; the position is then the one before the call.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let begin = self.position;
        let read = self.read_on(out);
        if read.is_err() {
            self.seek(begin);
        }
        read
    }

    fn read_on(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while let Some(rest) = out.get_mut(read..).filter(|rest| !rest.is_empty()) {
            debug_assert!(
                self.start <= self.position,
                "the buffer begins at or before the position"
            );
            let at = (self.position - self.start) as usize;
            let n = if at >= self.buffer.len() && rest.len() >= WINDOW_BYTES_MAX {
                self.file.read_at(self.position, rest)?
            } else {
                let piece = self.peek()?;
                let n = piece.len().min(rest.len());
                let ((to, _), (from, _)) = (rest.split_at_mut(n), piece.split_at(n));
                to.copy_from_slice(from);
                n
            };
            if n == 0 {
                break;
            }
            self.skip_to(self.position + n as u64);
            read += n;
        }
        Ok(read)
    }

    /// Moves on within the buffer, or past it after a read that did not use it.
    fn skip_to(&mut self, position: u64) {
        if position > self.start + self.buffer.len() as u64 {
            if !drumlin_base::bug!("left-over-piece-read-again") {
                self.buffer.clear();
            }
            self.start = position;
        }
        self.position = position;
    }

    /// Reads the next window at `position`.
    fn fill(&mut self) -> Result<()> {
        self.start = self.position;
        self.buffer.resize(self.window_bytes, 0);
        let read = self.file.read_at(self.position, &mut self.buffer);
        self.buffer.truncate(read.as_ref().map_or(0, |&n| n));
        read?;
        self.window_bytes = (self.window_bytes * 2).min(WINDOW_BYTES_MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use drumlin_base::rng::Rng;

    use super::*;
    use crate::{
        CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
        StrictMemFileSystem,
    };

    fn file_of(bytes: &[u8]) -> (FaultFileSystem, Arc<dyn RandomAccessFile>) {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        let path = Path::new("f");
        let options = CreateOptions::new(FileKind::Other);
        let mut file = files.create(path, options).unwrap();
        file.append(bytes).unwrap();
        let file = files.open(path).unwrap();
        (files, file)
    }

    #[test]
    fn pieces_of_any_size_and_jumps_read_what_is_there() {
        let mut rng = Rng::new(3);
        let mut bytes = vec![0; 2 << 20];
        rng.fill(&mut bytes);
        let (_, file) = file_of(&bytes);
        let mut reader = SequentialReader::new(file, 0);
        for _ in 0..400 {
            if rng.one_in(4) {
                let near = reader.position().saturating_sub(rng.below(3000));
                let far = rng.below(bytes.len() as u64 + 10);
                reader.seek(if rng.one_in(2) { near } else { far });
            }
            let at = reader.position() as usize;
            let max = [10, 5000, 600_000][rng.below(3) as usize];
            let mut out = vec![0; rng.below(max) as usize];
            let n = reader.read(&mut out).unwrap();
            let expected = bytes.get(at..).unwrap_or_default();
            let expected = &expected[..expected.len().min(out.len())];
            assert!(out[..n] == *expected, "at {at}");
            assert_eq!(reader.position(), (at + n) as u64);
        }
    }

    #[test]
    fn reading_on_takes_few_and_growing_reads() {
        let (files, file) = file_of(&vec![5; 4 << 20]);
        let mut reader = SequentialReader::new(file, 0);
        let before = files.operations();
        let mut total = 0;
        while reader.read(&mut [0; 1000]).unwrap() > 0 {
            total = reader.position();
        }
        assert_eq!(total, 4 << 20);
        // 8 + 16 + .. + 128 KiB, 16 of 256 KiB, and those that find the end.
        let reads = files.operations() - before;
        assert!((21..=24).contains(&reads), "{reads}");
    }

    #[test]
    fn a_failed_read_moves_nothing() {
        let (files, file) = file_of(&vec![5; 20_000]);
        let mut reader = SequentialReader::new(file, 0);
        reader.read(&mut [0; 100]).unwrap();
        files.add_rule(FaultRule::once(0, Fault::Io).on(OpKind::Read));
        assert!(reader.read(&mut [0; 10_000]).is_err());
        assert_eq!(reader.position(), 100);
        let mut out = [0; 10_000];
        assert_eq!(reader.read(&mut out).unwrap(), 10_000);
        assert_eq!(out, [5; 10_000]);
    }
}
