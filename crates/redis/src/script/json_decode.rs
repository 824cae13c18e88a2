//! JSON as values of Lua. Open arrays and objects stand on a stack: nothing recurses by what the text says.

use mlua::{Error, Lua, LuaString, Result, Table, Value};

use super::lua_error::complain;

/// Most open arrays and objects, whatever the settings say: each is held by a slot of a bounded stack.
const OPEN_MAX: usize = 4_000;

#[derive(Debug)]
enum Token {
    Object,
    ObjectEnd,
    Array,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    /// As errors name it.
    fn name(&self) -> &'static str {
        match self {
            Self::Object => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::Array => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(name) => name,
        }
    }
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    /// Where the last token began.
    start: usize,
    takes_all_numbers: bool,
}

/// An array or an object that is not complete.
struct Open {
    table: Table,
    /// The next index; 0 in an object.
    index: usize,
    key: Option<LuaString>,
}

/// The value that `text` is.
///
/// # Errors
/// As cjson words them.
pub(crate) fn decode(
    lua: &Lua,
    text: &[u8],
    depth_max: usize,
    takes_all_numbers: bool,
) -> Result<Value> {
    if matches!(text, [0, _, ..] | [_, 0, ..]) {
        return Err(complain(
            lua,
            "JSON parser does not support UTF-16 or UTF-32",
        ));
    }
    let mut reader = Reader {
        lua,
        text,
        at: 0,
        start: 0,
        takes_all_numbers,
    };
    let value = reader.value(depth_max)?;
    match reader.next() {
        Token::End => Ok(value),
        other => Err(reader.unexpected("the end", &other)),
    }
}

