//! The server's side of requests.

use drumlin_base::rng::Rng;
use drumlin_resp::{ProtocolError, RequestLimits, RequestParser, encode_command};

pub(crate) type Command = Vec<Vec<u8>>;
/// Commands in order, and what broke the protocol behind them.
pub(crate) type Outcome = (Vec<Command>, Option<ProtocolError>);

const LINE_BYTES_MAX: usize = 64 << 10;

/// Acts as a server that reads pieces of `input`, each up to one of `cuts`, then the rest.
pub(crate) fn serve(input: &[u8], cuts: &[usize], limits: RequestLimits) -> Outcome {
    let mut parser = RequestParser::new(limits);
    let (mut commands, mut buffer, mut from) = (Vec::new(), Vec::new(), 0);
    for to in cuts.iter().copied().chain([input.len()]) {
        buffer.extend_from_slice(&input[from..to]);
        from = to;
        while !buffer.is_empty() {
            let request = match parser.parse(&buffer) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            };
            let args: Command = request.args.iter().map(<[u8]>::to_vec).collect();
            assert_eq!(request.args.len(), args.len());
            let consumed = request.consumed;
            assert!(consumed > 0);
            if !args.is_empty() {
                commands.push(args);
            }
            buffer.drain(..consumed);
        }
    }
    (commands, None)
}

pub(crate) fn whole(input: &[u8]) -> Outcome {
    serve(input, &[], RequestLimits::default())
}

