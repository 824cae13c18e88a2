//! Replies: what the writer writes is what the parser reads.

use drumlin_base::rng::Rng;
use drumlin_resp::{
    Attributes, Protocol, ProtocolError, ReplyError, ReplyLimits, ReplyParser, ReplyWriter, Value,
};

pub(crate) const KEPT: ReplyLimits = ReplyLimits {
    depth_max: 32,
    value_bytes_max: 1 << 20,
    attributes: Attributes::Kept,
};

/// All replies of `input`, which comes in pieces up to each of `cuts`, and what is wrong behind them.
pub(crate) fn read(
    input: &[u8],
    cuts: &[usize],
    limits: ReplyLimits,
) -> (Vec<Value>, Option<ReplyError>) {
    let mut parser = ReplyParser::new(limits);
    let (mut values, mut from) = (Vec::new(), 0);
    for to in cuts.iter().copied().chain([input.len()]) {
        parser.push(&input[from..to]);
        from = to;
        loop {
            match parser.value() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error) => return (values, Some(error)),
            }
        }
    }
    (values, None)
}

fn one(input: &[u8], limits: ReplyLimits) -> Value {
    let (mut values, error) = read(input, &[], limits);
    assert_eq!(
        (values.len(), error),
        (1, None),
        "{}",
        String::from_utf8_lossy(input)
    );
    values.remove(0)
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

/// What `write` writes in both versions.
fn written(write: impl Fn(&mut ReplyWriter)) -> [String; 2] {
    [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
        let mut writer = ReplyWriter::new(protocol);
        write(&mut writer);
        String::from_utf8(writer.take()).unwrap()
    })
}

#[test]
fn both_versions_are_written_as_redis_writes_them() {
    let same = |write: &dyn Fn(&mut ReplyWriter), expected: &str| {
        assert_eq!(written(write), [expected, expected]);
    };
    same(&|w| w.simple(b"a\r\nb"), "+a  b\r\n");
    same(&|w| w.ok(), "+OK\r\n");
    same(&|w| w.error(b"ERR a\nb\r\n\r\n"), "-ERR a b\r\n");
    same(&|w| w.integer(i64::MIN), ":-9223372036854775808\r\n");
    same(&|w| w.bulk(b"a\r\n"), "$3\r\na\r\n\r\n");
    same(&|w| w.bulk_integer(-42), "$3\r\n-42\r\n");
    same(&|w| w.array(0), "*0\r\n");
    same(
        &|w| w.protocol_error(ProtocolError::ExpectedBulk(b'x')),
        "-ERR Protocol error: expected '$', got 'x'\r\n",
    );
    assert_eq!(written(ReplyWriter::null), ["$-1\r\n", "_\r\n"]);
    assert_eq!(written(ReplyWriter::null_array), ["*-1\r\n", "_\r\n"]);
    assert_eq!(written(|w| w.map(2)), ["*4\r\n", "%2\r\n"]);
    assert_eq!(written(|w| w.set(3)), ["*3\r\n", "~3\r\n"]);
    assert_eq!(written(|w| w.push(3)), ["*3\r\n", ">3\r\n"]);
    assert_eq!(written(|w| w.boolean(true)), [":1\r\n", "#t\r\n"]);
    assert_eq!(written(|w| w.boolean(false)), [":0\r\n", "#f\r\n"]);
    assert_eq!(
        written(|w| w.double(b"-inf")),
        ["$4\r\n-inf\r\n", ",-inf\r\n"]
    );
    assert_eq!(
        written(|w| w.big_number(b"12")),
        ["$2\r\n12\r\n", "(12\r\n"]
    );
    assert_eq!(
        written(|w| w.verbatim(*b"txt", b"hi")),
        ["$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"]
    );
    let attributed = |w: &mut ReplyWriter| {
        if w.attribute(1) {
            w.null();
            w.null();
        }
        w.ok();
    };
    assert_eq!(written(attributed), ["+OK\r\n", "|1\r\n_\r\n_\r\n+OK\r\n"]);
}

#[test]
fn every_kind_of_reply_is_read() {
    let input = b"+OK\r\n-ERR no\r\n:-5\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n,1.50\r\n,-inf\r\n(-123456789012345678901\r\n\
        =7\r\nmkd:a\r\n\r\n!5\r\nERR x\r\n*0\r\n~1\r\n:1\r\n%1\r\n+k\r\n*1\r\n+v\r\n>1\r\n+m\r\n";
    let expected = vec![
        Value::Simple(b"OK".to_vec()),
        Value::Error(b"ERR no".to_vec()),
        Value::Integer(-5),
        bulk(""),
        Value::Null,
        Value::NullArray,
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::Double(b"1.50".to_vec()),
        Value::Double(b"-inf".to_vec()),
        Value::BigNumber(b"-123456789012345678901".to_vec()),
        Value::Verbatim(*b"mkd", b"a\r\n".to_vec()),
        Value::Error(b"ERR x".to_vec()),
        Value::Array(vec![]),
        Value::Set(vec![Value::Integer(1)]),
        Value::Map(vec![(
            Value::Simple(b"k".to_vec()),
            Value::Array(vec![Value::Simple(b"v".to_vec())]),
        )]),
        Value::Push(vec![Value::Simple(b"m".to_vec())]),
    ];
    assert_eq!(read(input, &[], KEPT), (expected, None));
    assert_eq!(one(b",1.50\r\n", KEPT).as_double(), Some(1.5));
    assert!(one(b",nan\r\n", KEPT).as_double().unwrap().is_nan());
}

