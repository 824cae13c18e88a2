//! A redis-server gets the same bytes. Without the program this test says so and passes.
//!
//! The commands of requests are unknown to the server, so that it answers with their arguments. Replies are those of
//! its own examples, `DEBUG PROTOCOL`, and of commands that nest deeply.

use drumlin_base::rng::Rng;
use drumlin_resp::{Protocol, ReplyLimits, ReplyWriter, RequestLimits, encode_command};
use drumlin_testkit::redis::{Server, installed};

use crate::replies::{KEPT, read, write};
use crate::requests::{corpus, serve, whole};

/// Most bytes of a name, and about most of the arguments, that the server repeats.
const REPEATED_BYTES_MAX: usize = 128;

/// What a server answers that knows no command.
fn expected(input: &[u8]) -> Vec<u8> {
    let (commands, error) = whole(input);
    let mut writer = ReplyWriter::new(Protocol::Resp2);
    for command in commands {
        let mut args = Vec::new();
        for arg in &command[1..] {
            if args.len() >= REPEATED_BYTES_MAX {
                break;
            }
            let room = REPEATED_BYTES_MAX - args.len();
            args.extend_from_slice(&[b"'", text(arg, room), b"' "].concat());
        }
        let name = text(&command[0], REPEATED_BYTES_MAX);
        let front = b"ERR unknown command '";
        let middle = b"', with args beginning with: ";
        writer.error(&[front, name, middle, &args].concat());
    }
    if let Some(error) = error {
        writer.protocol_error(error);
    }
    writer.take()
}

/// What C prints of `bytes` when it may print so many.
fn text(bytes: &[u8], len_max: usize) -> &[u8] {
    let text = bytes.split(|byte| *byte == 0).next().unwrap();
    &text[..text.len().min(len_max)]
}

fn compare(server: &Server, input: &[u8]) {
    let answers = server.answers(input);
    let (found, expected) = (String::from_utf8_lossy(&answers), expected(input));
    let expected_text = String::from_utf8_lossy(&expected);
    let shown = String::from_utf8_lossy(&input[..input.len().min(400)]);
    assert_eq!(found, expected_text, "{shown:?}");
    assert_eq!(answers, expected, "{shown:?}");
}

#[test]
fn a_redis_server_answers_to_the_same_commands_and_errors() {
    if !installed() {
        return;
    }
    let server = Server::start(drumlin_testkit::temp_dir(), &[]);
    for input in corpus() {
        for end in 0..=input.len() {
            compare(&server, &input[..end]);
        }
    }
    for byte in 1..=u8::MAX {
        compare(
            &server,
            &[b"*1\r\n".as_slice(), &[byte], b"1\r\nx\r\n"].concat(),
        );
        compare(
            &server,
            &[b"*1".as_slice(), &[byte], b"\r\n$1\r\nx\r\n"].concat(),
        );
        compare(
            &server,
            &[b"a ".as_slice(), &[byte], b"b\" \\ 'c\r\n"].concat(),
        );
    }
    for number in [
        "9223372036854775807",
        "2147483647",
        "2147483648",
        "-0",
        "+1",
        "536870912",
        "536870913",
    ] {
        compare(&server, format!("*{number}\r\n").as_bytes());
        compare(&server, format!("*1\r\n${number}\r\n").as_bytes());
    }
    for front in ["", "*", "*1\r\n"] {
        for more in [0, 1] {
            let line = "x".repeat((64 << 10) + more - usize::from(front == "*"));
            compare(&server, format!("{front}{line}").as_bytes());
        }
    }
}

#[test]
fn a_redis_server_judges_damaged_requests_alike() {
    if !installed() {
        return;
    }
    let server = Server::start(drumlin_testkit::temp_dir(), &[]);
    let letters = b"*$\r\n\0x19-\"'\\ \t\x0b:n";
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let letter = |rng: &mut Rng| letters[rng.below(letters.len() as u64) as usize];
        let mut input = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let mut args = Vec::new();
            for _ in 0..1 + rng.below(3) {
                let most = if rng.one_in(10) { 200 } else { 8 };
                let len = rng.below(most);
                args.push((0..len).map(|_| letter(&mut rng)).collect::<Vec<_>>());
            }
            if rng.one_in(2) {
                encode_command(&mut input, &args);
            } else {
                input.extend_from_slice(&args.join(b" ".as_slice()));
                input.extend_from_slice(b"\r\n");
            }
        }
        for _ in 0..rng.below(3) {
            let at = rng.below(input.len() as u64) as usize;
            input[at] = letter(&mut rng);
        }
        compare(&server, &input);
    }
}

