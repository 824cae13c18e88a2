//! A file of Redis's users: what is read is written, reads back as the same text, and allows the same calls.

use drumlin_redis::internals::UsersFile;

/// Calls that tell rights apart.
const CALLS: [&str; 12] = [
    "get a",
    "get b",
    "set a 1",
    "set b 1 get",
    "mget a b",
    "ping",
    "publish a m",
    "psubscribe a*",
    "config get x",
    "select 0",
    "sort a store b",
    "eval x 1 a",
];

/// The text of a file.
pub(crate) fn run(data: &[u8]) {
    let Ok(users) = UsersFile::parse(data) else {
        return;
    };
    let text = users.text();
    let again = UsersFile::parse(&text).expect("what is written is read");
    assert_eq!(again.text(), text);
    for call in CALLS {
        let words: Vec<&[u8]> = call.split(' ').map(str::as_bytes).collect();
        assert_eq!(again.lacks(&words), users.lacks(&words), "{call}");
    }
}
