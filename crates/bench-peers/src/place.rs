//! Whether a directory may be emptied: only one that a benchmark made.

use std::path::Path;

use drumlin_base::Result;
use drumlin_bench::{Flags, mark};
use drumlin_fs::Env;

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
        assert!(check(&flags, &env).is_err());
        mark::set(&store, &env).expect("a directory of our own");
        assert!(check(&flags, &env).is_ok(), "it has the mark now");
        std::fs::remove_dir_all(&dir).expect("it is there");
    }
}
