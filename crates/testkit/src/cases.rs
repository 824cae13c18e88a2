//! Cases written as text: commands and their outputs.
//!
//! ```text
//! # A comment.
//! command and its arguments
//! input lines, if any
//! ----
//! output lines
//! <blank line>
//! ```
//!
//! [`check_cases`] runs each case and, when outputs differ, fails once with the whole corrected
//! text, ready to replace the old after review.

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case<'t> {
    /// The first line.
    pub command: &'t str,
    /// The lines after it, each with its newline.
    pub input: String,
}

/// Runs every case of `text` through `run`, which returns the output.
///
/// # Panics
/// When an output differs from the text's, when a case has no `----`, or when there is no case.
pub fn check_cases(text: &str, mut run: impl FnMut(&Case<'_>) -> String) {
    let (mut rewritten, mut cases, mut differ) = (String::new(), 0, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        rewritten.push_str(line);
        rewritten.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let split = body.iter().position(|line| *line == "----");
        let split = split.unwrap_or_else(|| panic!("the case '{line}' has no ---- line"));
        let (input, rest) = body.split_at(split);
        let case = Case {
            command: line,
            input: input.iter().map(|line| format!("{line}\n")).collect(),
        };
        let expected: String = rest
            .iter()
            .skip(1)
            .map(|line| format!("{line}\n"))
            .collect();
        let mut output = run(&case);
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        differ |= output != expected;
        cases += 1;
        rewritten.push_str(&format!("{}----\n{output}\n", case.input));
    }
    assert!(cases > 0, "the text holds no case");
    assert!(
        !differ,
        "outputs differ; the text would have to read:\n{rewritten}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Upper case.\nupper\nab\ncd\n----\nAB\nCD\n\nempty\n----\n";

    fn upper(case: &Case<'_>) -> String {
        case.input.to_uppercase()
    }

    #[test]
    fn cases_that_hold_pass() {
        check_cases(TEXT, upper);
    }

    #[test]
    #[should_panic(expected = "ab\ncd\n----\nab\ncd\n")]
    fn a_case_that_does_not_hold_fails_with_the_text_to_put_in_its_place() {
        check_cases(TEXT, |case| case.input.clone());
    }
}
