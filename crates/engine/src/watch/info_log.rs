//! The information log: lines for people, in the file `LOG` of a directory, as RocksDB's operators look for them.
//!
//! ```text
//! LOG                       what is written now; a header first
//! LOG.old.1790000000000000  what was LOG before, by the microsecond at which it was put aside
//! ```
//!
//! In a directory of logs for several databases the names begin with the database's path: `data_db_LOG`.
//!
//! Invariants: nothing here fails a call of the database. A line that cannot be written is counted, and the count told once
//! lines can be written again, which is tried after a pause. A file has at most its bytes and the line that crossed them;
//! those put aside are so many, and have so many bytes, in all; the oldest go. Only names of this form are ever touched.
//!
//! Any thread may tell; one at a time writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use drumlin_base::calendar::Utc;
use drumlin_base::sync::Mutex;
use drumlin_base::{Error, Result};
use drumlin_fs::{CreateOptions, Env, FileKind, WritableFile};

/// How long nothing is tried after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines told before [`InfoLog::begin`] that are kept.
const WAITING_MAX: usize = 1000;
/// The least size at which a file is put aside.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// The size at which a file is put aside where none was set.
const FILE_BYTES: u64 = 16 << 20;
/// Bytes of all files put aside.
const OLD_BYTES_MAX: u64 = 256 << 20;
/// The most bytes of a line; what is longer is cut.
const LINE_BYTES_MAX: usize = 16 << 10;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What happens when all is well.
    Info = 1,
    /// What an operator may want to change.
    Warn = 2,
    /// What went wrong.
    Error = 3,
}

/// Where the log is, and how much of it.
#[derive(Clone, Debug)]
pub struct InfoLogOptions {
    /// A directory for logs of several databases; `None` for that of the database.
    pub dir: Option<PathBuf>,
    /// Bytes after which a file is put aside, at least 64 KiB; 0 for 16 MiB.
    pub file_bytes_max: u64,
    /// Age after which a file is put aside; 0 for none.
    pub file_age_max: Duration,
    /// Files in all, at least one. Those put aside have 256 MiB at most in any case.
    pub files_max: usize,
}

/// The log of one database, from its opening on.
#[derive(Debug)]
pub struct InfoLog {
    env: Env,
    options: InfoLogOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Nobody knows yet whether the directory is the caller's.
    Waiting {
        lines: Vec<String>,
        lost: u64,
    },
    Open(Writing),
}

/// Where the log is written.
#[derive(Debug)]
struct Writing {
    /// `…/LOG`.
    path: PathBuf,
    /// Lines at the head of each file.
    header: Vec<String>,
    /// `None` after a failure.
    file: Option<Box<dyn WritableFile>>,
    /// When the file was made.
    made: Duration,
    /// Lines that were not written since the last one that was, and why.
    lost: u64,
    trouble: Option<Error>,
    /// When to try again.
    retry_at: Duration,
}

impl InfoLog {
    /// A log that keeps its lines until [`InfoLog::begin`].
    pub fn new(env: Env, options: InfoLogOptions) -> Self {
        let state = State::Waiting {
            lines: Vec::new(),
            lost: 0,
        };
        Self {
            env,
            options,
            state: Mutex::new(state),
        }
    }

    /// Puts an older log of the database in `dir` aside and begins one, with `header` at its head and at that of each file
    /// after it.
    ///
    /// Requires: the database is open in this process, and for writing.
    pub fn begin(&self, dir: &Path, header: Vec<String>) {
        let path = match &self.options.dir {
            Some(logs) => logs.join(name_of(dir)),
            None => dir.join("LOG"),
        };
        let mut writing = Writing {
            path,
            header,
            file: None,
            made: Duration::ZERO,
            lost: 0,
            trouble: None,
            retry_at: Duration::ZERO,
        };
        let mut state = self.state.lock();
        if let State::Waiting { lines, lost } = &mut *state {
            writing.lost = *lost;
            self.write(&mut writing, "");
            for line in lines {
                self.write(&mut writing, line);
            }
        }
        *state = State::Open(writing);
    }