fn words(words: &[&str]) -> Command {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn error_of(input: &[u8]) -> String {
    let (_, error) = whole(input);
    let shown = String::from_utf8_lossy(&input[..input.len().min(60)]);
    error
        .unwrap_or_else(|| panic!("{shown:?} is taken"))
        .to_string()
}

#[test]
fn commands_come_out_in_order() {
    let input =
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1\r\n$0\r\n\r\n*2\r\n$2\r\n\r\n\r\n$1\r\n*\r\n";
    let expected = vec![
        words(&["GET", "k"]),
        words(&["PING"]),
        words(&[""]),
        words(&["\r\n", "*"]),
    ];
    assert_eq!(whole(input), (expected, None));
}

#[test]
fn empty_requests_are_no_commands() {
    let input = b"\r\n\n*0\r\n*-1\r\n  \t\r\n*-9223372036854775808\r\nPING\n";
    assert_eq!(whole(input), (vec![words(&["PING"])], None));
}

#[test]
fn inline_commands_are_split_at_blanks_and_quotes() {
    let input = b"set k \"a\\x00 b\"\r\nget 'k'\n \"\"\r\r\n";
    let expected = vec![
        vec![b"set".to_vec(), b"k".to_vec(), b"a\0 b".to_vec()],
        words(&["get", "k"]),
        words(&[""]),
    ];
    assert_eq!(whole(input), (expected, None));
}

/// What Redis does not look at: the byte behind a `\r` of a head, and the two behind an argument.
#[test]
fn line_ends_are_believed_where_redis_believes_them() {
    let input = b"*2\rx$1\r?a!!$1\r\nbcd*1\r\n$1\r\nz\r\n";
    let expected = vec![words(&["a", "b"]), words(&["z"])];
    assert_eq!(whole(input), (expected, None));
}

/// As in C, where a NUL ends the text that is searched for a line's end.
#[test]
fn no_line_ends_behind_a_nul() {
    for input in [
        "PING\0\r\nPING\r\n",
        "*1\0\r\n",
        "*1\r\n$1\0\r\nx\r\n",
        "\0\n",
    ] {
        assert_eq!(whole(input.as_bytes()), (vec![], None), "{input:?}");
    }
    let mut endless = b"PING\0\r\n".to_vec();
    endless.resize(LINE_BYTES_MAX + 1, b'\n');
    assert_eq!(error_of(&endless), "Protocol error: too big inline request");
}

#[test]
fn what_is_no_request_is_told_in_the_words_of_redis() {
    for (input, text) in [
        ("\"a\r\n", "unbalanced quotes in request"),
        ("'a'b\r\n", "unbalanced quotes in request"),
        ("*\r\n", "invalid multibulk length"),
        ("*a\r\n", "invalid multibulk length"),
        ("*01\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*1 \r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$\r\n", "invalid bulk length"),
        ("*1\r\n$1x\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*1\r\n$9223372036854775808\r\n", "invalid bulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n\r\n", "expected '$', got ' '"),
        ("*1\r\n\n\r\n", "expected '$', got ' '"),
    ] {
        assert_eq!(
            error_of(input.as_bytes()),
            format!("Protocol error: {text}"),
            "{input:?}"
        );
    }
    let (_, error) = whole(b"*1\r\n\xe9\r\n");
    let mut text = Vec::new();
    error.unwrap().write_text(&mut text);
    assert_eq!(text, b"Protocol error: expected '$', got '\xe9'");
}

#[test]
fn commands_in_front_of_what_is_no_request_are_carried_out() {
    let (commands, error) = whole(b"PING\r\n*1\r\n$4\r\nQUIT\r\n*x\r\nPING\r\n");
    assert_eq!(commands, [words(&["PING"]), words(&["QUIT"])]);
    assert_eq!(error, Some(ProtocolError::InvalidCount));
}

#[test]
fn lines_may_have_64_kib() {
    let line = [b'x'].repeat(LINE_BYTES_MAX);
    for end in ["\n", "\r\n"] {
        let most = line.len() + 1 - end.len();
        let input = [&line[..most], end.as_bytes()].concat();
        assert_eq!(whole(&input), (vec![vec![line[..most].to_vec()]], None));
    }
    assert_eq!(whole(&line), (vec![], None));
    for (front, text) in [
        ("", "too big inline request"),
        ("*", "too big mbulk count string"),
        ("*1\r\n", "too big bulk count string"),
    ] {
        let text = format!("Protocol error: {text}");
        for end in ["", "\r\n"] {
            let input = [front.as_bytes(), &line, b"x", end.as_bytes()].concat();
            assert_eq!(error_of(&input), text);
        }
    }
}

#[test]
fn clients_that_have_not_authenticated_send_little() {
    let limits = RequestLimits {
        authenticated: false,
        ..RequestLimits::default()
    };
    let serve = |input: &[u8]| serve(input, &[], limits);
    let mut most = Vec::new();
    let arg = "x".repeat(16 << 10);
    encode_command(&mut most, &[arg.as_str(); 10]);
    assert_eq!(serve(&most), (vec![words(&[arg.as_str(); 10])], None));
    let text = |input: &[u8]| serve(input).1.unwrap().to_string();
    assert_eq!(
        text(b"*11\r\n"),
        "Protocol error: unauthenticated multibulk length"
    );
    assert_eq!(
        text(b"*1\r\n$16385\r\n"),
        "Protocol error: unauthenticated bulk length"
    );
}

#[test]
fn limits_change_between_commands() {
    let mut parser = RequestParser::new(RequestLimits::default());
    let mut limits = parser.limits();
    limits.bulk_bytes_max = 3;
    parser.set_limits(limits);
    let request = parser.parse(b"*1\r\n$3\r\nabc\r\n").unwrap().unwrap();
    assert_eq!(request.consumed, 13);
    assert_eq!(
        parser.parse(b"*1\r\n$4\r\n").unwrap_err(),
        ProtocolError::InvalidLength
    );
}

#[test]
fn the_parser_says_how_much_of_an_argument_is_missing() {
    let mut parser = RequestParser::new(RequestLimits::default());
    let mut needed = |input: &[u8]| {
        assert!(parser.parse(input).unwrap().is_none());
        parser.needed()
    };
    assert_eq!(needed(b"*2\r\n$3"), 0);
    assert_eq!(needed(b"*2\r\n$3\r\n"), 5);
    assert_eq!(needed(b"*2\r\n$3\r\nabc\r"), 1);
    assert_eq!(needed(b"*2\r\n$3\r\nabc\r\n"), 0);
    assert_eq!(needed(b"*2\r\n$3\r\nabc\r\n$536870912\r\nxy"), (512 << 20));
    assert!(
        parser
            .parse(b"*2\r\n$3\r\nabc\r\n$536870912\r\nxyz")
            .unwrap()
            .is_none()
    );
}

/// With the whole looked at again at every byte, this would look at 10^11 of them.
#[test]
fn bytes_that_come_one_by_one_cost_linear_time() {
    let mut input = Vec::new();
    let long = "v".repeat(400 << 10);
    encode_command(&mut input, &["SET", "k", &long]);
    let many = [""; 20_000];
    encode_command(&mut input, &many);
    input.extend_from_slice("inline ".repeat(9000).as_bytes());
    let mut parser = RequestParser::new(RequestLimits::default());
    let (mut from, mut counts) = (0, Vec::new());
    for to in 1..=input.len() {
        if let Some(request) = parser.parse(&input[from..to]).unwrap() {
            counts.push(request.args.len());
            from += request.consumed;
        }
    }
    assert_eq!(counts, [3, 20_000]);
}

#[test]
fn args_are_walked_from_both_ends() {
    let mut parser = RequestParser::new(RequestLimits::default());
    let args = parser.parse(b"set k v nx\r\n").unwrap().unwrap().args;
    assert_eq!(args.iter().next_back(), Some(b"nx".as_slice()));
    assert_eq!(args.from(2).len(), 2);
    assert_eq!(args.from(2).get(0), Some(b"v".as_slice()));
    assert_eq!(args.get(4), None);
    assert!(args.from(5).is_empty());
}

/// Requests of both forms, whole and broken; no server knows their commands.
pub(crate) fn corpus() -> Vec<Vec<u8>> {
    let mut command = Vec::new();
    encode_command(&mut command, &["PUT", "key", "a\r\nb", ""]);
    let mut corpus = vec![
        command,
        b"put k \"v\\x41\"\r\n\r\n*1\r\n$4\r\nPONG\r\n".to_vec(),
        b"*2\r\n$1\r\na\r\n:5\r\n".to_vec(),
        b"*0\r\n*-1\r\nPONG\nx\0y\r\nz".to_vec(),
        b"PONG \"x\"y\r\n".to_vec(),
        b"*1\rx$1\rxaxx\n*1\r\n$99999999999\r\n".to_vec(),
    ];
    let all = corpus.concat();
    corpus.push(all);
    corpus
}

#[test]
fn every_cut_gives_the_same_commands() {
    let limits = RequestLimits::default();
    for input in corpus() {
        let expected = whole(&input);
        let each: Vec<_> = (1..input.len()).collect();
        assert_eq!(serve(&input, &each, limits), expected);
        for first in 1..input.len() {
            for second in first..input.len() {
                assert_eq!(
                    serve(&input, &[first, second], limits),
                    expected,
                    "{first} {second}"
                );
            }
        }
    }
}

#[test]
fn damaged_commands_are_the_same_however_they_are_cut() {
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut input = Vec::new();
        for _ in 0..1 + rng.below(4) {
            let count = rng.below(5);
            let arg = |rng: &mut Rng| "\r\n".repeat(rng.below(9) as usize);
            let args: Vec<_> = (0..count).map(|_| arg(&mut rng)).collect();
            encode_command(&mut input, &args);
        }
        for _ in 0..rng.below(4) {
            let at = rng.below(input.len() as u64) as usize;
            let letters = b"0*$\r\n\x0019-\"x";
            input[at] = letters[rng.below(letters.len() as u64) as usize];
        }
        let expected = whole(&input);
        let mut cuts: Vec<_> = (0..rng.below(6))
            .map(|_| rng.below(input.len() as u64) as usize)
            .collect();
        cuts.sort_unstable();
        assert_eq!(
            serve(&input, &cuts, RequestLimits::default()),
            expected,
            "seed {seed}"
        );
    }
}
