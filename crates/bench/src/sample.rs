//! A store's own account of its background work at one moment.

/// Sizes and counters of a store. Figures that a store does not report are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bytes that compactions still have to rewrite, by the store's own estimate.
    pub debt_bytes: Option<u64>,
    /// Tables of each level, from level 0.
    pub files_by_level: Vec<u64>,
    /// Bytes of the current tables.
    pub table_bytes: Option<u64>,
    /// Bytes of the current blob files, garbage included.
    pub blob_bytes: Option<u64>,
    /// Microseconds writers have been held back, summed over them, since the store was opened.
    pub waited_micros: Option<u64>,
    /// Bytes written since the store was opened: log, flushes and compactions, blobs included.
    pub written_bytes: Option<u64>,
}

impl Sample {
    /// Files by level without the empty ones below the last: `3 0 12`; `-` when there are none.
    pub fn levels(&self) -> String {
        let last = self.files_by_level.iter().rposition(|files| *files > 0);
        let Some(levels) = last.and_then(|last| self.files_by_level.get(..=last)) else {
            return "-".to_owned();
        };
        let counts: Vec<String> = levels.iter().map(u64::to_string).collect();
        counts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_with_the_last_that_has_files() {
        let levels = |files: &[u64]| {
            let sample = Sample {
                files_by_level: files.to_vec(),
                ..Sample::default()
            };
            sample.levels()
        };
        assert_eq!(levels(&[3, 0, 12, 0, 0]), "3 0 12");
        assert_eq!(levels(&[0, 0]), "-");
        assert_eq!(levels(&[]), "-");
    }
}