#[test]
fn a_redis_server_has_the_same_limits() {
    if !installed() {
        return;
    }
    let mut server = Server::start(
        drumlin_testkit::temp_dir(),
        &["--proto-max-bulk-len", "1mb"],
    );
    let compare = |server: &Server, input: String, limits| {
        let (commands, error) = serve(input.as_bytes(), &[], limits);
        assert!(commands.is_empty());
        let mut writer = ReplyWriter::new(Protocol::Resp2);
        error
            .into_iter()
            .for_each(|error| writer.protocol_error(error));
        assert_eq!(
            server.answers(input.as_bytes()),
            writer.bytes(),
            "{input:?}"
        );
    };
    let mut limits = RequestLimits {
        bulk_bytes_max: 1 << 20,
        ..RequestLimits::default()
    };
    for len in [1 << 20, (1 << 20) + 1] {
        compare(&server, format!("*1\r\n${len}\r\n"), limits);
    }
    server.ok(&["CONFIG", "SET", "requirepass", "secret"]);
    limits.authenticated = false;
    for count in [10, 11] {
        compare(&server, format!("*{count}\r\n"), limits);
    }
    for len in [16384, 16385] {
        compare(&server, format!("*1\r\n${len}\r\n"), limits);
    }
}

/// The replies that Redis has as examples, as this crate writes them.
fn example(writer: &mut ReplyWriter, name: &str) {
    let numbers = |writer: &mut ReplyWriter| (0..3).for_each(|number| writer.integer(number));
    match name {
        "string" => writer.bulk(b"Hello World"),
        "integer" => writer.integer(12345),
        "double" => writer.double(b"3.141"),
        "bignum" => writer.big_number(b"1234567999999999999999999999999999999"),
        "null" => writer.null(),
        "array" => {
            writer.array(3);
            numbers(writer);
        }
        "set" => {
            writer.set(3);
            numbers(writer);
        }
        "map" => {
            writer.map(3);
            for number in 0..3 {
                writer.integer(number);
                writer.boolean(number == 1);
            }
        }
        "attrib" => {
            if writer.attribute(1) {
                writer.bulk(b"key-popularity");
                writer.array(2);
                writer.bulk(b"key:123");
                writer.integer(90);
            }
            writer.bulk(b"Some real reply following the attribute");
        }
        "push" => {
            writer.push(2);
            writer.bulk(b"server-cpu-usage");
            writer.integer(42);
            writer.bulk(b"Some real reply following the push reply");
        }
        "true" => writer.boolean(true),
        "false" => writer.boolean(false),
        _ => writer.verbatim(*b"txt", b"This is a verbatim\nstring"),
    }
}

#[test]
fn a_redis_server_writes_the_same_replies() {
    if !installed() {
        return;
    }
    let server = Server::start(drumlin_testkit::temp_dir(), &[]);
    let names = "string integer double bignum null array set map attrib push true false verbatim";
    for name in names.split(' ') {
        for (protocol, greeting) in [(Protocol::Resp2, ""), (Protocol::Resp3, "hello 3\r\n")] {
            let request = format!("{greeting}debug protocol {name}\r\n");
            let answers = server.answers(request.as_bytes());
            let mut writer = ReplyWriter::new(protocol);
            example(&mut writer, name);
            let found = String::from_utf8_lossy(&answers);
            let expected = String::from_utf8_lossy(writer.bytes());
            if protocol == Protocol::Resp2 && name == "push" {
                assert!(found.starts_with("-ERR RESP2 is not supported"));
            } else if protocol == Protocol::Resp2 {
                // Redis 7.0 writes some doubles with a digit too many.
                assert_eq!(
                    found.replace("$18\r\n3.1410000000000000", "$5\r\n3.141"),
                    expected,
                    "{name}"
                );
            } else {
                // Behind the answer to the greeting.
                assert!(found.ends_with(&*expected), "{name}: {found:?}");
            }
        }
    }
}

#[test]
fn replies_of_a_redis_server_are_read_and_written_back() {
    if !installed() {
        return;
    }
    let server = Server::start(drumlin_testkit::temp_dir(), &[]);
    let commands = "command\r\ncommand docs\r\nconfig get *\r\ninfo\r\nmemory stats\r\nlpop none 5\r\n\
        get none\r\nzadd z 1.5 a -inf b\r\nzrange z 0 -1 withscores\r\nzrandmember none 5\r\nsmembers none\r\n\
        hset h f v\r\nhgetall h\r\nnone\r\nxadd s 1-1 a b\r\nxinfo stream s full\r\nsubscribe c\r\nquit\r\n";
    for (protocol, greeting) in [(Protocol::Resp2, ""), (Protocol::Resp3, "hello 3\r\n")] {
        let answers = server.answers_until_closed(format!("{greeting}{commands}").as_bytes());
        let cuts: Vec<_> = (1..answers.len()).step_by(1000).collect();
        let (values, error) = read(
            &answers,
            &cuts,
            ReplyLimits {
                value_bytes_max: 64 << 20,
                ..KEPT
            },
        );
        assert_eq!(error, None);
        assert!(values.len() >= 17, "{}", values.len());
        let mut writer = ReplyWriter::new(protocol);
        values.iter().for_each(|value| write(&mut writer, value));
        assert!(
            writer.bytes() == answers,
            "{:?} is written differently",
            protocol
        );
    }
}
