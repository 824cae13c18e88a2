//! The line that is typed: its completion and its history.

use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Context, Editor, Helper};

use super::line::known;
use crate::failure::{Failure, Outcome};
use crate::output::remark;

/// Lines that are remembered.
const HISTORY_LINES: usize = 10_000;

/// Completes commands, their flags, and the names of families behind `--family`.
pub(super) struct Known {
    families: Vec<String>,
}

impl Known {
    /// What may stand at the end of `line`, and where the word begins.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = line.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let all = if before.last() == Some(&"--family") {
            self.families.clone()
        } else {
            let path: Vec<&str> = before
                .into_iter()
                .filter(|it| !it.starts_with('-'))
                .collect();
            let (commands, flags) = known(&path);
            match word.starts_with('-') {
                true => flags,
                false => commands,
            }
        };
        let mut fits: Vec<String> = all.into_iter().filter(|it| it.starts_with(word)).collect();
        fits.sort();
        (start, fits)
    }
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, fits) = self.candidates(line.get(..at).unwrap_or(line));
        // A word that is whole has a blank behind it.
        let pair = |display: String| Pair {
            replacement: format!("{display} "),
            display,
        };
        Ok((start, fits.into_iter().map(pair).collect()))
    }
}

impl rustyline::hint::Hinter for Known {
    type Hint = String;
}
impl rustyline::highlight::Highlighter for Known {}
impl rustyline::validate::Validator for Known {}
impl Helper for Known {}

/// A line, or why there is none.
pub(super) enum Typed {
    Line(String),
    /// CTRL-C: the line is given up.
    GivenUp,
    /// CTRL-D.
    End,
}

/// See the module.
pub(super) struct LineEditor {
    editor: Editor<Known, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// An editor on the terminal, with the history of earlier ones.
    pub(super) fn new(families: Vec<String>) -> Outcome<Self> {
        let config = rustyline::Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(no_terminal)?
            .completion_type(rustyline::CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(no_terminal)?;
        editor.set_helper(Some(Known { families }));
        let history = history_file();
        if let Some(history) = &history {
            let _ = editor.load_history(history); // There is none the first time.
        }
        Ok(Self { editor, history })
    }

    /// Waits for a line.
    pub(super) fn read(&mut self, prompt: &str) -> Outcome<Typed> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::GivenUp),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(no_terminal(error)),
        }
    }

    /// Keeps the history.
    pub(super) fn save(&mut self) {
        let Some(history) = &self.history else {
            return;
        };
        if let Err(error) = self.editor.save_history(history) {
            remark(format!(
                "the history is not kept in {}: {error}",
                history.display()
            ));
        }
    }
}

fn no_terminal(error: ReadlineError) -> Failure {
    Failure::Io(std::io::Error::other(format!("the terminal: {error}")))
}

/// Where the history is, as the XDG base directories have it; none where there is no home.
fn history_file() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    let dir = state.join("drumlin");
    drumlin_fs::Env::system().files.create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_flags_and_families_are_completed() {
        let known = Known {
            families: vec!["default".to_owned(), "users".to_owned()],
        };
        let fits = |line: &str| known.candidates(line).1;
        assert_eq!(fits("ver"), ["verify"]);
        assert_eq!(
            known.candidates("family cr"),
            (7, vec!["create".to_owned()])
        );
        assert_eq!(fits("scan --lim"), ["--limit"]);
        assert!(fits("scan --f").contains(&"--family".to_owned()));
        assert_eq!(fits("scan --family u"), ["users"]);
        assert!(fits("").contains(&"exit".to_owned()));
        assert!(fits("get somekey no").is_empty());
    }
}
