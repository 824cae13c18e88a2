//! Version edits: an accepted one, encoded and decoded again, is the same.

use drumlin::internals::version::{Profile, VersionEdit};

use super::expect::or_blamed;

pub(crate) fn run(data: &[u8]) {
    let Some(edit) = or_blamed(VersionEdit::decode(data)) else {
        return;
    };
    let _ = edit.changes_tables();
    for profile in [Profile::RocksDb, Profile::LevelDb] {
        // LevelDB's format lacks some fields; an edit with one of them is refused, not cut.
        if let Some(bytes) = or_blamed(edit.encode(profile)) {
            let again = VersionEdit::decode(&bytes).expect("what was encoded decodes");
            assert!(
                profile == Profile::LevelDb || again == edit,
                "{edit:?}\n{again:?}"
            );
        }
    }
}