#[test]
fn attributes_are_kept_or_skipped() {
    let input = b"|1\r\n+ttl\r\n:3\r\n*2\r\n:1\r\n|0\r\n|1\r\n+a\r\n+b\r\n:2\r\n";
    let attributed = |pairs, value| Value::Attributed(pairs, Box::new(value));
    let simple = |text: &str| Value::Simple(text.into());
    let inner = attributed(vec![(simple("a"), simple("b"))], Value::Integer(2));
    let items = vec![Value::Integer(1), attributed(vec![], inner)];
    let ttl = vec![(simple("ttl"), Value::Integer(3))];
    assert_eq!(one(input, KEPT), attributed(ttl, Value::Array(items)));
    let plain = Value::Array(vec![Value::Integer(1), Value::Integer(2)]);
    assert_eq!(one(input, ReplyLimits::default()), plain);
}

#[test]
fn what_is_no_reply_is_refused_where_it_stands() {
    for broken in [
        "\r\n",
        "x\r\n",
        "+a\rb\r\n",
        "+a\nb\r\n",
        ":\r\n",
        ":01\r\n",
        ":1x\r\n",
        "$-2\r\n",
        "$x\r\n",
        "$01\r\n",
        "*-2\r\n",
        "%-1\r\n",
        "~-1\r\n",
        "$1\r\nab\r\n",
        "=3\r\ntxt\r\n",
        "=4\r\ntxt;\r\n",
        "#x\r\n",
        "_x\r\n",
        ",x\r\n",
        "(1.5\r\n",
        "(\r\n",
        "$?\r\n",
        "*?\r\n",
        ";4\r\n",
        ".\r\n",
        "*1\r\n>0\r\n",
    ] {
        let input = [b"+OK\r\n:1\r\n", broken.as_bytes()].concat();
        let (values, error) = read(&input, &[], KEPT);
        assert_eq!(values.len(), 2, "{broken:?}");
        let at = if broken.starts_with("*1") { 13 } else { 9 };
        let found = matches!(error, Some(ReplyError::Malformed { offset, .. }) if offset == at);
        assert!(found, "{broken:?}: {error:?}");
    }
}

#[test]
fn depth_and_memory_are_bounded() {
    let limits = ReplyLimits {
        depth_max: 3,
        value_bytes_max: 1000,
        ..KEPT
    };
    let error = |input: &[u8]| read(input, &[], limits).1;
    assert_eq!(error(b"*1\r\n%1\r\n:1\r\n~0\r\n"), None);
    assert_eq!(
        error(b"*1\r\n*1\r\n*1\r\n*0\r\n"),
        Some(ReplyError::TooDeep)
    );
    assert_eq!(
        error(b"|0\r\n|0\r\n|0\r\n|0\r\n"),
        Some(ReplyError::TooDeep)
    );
    assert_eq!(error(b"$900\r\n"), None);
    assert_eq!(error(b"$1000\r\n"), Some(ReplyError::TooLarge));
    assert_eq!(error(b"*1000\r\n"), Some(ReplyError::TooLarge));
    assert_eq!(
        error(b"%9223372036854775807\r\n"),
        Some(ReplyError::TooLarge)
    );
    assert_eq!(error(&[b'+'; 1100]), Some(ReplyError::TooLarge));
    let items = [
        b"*20\r\n".as_slice(),
        &b"$30\r\n012345678901234567890123456789\r\n".repeat(20),
    ];
    assert_eq!(error(&items.concat()), Some(ReplyError::TooLarge));
    // Each reply has the whole of it.
    let many = b"$600\r\n"
        .iter()
        .copied()
        .chain([b'x'; 600])
        .chain(*b"\r\n");
    let many: Vec<u8> = many.collect();
    assert_eq!(error(&many.repeat(5)), None);
    let deep = ReplyLimits {
        depth_max: usize::MAX,
        ..KEPT
    };
    let deepest = read(&b"*1\r\n".repeat(513), &[], deep);
    assert_eq!(deepest.1, Some(ReplyError::TooDeep));
    // Shown, compared and freed without running out of stack.
    let input = [b"*1\r\n".repeat(512), b":1\r\n".to_vec()].concat();
    let value = one(&input, deep);
    assert!(value.to_string().ends_with("1) (integer) 1"));
    assert_eq!(value.clone(), value);
}