    /// Tells one line.
    pub fn line(&self, level: Level, text: &str) {
        let line = self.stamped(level, text);
        match &mut *self.state.lock() {
            State::Waiting { lines, .. } if lines.len() < WAITING_MAX => lines.push(line),
            State::Waiting { lost, .. } => *lost += 1,
            State::Open(writing) => self.write(writing, &line),
        }
    }

    /// `2026/11/27-12:13:45.123456 4711 [WARN] text`, the second being the process.
    fn stamped(&self, level: Level, text: &str) -> String {
        let now = self.env.clock.unix_time();
        let at = Utc::of(now.as_secs());
        let level = match level {
            Level::Info => "",
            Level::Warn => "[WARN] ",
            Level::Error => "[ERROR] ",
        };
        let text = text.trim_end().replace('\n', "\n  ");
        let text = text.get(..text.floor_char_boundary(LINE_BYTES_MAX));
        format!(
            "{}/{:02}/{:02}-{:02}:{:02}:{:02}.{:06} {} {level}{}\n",
            at.year,
            at.month,
            at.day,
            at.hour,
            at.minute,
            at.second,
            now.subsec_micros(),
            std::process::id(),
            text.unwrap_or_default(),
        )
    }

    /// Writes `line`, or counts it as lost.
    fn write(&self, to: &mut Writing, line: &str) {
        let now = self.env.clock.monotonic();
        if to.file.is_none() && now < to.retry_at {
            to.lost += u64::from(!line.is_empty());
            return;
        }
        if let Err(error) = self.try_write(to, line, now) {
            tracing::warn!(%error, "the information log cannot be written");
            to.lost += u64::from(!line.is_empty());
            to.file = None;
            to.trouble = Some(error);
            to.retry_at = now + PAUSE;
        }
    }

    fn try_write(&self, to: &mut Writing, line: &str, now: Duration) -> Result<()> {
        let bytes_max = match self.options.file_bytes_max {
            0 => FILE_BYTES,
            bytes => bytes.max(FILE_BYTES_MIN),
        };
        let age_max = self.options.file_age_max;
        let is_old = !age_max.is_zero() && now >= to.made.saturating_add(age_max);
        let is_full = to.file.as_ref().is_some_and(|file| file.len() >= bytes_max);
        if to.file.is_none() || is_full || is_old {
            to.file = None;
            to.file = Some(self.next_file(to)?);
            to.made = now;
        }
        let Some(file) = &mut to.file else {
            return Ok(());
        };
        if to.lost > 0 && !drumlin_base::bug!("log-lines-lost-untold") {
            let why = to
                .trouble
                .as_ref()
                .map_or("too many at once".to_owned(), Error::to_string);
            let told = self.stamped(
                Level::Warn,
                &format!("{} lines are missing: {why}", to.lost),
            );
            file.append(told.as_bytes())?;
            (to.lost, to.trouble) = (0, None);
        }
        match line {
            "" => Ok(()),
            line => file.append(line.as_bytes()),
        }
    }

    /// Puts the file that is there aside and makes a new one, with its header.
    fn next_file(&self, to: &Writing) -> Result<Box<dyn WritableFile>> {
        let files = &self.env.files;
        if let Some(dir) = &self.options.dir {
            files.create_dir_all(dir)?;
        }
        if files.exists(&to.path)? {
            let mut micros = self.env.clock.unix_time().as_micros();
            while files.exists(&old_name(&to.path, micros))? {
                micros += 1;
            }
            files.rename(&to.path, &old_name(&to.path, micros))?;
            self.remove_oldest(&to.path)?;
        }
        let mut file = files.create(&to.path, CreateOptions::new(FileKind::Other))?;
        let header = to.header.iter();
        let header: String = header.map(|line| self.stamped(Level::Info, line)).collect();
        file.append(header.as_bytes())?;
        Ok(file)
    }

