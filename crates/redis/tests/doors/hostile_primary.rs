//! Goal: a primary that says anything whatever ends the connection to it, and nothing else: the server answers its clients, and
//! follows a sound primary afterwards. Method: conversations of a sound primary (greeting, data of all types by either form, a
//! stream of commands), damaged by a seed and sent in pieces. `HOSTILE_ROUNDS` says how many, 150 otherwise; `REDIS_SEED` where
//! the seeds begin.

use drumlin_base::rng::Rng;
use drumlin_fs::net::{
    Address, Connection, Events, Interest, Listener, Network, Poller, PosixNetwork, Received, Sent,
    Token,
};
use drumlin_resp::encode_command;
use drumlin_testkit::redis::Link;

use crate::ours::{Ours, port};

/// What numbers and lengths become.
const NUMBERS: [&str; 9] = [
    "0",
    "-1",
    "1",
    "40",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "x",
];

/// A primary that says what it is told to say.
struct Primary {
    listener: Box<dyn Listener>,
    poller: Box<dyn Poller>,
    port: String,
}

impl Primary {
    fn start() -> Self {
        let network = PosixNetwork::new();
        let any = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
        let listener = network.listen(&any, Default::default()).expect("listens");
        let poller = network.poller().expect("a poller");
        poller
            .register(&*listener, Token(0), Interest::Read)
            .expect("registers");
        let port = port(listener.local_address());
        Self {
            listener,
            poller,
            port,
        }
    }

    fn wait(&mut self) {
        let mut events = Events::with_capacity(4);
        self.poller.wait(&mut events, None).expect("waits");
    }

    /// Says `bytes` to the next who comes, in pieces of up to `piece`, then no more, and waits until it has gone.
    fn say(&mut self, mut bytes: &[u8], piece: usize) {
        let mut connection = loop {
            if let Some(connection) = self.listener.accept().expect("accepts") {
                break connection;
            }
            self.wait();
        };
        let both = Interest::ReadWrite;
        self.poller
            .register(&*connection, Token(1), both)
            .expect("registers");
        while !bytes.is_empty() {
            match connection.write(&bytes[..bytes.len().min(piece)]) {
                Ok(Sent::Bytes(count)) => bytes = &bytes[count..],
                Ok(Sent::NotNow) if is_over(&mut *connection) => return,
                Ok(Sent::NotNow) => self.wait(),
                // It has heard enough.
                Err(_) => return,
            }
        }
        // An error means the same as the end.
        drop(connection.shutdown_write());
        self.poller
            .reregister(&*connection, Token(1), Interest::Read)
            .expect("registers");
        while !is_over(&mut *connection) {
            self.wait();
        }
    }
}

/// Reads what there is; whether the other has gone.
fn is_over(connection: &mut dyn Connection) -> bool {
    let mut buffer = [0; 4_096];
    loop {
        match connection.read(&mut buffer) {
            Ok(Received::Bytes(_)) => {}
            Ok(Received::NotNow) => return false,
            Ok(Received::End) | Err(_) => return true,
        }
    }
}

/// An RDB file, as a server of ours sends it to a replica.
fn data() -> Vec<u8> {
    let donor = Ours::start(&[("repl-diskless-sync-delay", "0")]);
    let lines = "SET k v\nSET e v EX 100000\nRPUSH l 1 2 3\nSADD s a b\nSADD n 1 2\nHSET h f v\nZADD z 1 a 2 b\n\
                 XADD x 1-1 f v\nXGROUP CREATE x g 0\nXREADGROUP GROUP g c STREAMS x >\nSELECT 3\nSET other 1";
    donor.say(&lines.lines().collect::<Vec<_>>());
    let mut link = Link::connect(donor.socket());
    assert!(link.send(b"SYNC\r\n"));
    let mut come = Vec::new();
    loop {
        come.extend(link.receive().expect("data"));
        let text = String::from_utf8_lossy(&come).into_owned();
        let Some((_, length)) = text.split_once('$') else {
            continue;
        };
        let Some((length, _)) = length.split_once("\r\n") else {
            continue;
        };
        let length: usize = length.parse().expect("a length");
        let head = come
            .windows(2)
            .position(|it| it == b"\r\n")
            .expect("a line");
        // Empty lines may be before it.
        let head = match come.starts_with(b"$") {
            true => head + 2,
            false => {
                come.iter().position(|it| *it == b'$').expect("it") + 3 + length.to_string().len()
            }
        };
        if come.len() >= head + length {
            return come[head..head + length].to_vec();
        }
    }
}

/// The commands of a stream.
fn stream() -> Vec<u8> {
    let lines = "SELECT 0\nSET a 1\nMULTI\nINCR a\nLPUSH l 0\nEXEC\nPING\nREPLCONF GETACK *\nSELECT 3\nDEL other\n\
                 XADD x 2-1 f v\nXSETID x 9-9 ENTRIESADDED 9 MAXDELETEDID 3-3\nXCLAIM x g c 0 1-1 TIME 5 RETRYCOUNT 2 FORCE JUSTID\n\
                 RESTORE r 0 abcdefgh REPLACE\nPEXPIREAT a 99999999999999\nEVAL return(1) 0\nSWAPDB 0 1\nSUBSCRIBE c\nBLPOP none 0.05\n\
                 FUNCTION FLUSH\nPSYNC ? -1\nREPLICAOF NO ONE\nFLUSHALL\nSET last 1";
    let mut bytes = Vec::new();
    for line in lines.lines() {
        encode_command(&mut bytes, &line.split(' ').collect::<Vec<_>>());
    }
    bytes
}

