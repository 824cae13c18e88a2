//! Debian's package index and file lists.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use super::arena::Arena;

/// Where dpkg keeps the lists of installed files.
const LISTS: &str = "/var/lib/dpkg/info";
/// No list of files is larger.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// The package index: a stanza a record, `name/version/architecture` its key. It is the output of
/// `apt-cache dumpavail`: every package of the machine's sources.
///
/// # Errors
/// `NotFound` when there is no apt-cache or it knows nothing; `Io`.
pub fn packages(bytes_max: u64) -> Result<Arena> {
    let program = "apt-cache dumpavail";
    let output = Command::new("apt-cache")
        .arg("dumpavail")
        .output()
        .map_err(|error| {
            let message =
                format!("cannot run `{program}`: {error}; this data set needs a Debian machine");
            Error::new(ErrorKind::NotFound, message)
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let arena = stanzas(&text, bytes_max);
    if arena.bytes() == 0 {
        let message = format!("`{program}` printed no package; run `apt-get update`");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(arena)
}

fn stanzas(text: &str, bytes_max: u64) -> Arena {
    let mut arena = Arena::new("Debian package index, by apt-cache dumpavail");
    for stanza in text.split("\n\n") {
        let stanza = stanza.trim_matches('\n');
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(':')).map(str::trim)
        };
        let Some(name) = field("Package") else {
            continue;
        };
        let version = field("Version").unwrap_or_default();
        let architecture = field("Architecture").unwrap_or_default();
        let key = format!("{name}/{version}/{architecture}");
        arena.push(key.as_bytes(), stanza.as_bytes());
        if arena.bytes() >= bytes_max {
            break;
        }
    }
    arena.finish()
}

/// The contents of the installed packages: a path a record, the packages that have it as its value,
/// as in Debian's `Contents` files. In order of paths.
///
/// # Errors
/// `NotFound` when dpkg keeps no lists here; `Io`.
pub fn contents(bytes_max: u64, env: &Env) -> Result<Arena> {
    contents_of(Path::new(LISTS), bytes_max, env)
}

fn contents_of(dir: &Path, bytes_max: u64, env: &Env) -> Result<Arena> {
    let mut names = env.files.list(dir)?;
    names.retain(|name| name.extension().is_some_and(|kind| kind == "list"));
    names.sort();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for name in &names {
        let package = name
            .file_stem()
            .map(|stem| stem.to_string_lossy())
            .unwrap_or_default();
        let bytes = env.files.read_file(&dir.join(name), LIST_BYTES_MAX)?;
        for path in String::from_utf8_lossy(&bytes).lines() {
            let path = path.trim_start_matches('/');
            if path.is_empty() || path == "." {
                continue;
            }
            let packages = paths.entry(path.to_owned()).or_default();
            if !packages.is_empty() {
                packages.push(',');
            }
            packages.push_str(&package);
        }
    }
    let mut arena = Arena::new("contents of the installed Debian packages, by dpkg's lists");
    for (path, packages) in &paths {
        if arena.bytes() >= bytes_max {
            break;
        }
        arena.push(path.as_bytes(), packages.as_bytes());
    }
    if arena.bytes() == 0 {
        let message = format!("dpkg keeps no lists in {}", dir.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(arena.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

    use super::super::set::DataSet as _;
    use super::super::set::tests::check;
    use super::*;

    fn record(arena: &Arena, index: u64) -> (String, String) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        arena.write_key(index, &mut key);
        arena.write_value(index, &mut value);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&key), text(&value))
    }

    #[test]
    fn a_stanza_is_a_record_and_a_repeated_one_is_not() {
        let text = "Package: a\nVersion: 1:2-3\nArchitecture: amd64\nDescription: x\n y\n\n\nNo: name\n\n\
                    Package: b\n\nPackage: a\nVersion: 1:2-3\nArchitecture: amd64\n";
        let arena = stanzas(text, u64::MAX);
        check(&arena);
        assert_eq!(arena.len(), 2);
        let (key, value) = record(&arena, 0);
        assert_eq!(key, "a/1:2-3/amd64");
        assert!(value.ends_with("Description: x\n y"), "{value}");
        assert_eq!(record(&arena, 1).0, "b//");
    }

    #[test]
    fn a_path_names_all_packages_that_have_it() {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        let dir = Path::new("/info");
        env.files.create_dir_all(dir).expect("a directory");
        for (name, text) in [
            ("a.list", "/.\n/usr\n/usr/a\n"),
            ("b:amd64.list", "/usr\n"),
            ("a.md5sums", "x\n"),
        ] {
            let options = CreateOptions::new(FileKind::Other);
            let mut file = env.files.create(&dir.join(name), options).expect("a file");
            file.append(text.as_bytes()).expect("room");
            file.close().expect("closed");
        }
        let arena = contents_of(dir, u64::MAX, &env).expect("lists");
        check(&arena);
        assert_eq!(
            record(&arena, 0),
            ("usr".to_owned(), "a,b:amd64".to_owned())
        );
        assert_eq!(record(&arena, 1), ("usr/a".to_owned(), "a".to_owned()));
    }
}