impl Reader<'_> {
    fn unexpected(&self, wanted: &str, found: &Token) -> Error {
        let (found, place) = (found.name(), self.start + 1);
        complain(
            self.lua,
            &format!("Expected {wanted} but found {found} at character {place}"),
        )
    }

    fn value(&mut self, depth_max: usize) -> Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        let mut token = self.next();
        loop {
            let mut value = match token {
                Token::Text(text) => Value::String(self.lua.create_string(text)?),
                Token::Number(number) => Value::Number(number),
                Token::Boolean(value) => Value::Boolean(value),
                Token::Null => Value::NULL,
                Token::Object | Token::Array => {
                    let is_array = matches!(token, Token::Array);
                    let depth = open.len() + 1;
                    if depth > depth_max.min(OPEN_MAX) {
                        let text = format!(
                            "Found too many nested data structures ({depth}) at character {}",
                            self.at
                        );
                        return Err(complain(self.lua, &text));
                    }
                    let table = self.lua.create_table()?;
                    let first = self.next();
                    match (is_array, &first) {
                        (true, Token::ArrayEnd) | (false, Token::ObjectEnd) => Value::Table(table),
                        _ => {
                            let mut top = Open {
                                table,
                                index: usize::from(is_array),
                                key: None,
                            };
                            token = match is_array {
                                true => first,
                                false => self.after_key(&mut top, first)?,
                            };
                            open.push(top);
                            continue;
                        }
                    }
                }
                other => return Err(self.unexpected("value", &other)),
            };
            // The value ends; with it perhaps what it is in.
            loop {
                let Some(top) = open.last_mut() else {
                    return Ok(value);
                };
                match top.key.take() {
                    Some(key) => top.table.raw_set(key, value)?,
                    None => {
                        top.table.raw_set(top.index, value)?;
                        top.index += 1;
                    }
                }
                let is_array = top.index > 0;
                match (is_array, self.next()) {
                    (true, Token::ArrayEnd) | (false, Token::ObjectEnd) => {
                        value = Value::Table(top.table.clone());
                        open.pop();
                    }
                    (true, Token::Comma) => {
                        token = self.next();
                        break;
                    }
                    (false, Token::Comma) => {
                        let first = self.next();
                        token = self.after_key(top, first)?;
                        break;
                    }
                    (true, other) => return Err(self.unexpected("comma or array end", &other)),
                    (false, other) => return Err(self.unexpected("comma or object end", &other)),
                }
            }
        }
    }

    /// Keeps a key; the token of its value.
    fn after_key(&mut self, open: &mut Open, token: Token) -> Result<Token> {
        let Token::Text(key) = token else {
            return Err(self.unexpected("object key string", &token));
        };
        open.key = Some(self.lua.create_string(key)?);
        match self.next() {
            Token::Colon => Ok(self.next()),
            other => Err(self.unexpected("colon", &other)),
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.start = self.at;
        let token = match self.byte(0) {
            0 => return Token::End,
            b'{' => Token::Object,
            b'}' => Token::ObjectEnd,
            b'[' => Token::Array,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.text(),
            b'-' | b'0'..=b'9' => {
                return match self.takes_all_numbers || !self.is_odd_number() {
                    true => self.number(),
                    false => Token::Wrong("invalid number"),
                };
            }
            b't' | b'f' | b'n' | b'i' | b'I' | b'N' | b'+' => return self.word(),
            _ => return Token::Wrong("invalid token"),
        };
        self.at += 1;
        token
    }

    fn word(&mut self) -> Token {
        let words = [
            ("true", Token::Boolean(true)),
            ("false", Token::Boolean(false)),
            ("null", Token::Null),
        ];
        for (word, token) in words {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        match self.takes_all_numbers && self.is_odd_number() {
            true => self.number(),
            false => Token::Wrong("invalid token"),
        }
    }

    /// Whether a number begins here that JSON has not.
    fn is_odd_number(&self) -> bool {
        if self.byte(0) == b'+' {
            return true;
        }
        let sign = usize::from(self.byte(0) == b'-');
        match self.byte(sign) {
            b'0' => matches!(self.byte(sign + 1), b'x' | b'X' | b'0'..=b'9'),
            ..=b'9' => false,
            _ => {
                let word = self.text.get(self.at + sign..self.at + sign + 3);
                word.is_some_and(|it| {
                    it.eq_ignore_ascii_case(b"inf") || it.eq_ignore_ascii_case(b"nan")
                })
            }
        }
    }

    fn number(&mut self) -> Token {
        match leading_number(self.rest()) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => Token::Wrong("invalid number"),
        }
    }

    fn text(&mut self) -> Token {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let byte = self.byte(0);
            match byte {
                b'"' => {
                    self.at += 1;
                    return Token::Text(out);
                }
                0 => return self.wrong("unexpected end of string"),
                b'\\' => match self.byte(1) {
                    b'u' => match self.unicode() {
                        Some(character) => {
                            let mut utf8 = [0; 4];
                            out.extend(encode_utf8(character, &mut utf8));
                        }
                        None => return self.wrong("invalid unicode escape code"),
                    },
                    escape => {
                        let meant = match escape {
                            b'"' | b'\\' | b'/' => escape,
                            b'b' => 8,
                            b't' => b'\t',
                            b'n' => b'\n',
                            b'f' => 12,
                            b'r' => b'\r',
                            _ => return self.wrong("invalid escape code"),
                        };
                        out.push(meant);
                        self.at += 2;
                    }
                },
                _ => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn wrong(&mut self, text: &'static str) -> Token {
        self.start = self.at;
        Token::Wrong(text)
    }

    /// The character of an escape, or of two that are the halves of one.
    fn unicode(&mut self) -> Option<u32> {
        let high = self.hex(2)?;
        if high & 0xf800 != 0xd800 {
            self.at += 6;
            return Some(high);
        }
        if high & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
            return None;
        }
        let low = self.hex(8)?;
        if low & 0xfc00 != 0xdc00 {
            return None;
        }
        self.at += 12;
        Some(((high & 0x3ff) << 10 | low & 0x3ff) + 0x1_0000)
    }

    fn hex(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |all, digit| {
            let digit = char::from(self.byte(ahead + digit)).to_digit(16)?;
            Some(all << 4 | digit)
        })
    }
}

fn encode_utf8(character: u32, out: &mut [u8; 4]) -> &[u8] {
    // Halves of characters never come here: the only values that `char` does not take.
    let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
    character.encode_utf8(out).as_bytes()
}

/// The number that `text` begins with and its length, as C's `strtod` reads it.
fn leading_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let rest = text.get(sign..)?;
    let has = |word: &[u8]| {
        rest.get(..word.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(word))
    };
    let (number, len) = match () {
        () if has(b"infinity") => (f64::INFINITY, 8),
        () if has(b"inf") => (f64::INFINITY, 3),
        () if has(b"nan") => (f64::NAN, 3),
        () if has(b"0x") && rest.get(2).is_some_and(u8::is_ascii_hexdigit) => hexadecimal(rest),
        () => decimal(rest)?,
    };
    let number = match text.first() {
        Some(b'-') => -number,
        _ => number,
    };
    Some((number, sign + len))
}

fn digits(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text, 0);
    let mut len = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digits(text, len + 1);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if len == 0 {
        return None;
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(text, len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let number = std::str::from_utf8(text.get(..len)?).ok()?;
    Some((number.parse().ok()?, len))
}

/// Digits of a fraction are taken too, a binary exponent is not.
fn hexadecimal(text: &[u8]) -> (f64, usize) {
    let (mut number, mut len) = (0.0, 2);
    while let Some(digit) = text.get(len).and_then(|it| char::from(*it).to_digit(16)) {
        number = number * 16.0 + f64::from(digit);
        len += 1;
    }
    (number, len)
}