/// With the whole looked at again at every byte, this would look at 10^11 of them.
#[test]
fn bytes_that_come_one_by_one_cost_linear_time() {
    let mut writer = ReplyWriter::new(Protocol::Resp3);
    writer.array(3);
    writer.bulk(&[b'x'; 400 << 10]);
    writer.simple(&[b'x'; 300 << 10]);
    let numbers = writer.begin_array();
    (0..9000).for_each(|number| writer.integer(number));
    writer.finish(numbers, 9000);
    let mut parser = ReplyParser::new(ReplyLimits::default());
    let bytes = writer.take();
    let (last, front) = bytes.split_last().unwrap();
    for byte in front {
        parser.push(&[*byte]);
        assert_eq!(parser.value(), Ok(None));
        assert!(!parser.is_idle());
    }
    parser.push(&[*last]);
    assert_eq!(
        parser.value().unwrap().unwrap().as_items().unwrap().len(),
        3
    );
    assert!(parser.is_idle());
}

/// A value of any kind, with up to `depth` levels.
fn value(rng: &mut Rng, depth: u64) -> Value {
    let text = |rng: &mut Rng| b"\r\nab\0\xff"[..rng.below(7) as usize].to_vec();
    let line = |rng: &mut Rng| b"a line\xff"[..rng.below(8) as usize].to_vec();
    let values = |rng: &mut Rng| (0..rng.below(12)).map(|_| value(rng, depth - 1)).collect();
    let pairs = |rng: &mut Rng| {
        let mut pair = |_| (value(rng, depth - 1), value(rng, depth - 1));
        (0..pair_count(depth)).map(&mut pair).collect()
    };
    match rng.below(if depth == 0 { 10 } else { 14 }) {
        0 => Value::Simple(line(rng)),
        1 => Value::Error(line(rng)),
        2 => Value::Integer(rng.next_u64() as i64 >> rng.below(64)),
        3 | 4 => Value::Bulk(text(rng)),
        5 => Value::Null,
        6 => Value::Double(format!("{}", rng.unit()).into_bytes()),
        7 => Value::Bool(rng.one_in(2)),
        8 => Value::BigNumber(rng.next_u64().to_string().into_bytes()),
        9 => Value::Verbatim(*b"txt", text(rng)),
        10 => Value::Array(values(rng)),
        11 => Value::Set(values(rng)),
        12 => Value::Map(pairs(rng)),
        _ => Value::Attributed(pairs(rng), Box::new(value(rng, depth - 1))),
    }
}

fn pair_count(depth: u64) -> u64 {
    depth % 3
}

pub(crate) fn write(writer: &mut ReplyWriter, value: &Value) {
    let both = |writer: &mut ReplyWriter, pairs: &[(Value, Value)]| {
        for (name, value) in pairs {
            write(writer, name);
            write(writer, value);
        }
    };
    match value {
        Value::Simple(text) => writer.simple(text),
        Value::Error(text) => writer.error(text),
        Value::Integer(number) => writer.integer(*number),
        Value::Bulk(text) => writer.bulk(text),
        Value::Null => writer.null(),
        Value::NullArray => writer.null_array(),
        Value::Double(text) => writer.double(text),
        Value::Bool(value) => writer.boolean(*value),
        Value::BigNumber(text) => writer.big_number(text),
        Value::Verbatim(format, text) => writer.verbatim(*format, text),
        Value::Array(items) => {
            let mark = writer.begin_array();
            items.iter().for_each(|item| write(writer, item));
            writer.finish(mark, items.len());
        }
        Value::Set(items) => {
            let mark = writer.begin_set();
            items.iter().for_each(|item| write(writer, item));
            writer.finish(mark, items.len());
        }
        Value::Push(items) => {
            writer.push(items.len());
            items.iter().for_each(|item| write(writer, item));
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
        other => panic!("{other} is not written"),
    }
}

#[test]
fn values_are_read_as_they_were_written_however_they_are_cut() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let values: Vec<_> = (0..1 + rng.below(3)).map(|_| value(&mut rng, 3)).collect();
        let mut writer = ReplyWriter::new(Protocol::Resp3);
        values.iter().for_each(|value| write(&mut writer, value));
        let bytes = writer.take();
        let expected = (values, None);
        assert_eq!(read(&bytes, &[], KEPT), expected, "seed {seed}");
        let each: Vec<_> = (1..bytes.len()).collect();
        assert_eq!(read(&bytes, &each, KEPT), expected, "seed {seed}");
        let cuts = if bytes.len() < 2000 {
            each
        } else {
            vec![rng.below(2000) as usize]
        };
        for cut in cuts {
            assert_eq!(
                read(&bytes, &[cut], KEPT),
                expected,
                "seed {seed} cut {cut}"
            );
        }
    }
}

#[test]
fn damaged_replies_are_the_same_however_they_are_cut() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut writer = ReplyWriter::new(Protocol::Resp3);
        write(&mut writer, &value(&mut rng, 2));
        let mut bytes = writer.take();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = b"*$%|>\r\n09-"[rng.below(10) as usize];
        let each: Vec<_> = (1..bytes.len()).collect();
        let whole = read(&bytes, &[], KEPT);
        assert_eq!(read(&bytes, &each, KEPT), whole, "seed {seed}");
    }
}
