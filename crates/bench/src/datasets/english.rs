//! English prose out of a directory of documentation.
//!
//! Every text and HTML file below the directory is cut into paragraphs, in order of their paths.
//! A paragraph that is no prose (code, tables, lists of names) is left out, and so is one that was
//! there before anywhere: packages carry the same licences, headers and generated sentences over and
//! over, which would flatter every compressor. What is left of a file is joined to records of about
//! 1 KB, whose key is the file's path and a number.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use drumlin_base::checksum::xxh3_64;
use drumlin_base::{Error, Result};
use drumlin_fs::Env;

use super::arena::Arena;

/// A record is closed once it has so many bytes.
const RECORD_BYTES: usize = 800;
/// A longer paragraph is cut there.
const RECORD_BYTES_MAX: usize = 4000;
/// Shorter paragraphs are headings and labels.
const PARAGRAPH_BYTES_MIN: usize = 60;
/// Larger files are generated lists.
const FILE_BYTES_MAX: u64 = 8 << 20;
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
    let mut seen = HashSet::new();
    for path in files {
        let bytes = match env.files.read_file(&path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == drumlin_base::ErrorKind::TooLarge => continue,
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let is_html = matches!(extension(&path), "html" | "htm" | "xhtml");
        let text = if is_html {
            strip_tags(&text)
        } else {
            text.into_owned()
        };
        let name = path.strip_prefix(dir).unwrap_or(&path);
        add_file(&mut arena, &name.to_string_lossy(), &text, &mut seen);
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

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|kind| kind.to_str())
        .unwrap_or_default()
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
        } else if !info.is_dir
            && matches!(
                extension(&path),
                "html" | "htm" | "xhtml" | "txt" | "rst" | "md" | "adoc"
            )
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Adds the paragraphs of `text` that are new prose, joined to records.
fn add_file(arena: &mut Arena, name: &str, text: &str, seen: &mut HashSet<u64>) {
    let (mut record, mut number) = (String::new(), 0);
    let mut close = |record: &mut String| {
        if !record.is_empty() {
            arena.push(format!("{name}#{number:04}").as_bytes(), record.as_bytes());
            number += 1;
            record.clear();
        }
    };
    for paragraph in paragraphs(text) {
        if !is_prose(&paragraph) || !seen.insert(xxh3_64(paragraph.as_bytes())) {
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
    close(&mut record);
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

/// The text of an HTML page; block elements end a paragraph. Good enough for documentation: no page
/// is rejected, and what is mangled is no prose.
fn strip_tags(html: &str) -> String {
    const HIDDEN: [&str; 4] = ["script", "style", "pre", "head"];
    const INLINE: [&str; 14] = [
        "a", "b", "i", "em", "strong", "code", "span", "tt", "var", "kbd", "cite", "q", "abbr",
        "samp",
    ];
    let mut text = String::with_capacity(html.len() / 2);
    let mut rest = html;
    let mut hidden: Option<&str> = None;
    while let Some(open) = rest.find('<') {
        let (before, tag) = rest.split_at(open);
        if hidden.is_none() {
            push_entities(before, &mut text);
        }
        let Some(end) = tag.find('>') else {
            return text;
        };
        let (inside, after) = tag.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        let inside = inside.trim_start_matches('<');
        let (is_end, name) = inside
            .strip_prefix('/')
            .map_or((false, inside), |name| (true, name));
        let name = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match hidden {
            Some(waited) if is_end && waited == name => hidden = None,
            None if !is_end => hidden = HIDDEN.into_iter().find(|hide| *hide == name),
            _ => {}
        }
        if hidden.is_none() && !INLINE.contains(&name.as_str()) {
            text.push_str("\n\n");
        }
    }
    if hidden.is_none() {
        push_entities(rest, &mut text);
    }
    text
}

fn push_entities(piece: &str, text: &mut String) {
    const ENTITIES: [(&str, &str); 8] = [
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&#160;", " "),
        ("&#8217;", "'"),
    ];
    let mut rest = piece;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        text.push_str(before);
        let known = ENTITIES.iter().find(|(name, _)| entity.starts_with(name));
        let (name, plain) = known.copied().unwrap_or(("&", "&"));
        text.push_str(plain);
        rest = entity.get(name.len()..).unwrap_or_default();
    }
    text.push_str(rest);
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
        assert_eq!(strip_tags("<"), "");
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
        let sentence = |n: usize| {
            format!(
                "This is the sentence with the number {n}, and it is as long as it has to be to count.\n\n"
            )
        };
        let first: String = (0..30).map(sentence).collect();
        let second: String = (15..40).map(sentence).collect();
        for (name, text) in [
            ("a.txt", first),
            ("deep/b.txt", second),
            ("c.bin", sentence(99)),
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
            assert_eq!(all.matches(&format!("number {n},")).count(), 1, "{n}");
        }
        assert!(!all.contains("number 99"));
        assert!(english(&dir.join("none"), 1, &env).is_err());
    }
}
