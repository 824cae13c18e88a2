//! Commands that need blocks from the disk, run beside the loop.
//!
//! Those of many clients come to a thread together. Their records are read in one batch, so that the disk works on all of
//! them at once; then each command runs, and what it changed is taken back: it was run for what it reads, which is in
//! memory after that. A single command that only reads is answered from here, as of a moment between its arrival and its
//! reply.

use drumlin_fs::Clock;
use drumlin_redis_store::{Failure, Keyspace, LookUps, ReadFrom, Store};
use drumlin_resp::{Protocol, ReplyWriter};

use crate::facts::Flags;
use crate::limits::Limits;
use crate::prefetch::looks_up_first;
use crate::round::{Round, Stage, run};
use crate::session::{Kept, Session};
use crate::table::Table;

/// Commands of a client that need blocks from the disk.
#[derive(Debug)]
pub(crate) struct ColdJob {
    pub(crate) client: u64,
    pub(crate) kept: Vec<Kept>,
    pub(crate) db: u16,
    pub(crate) protocol: Protocol,
    pub(crate) limits: Limits,
    pub(crate) clock_ms: u64,
    /// Parts of an EXEC or of a script: it is run again whole.
    pub(crate) is_part: bool,
}

/// A command that was answered beside the loop.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Vec<u8>,
    pub(crate) kept: Kept,
    pub(crate) looked_up: LookUps,
    pub(crate) micros: u64,
    /// The error that the reply is.
    pub(crate) error: Option<String>,
}

/// The client of a job; the answer to its command, or `None` where it may run again.
pub(crate) type ColdDone = (u64, Option<Answer>);

/// What cold commands are run with.
#[derive(Clone, Copy)]
pub(crate) struct ColdStage<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) store: &'a Store,
    pub(crate) table: &'a Table,
}

impl ColdStage<'_> {
    /// Runs the commands of `jobs`, of which none sees what another one changes.
    pub(crate) fn run(&self, jobs: Vec<ColdJob>) -> Vec<ColdDone> {
        // Their own times are of moments ago: the latest is between the arrival and the reply of each.
        let clock_ms = jobs.iter().map(|job| job.clock_ms).max().unwrap_or(0);
        let mut round = Round::new(self.store, clock_ms);
        self.read_ahead(&jobs, &mut round);
        let run = |job| self.run_one(job, &mut round);
        jobs.into_iter().map(run).collect()
    }

    /// Reads the records that the commands look up first.
    fn read_ahead(&self, jobs: &[ColdJob], round: &mut Round) {
        let mut keys = Vec::with_capacity(jobs.len());
        for job in jobs {
            let looks_up = job.kept.iter().filter(|kept| looks_up_first(&kept.facts));
            keys.extend(looks_up.filter_map(|kept| Some((job.db, kept.args.args().get(1)?))));
        }
        // One alone gains nothing.
        if keys.len() > 1 {
            let (view, overlay, now_ms) = (&round.view, &mut round.overlay, round.now_ms);
            Keyspace::new(self.store, view, overlay, 0, now_ms, ReadFrom::Disk).read_ahead(&keys);
        }
    }

    fn run_one(&self, job: ColdJob, round: &mut Round) -> ColdDone {
        let began = self.clock.monotonic();
        let mark = round.overlay.mark();
        let mut error = None;
        let mut session = Session {
            db: job.db,
            protocol: job.protocol,
            is_authenticated: true,
            ..Session::default()
        };
        let mut reply = ReplyWriter::new(job.protocol);
        for kept in &job.kept {
            let stage = Stage {
                store: self.store,
                from: ReadFrom::Disk,
                limits: job.limits,
                may_wait: false,
                counts: kept.facts.counts_lookups(),
                may_write: false,
                woken_by: None,
                server: None,
            };
            let (handler, args) = (self.table.get(&kept.facts).handler, kept.args.args());
            let outcome = run(handler, args, &mut session, &mut reply, round, stage);
            if let Err(failure) = outcome {
                debug_assert!(!matches!(failure, Failure::Cold), "it may read");
                let text = failure.to_string();
                reply.error(text.as_bytes());
                error = Some(text);
            }
        }
        if !drumlin_base::bug!("redis-cold-changes-stay") {
            round.overlay.undo(mark);
        }
        let took = self.clock.monotonic().saturating_sub(began);
        let mut kept = job.kept.into_iter().filter(only_reads);
        let kept = kept.next().filter(|_| !job.is_part);
        let looked_up = std::mem::take(&mut round.looked_up);
        let answer = kept.map(|kept| Answer {
            reply: reply.take(),
            kept,
            looked_up,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            error,
        });
        (job.client, answer)
    }
}

fn only_reads(kept: &Kept) -> bool {
    let flags = kept.facts.flags;
    flags.has(Flags::READONLY) && !flags.has(Flags::BLOCKING) && !flags.may_write()
        || drumlin_base::bug!("redis-write-answered-beside")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use drumlin::{Env, Options};
    use drumlin_fs::StrictMemFileSystem;
    use drumlin_redis_store::StoreOptions;
    use drumlin_redis_store::types::stream::NodeLimits;

    use super::*;

    fn job(table: &Table, client: u64, commands: &[&str]) -> ColdJob {
        let keep = |command: &&str| {
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            let found = table.find(words[0]).expect("a command");
            Kept {
                facts: found.facts,
                args: words.into_iter().collect(),
            }
        };
        ColdJob {
            client,
            kept: commands.iter().map(keep).collect(),
            db: 0,
            protocol: Protocol::default(),
            limits: Limits {
                string_bytes_max: 1 << 20,
                hll_sparse_bytes_max: 3_000,
                stream_nodes: NodeLimits::default(),
            },
            clock_ms: 1_000_000,
            is_part: commands.len() > 1,
        }
    }

    /// Goal: clients whose commands run in one batch see nothing of each other, and whoever changes something runs it again
    /// on the loop. Method: commands that change a key between others that read it, in one batch.
    #[test]
    fn clients_of_a_batch_see_nothing_of_each_other() {
        let files = Arc::new(StrictMemFileSystem::new());
        let engine = Options {
            env: Env::system().with_files(files),
            background_threads: Some(0),
            ..Options::default()
        };
        let store = Store::open(Path::new("/redis"), StoreOptions { engine }).expect("opens");
        let table = Table::new(&[]).expect("a table");
        let clock = Env::system().clock;
        let stage = ColdStage {
            clock: &*clock,
            store: &store,
            table: &table,
        };
        let done = stage.run(vec![
            job(&table, 1, &["set a 1"]),
            job(&table, 2, &["get a"]),
            job(&table, 3, &["incr a", "rpush l x y", "get a"]),
            job(&table, 4, &["llen l"]),
            job(&table, 5, &["incrby l 1"]),
            job(&table, 6, &["exists a"]),
        ]);
        let looked_up = |answer: &Answer| (answer.looked_up.found, answer.looked_up.missed);
        let counts = done
            .iter()
            .filter_map(|(_, answer)| answer.as_ref().map(looked_up));
        assert_eq!(counts.collect::<Vec<_>>(), [(0, 1); 3]);
        let replies = done.into_iter().map(|(client, answer)| {
            let reply = answer.map(|answer| String::from_utf8(answer.reply).expect("a text"));
            (client, reply)
        });
        let read = |reply: &str| Some(reply.to_owned());
        assert_eq!(
            replies.collect::<Vec<_>>(),
            [
                (1, None),
                (2, read("$-1\r\n")),
                (3, None),
                (4, read(":0\r\n")),
                (5, None),
                (6, read(":0\r\n")),
            ]
        );
    }
}
