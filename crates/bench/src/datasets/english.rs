//! English prose out of a directory of documentation.
//!
//! Every file of text, HTML, DocBook or Mallard, of Perl's documentation, and every manual page below the directory
//! is cut into paragraphs, in order of their paths. A paragraph that is no prose (code, tables, lists of names) is
//! left out, and so is one that came before in any file, or nearly so ([`Novelty`]): packages carry the same
//! licences, headers and generated sentences over and over, which would flatter every compressor. The rest of a
//! file is joined to records of about 1 KB, whose key is the file's path and a number.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

use super::arena::Arena;
use super::markup::{strip_pod, strip_roff, strip_tags};
use super::novelty::Novelty;

/// A record is closed once it has so many bytes.
const RECORD_BYTES: usize = 800;
/// Shorter remains of a file are left out.
const RECORD_BYTES_MIN: usize = 300;
/// A longer paragraph is cut there.
const RECORD_BYTES_MAX: usize = 4000;
/// Shorter paragraphs are headings and labels.
const PARAGRAPH_BYTES_MIN: usize = 60;
/// Larger files are generated lists. (A dictionary has 40 MB.)
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How deep directories are entered; links may make circles.
const DEPTH_MAX: usize = 12;

/// Records from the files below `dir` until they have `bytes_max` bytes.
///
/// # Errors
/// `NotFound` when `dir` is missing or holds no prose; `Io`.
pub fn english(dir: &Path, bytes_max: u64, env: &Env) -> Result<Arena> {
    let mut files = Vec::new();
    find(dir, 0, env, &mut files)?;
    files.sort();
    let title = format!(
        "English records from the documentation below {}",
        dir.display()
    );
    let mut arena = Arena::new(title);
    let mut novelty = Novelty::default();
    for path in files {
        let bytes = match env.files.read_file(&path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == drumlin_base::ErrorKind::TooLarge => continue,
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let text = match Form::of(&path) {
            Some(Form::Tagged) => strip_tags(&text),
            Some(Form::Pod) => strip_pod(&text),
            Some(Form::Manual) => strip_roff(&text),
            _ => text.into_owned(),
        };
        let name = path.strip_prefix(dir).unwrap_or(&path);
        add_file(&mut arena, &name.to_string_lossy(), &text, &mut novelty);
        if arena.bytes() >= bytes_max {
            break;
        }
    }
    if arena.bytes() == 0 {
        let message = format!(
            "there is no prose in text or HTML files below {}; crates/bench/english.sh unpacks \
             documentation packages into a directory",
            dir.display()
        );
        return Err(Error::new(drumlin_base::ErrorKind::NotFound, message));
    }
    Ok(arena.finish())
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// HTML or XML.
    Tagged,
    /// Perl's documentation.
    Pod,
    /// A manual page.
    Manual,
    /// Text.
    Plain,
}

impl Form {
    /// By the name's ending; `None` for files that are not read.
    fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Some(match ending {
            "html" | "htm" | "xhtml" | "docbook" | "page" => Self::Tagged,
            "txt" | "rst" | "md" | "adoc" | "info" | "dict" => Self::Plain,
            "pod" => Self::Pod,
            // A section, and where a manual page is about something of a package, that.
            _ if matches!(
                ending.as_bytes(),
                [b'1'..=b'9'] | [b'1'..=b'9', b'a'..=b'z', ..]
            ) =>
            {
                Self::Manual
            }
            _ => return None,
        })
    }
}

