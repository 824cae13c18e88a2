//! A redis-server gets the same bytes. Without the program this test says so and passes.
//!
//! The commands are unknown to the server, so that it answers with their arguments.

use drumlin_base::rng::Rng;
use drumlin_resp::{Protocol, ReplyWriter, encode_command};
use drumlin_testkit::redis::{Server, installed};

use crate::requests::{corpus, whole};

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
