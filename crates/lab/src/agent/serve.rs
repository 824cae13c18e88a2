//! Answers requests until told to close.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_bench::datasets::RecordIndex;
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use super::source::{Loaded, Numbers, SEGMENT_RECORDS, Source};
use super::step::Bench;
use crate::protocol::{Answer, Request, Second, decode, encode};
use crate::records::RecordReader;

/// Answers the requests on `input` with a store of type `S` until it is told to close, or `input`
/// ends. `adjust` changes the flags as this engine wants them.
///
/// # Errors
/// The first error of the store, after `Failed` was answered; `Io` when nobody listens any more.
pub fn serve<S: Store>(
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    env: &Env,
    adjust: &dyn Fn(&mut Flags),
) -> Result<()> {
    let mut agent = Agent::<S> { env, opened: None };
    let mut line = String::new();
    loop {
        line.clear();
        let read = input.read_line(&mut line).map_err(lost)?;
        if read == 0 {
            return agent.close();
        }
        let Some(request) = decode::<Request>(&line) else {
            let message =
                "a request is not understood: is this program as old as the laboratory's?";
            let message = message.to_owned();
            say(output, &Answer::Failed { message })?;
            return Err(Error::invalid_argument("a request is not understood"));
        };
        let is_last = request == Request::Close;
        let answer = agent.answer(request, output, adjust);
        let failed = match answer {
            Ok(answer) => {
                say(output, &answer)?;
                None
            }
            Err(error) => {
                say(
                    output,
                    &Answer::Failed {
                        message: error.to_string(),
                    },
                )?;
                Some(error)
            }
        };
        if is_last || failed.is_some() {
            return failed.map_or(Ok(()), Err);
        }
    }
}

fn lost(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the laboratory is gone: {error}"))
}

fn say(output: &mut dyn Write, answer: &Answer) -> Result<()> {
    output
        .write_all(encode(answer).as_bytes())
        .and_then(|()| output.flush())
        .map_err(lost)
}

/// An open store and its content.
struct Opened<S> {
    store: S,
    flags: Flags,
    source: Source,
    loaded: AtomicU64,
    records: Option<Mutex<RecordReader>>,
}

struct Agent<'e, S> {
    env: &'e Env,
    opened: Option<Opened<S>>,
}

impl<S: Store> Agent<'_, S> {
    fn answer(
        &mut self,
        request: Request,
        output: &mut dyn Write,
        adjust: &dyn Fn(&mut Flags),
    ) -> Result<Answer> {
        match request {
            Request::Open { flags, is_fresh } => {
                self.close()?;
                let mut flags = Flags::parse(&flags)?;
                adjust(&mut flags);
                self.open(flags, is_fresh)?;
                Ok(Answer::Ready {
                    version: squeeze(&S::version()),
                })
            }
            Request::Records {
                path,
                count,
                is_loaded,
            } => {
                let opened = self.opened()?;
                let path = PathBuf::from(path);
                let records = Loaded::new(count);
                let loaded = match is_loaded {
                    true => read_all(&path, &records)?,
                    false => 0,
                };
                opened.loaded = AtomicU64::new(loaded);
                opened.source = Source::Records(records);
                opened.records = Some(Mutex::new(RecordReader::open(&path, &Env::system())?));
                Ok(Answer::Done(crate::protocol::Done::default()))
            }
            Request::Step(step) => {
                let env = self.env;
                let opened = self.opened()?;
                let bench = Bench {
                    store: &opened.store,
                    flags: &opened.flags,
                    env,
                    source: &opened.source,
                    loaded: &opened.loaded,
                    records: opened.records.as_ref(),
                };
                let mut told = Ok(());
                let mut tell = |second: Second| {
                    if told.is_ok() {
                        told = say(output, &Answer::Second(second));
                    }
                };
                let done = bench.carry_out(&step, &mut tell)?;
                told?;
                Ok(Answer::Done(done))
            }
            Request::Close => {
                self.close()?;
                Ok(Answer::Done(crate::protocol::Done::default()))
            }
        }
    }

    fn open(&mut self, flags: Flags, is_fresh: bool) -> Result<()> {
        if is_fresh {
            S::destroy(&flags, self.env)?;
        }
        for dir in [&flags.db, &flags.wal_dir]
            .into_iter()
            .filter(|dir| !dir.is_empty())
        {
            self.env.files.create_dir_all(Path::new(dir))?;
        }
        let numbers = Numbers::new(&flags);
        let loaded = if is_fresh { 0 } else { numbers.len() };
        self.opened = Some(Opened {
            store: S::open(&flags, self.env)?,
            flags,
            source: Source::Numbers(numbers),
            loaded: AtomicU64::new(loaded),
            records: None,
        });
        Ok(())
    }

    fn opened(&mut self) -> Result<&mut Opened<S>> {
        let closed = || Error::invalid_argument("the store is not open");
        self.opened.as_mut().ok_or_else(closed)
    }

    fn close(&mut self) -> Result<()> {
        self.opened
            .take()
            .map_or(Ok(()), |opened| opened.store.close())
    }
}

