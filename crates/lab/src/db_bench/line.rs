//! The lines db_bench prints.

/// db_bench's report line of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'t> {
    /// The workload.
    pub name: &'t str,
    /// Microseconds an operation: of one thread's time where threads look keys up.
    pub micros: f64,
    /// Seconds it took.
    pub seconds: Option<f64>,
    /// Operations of all threads.
    pub operations: u64,
    /// Keys found and keys looked up, of workloads that look keys up.
    pub found: Option<(u64, u64)>,
}

/// Parses `name : micros/op ops/sec seconds operations; ...`; `None` if the line is another.
pub fn parse(line: &str) -> Option<Line<'_>> {
    let (name, rest) = line.split_once(" : ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| {
        let is_unit = |word: &&str| word.trim_end_matches(';') == unit;
        let at = words.iter().position(is_unit)?;
        words.get(at.checked_sub(1)?).copied()
    };
    if words.get(1) != Some(&"micros/op") {
        return None;
    }
    // `(632 of 1000 found)`, and not `(200 ops)`.
    let found = rest
        .trim_end()
        .strip_suffix(" found)")
        .and_then(|rest| rest.rsplit_once('('))
        .and_then(|(_, found)| {
            let (found, asked) = found.split_once(" of ")?;
            Some((found.parse().ok()?, asked.parse().ok()?))
        });
    Some(Line {
        name: name.trim(),
        micros: words.first()?.parse().ok()?,
        seconds: before("seconds").and_then(|seconds| seconds.parse().ok()),
        operations: before("operations")?.parse().ok()?,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_db_bench_are_understood_and_others_passed_over() {
        let line = "fillseq      :       2.675 micros/op 370507 ops/sec 0.005 seconds 2000 \
                    operations;   41.0 MB/s";
        let expected = Line {
            name: "fillseq",
            micros: 2.675,
            seconds: Some(0.005),
            operations: 2000,
            found: None,
        };
        assert_eq!(parse(line), Some(expected));
        let line = "readrandom   :       0.863 micros/op 1144164 ops/sec 0.001 seconds 1000 \
                    operations;  120.1 MB/s (632 of 1000 found)";
        let line = parse(line).expect("a line of db_bench");
        assert_eq!((line.name, line.found), ("readrandom", Some((632, 1000))));
        let line = "fillsync     :     723.396 micros/op 1381 ops/sec 14.478 seconds 20000 \
                    operations;    0.2 MB/s (20 ops)";
        let line = parse(line).expect("a line of db_bench");
        assert_eq!((line.operations, line.found), (20_000, None));
        for line in [
            "Keys:       16 bytes each",
            "DB path: [/tmp/x]",
            "a : b",
            "",
        ] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
