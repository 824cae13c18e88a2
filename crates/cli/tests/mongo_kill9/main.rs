//! Goal: no write that the document server acknowledged is lost with its process, under any write concern; one that it did not is there
//! whole or not at all, document by document; and counts and indexes tell of the documents that are there.
//! Method: clients write to `drumlin mongo`, each its own documents in a collection of all, collections of its own, and one document of
//! all. The server is killed with SIGKILL at random moments, at times while it recovers, and started again; then all that is there is
//! compared with the replies, walked, counted, validated and looked up by each index. `MONGO_KILLS` says how often, 5 times otherwise;
//! `MONGO_SEED` is where the seeds begin.

mod capped;
mod check;
mod client;
mod documents;
mod session;
mod state;
mod writes;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_fs::net::Address;
use drumlin_testkit::temp_dir;

use client::Client;
use session::Session;

const CLIENTS: i64 = 4;

/// The server and its address.
struct Server {
    child: Child,
    address: Address,
}

impl Server {
    fn spawn(dir: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        command.arg("mongo").arg("--dir").arg(dir.join("data"));
        // So little memory that tables are written and compacted all the time.
        command.args(["--port", "0", "--memory", "8000000"]);
        command.stdout(Stdio::piped()).spawn().expect("a process")
    }

    fn start(dir: &Path) -> Self {
        let mut child = Self::spawn(dir);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = lines.next().expect("a line").expect("text");
        let address = line
            .starts_with("Serving")
            .then(|| line.rsplit(' ').next()?.parse().ok());
        let address = address.flatten().unwrap_or_else(|| panic!("{line}"));
        Self {
            child,
            address: Address::Tcp(address),
        }
    }

    fn kill(mut self) {
        self.child.kill().expect("is killed");
        self.child.wait().expect("ends");
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn a_killed_server_has_all_that_it_acknowledged_and_its_indexes_are_right() {
    let (kills, seed) = (number("MONGO_KILLS", 5), number("MONGO_SEED", 1));
    let clock = Env::system().clock;
    let dir = temp_dir();
    let mut rng = Rng::new(seed);
    println!("seed {seed}");
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| Client::new(number, rng.next_u64()))
        .collect();
    for _ in 0..kills {
        if rng.one_in(4) {
            let mut recovering = Server::spawn(dir.path());
            clock.sleep(Duration::from_millis(rng.below(60)));
            recovering.kill().expect("is killed");
            recovering.wait().expect("ends");
        }
        let server = Server::start(dir.path());
        let mut session = Session::to(&server.address);
        check::all(&mut session, &mut clients, &mut rng);
        drop(session);
        let pause = Duration::from_millis(5 + rng.below(120));
        std::thread::scope(|scope| {
            for client in &mut clients {
                let session = Session::to(&server.address);
                scope.spawn(move || client.write_on(session));
            }
            clock.sleep(pause);
            server.kill();
        });
    }
    let server = Server::start(dir.path());
    check::all(&mut Session::to(&server.address), &mut clients, &mut rng);
    server.kill();
    let sum = |of: fn(&Client) -> u64| clients.iter().map(of).sum::<u64>();
    let (acknowledged, cut) = (sum(|it| it.acknowledged), sum(|it| it.cut_off));
    let half = sum(|it| it.there_unacknowledged);
    println!(
        "{kills} kills, {acknowledged} commands acknowledged, {cut} cut off, of which {half} had done something"
    );
    assert!(acknowledged > kills * 5, "{acknowledged} commands");
}