fn find(dir: &Path, depth: usize, env: &Env, files: &mut Vec<PathBuf>) -> Result<()> {
    for name in env.files.list(dir)? {
        let path = dir.join(name);
        // A link may lead nowhere.
        let Ok(info) = env.files.info(&path) else {
            continue;
        };
        if info.is_dir && depth < DEPTH_MAX {
            find(&path, depth + 1, env, files)?;
        } else if !info.is_dir && Form::of(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

/// Adds the paragraphs of `text` that are new prose, joined to records.
fn add_file(arena: &mut Arena, name: &str, text: &str, novelty: &mut Novelty) {
    let (mut record, mut number) = (String::new(), 0);
    let mut close = |record: &mut String| {
        if !record.is_empty() {
            arena.push(format!("{name}#{number:04}").as_bytes(), record.as_bytes());
            number += 1;
            record.clear();
        }
    };
    for paragraph in paragraphs(text) {
        if !is_prose(&paragraph) || !novelty.is_new(&paragraph) {
            continue;
        }
        let mut rest = paragraph.as_str();
        while !rest.is_empty() {
            if !record.is_empty() {
                record.push('\n');
            }
            let cut = floor_char(rest, RECORD_BYTES_MAX);
            let (piece, after) = rest.split_at(cut);
            record.push_str(piece);
            rest = after;
            if record.len() >= RECORD_BYTES {
                close(&mut record);
            }
        }
    }
    if record.len() >= RECORD_BYTES_MIN {
        close(&mut record);
    }
}

/// The greatest position up to `at` where a character of `text` begins.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Stretches between empty lines, their white space made single blanks.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        let is_empty = line.trim().is_empty();
        if is_empty {
            if found.last().is_some_and(|last| !last.is_empty()) {
                found.push(String::new());
            }
            continue;
        }
        if let Some(last) = found.last_mut() {
            for word in line.split_whitespace() {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(word);
            }
        }
    }
    found.retain(|paragraph| !paragraph.is_empty());
    found
}

/// Whether a paragraph reads like English: letters for the most part, and enough of the words that no
/// English sentence does without.
fn is_prose(text: &str) -> bool {
    const COMMON: [&str; 20] = [
        "the", "of", "to", "and", "a", "in", "is", "it", "that", "for", "be", "are", "with", "as",
        "this", "by", "on", "or", "you", "not",
    ];
    if text.len() < PARAGRAPH_BYTES_MIN {
        return false;
    }
    let letters = text
        .bytes()
        .filter(|byte| byte.is_ascii_alphabetic() || *byte == b' ')
        .count();
    let (mut words, mut common) = (0, 0);
    for word in text.split(' ') {
        words += 1;
        common += usize::from(COMMON.contains(&word));
    }
    letters * 100 >= text.len() * 88 && common * 100 >= words * 18
}

#[cfg(test)]
mod tests {
    use super::super::set::DataSet as _;
    use super::super::set::tests::check;
    use super::*;
    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};
    use std::sync::Arc;

    #[test]
    fn tags_and_entities_go_and_block_elements_end_paragraphs() {
        let page = "<html><head><title>no</title></head><body><h1>Top</h1><p>Fish &amp; <b>chips</b>\n\
                    are <i>good</i>.</p><pre>code</pre><p>Next &unknown; one<";
        let found = paragraphs(&strip_tags(page));
        assert_eq!(
            found,
            ["Top", "Fish & chips are good.", "Next &unknown; one"]
        );
    }

    #[test]
    fn prose_is_told_from_code() {
        assert!(is_prose(
            "The store is slowed down for as long as the compaction of that level is behind."
        ));
        assert!(!is_prose(
            "for (i = 0; i < 10; ++i) { a[i] = b[i] * 17 + c; printf(\"%d\", a[i]); return 0; }"
        ));
        assert!(!is_prose("Too short to be it."));
        assert!(!is_prose(
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron sigma"
        ));
    }

    #[test]
    fn a_paragraph_that_was_there_before_is_left_out() {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        let dir = Path::new("/docs");
        env.files
            .create_dir_all(&dir.join("deep"))
            .expect("a directory");
        // Near enough to English, and no two of them near each other.
        let name = |n: usize| {
            format!(
                "{}{}x",
                char::from(b'a' + (n / 10) as u8),
                char::from(b'a' + (n % 10) as u8)
            )
        };
        let sentence = |n: usize| {
            let w = name(n);
            format!(
                "The {w} is of {w} and the {w} to {w} as {w} in {w} by {w} on {w}, so {w} it is.\n\n"
            )
        };
        let first: String = (0..30).map(sentence).collect();
        let second: String = (15..40).map(sentence).collect();
        for (name, text) in [
            ("a.txt", first),
            ("deep/b.txt", second),
            ("c.bin", sentence(99).repeat(9)),
            ("d.txt", sentence(98)),
        ] {
            let options = CreateOptions::new(FileKind::Other);
            let mut file = env.files.create(&dir.join(name), options).expect("a file");
            file.append(text.as_bytes()).expect("room");
            file.close().expect("closed");
        }
        let arena = english(dir, u64::MAX, &env).expect("prose");
        check(&arena);
        let mut all = String::new();
        let mut value = Vec::new();
        for index in 0..arena.len() {
            arena.write_value(index, &mut value);
            all.push_str(&String::from_utf8_lossy(&value));
        }
        for n in 0..40 {
            let start = format!("The {} is", name(n));
            assert_eq!(all.matches(&start).count(), 1, "{n}");
        }
        assert!(!all.contains(&name(99)), "no text");
        assert!(!all.contains(&name(98)), "too little");
        assert!(english(&dir.join("none"), 1, &env).is_err());
    }
}
