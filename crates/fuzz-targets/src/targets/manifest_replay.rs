//! Whole MANIFESTs: a database that opens can be written and opens again as the same database.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::version::{NewFile, VersionEdit, VersionSet, VersionSetOptions};
use drumlin_base::limits::LEVELS;
use drumlin_base::{KeyOrder, SeqNo};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

use super::expect::{blames_the_bytes, or_blamed};
use crate::reseal;

/// The input as it is, and with checksums that fit.
pub(crate) fn run(data: &[u8]) {
    replay(data);
    let mut sealed = data.to_vec();
    reseal::log(&mut sealed);
    if sealed != data {
        replay(&sealed);
    }
}

fn put(files: &StrictMemFileSystem, path: &Path, kind: FileKind, bytes: &[u8]) {
    let file = files.create(path, CreateOptions::new(kind));
    let mut file = file.expect("memory has no limit");
    file.append(bytes).expect("memory has no limit");
    file.close().expect("memory has no limit");
}

fn replay(manifest: &[u8]) {
    let files = StrictMemFileSystem::new();
    let dir = Path::new("/db");
    files.create_dir_all(dir).expect("memory has no limit");
    put(
        &files,
        &dir.join("MANIFEST-000005"),
        FileKind::Manifest,
        manifest,
    );
    put(
        &files,
        &dir.join("CURRENT"),
        FileKind::Other,
        b"MANIFEST-000005\n",
    );
    files.sync_all();
    let Some(names) = or_blamed(VersionSet::list_families(&files, dir)) else {
        return;
    };
    let mut options = VersionSetOptions::new();
    options.check_tables = false;
    options.families = names
        .into_iter()
        .map(|name| (name, KeyOrder::Bytewise))
        .collect();
    let files: Arc<dyn FileSystem> = Arc::new(files);
    let recover = || VersionSet::recover(Arc::clone(&files), dir, &options);
    let Some((mut set, _)) = or_blamed(recover()) else {
        return;
    };
    let before = Summary::of(&set);
    match set.log_and_apply(vec![VersionEdit::of_family(0)]) {
        Ok(()) => {}
        Err(error) => return blames_the_bytes(&error),
    }
    assert_eq!(Summary::of(&set), before, "an empty edit changes nothing");
    drop(set);
    let (set, _) = recover().expect("what was written opens");
    assert_eq!(Summary::of(&set), before, "reopening changes nothing");
}

/// The state that must outlive writing and reading.
#[derive(Debug, PartialEq)]
struct Summary {
    families: Vec<Family>,
    last_seqno: SeqNo,
    max_family_id: u32,
    db_id: Option<String>,
}

#[derive(Debug, PartialEq)]
struct Family {
    id: u32,
    name: String,
    files: Vec<(usize, NewFile)>,
}

impl Summary {
    fn of(set: &VersionSet) -> Self {
        let families = set.families().values().map(|family| {
            let version = &family.current;
            let levels = (0..LEVELS).flat_map(|n| version.level(n).iter().map(move |f| (n, f)));
            Family {
                id: family.id,
                name: family.name.clone(),
                files: levels
                    .map(|(n, file)| (n, file.described().clone()))
                    .collect(),
            }
        });
        Self {
            families: families.collect(),
            last_seqno: set.last_seqno(),
            max_family_id: set.max_family_id(),
            db_id: set.db_id().map(ToOwned::to_owned),
        }
    }
}