/// What a sound primary says.
fn sound(data: &[u8], stream: &[u8], has_mark: bool) -> Vec<u8> {
    let (id, mark) = ("a1".repeat(20), "b".repeat(40));
    let mut bytes = format!("+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC {id} 100\r\n").into_bytes();
    match has_mark {
        true => bytes.extend_from_slice(format!("$EOF:{mark}\r\n").as_bytes()),
        false => bytes.extend_from_slice(format!("${}\r\n", data.len()).as_bytes()),
    }
    bytes.extend_from_slice(data);
    match has_mark {
        // Nothing follows before the replica has told that it has the data.
        true => bytes.extend_from_slice(mark.as_bytes()),
        false => bytes.extend_from_slice(stream),
    }
    bytes
}

/// Damages `bytes` at a place: anywhere, or where the words and lengths of the greeting are.
fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let until = match rng.below(3) {
        0 => bytes.len().min(110),
        _ => bytes.len(),
    };
    let at = rng.below(until.max(1) as u64) as usize;
    let end = bytes.len().min(at + 1 + rng.below(40) as usize);
    match rng.below(7) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        5 => {
            let lines = [
                "\r\n",
                "\n\n\n\n",
                "-LOADING\r\n",
                "+CONTINUE\r\n",
                "$-1\r\n",
                "*3\r\n",
            ];
            let line = lines[rng.below(lines.len() as u64) as usize];
            bytes.splice(at..at, line.bytes());
        }
        _ => {
            // The next number becomes another.
            let from = (at..bytes.len()).find(|it| bytes[*it].is_ascii_digit());
            let from = from.unwrap_or(bytes.len());
            let to = (from..bytes.len()).find(|it| !bytes[*it].is_ascii_digit());
            let number = NUMBERS[rng.below(NUMBERS.len() as u64) as usize];
            bytes.splice(from..to.unwrap_or(bytes.len()), number.bytes());
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
}

/// Has ours follow a primary, which says `bytes`. It is a new one each time: nobody waits at its door from before.
fn hear(ours: &Ours, bytes: &[u8], piece: usize) {
    let mut primary = Primary::start();
    let follow = format!("REPLICAOF 127.0.0.1 {}", primary.port);
    assert_eq!(
        ours.say(&["REPLICAOF NO ONE", &follow]),
        "+OK\r\n+OK\r\n+OK\r\n"
    );
    primary.say(bytes, piece);
}

/// It answers, as soon as it knows that there is nothing to load any more.
fn serves(ours: &Ours, seed: u64) {
    let mut said = String::new();
    for _ in 0..1_000 {
        said = ours.say(&["PING"]);
        if !said.starts_with("-LOADING") {
            break;
        }
    }
    assert_eq!(said, "+PONG\r\n+OK\r\n", "seed {seed}");
}

#[test]
fn a_primary_that_says_anything_ends_its_connection_and_nothing_else() {
    let (data, stream) = (data(), stream());
    // Nobody is given up for its silence.
    let ours = Ours::start(&[("repl-timeout", "1000")]);
    let first = number("REDIS_SEED", 1);
    for seed in first..first + number("HOSTILE_ROUNDS", 150) {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut bytes = sound(&data, &stream, rng.one_in(3));
        for _ in 0..1 + rng.below(3) {
            damage(&mut rng, &mut bytes);
        }
        let piece = [1, 7, 100, 1 << 20][rng.below(4) as usize];
        // A byte a packet is for the words, not for all data.
        let piece = if bytes.len() > 4_000 {
            piece.max(50)
        } else {
            piece
        };
        hear(&ours, &bytes, piece);
        serves(&ours, seed);
    }
    hear(&ours, &sound(&data, b"", false), 100);
    let said = ours.say(&["REPLICAOF NO ONE", "SELECT 0", "HGET h f", "XLEN x"]);
    assert_eq!(said, "+OK\r\n+OK\r\n$1\r\nv\r\n:1\r\n+OK\r\n");
}

/// Goal: a primary has a name, and one that nobody knows is told. Method: a name that is none, then a sound primary at
/// `localhost`, of whose addresses it listens at one.
#[test]
fn a_primary_is_found_by_its_name() {
    let ours = Ours::start(&[("repl-timeout", "1000")]);
    ours.say(&["REPLICAOF no..host 6379"]);
    let is_told = || {
        ours.pause();
        let info = ours.say(&["INFO replication"]);
        info.contains("master_link_last_error:the host \"no..host\" is not found")
    };
    let told = (0..500).any(|_| is_told());
    assert!(told, "{}", ours.say(&["INFO replication"]));
    let mut primary = Primary::start();
    ours.say(&[&format!("REPLICAOF localhost {}", primary.port)]);
    primary.say(&sound(&data(), b"", false), 1_000);
    let has_data = || {
        ours.pause();
        ours.say(&["HGET h f"]).starts_with("$1\r\nv\r\n")
    };
    assert!((0..500).any(|_| has_data()), "the data comes");
}