    /// Removes the oldest of those that were put aside, as long as they are too many, or too large in all.
    fn remove_oldest(&self, path: &Path) -> Result<()> {
        let files = &self.env.files;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let prefix = format!("{}.old.", name.display());
        let mut old = Vec::new();
        for name in files.list(dir)? {
            let micros = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            // Digits alone: other names are of others.
            let is_ours = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(micros) = micros
                .filter(is_ours)
                .and_then(|text| text.parse::<u128>().ok())
            {
                old.push((micros, dir.join(name)));
            }
        }
        old.sort_unstable();
        let (mut count, mut bytes) = (1, 0);
        for (_, path) in old.into_iter().rev() {
            count += 1;
            bytes += files.info(&path).map_or(0, |info| info.size);
            let is_over = count > self.options.files_max.max(1) || bytes > OLD_BYTES_MAX;
            if is_over && !drumlin_base::bug!("old-logs-stay") {
                files.remove(&path)?;
            }
        }
        Ok(())
    }
}

/// `LOG.old.` and the microsecond.
fn old_name(path: &Path, micros: u128) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".old.{micros}"));
    name.into()
}

/// The name of the log of the database in `dir` among those of others: its path, with `_` for what is neither letter,
/// digit, point nor dash.
fn name_of(dir: &Path) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let path = dir.to_string_lossy();
    let path = path.trim_start_matches('/').chars();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let mut name: String = path
        .map(|letter| if plain(letter) { letter } else { '_' })
        .collect();
    name.push_str("_LOG");
    name
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drumlin_fs::{
        Fault, FaultFileSystem, FaultRule, FileSystem, ManualClock, StrictMemFileSystem,
    };

    use super::*;

    const DIR: &str = "/data/db";

    struct Place {
        disk: StrictMemFileSystem,
        clock: Arc<ManualClock>,
        env: Env,
    }

    impl Place {
        fn over(wrap: impl FnOnce(&StrictMemFileSystem) -> Arc<dyn FileSystem>) -> Self {
            let disk = StrictMemFileSystem::new();
            disk.create_dir_all(Path::new(DIR)).unwrap();
            let clock = Arc::new(ManualClock::new(0));
            let mut env = Env::system().with_files(wrap(&disk));
            env.clock = Arc::clone(&clock) as _;
            Self { disk, clock, env }
        }

        fn new() -> Self {
            Self::over(|disk| Arc::new(disk.clone()))
        }

        fn log(&self, options: InfoLogOptions) -> InfoLog {
            InfoLog::new(self.env.clone(), options)
        }

        fn text(&self, path: &str) -> String {
            let path = Path::new(path);
            let file = self.disk.open(path).unwrap();
            let mut bytes = vec![0; file.size() as usize];
            assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
            String::from_utf8(bytes).unwrap()
        }

        fn names(&self, dir: &str) -> Vec<String> {
            let names = self.disk.list(Path::new(dir)).unwrap().into_iter();
            let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
            names.sort();
            names
        }
    }

    fn options() -> InfoLogOptions {
        InfoLogOptions {
            dir: None,
            file_bytes_max: 0,
            file_age_max: Duration::ZERO,
            files_max: 1000,
        }
    }

    #[test]
    fn lines_before_the_opening_wait_and_come_behind_the_header() {
        let place = Place::new();
        let log = place.log(options());
        log.line(Level::Info, "early");
        assert!(place.names(DIR).is_empty());
        log.begin(Path::new(DIR), vec!["Options.ttl: 7".to_owned()]);
        log.line(Level::Warn, "two\nlines\n");
        log.line(Level::Error, &"x".repeat(LINE_BYTES_MAX * 2));
        let text = place.text("/data/db/LOG");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("Options.ttl: 7"), "{text}");
        assert!(lines[1].ends_with("early"), "{text}");
        assert!(
            lines[2].ends_with(" [WARN] two") && lines[3] == "  lines",
            "{text}"
        );
        assert!(lines[4].contains(" [ERROR] xxx"), "{text}");
        assert!(lines[4].len() < LINE_BYTES_MAX + 100);
        assert!(lines[0].starts_with("1970/01/01-00:00:00."), "{text}");
    }

    #[test]
    fn each_opening_puts_the_log_aside_and_the_oldest_go() {
        let place = Place::new();
        for name in ["LOG.old.7x", "LOG.old.", "LOG.old.-3", "LOGS"] {
            let path = Path::new(DIR).join(name);
            let made = place
                .disk
                .create(&path, CreateOptions::new(FileKind::Other));
            made.unwrap().append(b"of others").unwrap();
        }
        for opening in 0..6 {
            place.clock.advance(Duration::from_secs(1));
            let log = place.log(InfoLogOptions {
                files_max: 3,
                ..options()
            });
            log.begin(Path::new(DIR), Vec::new());
            log.line(Level::Info, &format!("opening {opening}"));
        }
        let names = place.names(DIR);
        assert_eq!(names.len(), 4 + 3, "{names:?}");
        let ours = names.iter().filter(|name| name.len() > "LOG.old.-3".len());
        let texts: Vec<_> = ours
            .map(|name| place.text(&format!("{DIR}/{name}")))
            .collect();
        assert!(texts[0].contains("opening 3") && texts[1].contains("opening 4"));
        assert!(place.text("/data/db/LOG").contains("opening 5"));
    }

    #[test]
    fn a_full_file_and_an_old_one_are_put_aside_and_the_next_has_the_header() {
        let place = Place::new();
        let log = place.log(InfoLogOptions {
            file_bytes_max: 1,
            file_age_max: Duration::from_secs(3600),
            ..options()
        });
        log.begin(Path::new(DIR), vec!["header".to_owned()]);
        for _ in 0..9 {
            log.line(Level::Info, &"x".repeat(10_000));
        }
        assert_eq!(place.names(DIR).len(), 2, "at 64 KiB");
        place.clock.advance(Duration::from_secs(3600));
        log.line(Level::Info, "later");
        assert_eq!(place.names(DIR).len(), 3, "after an hour");
        let text = place.text("/data/db/LOG");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().next().unwrap().ends_with("header"), "{text}");
    }

    #[test]
    fn in_a_directory_of_logs_a_database_is_told_by_its_path() {
        let place = Place::new();
        let log = place.log(InfoLogOptions {
            dir: Some("/logs".into()),
            ..options()
        });
        log.begin(Path::new(DIR), Vec::new());
        assert_eq!(place.names("/logs"), ["data_db_LOG"]);
        assert!(place.names(DIR).is_empty());
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_told_when_it_can() {
        for index in 0..6 {
            let mut faults = None;
            let place = Place::over(|disk| {
                let files = FaultFileSystem::over_memory(disk);
                faults = Some(files.clone());
                Arc::new(files)
            });
            let faults = faults.unwrap();
            let old = place.log(options());
            old.begin(Path::new(DIR), Vec::new());
            old.line(Level::Info, "old");
            faults.add_rule(FaultRule::from(index, Fault::NoSpace));
            let log = place.log(options());
            log.begin(Path::new(DIR), vec!["header".to_owned()]);
            log.line(Level::Info, "one");
            log.line(Level::Info, "two");
            log.line(Level::Info, "three");
            assert!(faults.injected() > 0, "operation {index}");
            faults.clear_rules();
            log.line(Level::Info, "too early");
            place.clock.advance(PAUSE);
            log.line(Level::Info, "four");
            let text = place.text("/data/db/LOG");
            assert!(text.contains("lines are missing: "), "{index}: {text}");
            assert!(
                text.ends_with("four\n") && !text.contains("early"),
                "{index}: {text}"
            );
            let told = ["one", "two", "three"].map(|line| u64::from(text.contains(line)));
            let missing = 4 - told.iter().sum::<u64>();
            let olds = place.names(DIR).into_iter().filter(|name| name != "LOG");
            let olds: Vec<_> = olds
                .map(|name| place.text(&format!("{DIR}/{name}")))
                .collect();
            let told = olds
                .iter()
                .flat_map(|text| ["one", "two", "three"].map(|line| text.contains(line)));
            let missing = missing - told.filter(|told| *told).count() as u64;
            assert!(
                text.contains(&format!("] {missing} lines are missing")),
                "{index}: {text} {olds:?}"
            );
            assert!(
                olds.iter().any(|text| text.contains("old")),
                "{index}: nothing is lost"
            );
        }
    }
}
