//! Whether a directory may be emptied: only one that a benchmark made.

use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, mark};
use drumlin_fs::Env;

/// Takes `dir` for stores in directories called `names`, which are emptied.
///
/// # Errors
/// `InvalidArgument` when one of them holds what no benchmark made.
pub(crate) fn claim<'n>(
    dir: &Path,
    names: impl IntoIterator<Item = &'n str>,
    env: &Env,
) -> Result<()> {
    if mark::is_set(dir, env)? {
        return Ok(());
    }
    for name in names {
        let store = dir.join(name);
        if holds_something(&store, env)? {
            let message = format!(
                "{} was made by no benchmark and would be emptied: name another --dir, or remove it",
                store.display()
            );
            return Err(Error::invalid_argument(message));
        }
    }
    mark::set(dir, env)
}

/// Checks that the one store of `flags` may be emptied, if it is to be.
///
/// # Errors
/// `InvalidArgument` when no benchmark made it.
pub(crate) fn check(flags: &Flags, env: &Env) -> Result<()> {
    let dir = Path::new(&flags.db);
    let may = flags.use_existing_db || flags.overwrite_existing_store || mark::is_set(dir, env)?;
    match may || !holds_something(dir, env)? {
        true => Ok(()),
        false => Err(mark::refusal(dir)),
    }
}

fn holds_something(dir: &Path, env: &Env) -> Result<bool> {
    match env.files.list(dir) {
        Ok(names) => Ok(!names.is_empty()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_benchmark_made_is_taken() {
        let dir = std::env::temp_dir().join(format!("drumlin-peers-place-{}", std::process::id()));
        let (env, store) = (Env::system(), dir.join("lmdb"));
        std::fs::create_dir_all(&store).expect("the directory for temporary files takes another");
        let flags = Flags {
            db: store.display().to_string(),
            ..Flags::default()
        };
        assert!(check(&flags, &env).is_ok());
        std::fs::write(store.join("data.mdb"), "somebody's").expect("a file of our own");
        assert!(claim(&dir, ["lmdb"], &env).is_err());
        assert!(check(&flags, &env).is_err());
        assert!(!mark::is_set(&dir, &env).expect("readable"));
        assert!(claim(&dir, ["redb"], &env).is_ok());
        assert!(claim(&dir, ["lmdb"], &env).is_ok(), "it has the mark now");
        std::fs::remove_dir_all(&dir).expect("it is there");
    }
}
