//! Patterns of PCRE2, written as the engine takes them. What is not known here is refused by name, so that nothing is taken for
//! something else.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// See [`super::pattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translation {
    pub(super) fast: String,
    pub(super) exact: String,
    /// What each match begins with.
    pub(super) prefix: Option<String>,
}

/// Options, as they are at some place of the pattern.
#[derive(Clone, Copy, Debug)]
struct Flags {
    is_multiline: bool,
    dot_is_all: bool,
    is_extended: bool,
}

/// Groups within each other.
const DEPTH_MAX: usize = 100;

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    fast: String,
    exact: String,
    flags: Flags,
    outer: Vec<Flags>,
}

/// Of PCRE2 without its Unicode properties.
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str = r"\t\n\x0B\x0C\r\x20";
const HORIZONTAL: &str = r"\t\x20\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}";
const VERTICAL: &str = r"\n\x0B\x0C\r\u{85}\u{2028}\u{2029}";

pub(super) fn translate(pattern: &str, options: &str) -> Result<Translation, String> {
    let has = |option: char| options.contains(option);
    let flags = Flags {
        is_multiline: has('m'),
        dot_is_all: has('s'),
        is_extended: has('x'),
    };
    let begin = if has('i') { "(?i)" } else { "" };
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        fast: begin.to_owned(),
        exact: begin.to_owned(),
        flags,
        outer: Vec::new(),
    };
    translator.run()?;
    Ok(Translation {
        fast: translator.fast,
        exact: translator.exact,
        prefix: prefix(pattern, options),
    })
}

/// What a pattern that begins with `^` or `\A` goes on with, as far as it is plain text.
fn prefix(pattern: &str, options: &str) -> Option<String> {
    let is_anchored = pattern.starts_with('^') && !options.contains('m');
    let rest = match is_anchored {
        true => pattern.get(1..)?,
        false => pattern.strip_prefix(r"\A")?,
    };
    if options.contains(['i', 'x']) || pattern.contains('|') {
        return None;
    }
    let mut text = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '*' | '?' | '{' => {
                if !drumlin_base::bug!("mongo-optional-letters-in-bounds") {
                    text.pop();
                }
                break;
            }
            '\\' => match chars.next() {
                Some(next) if next.is_ascii_punctuation() => text.push(next),
                _ => break,
            },
            '.' | '^' | '$' | '+' | '(' | ')' | '[' | ']' | '}' | '|' => break,
            plain => text.push(plain),
        }
    }
    (!text.is_empty()).then_some(text)
}

fn unserved(what: &str) -> String {
    format!("'{what}' is not supported by this server")
}

