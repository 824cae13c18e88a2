//! doctor: what is odd about a directory, the most dangerous first. Nothing in it is opened for writing, or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use drumlin::internals::names::{self, FileName};
use drumlin::internals::record::{Later, RecordReader, Verdict};
use drumlin::{Db, LiveFileKind};
use drumlin_base::ErrorKind;
use drumlin_fs::Env;
use serde_json::json;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::inspect::{log_number, logs};
use crate::manifest::{self, Tree};
use crate::output::Output;
use crate::units;

/// Less free space than this share of the tables: a compaction of everything may not fit.
const FREE_SHARE: u64 = 10;
/// As many tables in L0 slow every read.
const LEVEL0_TABLES: u64 = 20;
/// Names that are listed of one kind; the rest is counted.
const NAMES_TOLD: usize = 5;

/// How bad a finding is. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Danger {
    /// Data is missing or damaged, or will not be readable.
    Data,
    /// It works, but not well, or not for long.
    Trouble,
    /// Worth knowing.
    Note,
}

impl Danger {
    fn word(self) -> &'static str {
        match self {
            Self::Data => "danger",
            Self::Trouble => "trouble",
            Self::Note => "note",
        }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings {
    found: Vec<(Danger, String, &'static str)>,
}

impl Findings {
    fn add(&mut self, danger: Danger, what: impl Into<String>, advice: &'static str) {
        self.found.push((danger, what.into(), advice));
    }

    /// A finding about `files`, if there are any.
    fn add_files(&mut self, danger: Danger, what: &str, files: &[String], advice: &'static str) {
        if files.is_empty() {
            return;
        }
        let told: Vec<&str> = files.iter().take(NAMES_TOLD).map(String::as_str).collect();
        let more = match files.len() - told.len() {
            0 => String::new(),
            more => format!(" and {} more", units::count(more as u64)),
        };
        self.add(danger, format!("{what}: {}{more}", told.join(", ")), advice);
    }
}

/// Prints the findings; a failure where data is in danger.
pub(crate) fn doctor(place: &Place, out: &mut Output) -> Outcome {
    let (env, dir) = (Env::system(), place.dir()?);
    let names = env
        .files
        .list(dir)
        .map_err(|error| match error.is_not_found() {
            true => Failure::NoDatabase(dir.to_path_buf()),
            false => Failure::Engine(error),
        })?;
    let is_ours =
        |name: &PathBuf| FileName::parse(name).is_some_and(FileName::is_evidence_of_a_database);
    if !names.iter().any(is_ours) {
        return Err(Failure::NoDatabase(dir.to_path_buf()));
    }
    let mut findings = Findings::default();
    look_at_names(&names, &mut findings);
    let tree = look_at_manifest(&env, dir, &mut findings);
    if let Some(tree) = &tree {
        look_at_tables(&env, dir, tree, &names, &mut findings);
    }
    look_at_logs(&env, place.wal_dir.as_deref().unwrap_or(dir), &mut findings);
    look_inside(place, &env, dir, &names, &mut findings);
    look_at_lock(&env, dir, &mut findings);
    tell(findings, out)
}

fn tell(mut findings: Findings, out: &mut Output) -> Outcome {
    findings.found.sort_by_key(|(danger, _, _)| *danger);
    for (danger, what, advice) in &findings.found {
        let text = match advice.is_empty() {
            true => format!("{}: {what}", danger.word()),
            false => format!("{}: {what}\n  what to do: {advice}", danger.word()),
        };
        out.fact(
            text,
            json!({"danger": danger.word(), "finding": what, "advice": advice}),
        )?;
    }
    let dangers = findings
        .found
        .iter()
        .filter(|(danger, _, _)| *danger == Danger::Data)
        .count();
    match (dangers, findings.found.len()) {
        (0, 0) => out.remark_of_text("nothing is odd; `drumlin verify` reads the data itself"),
        (0, _) => out.remark_of_text("no data is in danger; `drumlin verify` reads it all"),
        (dangers, _) => {
            out.flush()?;
            Err(Failure::Check(format!(
                "{dangers} findings put data in danger"
            )))
        }
    }
}

fn text(name: &Path) -> String {
    name.to_string_lossy().into_owned()
}

/// What names alone tell.
fn look_at_names(names: &[PathBuf], findings: &mut Findings) {
    let of = |is_it: &dyn Fn(Option<FileName>, &str) -> bool| -> Vec<String> {
        let names = names.iter().map(|name| (FileName::parse(name), text(name)));
        names
            .filter(|(kind, name)| is_it(*kind, name))
            .map(|(_, name)| name)
            .collect()
    };
    findings.add_files(
        Danger::Data,
        "a backup was being restored here, and was not finished",
        &of(&|kind, _| kind == Some(FileName::Restoring)),
        "run `drumlin restore` again",
    );
    findings.add_files(
        Danger::Data,
        "a repair or a recovery has put data aside that it could not use",
        &of(&|_, name| name == "lost" || name.ends_with(".quarantine")),
        "look at it, or restore a backup; it is not part of the database any more",
    );
    findings.add_files(
        Danger::Note,
        "files that were being removed are left",
        &of(&|kind, _| matches!(kind, Some(FileName::Trash(_) | FileName::Temp(_)))),
        "the next open for writing removes them",
    );
    findings.add_files(
        Danger::Note,
        "files that are not the database's, which it never touches",
        &of(&|kind, name| kind.is_none() && name != "lost" && !name.ends_with(".quarantine")),
        "",
    );
}

/// The tree that the MANIFEST describes, where it can be read.
fn look_at_manifest(env: &Env, dir: &Path, findings: &mut Findings) -> Option<Tree> {
    let advice = "copy the directory, then run `drumlin repair`, or restore a backup";
    let path = match manifest::current(env, dir) {
        Ok(path) => path,
        Err(failure) => {
            let what = format!(
                "CURRENT does not name the MANIFEST: {}",
                first_line(&failure)
            );
            findings.add(Danger::Data, what, advice);
            return None;
        }
    };
    let mut tree = Tree::default();
    let read = manifest::each_edit(env, &path, |_, edit| {
        tree.apply(&edit);
        Ok(())
    });
    match read {
        Ok(Verdict::Clean) => Some(tree),
        Ok(Verdict::Torn { offset, .. }) => {
            let what = format!(
                "{} ends in the middle of an edit at {offset}, as after a crash",
                path.display()
            );
            findings.add(Danger::Note, what, "the next open goes on without it");
            Some(tree)
        }
        Ok(Verdict::Corrupt { offset, reason, .. }) => {
            let what = format!("{} is damaged at {offset}: {reason}", path.display());
            findings.add(Danger::Data, what, advice);
            None
        }
        Err(failure) => {
            let what = format!(
                "{} cannot be read: {}",
                path.display(),
                first_line(&failure)
            );
            findings.add(Danger::Data, what, advice);
            None
        }
    }
}

fn first_line(failure: &Failure) -> String {
    failure
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The tables that the MANIFEST names, beside those in the folder.
fn look_at_tables(env: &Env, dir: &Path, tree: &Tree, names: &[PathBuf], findings: &mut Findings) {
    let mut there: BTreeMap<u64, &PathBuf> = BTreeMap::new();
    for name in names {
        if let Some(FileName::Table(number)) = FileName::parse(name) {
            there.insert(number, name);
        }
    }
    let (mut missing, mut resized) = (Vec::new(), Vec::new());
    let mut named = BTreeSet::new();
    for family in tree.families.values() {
        for file in family.levels.values().flat_map(BTreeMap::values) {
            named.insert(file.number);
            let Some(name) = there.get(&file.number) else {
                missing.push(format!("table {} of family '{}'", file.number, family.name));
                continue;
            };
            match env.files.info(&dir.join(name)) {
                Ok(info) if info.size != file.size => {
                    resized.push(format!(
                        "{} has {} bytes, not {}",
                        text(name),
                        info.size,
                        file.size
                    ));
                }
                Ok(_) => {}
                Err(error) => resized.push(format!("{}: {error}", text(name))),
            }
        }
        let level0 = family.levels.get(&0).map_or(0, |files| files.len() as u64);
        if level0 >= LEVEL0_TABLES {
            let what = format!(
                "family '{}' has {level0} tables in L0, and a read may look into each",
                family.name
            );
            findings.add(
                Danger::Trouble,
                what,
                "open it for writing and wait, or run `drumlin compact`",
            );
        }
    }
    let advice = "restore a backup; `drumlin repair` saves what is left, without them";
    findings.add_files(Danger::Data, "tables are missing", &missing, advice);
    findings.add_files(Danger::Data, "tables were changed", &resized, advice);
    let unnamed: Vec<String> = there
        .iter()
        .filter(|(number, _)| !named.contains(*number))
        .map(|(_, name)| text(name))
        .collect();
    let advice = "the next open for writing removes them, where no process has it open now";
    findings.add_files(
        Danger::Note,
        "tables that the MANIFEST does not name",
        &unnamed,
        advice,
    );
}

/// The ends of the logs.
fn look_at_logs(env: &Env, dir: &Path, findings: &mut Findings) {
    let Ok(logs) = logs(env, dir) else { return };
    let last = logs.last().cloned();
    for path in logs {
        let verdict = env.files.open(&path).and_then(|file| {
            let mut reader = RecordReader::new(file, log_number(&path));
            while reader.read()?.is_some() {}
            reader.judge(Later::Marks)
        });
        let shown = path.display();
        match verdict {
            Ok(Verdict::Clean) => {}
            Ok(Verdict::Torn {
                offset,
                dropped_bytes,
                ..
            }) if Some(&path) == last.as_ref() => {
                let what = format!(
                    "{shown} ends in the middle of a record at {offset}, as after a crash; {dropped_bytes} bytes were \
                     never acknowledged as durable"
                );
                findings.add(Danger::Note, what, "the next open goes on without them");
            }
            Ok(Verdict::Torn { offset, .. }) => {
                let what = format!(
                    "{shown}, which is not the last log, ends in the middle of a record at {offset}"
                );
                findings.add(
                    Danger::Trouble,
                    what,
                    "`drumlin dump-wal` shows it; the next open decides what it means",
                );
            }
            Ok(Verdict::Corrupt { offset, reason, .. }) => {
                let advice = "writes behind it are lost unless a backup has them; see `point_in_time_recovery`";
                findings.add(
                    Danger::Data,
                    format!("{shown} is damaged at {offset}: {reason}"),
                    advice,
                );
            }
            Err(error) => {
                findings.add(Danger::Data, format!("{shown} cannot be read: {error}"), "")
            }
        }
    }
}

/// What an open for reading shows: that it is possible, blob files and models, space.
fn look_inside(place: &Place, env: &Env, dir: &Path, names: &[PathBuf], findings: &mut Findings) {
    let db = match Db::open_read_only(dir, place.options()) {
        Ok(db) => db,
        Err(error) => {
            let advice = match error.kind() {
                ErrorKind::NotSupported => "open it with the program that wrote it",
                _ => {
                    "what is named above comes first; then restore a backup, or copy the directory and run `drumlin repair`"
                }
            };
            findings.add(Danger::Data, format!("it does not open: {error}"), advice);
            return;
        }
    };
    let Ok(live) = db.live_files() else { return };
    let mut missing = Vec::new();
    let mut live_blobs = BTreeSet::new();
    for file in live
        .iter()
        .filter(|file| matches!(file.kind, LiveFileKind::Blob | LiveFileKind::Model))
    {
        live_blobs.insert(file.path.clone());
        match env.files.info(&file.path) {
            Ok(info) if file.bytes.is_some_and(|bytes| bytes != info.size) => {
                missing.push(format!("{} has {} bytes", file.path.display(), info.size));
            }
            Ok(_) => {}
            Err(error) => missing.push(error.to_string()),
        }
    }
    let advice = "restore a backup; the values in them are lost otherwise";
    findings.add_files(
        Danger::Data,
        "blob files or models are missing or were changed",
        &missing,
        advice,
    );
    let is_spare = |name: &&PathBuf| {
        matches!(
            FileName::parse(name),
            Some(FileName::Blob(_) | FileName::Model(_))
        ) && !live_blobs.contains(&dir.join(name))
    };
    let spare: Vec<String> = names
        .iter()
        .filter(is_spare)
        .map(|name| text(name))
        .collect();
    let advice = "the next open for writing removes them, where no process has it open now";
    findings.add_files(
        Danger::Note,
        "blob files or models that nothing refers to",
        &spare,
        advice,
    );
    look_at_space(&db, env, dir, findings);
}

fn look_at_space(db: &Db, env: &Env, dir: &Path, findings: &mut Findings) {
    let number = |name: &str| -> u64 {
        let families = db.families();
        let values = families
            .iter()
            .filter_map(|family| db.property(family, name)?.parse::<u64>().ok());
        values.sum()
    };
    let bytes = number("rocksdb.total-sst-files-size");
    if let Ok(free) = env.files.free_space(dir)
        && free < bytes / FREE_SHARE
    {
        let (free, bytes) = (units::bytes(free), units::bytes(bytes));
        let what = format!("the disk has {free} free, for tables of {bytes}");
        findings.add(
            Danger::Trouble,
            what,
            "free space: compactions need room for what they write, and writes stop without it",
        );
    }
    let garbage = number("rocksdb.live-blob-file-garbage-size");
    let blobs = number("rocksdb.live-blob-file-size");
    if garbage > blobs / 2 && garbage > 1 << 20 {
        let what = format!(
            "{} of {} in blob files is garbage",
            units::bytes(garbage),
            units::bytes(blobs)
        );
        findings.add(
            Danger::Trouble,
            what,
            "open it for writing and wait, or run `drumlin compact`",
        );
    }
}

/// Whether another process has it open. The lock is asked for, not taken.
fn look_at_lock(env: &Env, dir: &Path, findings: &mut Findings) {
    if let Ok(true) = env.files.is_open_elsewhere(&names::lock(dir)) {
        let advice =
            "what changes while this looks may be told as odd; look again when it has ended";
        findings.add(Danger::Note, "another process has it open", advice);
    }
}
