//! Goal: the options of families that were made outlive a power cut once they are acknowledged, and one that was not
//! acknowledged harms no other's; the file they are in is added to, not written anew. Method: one run on the strict disk,
//! stopped at every operation and cut in every way, or failing at every operation.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::options_file;
use drumlin::{Db, FamilyOptions, Result, TableFormat};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, StrictMemFileSystem};

use crate::support::{DIR, options};

const FAMILIES: usize = 5;

fn name(at: usize) -> String {
    // Longer than a sector and across its ends.
    format!("family {at} {}", "x".repeat(150 * at))
}

/// Makes families with tables of another format, one after the other; how many were acknowledged.
fn run(files: &FaultFileSystem, made: &mut usize) -> Result<()> {
    let db = Db::open(DIR, options(Arc::new(files.clone())))?;
    for at in 0..FAMILIES {
        let plain = FamilyOptions {
            table_format: Some(TableFormat::Plain),
            ..FamilyOptions::default()
        };
        db.create_family(&name(at), plain)?;
        // A family is made even where its options cannot be told of; then the machine goes on.
        files.info(Path::new(DIR))?;
        *made = at + 1;
    }
    db.close()
}

/// Everything acknowledged is in the OPTIONS file, before and after a reopening.
fn check(files: &Arc<dyn FileSystem>, made: usize, place: &str) {
    for round in 0..2 {
        if made > 0 {
            let stored = options_file::read_newest(&**files, Path::new(DIR));
            let stored = stored.unwrap_or_else(|error| panic!("{place}, {round}: {error:?}"));
            let stored = stored.unwrap_or_else(|| panic!("{place}, {round}: no OPTIONS file"));
            for at in 0..made {
                let section = stored.family(&name(at));
                let format = section.map(options_file::FamilySection::table_format);
                assert_eq!(format, Some(TableFormat::Plain), "{place}, {round}: {at}");
            }
        }
        let db = Db::open_all_families(DIR, options(Arc::clone(files)));
        let db = db.unwrap_or_else(|error| panic!("{place}, {round}: {error:?}"));
        assert!(db.families().len() > made, "{place}, {round}");
        db.close()
            .unwrap_or_else(|error| panic!("{place}, {round}: {error:?}"));
    }
}

fn operations() -> u64 {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    run(&files, &mut 0).expect("nothing stops it");
    files.operations()
}

#[test]
fn options_of_new_families_are_whole_after_a_stop_anywhere() {
    for index in 0..operations() {
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let mut made = 0;
        let ended = run(&files, &mut made);
        assert!(ended.is_err() || made == FAMILIES, "{index}");
        for policy in CrashPolicy::ALL {
            let after: Arc<dyn FileSystem> = Arc::new(memory.crash_image(index, policy));
            check(&after, made, &format!("stopped at {index}, {policy:?}"));
        }
    }
}

#[test]
fn options_of_new_families_are_told_in_a_new_file_where_none_can_be_added() {
    let mut renamed = 0;
    for index in 0..operations() {
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        files.add_rule(FaultRule::once(index, Fault::Io));
        let mut made = 0;
        let ended = run(&files, &mut made);
        let number = |files: &dyn FileSystem| {
            let names = files.list(Path::new(DIR)).expect("the directory is there");
            let texts = names.iter().map(|name| name.display().to_string());
            texts.filter(|name| name.starts_with("OPTIONS-")).count()
        };
        renamed += usize::from(ended.is_ok() && number(&memory) > 1);
        let after: Arc<dyn FileSystem> = Arc::new(memory);
        check(&after, made, &format!("failed at {index}: {ended:?}"));
    }
    assert!(
        renamed >= 2 * FAMILIES,
        "{renamed}: an append and a sync each"
    );
}

#[test]
fn making_a_family_adds_to_the_options_file() {
    let memory = StrictMemFileSystem::new();
    let files: Arc<dyn FileSystem> = Arc::new(memory);
    let db = Db::open(DIR, options(Arc::clone(&files))).expect("it opens");
    let all = || {
        let names = files.list(Path::new(DIR)).expect("the directory is there");
        let options = |name: &String| name.starts_with("OPTIONS-");
        let names = names.iter().map(|name| name.display().to_string());
        let names: Vec<String> = names.filter(options).collect();
        let newest = names.iter().max().expect("there is one").clone();
        let bytes = files.info(&Path::new(DIR).join(&newest));
        (newest, bytes.expect("it is there").size)
    };
    let (first, mut before) = all();
    let mut each = Vec::new();
    for at in 0..200 {
        let name = format!("family{at:04}");
        db.create_family(&name, FamilyOptions::default())
            .expect("it is made");
        let (newest, bytes) = all();
        assert_eq!(newest, first, "the file is written anew");
        each.push(bytes - before);
        before = bytes;
    }
    assert_eq!(
        each.first(),
        each.last(),
        "the last one's text is as long as the first one's"
    );
    let dropped = db.family("family0007").expect("it is there");
    db.drop_family(&dropped).expect("it is dropped");
    assert_ne!(all().0, first, "a family that is gone is in no file");
    // Its name may come back.
    db.create_family("family0007", FamilyOptions::default())
        .expect("it is made");
    let stored = options_file::read_newest(&*files, Path::new(DIR)).expect("it is whole");
    assert_eq!(stored.expect("it is there").families.len(), 201);
}