impl Translator<'_> {
    fn both(&mut self, text: &str) {
        self.fast.push_str(text);
        self.exact.push_str(text);
    }

    fn differently(&mut self, fast: &str, exact: &str) {
        self.fast.push_str(fast);
        self.exact.push_str(exact);
    }

    fn literal(&mut self, char: char) {
        let mut text = String::new();
        if char.is_ascii_punctuation() {
            text.push('\\');
        }
        text.push(char);
        self.both(&text);
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(char) = self.rest.next() {
            match char {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.flags = self.outer.pop().ok_or("unmatched closing parenthesis")?;
                    self.both(")");
                }
                '^' if self.flags.is_multiline => {
                    self.differently("(?m:^)", r"(?:\A|(?m:^)(?!\z))");
                }
                '^' => self.both(r"\A"),
                '$' if self.flags.is_multiline => self.both("(?m:$)"),
                '$' => self.differently(r"\z", r"(?=\n?\z)"),
                '.' if self.flags.dot_is_all => self.both("(?s:.)"),
                '.' => self.both(r"[^\n]"),
                '*' | '+' | '?' | '|' => self.both(&char.to_string()),
                '{' => self.quantifier(),
                '#' if self.flags.is_extended => {
                    while self.rest.next().is_some_and(|char| char != '\n') {}
                }
                space if self.flags.is_extended && space.is_ascii_whitespace() => {}
                plain => self.literal(plain),
            }
        }
        match self.outer.is_empty() {
            true => Ok(()),
            false => Err("missing closing parenthesis".to_owned()),
        }
    }

    /// `{n}`, `{n,}`, `{n,m}`; any other brace is one.
    fn quantifier(&mut self) {
        let text: String = self.rest.clone().take_while(|char| *char != '}').collect();
        let mut parts = text.splitn(2, ',');
        let is_number = |part: &str| part.chars().all(|char| char.is_ascii_digit());
        let is_first = parts
            .next()
            .is_some_and(|part| !part.is_empty() && is_number(part));
        let is_closed = self.rest.clone().nth(text.chars().count()) == Some('}');
        if !(is_closed && is_first && parts.next().is_none_or(is_number)) {
            return self.both(r"\{");
        }
        for _ in 0..=text.chars().count() {
            self.rest.next();
        }
        self.both(&format!("{{{text}}}"));
    }

    fn group(&mut self) -> Result<(), String> {
        if self.outer.len() >= DEPTH_MAX {
            return Err("parentheses are too deeply nested".to_owned());
        }
        self.outer.push(self.flags);
        match self.rest.peek() {
            Some('*') => return Err(unserved("(*")),
            Some('?') => {}
            _ => {
                self.both("(");
                return Ok(());
            }
        }
        self.rest.next();
        let ahead: String = self.rest.clone().take(2).collect();
        for plain in [":", "=", "!", ">", "<=", "<!"] {
            if ahead.starts_with(plain) {
                for _ in plain.chars() {
                    self.rest.next();
                }
                self.both(&format!("(?{plain}"));
                return Ok(());
            }
        }
        match self.rest.next() {
            Some('#') => {
                self.outer.pop();
                match self.rest.by_ref().any(|char| char == ')') {
                    true => Ok(()),
                    false => Err("missing ) after (?# comment".to_owned()),
                }
            }
            Some('P') if self.rest.peek() == Some(&'<') => {
                self.rest.next();
                self.name('>')
            }
            Some('<') => self.name('>'),
            Some('\'') => self.name('\''),
            Some(first) => self.inline(first),
            None => Err("unrecognized character after (?".to_owned()),
        }
    }

    fn name(&mut self, end: char) -> Result<(), String> {
        let name = self.until(end)?;
        self.both(&format!("(?<{name}>"));
        Ok(())
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let mut name = String::new();
        for char in self.rest.by_ref() {
            match char {
                _ if char == end && !name.is_empty() => return Ok(name),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(char),
                _ => break,
            }
        }
        Err("a name of a group is not whole".to_owned())
    }

    /// `(?i-m)` for what follows, `(?i-m:` for a group.
    fn inline(&mut self, first: char) -> Result<(), String> {
        let mut flags = self.flags;
        let mut for_engine = String::new();
        let mut is_on = true;
        let mut next = Some(first);
        while let Some(char) = next {
            match char {
                '-' if is_on => is_on = false,
                'i' => for_engine = if is_on { "i" } else { "-i" }.to_owned(),
                'm' => flags.is_multiline = is_on,
                's' => flags.dot_is_all = is_on,
                'x' => flags.is_extended = is_on,
                ':' | ')' => {
                    self.flags = flags;
                    let is_group = char == ':';
                    if !is_group {
                        // It is for the rest of the group around.
                        self.outer.pop();
                    }
                    match (is_group, for_engine.is_empty()) {
                        (true, _) => self.both(&format!("(?{for_engine}:")),
                        (false, false) => self.both(&format!("(?{for_engine})")),
                        (false, true) => {}
                    }
                    return Ok(());
                }
                other => return Err(unserved(&format!("(?{other}"))),
            }
            next = self.rest.next();
        }
        Err("missing closing parenthesis".to_owned())
    }

    fn escape(&mut self) -> Result<(), String> {
        let char = self.rest.next().ok_or("\\ at end of pattern")?;
        if let Some(inner) = shorthand(char) {
            let not = if char.is_ascii_uppercase() { "^" } else { "" };
            self.both(&format!("(?-i:[{not}{inner}])"));
            return Ok(());
        }
        match char {
            'b' => self.differently(
                r"\b",
                &format!("(?-i:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"),
            ),
            'B' => self.differently(
                r"\B",
                &format!("(?-i:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))"),
            ),
            'A' => self.both(r"\A"),
            'z' => self.both(r"\z"),
            'Z' => self.differently(r"\z", r"(?=\n?\z)"),
            'R' => self.both(&format!(r"(?>\r\n|[{VERTICAL}])")),
            'N' => self.both(r"[^\n]"),
            'Q' => loop {
                match self.rest.next() {
                    None => break,
                    Some('\\') if self.rest.peek() == Some(&'E') => {
                        self.rest.next();
                        break;
                    }
                    Some(plain) => self.literal(plain),
                }
            },
            'E' => {}
            'k' => {
                let end = match self.rest.next() {
                    Some('<') => '>',
                    Some('{') => '}',
                    Some('\'') => '\'',
                    _ => return Err(r"\k is not followed by a name".to_owned()),
                };
                let name = self.until(end)?;
                self.both(&format!(r"\k<{name}>"));
            }
            '1'..='9' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                return Err(unserved(&format!("\\{char} and another digit")));
            }
            // In a group, so that a digit behind it is one.
            '1'..='9' => self.both(&format!(r"(?:\{char})")),
            'p' | 'P' => {
                let name = self.property()?;
                self.both(&format!(r"\{char}{{{name}}}"));
            }
            _ => {
                let char = self.character(char)?;
                self.literal_of(char);
            }
        }
        Ok(())
    }

    fn property(&mut self) -> Result<String, String> {
        match self.rest.next() {
            Some('{') => {
                let name: String = self.rest.by_ref().take_while(|char| *char != '}').collect();
                let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
                match !name.is_empty() && name.chars().all(is_plain) {
                    true => Ok(name),
                    false => Err(unserved(&format!("\\p{{{name}}}"))),
                }
            }
            Some(letter) if letter.is_ascii_alphabetic() => Ok(letter.to_string()),
            _ => Err(r"malformed \P or \p sequence".to_owned()),
        }
    }

    fn literal_of(&mut self, char: char) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "\\u{{{:X}}}", u32::from(char));
        self.both(&text);
    }

    /// The character that an escape stands for, in and outside classes.
    fn character(&mut self, char: char) -> Result<char, String> {
        let of = |number: u32| {
            char::from_u32(number).ok_or_else(|| format!("{number:x} is no character"))
        };
        match char {
            'a' => Ok('\u{7}'),
            'e' => Ok('\u{1B}'),
            'f' => Ok('\u{C}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'c' => {
                let next = self.rest.next().filter(char::is_ascii);
                let next = next.ok_or(r"\c at end of pattern")?;
                of(u32::from(next.to_ascii_uppercase()) ^ 64)
            }
            'x' if self.rest.peek() == Some(&'{') => {
                self.rest.next();
                let text: String = self.rest.by_ref().take_while(|char| *char != '}').collect();
                let number = u32::from_str_radix(&text, 16);
                of(number.map_err(|_| format!("\\x{{{text}}} is no character"))?)
            }
            'x' => of(self.digits(2, 16, 0)),
            '0' => of(self.digits(2, 8, 0)),
            other if other.is_ascii_alphanumeric() => Err(unserved(&format!("\\{other}"))),
            other => Ok(other),
        }
    }

    fn digits(&mut self, most: usize, radix: u32, begin: u32) -> u32 {
        let mut number = begin;
        for _ in 0..most {
            let Some(digit) = self.rest.peek().and_then(|char| char.to_digit(radix)) else {
                break;
            };
            self.rest.next();
            number = number * radix + digit;
        }
        number
    }

    /// A class: each of its members is written so that it has no other meaning for the engine.
    fn class(&mut self) -> Result<(), String> {
        let mut out = String::from("[");
        if self.rest.peek() == Some(&'^') {
            self.rest.next();
            out.push('^');
        }
        let mut is_first = true;
        loop {
            let char = self
                .rest
                .next()
                .ok_or("missing terminating ] for character class")?;
            match char {
                ']' if !is_first => break,
                '[' if matches!(self.rest.peek(), Some(':' | '.' | '='))
                    && self.posix(&mut out)? => {}
                '\\' => self.class_escape(&mut out)?,
                '-' if !is_first && self.rest.peek() != Some(&']') => out.push('-'),
                plain => class_literal(&mut out, plain),
            }
            is_first = false;
        }
        out.push(']');
        self.both(&out);
        Ok(())
    }

    /// A class by its name, as `[:alpha:]`; whether it was one.
    fn posix(&mut self, out: &mut String) -> Result<bool, String> {
        let mut ahead = self.rest.clone();
        let mark = ahead.next();
        let name: String = ahead
            .by_ref()
            .take_while(|char| char.is_ascii_alphabetic() || *char == '^')
            .collect();
        // `take_while` took the mark; the bracket has to follow.
        let is_one =
            self.rest.clone().nth(name.chars().count() + 1) == mark && ahead.next() == Some(']');
        if !is_one {
            return Ok(false);
        }
        if mark != Some(':') {
            return Err("POSIX collating elements are not supported".to_owned());
        }
        for _ in 0..name.chars().count() + 3 {
            self.rest.next();
        }
        let _ = write!(out, "[:{name}:]");
        Ok(true)
    }

    fn class_escape(&mut self, out: &mut String) -> Result<(), String> {
        let char = self.rest.next().ok_or("\\ at end of pattern")?;
        if let Some(inner) = shorthand(char) {
            match char.is_ascii_uppercase() {
                true => {
                    let _ = write!(out, "[^{inner}]");
                }
                false => out.push_str(inner),
            }
            return Ok(());
        }
        match char {
            'b' => out.push_str(r"\x08"),
            'p' | 'P' => {
                let name = self.property()?;
                let _ = write!(out, "\\{char}{{{name}}}");
            }
            '1'..='7' => {
                let number = self.digits(2, 8, char.to_digit(8).unwrap_or(0));
                class_literal(out, char::from_u32(number).unwrap_or('\0'));
            }
            'Q' | 'E' | 'R' | 'N' => return Err(unserved(&format!("\\{char} in a class"))),
            _ => class_literal(out, self.character(char)?),
        }
        Ok(())
    }
}

