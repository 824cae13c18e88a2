//! A regular expression that can be matched, with its options.
//!
//! The engine counts by Unicode, and `$` is the very end for it. PCRE2 counts by ASCII, and has `$` also before a last newline. So
//! there are two translations: a fast one for texts where that makes no difference, and an exact one, made when a text needs it.

use std::sync::{Arc, OnceLock};

use fancy_regex::{Regex, RegexBuilder};

use crate::code::Code;
use crate::raw::{Kind, OwnedValue};
use crate::refusal::{Outcome, Refusal};

use super::translate::{Translation, translate};

/// Longest pattern, MongoDB's bound.
const PATTERN_BYTES_MAX: usize = 16_764;
/// Steps back of one match, PCRE2's order of size.
const STEPS_MAX: usize = 1_000_000;
/// Bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// See the module. Copies share what was compiled.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    pattern: String,
    options: String,
    translation: Translation,
    fast: Regex,
    exact: OnceLock<Option<Regex>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

fn build(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder
        .backtrack_limit(STEPS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| error.to_string())
}

/// A match: where it begins and ends, and the same of each group.
pub(crate) type Captured = Vec<Option<(usize, usize)>>;

/// A text that an expression is looked for in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<'a> {
    regex: &'a Regex,
    text: &'a str,
}

impl Within<'_> {
    /// The first match from byte `from` on, with its groups.
    ///
    /// # Errors
    /// As of [`Pattern::is_match`].
    pub(crate) fn captures(&self, from: usize) -> Outcome<Option<Captured>> {
        let found = self.regex.captures_from_pos(self.text, from);
        let found = found.map_err(|_| Pattern::too_long())?;
        Ok(found.map(|found| {
            let groups = found.iter();
            groups
                .map(|group| group.map(|group| (group.start(), group.end())))
                .collect()
        }))
    }
}

impl Pattern {
    /// The expression `pattern` with any of the options `imsx`; `u` says nothing.
    ///
    /// # Errors
    /// `Location51091` for a pattern that is none, or has what is not served; `Location51108` for other options.
    pub fn new(pattern: &str, options: &str) -> Outcome<Self> {
        let invalid = |text: String| {
            let text = format!("Regular expression is invalid: {text}");
            Refusal::new(Code::RegexInvalid, text)
        };
        if let Some(other) = options.chars().find(|option| !"imsxu".contains(*option)) {
            let text = format!("invalid flag in regex options: {other}");
            return Err(Refusal::new(Code::RegexOptions, text));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid(format!(
                "it has more than {PATTERN_BYTES_MAX} bytes"
            )));
        }
        if pattern.contains('\0') {
            return Err(invalid("it has a null byte".to_owned()));
        }
        let translation = translate(pattern, options).map_err(invalid)?;
        let fast = build(&translation.fast).map_err(invalid)?;
        Ok(Self(Arc::new(Compiled {
            pattern: pattern.to_owned(),
            options: options.to_owned(),
            translation,
            fast,
            exact: OnceLock::new(),
        })))
    }

    /// The text that each match begins with, where it has to be at the beginning.
    pub fn prefix(&self) -> Option<&str> {
        self.0.translation.prefix.as_deref()
    }

    /// As it was given: pattern and options.
    pub fn parts(&self) -> (&str, &str) {
        (&self.0.pattern, &self.0.options)
    }

    /// It as a value.
    pub fn as_value(&self) -> OwnedValue {
        let parts = [
            self.0.pattern.as_bytes(),
            &[0],
            self.0.options.as_bytes(),
            &[0],
        ];
        OwnedValue {
            kind: Kind::Regex,
            bytes: parts.concat(),
        }
    }

    /// Whether it is found in `text`.
    ///
    /// # Errors
    /// `Location51156` where that takes too many steps.
    pub fn is_match(&self, text: &str) -> Outcome<bool> {
        self.of(text)?.is_match(text).map_err(|_| Self::too_long())
    }

    /// Matches within `text`, which is looked at once to choose the translation.
    ///
    /// # Errors
    /// `Location51091` where the translation for `text` is too large.
    pub(crate) fn within<'a>(&'a self, text: &'a str) -> Outcome<Within<'a>> {
        let regex = self.of(text)?;
        Ok(Within { regex, text })
    }

    fn of(&self, text: &str) -> Outcome<&Regex> {
        let is_simple = text.is_ascii() && !text.ends_with('\n')
            || drumlin_base::bug!("mongo-last-newline-counts");
        if is_simple || self.0.translation.exact == self.0.translation.fast {
            return Ok(&self.0.fast);
        }
        let exact = self
            .0
            .exact
            .get_or_init(|| build(&self.0.translation.exact).ok());
        exact
            .as_ref()
            .ok_or_else(|| Refusal::new(Code::RegexInvalid, "Regular expression is too large"))
    }

    fn too_long() -> Refusal {
        let text = "Error occurred while executing the regular expression: match limit exceeded";
        Refusal::new(Code::RegexFailed, text)
    }
}
