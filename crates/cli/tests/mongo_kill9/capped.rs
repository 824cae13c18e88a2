//! Goal: a capped collection of a killed server is within its bounds, in the order of its insertion, and has the newest of what was
//! acknowledged. Method: clients insert numbered documents, one or a few at a time, each in its order, into one collection.

use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, Kind};
use drumlin_fs::Env;
use drumlin_testkit::temp_dir;

use crate::session::{Session, whole};
use crate::{CLIENTS, Server, number};

const DATABASE: &str = "d";
const DOCUMENTS_MAX: i64 = 40;
const SIZE_BYTES: i64 = 8192;

/// One that inserts.
struct Writer {
    number: i64,
    rng: Rng,
    /// How many of its documents it has sent, and how many of them were acknowledged.
    sent: i64,
    acknowledged: i64,
}

impl Writer {
    /// Inserts until the server is gone.
    fn write_on(&mut self, mut session: Session) {
        loop {
            let mut insert = Builder::new();
            insert.str("insert", "log").open(Kind::Array, "documents");
            let count = 1 + i64::try_from(self.rng.below(4)).expect("few");
            for at in 0..count {
                let text = "x".repeat(self.rng.below(400) as usize);
                insert
                    .open(Kind::Document, at.to_string())
                    .i64("n", self.sent + at)
                    .i64("w", self.number)
                    .str("text", &text)
                    .close();
            }
            insert.close();
            self.sent += count;
            let Some(reply) = session.ask(DATABASE, insert) else {
                return;
            };
            assert_eq!(whole(&reply, "n"), Some(count));
            self.acknowledged = self.sent;
        }
    }
}

fn check(session: &mut Session, writers: &mut [Writer]) {
    let mut validate = Builder::new();
    validate.str("validate", "log");
    let reply = session.done(DATABASE, validate);
    let said = drumlin_doc::show(Document(&reply).as_value());
    let is_valid = Document(&reply).get("valid").and_then(|it| it.as_bool());
    assert_eq!(is_valid, Some(true), "{said}");
    let mut find = Builder::new();
    find.str("find", "log").i32("batchSize", 1_000_000);
    let found = session.batch(DATABASE, find);
    let bytes: usize = found.iter().map(Vec::len).sum();
    assert!(found.len() as i64 <= DOCUMENTS_MAX && bytes as i64 <= SIZE_BYTES);
    let mut count = Builder::new();
    count.str("count", "log");
    let counted = whole(&session.done(DATABASE, count), "n");
    assert_eq!(counted, Some(found.len() as i64));
    let mut is_newest_there = writers.iter().all(|it| it.acknowledged == 0);
    for writer in writers {
        let own = found
            .iter()
            .filter(|it| whole(it, "w") == Some(writer.number));
        let own: Vec<i64> = own.map(|it| whole(it, "n").expect("a number")).collect();
        let pairs = own.windows(2);
        assert!(
            pairs.clone().all(|pair| pair[0] + 1 == pair[1]),
            "client {}: {own:?} are not in their order, or some are missing",
            writer.number
        );
        // What was sent last may be there in part. None of its own is there where others were faster since.
        if let Some(last) = own.last() {
            assert!((writer.acknowledged - 1..writer.sent).contains(last));
            is_newest_there = true;
            writer.sent = last + 1;
        } else {
            writer.sent = writer.acknowledged;
        }
        writer.acknowledged = writer.sent;
    }
    assert!(is_newest_there, "the newest of all is there");
}

#[test]
fn a_killed_server_has_the_newest_of_a_capped_collection() {
    let (kills, seed) = (number("MONGO_KILLS", 5), number("MONGO_SEED", 1));
    let clock = Env::system().clock;
    let dir = temp_dir();
    let mut rng = Rng::new(seed);
    println!("seed {seed}");
    let writer = |number| Writer {
        number,
        rng: Rng::new(seed << 8 | number as u64),
        sent: 0,
        acknowledged: 0,
    };
    let mut writers: Vec<Writer> = (0..CLIENTS).map(writer).collect();
    let server = Server::start(dir.path());
    let mut create = Builder::new();
    create
        .str("create", "log")
        .bool("capped", true)
        .i64("size", SIZE_BYTES)
        .i64("max", DOCUMENTS_MAX);
    Session::to(&server.address).done(DATABASE, create);
    server.kill();
    for _ in 0..kills {
        let server = Server::start(dir.path());
        check(&mut Session::to(&server.address), &mut writers);
        let pause = Duration::from_millis(5 + rng.below(120));
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let session = Session::to(&server.address);
                scope.spawn(move || writer.write_on(session));
            }
            clock.sleep(pause);
            server.kill();
        });
    }
    let server = Server::start(dir.path());
    check(&mut Session::to(&server.address), &mut writers);
    server.kill();
    let sent: i64 = writers.iter().map(|it| it.sent).sum();
    assert!(sent > DOCUMENTS_MAX, "{sent} documents");
}