fn class_literal(out: &mut String, char: char) {
    let _ = write!(out, "\\u{{{:X}}}", u32::from(char));
}

/// What is in the class that an escape stands for; upper case letters stand for the opposite.
fn shorthand(char: char) -> Option<&'static str> {
    match char {
        'd' | 'D' => Some("0-9"),
        'w' | 'W' => Some(WORD),
        's' | 'S' => Some(SPACE),
        'h' | 'H' => Some(HORIZONTAL),
        'v' | 'V' => Some(VERTICAL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::prefix;

    #[test]
    fn patterns_match_as_those_of_pcre() {
        let cases = [
            ("^a.c$", "", "abc", true),
            ("^a.c$", "", "abc\n", true),
            ("^a.c$", "", "abc\n\n", false),
            ("^a.c$", "", "xabc", false),
            ("a.c", "", "a\nc", false),
            ("a.c", "s", "a\nc", true),
            ("^b", "", "a\nb", false),
            ("^b", "m", "a\nb", true),
            ("^$", "m", "a\n", false),
            ("A", "i", "bab", true),
            (r"\bx\b", "", "\u{e9}x\u{e9}", true),
            (r"\bx\b", "", "axa", false),
            (r"^\w+$", "", "\u{e9}", false),
            (r"^\d$", "", "\u{663}", false),
            (r"^[^\W\d]+$", "", "ab_", true),
            (r"^[^\W\d]+$", "", "ab1", false),
            ("a b # c", "x", "ab", true),
            ("[a b]", "x", " ", true),
            ("[[a]+", "", "[a[", true),
            ("^[]a]+$", "", "]a", true),
            ("^[a&&b]+$", "", "a&b", true),
            ("^[[:alpha:]_]+$", "", "ab_", true),
            ("^[[:^alpha:]]+$", "", "12", true),
            ("a{", "", "a{", true),
            ("^a{2,3}$", "", "aa", true),
            ("^a{,2}$", "", "a{,2}", true),
            (r"(a)\1", "", "aa", true),
            (r"(?<x>a)\k<x>", "", "ab", false),
            ("(?=.*b)a", "", "ab", true),
            ("(?<!x)a", "", "xa", false),
            ("(?i)ab(?-i)c", "", "ABc", true),
            ("(?i:a)b", "", "AB", false),
            (r"\Qa.b\E", "", "axb", false),
            (r"a\x{e9}\x41", "", "a\u{e9}A", true),
            ("(?>a+)b", "", "aab", true),
            ("a++b", "", "aab", true),
            ("", "", "", true),
            ("x|^$", "", "", true),
            ("(?#nothing)a", "", "a", true),
        ];
        for (pattern, options, text, wanted) in cases {
            let made =
                Pattern::new(pattern, options).unwrap_or_else(|it| panic!("{pattern}: {it}"));
            assert_eq!(made.is_match(text), Ok(wanted), "{pattern} of {text:?}");
        }
        for wrong in [
            "(",
            ")",
            "[a",
            "*",
            "(?R)",
            "(*UCP)a",
            r"\",
            r"\X",
            "(?<n",
            "a{9999999}",
        ] {
            assert!(Pattern::new(wrong, "").is_err(), "{wrong}");
        }
        assert!(Pattern::new("a", "g").is_err());
        let slow = Pattern::new(r"^(a+)+\1$", "").expect("a pattern");
        // It ends, with an answer or without.
        assert_ne!(slow.is_match(&format!("{}b", "a".repeat(60))), Ok(true));
    }

    #[test]
    fn what_is_plain_at_the_front_is_known() {
        let cases = [
            ("^abc", "", Some("abc")),
            (r"\Aa\.b*", "", Some("a.")),
            ("^ab+", "", Some("ab")),
            ("^ab?", "", Some("a")),
            ("^a|b", "", None),
            ("^a", "i", None),
            ("^a", "m", None),
            ("a", "", None),
            ("^.a", "", None),
        ];
        for (pattern, options, wanted) in cases {
            assert_eq!(prefix(pattern, options).as_deref(), wanted, "{pattern}");
        }
    }
}
