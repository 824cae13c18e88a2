//! Seeds for the targets of `drumlin_resp`: commands of both forms, lines of words, replies of every kind.

use drumlin_resp::encode_command;

const REPLIES: [(&str, &[u8]); 4] = [
    (
        "resp2",
        b"+OK\r\n-ERR no\r\n:-5\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n$0\r\n\r\n*1\r\n:1\r\n",
    ),
    (
        "resp3",
        b"_\r\n#t\r\n,1.5\r\n,-inf\r\n(12345678901234567890\r\n=5\r\ntxt:a\r\n!5\r\nERR x\r\n",
    ),
    (
        "aggregates",
        b"%2\r\n+a\r\n~2\r\n:1\r\n:2\r\n$1\r\nb\r\n*0\r\n>2\r\n+message\r\n*1\r\n%0\r\n",
    ),
    (
        "attributes",
        b"|1\r\n+ttl\r\n:3\r\n*2\r\n:1\r\n|0\r\n:2\r\n",
    ),
];
const LINES: [(&str, &[u8]); 4] = [
    ("plain", b"SET key value\r"),
    ("double", br#"set "a b\n\x41\"" "" c"d""#),
    ("single", br"get 'a b\'' '\n'"),
    ("open", br#"get "a"b"#),
];

/// Inputs: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    // The length of pieces, and a choice.
    let cut = |bytes: &[u8]| [&[6, 0], bytes].concat();
    let mut commands = Vec::new();
    encode_command(&mut commands, &["SET", "key", "a\r\nb", ""]);
    encode_command(&mut commands, &["PING"]);
    seeds.push(("resp_request", "commands".to_owned(), cut(&commands)));
    commands.extend_from_slice(b"\r\n*0\r\n*-1\r\nget 'k'\n");
    seeds.push(("resp_request", "both-forms".to_owned(), cut(&commands)));
    encode_command(&mut commands, &[&"x".repeat(20_000), "y"]);
    seeds.push(("resp_request", "long".to_owned(), cut(&commands)));
    for (name, line) in LINES {
        seeds.push(("resp_words", name.to_owned(), line.to_vec()));
    }
    for (name, replies) in REPLIES {
        seeds.push(("resp_reply", name.to_owned(), cut(replies)));
    }
    seeds
}
