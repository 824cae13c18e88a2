//! Secondaries: `rocksdb_t` that follows a database which another process writes.

use std::ffi::{c_char, c_int};

use drumlin::{Db, FollowOptions, Result};
use drumlin_ffi::handle::Handle;

use crate::database::Database;
use crate::family::{Family, FamilyArrays, open_with};
use crate::opening::{Mode, Named, Opening};
use crate::options::OpenOptions;
use crate::snapshot::ErrPtr;

/// RocksDB's secondaries go on when they are told to.
const WHEN_TOLD: FollowOptions = FollowOptions { interval: None };

fn follow(opening: &Opening<'_>, named: &[Named<'_>]) -> Result<(Database, Vec<Family>)> {
    let mut follower = None;
    let (db, found) = opening.open_by(named, |dir, options| {
        let opened = Db::open_follower(dir, options, WHEN_TOLD)?;
        let db = opened.db().clone();
        follower = Some(opened);
        Ok(db)
    })?;
    crate::timestamps::refuse_any(&db.families(), "a secondary")?;
    Ok((Database::of_follower(db, follower), found))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    options: *const Handle<OpenOptions>,
    name: *const c_char,
    _secondary_path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const *const Handle<OpenOptions>,
    handles: *mut *mut Handle<Family>,
    errptr: ErrPtr,
) -> *mut Handle<Database> {
    const NAME: &str = "rocksdb_open_as_secondary_column_families";
    let families = FamilyArrays {
        count,
        names,
        options: family_options,
        handles,
        ttls: std::ptr::null(),
    };
    let opening = (options, name, Mode::Follow);
    // SAFETY: the C program's promise.
    unsafe { open_with(NAME, opening, families, errptr, follow) }
}

pub(crate) mod calls {
    use std::ffi::CStr;

    use drumlin::{Error, Result};

    use super::follow;
    use crate::database::Database;
    use crate::opening::{Mode, Opening};
    use crate::options::OpenOptions;

    /// Nothing is written to `_secondary_path`: files are held open instead.
    pub(crate) fn open_as_secondary(
        options: &OpenOptions,
        name: &CStr,
        _secondary_path: &CStr,
    ) -> Result<Database> {
        let opening = Opening::new(options, name, Mode::Follow);
        follow(&opening, &[]).map(|(database, _)| database)
    }

    pub(crate) fn try_catch_up_with_primary(db: &Database) -> Result<()> {
        match db.follower() {
            Some(follower) => follower.catch_up().map(drop),
            None => Err(Error::not_supported("Supported only by secondary instance")),
        }
    }
}