/// Hands all records of the file at `path` to `records`, and returns their number.
fn read_all(path: &Path, records: &Loaded) -> Result<u64> {
    let mut reader = RecordReader::open(path, &Env::system())?;
    let mut loaded = 0;
    loop {
        let mut segment = RecordIndex::default();
        while segment.len() < SEGMENT_RECORDS {
            let Some((key, value)) = reader.next_record()? else {
                break;
            };
            segment.push(key, value);
        }
        let count = segment.len();
        if count == 0 {
            return Ok(loaded);
        }
        if !records.publish(loaded, segment) {
            return Err(Error::corruption("more records than were announced"));
        }
        loaded += count as u64;
    }
}

/// `text` with single blanks.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    //! Goal: the agent carries out requests and detects wrong values. Method: this engine's own store,
    //! requests as text.

    use drumlin_bench::DrumlinStore;
    use drumlin_bench::datasets::RandomSet;

    use super::*;
    use crate::protocol::{Act, Role, Step};
    use crate::records::write_records;

    fn role(act: Act, threads: usize, operations: u64) -> Role {
        Role {
            operations,
            ..Role::new(act, threads)
        }
    }

    fn step(roles: Vec<Role>) -> Request {
        Request::Step(Step {
            roles,
            settles: true,
            ..Step::default()
        })
    }

    fn ask(requests: &[Request]) -> (Vec<Answer>, Result<()>) {
        let text: String = requests.iter().map(encode).collect();
        let mut input = text.as_bytes();
        let mut output = Vec::new();
        let env = Env::system();
        let result = serve::<DrumlinStore>(&mut input, &mut output, &env, &|_| {});
        let text = String::from_utf8(output).expect("JSON is text");
        (text.lines().filter_map(decode).collect(), result)
    }

    fn done<'a>(answers: &'a [Answer]) -> Vec<&'a crate::protocol::Done> {
        let pick = |answer: &'a Answer| match answer {
            Answer::Done(done) => Some(done),
            _ => None,
        };
        answers.iter().filter_map(pick).collect()
    }

    #[test]
    fn numbered_keys_are_written_and_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let flags = vec![
            format!("--db={}", dir.path().display()),
            "--num=2000".to_owned(),
            "--seed=1".to_owned(),
        ];
        let open = Request::Open {
            flags,
            is_fresh: true,
        };
        let (answers, result) = ask(&[
            open,
            step(vec![role(Act::PutUnique, 1, 2000)]),
            step(vec![
                role(Act::GetUniform, 2, 500),
                role(Act::MultiGet(10), 1, 300),
                role(Act::Seek(5), 1, 100),
            ]),
            step(vec![role(Act::GetZipfian, 1, 500)]),
            step(vec![role(Act::Forward, 1, 0)]),
            step(vec![role(Act::Backward, 1, 0)]),
            step(vec![role(Act::Compact, 1, 1)]),
            Request::Close,
        ]);
        result.expect("sound");
        assert!(
            matches!(answers.first(), Some(Answer::Ready { version }) if version.starts_with("Drumlin"))
        );
        let done = done(&answers);
        let operations: Vec<Vec<u64>> = done
            .iter()
            .map(|done| done.roles.iter().map(|role| role.operations).collect())
            .collect();
        let expected: [&[u64]; 7] = [
            &[2000],
            &[1000, 300, 100],
            &[500],
            &[2000],
            &[2000],
            &[1],
            &[],
        ];
        assert_eq!(operations, expected);
        assert!(done[0].roles[0].written_bytes == 2000 * 116 && done[0].store.disk_bytes > 0);
        assert!(
            done.iter()
                .all(|done| done.roles.iter().all(|role| role.missing == 0))
        );
    }

    #[test]
    fn records_of_a_file_are_loaded_beside_readers_and_found_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("records");
        write_records(&RandomSet::new(9000, 50, 3), &path, &Env::system()).expect("written");
        let flags = vec![format!("--db={}/db", dir.path().display())];
        let path = path.display().to_string();
        let mut load = role(Act::LoadRecords, 1, 0);
        load.leads = true;
        let (answers, result) = ask(&[
            Request::Open {
                flags: flags.clone(),
                is_fresh: true,
            },
            Request::Records {
                path: path.clone(),
                count: 9000,
                is_loaded: false,
            },
            step(vec![load, role(Act::GetUniform, 2, 0)]),
            Request::Open {
                flags: flags.clone(),
                is_fresh: false,
            },
            Request::Records {
                path: path.clone(),
                count: 9000,
                is_loaded: true,
            },
            step(vec![role(Act::GetUniform, 1, 3000)]),
        ]);
        result.expect("sound");
        let steps: Vec<_> = done(&answers)
            .into_iter()
            .filter(|done| !done.roles.is_empty())
            .collect();
        assert_eq!(
            (steps[0].roles[0].operations, steps[1].roles[0].found),
            (9000, 3000)
        );
        assert!(steps[1].harness_bytes > 9000 * 36);

        // A store that lost everything is found out.
        let (answers, result) = ask(&[
            Request::Open {
                flags,
                is_fresh: true,
            },
            Request::Records {
                path,
                count: 9000,
                is_loaded: true,
            },
            step(vec![role(Act::GetUniform, 1, 10)]),
        ]);
        assert!(result.is_err());
        assert!(
            matches!(answers.last(), Some(Answer::Failed { message }) if message.contains("is not there")),
            "{answers:?}"
        );
    }
}
