//! Redis's protocol: pieces of any length give what the whole gives, and what was read is written and reads back.

use drumlin_resp::{
    Attributes, Protocol, ProtocolError, ReplyError, ReplyLimits, ReplyParser, ReplyWriter,
    RequestLimits, RequestParser, Value, encode_command, split_words,
};

use crate::input::Input;

/// Longest argument, and bytes that a reply may take.
const BULK_BYTES_MAX: usize = 1 << 20;

/// Longest line that is taken for sure.
const LINE_BYTES_MAX: usize = 64 << 10;

type Commands = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// The length of the pieces, whether the client has authenticated, then its bytes.
pub(crate) fn run_request(data: &[u8]) {
    let mut input = Input::new(data);
    let piece = 1 + usize::from(input.byte());
    let limits = RequestLimits {
        bulk_bytes_max: BULK_BYTES_MAX,
        authenticated: input.below(2) == 0,
    };
    let bytes = input.rest();
    let whole = commands(bytes, bytes.len().max(1), limits);
    assert_eq!(commands(bytes, piece, limits), whole);
    let mut written = Vec::new();
    for command in &whole.0 {
        encode_command(&mut written, command);
    }
    let (again, error) = commands(&written, piece, RequestLimits::default());
    assert_eq!((again, error), (whole.0, None));
}

/// All commands of `bytes`, which come in pieces, and what is wrong behind them. Those without a name are left out.
fn commands(bytes: &[u8], piece: usize, limits: RequestLimits) -> Commands {
    let mut parser = RequestParser::new(limits);
    let (mut found, mut from, mut to) = (Vec::new(), 0, 0);
    for piece in bytes.chunks(piece) {
        to += piece.len();
        loop {
            match parser.parse(&bytes[from..to]) {
                Ok(Some(request)) => {
                    assert!(request.consumed > 0 && request.consumed <= to - from);
                    let args: Vec<_> = request.args.iter().map(<[u8]>::to_vec).collect();
                    from += request.consumed;
                    if !args.is_empty() {
                        found.push(args);
                    }
                }
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

/// A line of words.
pub(crate) fn run_words(data: &[u8]) {
    let words = split_words(data);
    let line = data.split(|byte| b"\n\0".contains(byte)).next();
    let line = line.unwrap_or_default();
    if line.first() != Some(&b'*') && line.len() < LINE_BYTES_MAX {
        let request = [line, b"\n"].concat();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (commands, error) = commands(&request, 7, RequestLimits::default());
        match split_words(line) {
            None => assert_eq!(error, Some(ProtocolError::UnbalancedQuotes)),
            Some(words) if words.is_empty() => assert_eq!((commands, error), (vec![], None)),
            Some(words) => assert_eq!((commands, error), (vec![words], None)),
        }
    }
    let Some(words) = words else {
        return;
    };
    let quoted: String = words.iter().map(|word| quote(word)).collect();
    assert_eq!(split_words(quoted.as_bytes()), Some(words));
}

/// `word` in double quotes, and a blank.
fn quote(word: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b'\n' => "\\n".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02X}"),
    };
    let inner: String = word.iter().map(byte).collect();
    format!("\"{inner}\" ")
}

/// The length of the pieces, whether attributes are kept, then a server's bytes.
pub(crate) fn run_reply(data: &[u8]) {
    let mut input = Input::new(data);
    let piece = 1 + usize::from(input.byte());
    let limits = ReplyLimits {
        depth_max: 16,
        value_bytes_max: BULK_BYTES_MAX,
        attributes: if input.below(2) == 0 {
            Attributes::Kept
        } else {
            Attributes::Skipped
        },
    };
    let bytes = input.rest();
    let whole = replies(bytes, bytes.len().max(1), limits);
    assert_eq!(replies(bytes, piece, limits), whole);
    let mut writer = ReplyWriter::new(Protocol::Resp3);
    for value in &whole.0 {
        write(&mut writer, value);
        assert!(!value.to_string().contains('\r'));
    }
    let (again, error) = replies(writer.bytes(), piece, limits);
    assert_eq!((again, error), (whole.0, None));
}

fn replies(bytes: &[u8], piece: usize, limits: ReplyLimits) -> (Vec<Value>, Option<ReplyError>) {
    let mut parser = ReplyParser::new(limits);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        parser.push(piece);
        loop {
            match parser.value() {
                Ok(Some(value)) => found.push(value),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

/// Recurses no deeper than the limit.
fn write(writer: &mut ReplyWriter, value: &Value) {
    let each = |writer: &mut ReplyWriter, items: &[Value]| {
        items.iter().for_each(|item| write(writer, item));
    };
    let both = |writer: &mut ReplyWriter, pairs: &[(Value, Value)]| {
        for (name, value) in pairs {
            write(writer, name);
            write(writer, value);
        }
    };
    match value {
        Value::Simple(text) => writer.simple(text),
        // An error may be a blob with line ends, which a line has not.
        Value::Error(text) => {
            let head = format!("!{}\r\n", text.len());
            let out = writer.buffer_mut();
            for part in [head.as_bytes(), text, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        Value::Integer(number) => writer.integer(*number),
        Value::Bulk(bytes) => writer.bulk(bytes),
        Value::Null => writer.null(),
        Value::NullArray => writer.buffer_mut().extend_from_slice(b"*-1\r\n"),
        Value::Double(text) => writer.double(text),
        Value::Bool(value) => writer.boolean(*value),
        Value::BigNumber(text) => writer.big_number(text),
        Value::Verbatim(format, text) => writer.verbatim(*format, text),
        Value::Array(items) => {
            let mark = writer.begin_array();
            each(writer, items);
            writer.finish(mark, items.len());
        }
        Value::Set(items) => {
            let mark = writer.begin_set();
            each(writer, items);
            writer.finish(mark, items.len());
        }
        Value::Push(items) => {
            writer.push(items.len());
            each(writer, items);
        }
        Value::Map(pairs) => {
            let mark = writer.begin_map();
            both(writer, pairs);
            writer.finish(mark, pairs.len());
        }
        Value::Attributed(pairs, value) => {
            assert!(writer.attribute(pairs.len()));
            both(writer, pairs);
            write(writer, value);
        }
        other => panic!("{other} is of no known kind"),
    }
}
