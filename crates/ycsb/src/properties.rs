//! Names and values, out of property files and `-p name=value`.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

/// No property file is larger.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The workloads that come with it.
const BUILT_IN: [(&str, &str); 6] = [
    ("workloada", include_str!("../workloads/workloada")),
    ("workloadb", include_str!("../workloads/workloadb")),
    ("workloadc", include_str!("../workloads/workloadc")),
    ("workloadd", include_str!("../workloads/workloadd")),
    ("workloade", include_str!("../workloads/workloade")),
    ("workloadf", include_str!("../workloads/workloadf")),
];

/// Settings by name; the last setting wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Sets `name` to `value`.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0
            .insert(name.trim().to_owned(), value.trim().to_owned());
    }

    /// Takes over a property file: `name=value` lines, `#` and `!` begin a comment. `workloada` to
    /// `workloadf`, with or without a directory before them, come with the program where no file has
    /// that name.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `InvalidArgument` for a line that is none.
    pub fn add_file(&mut self, path: &str, env: &Env) -> Result<()> {
        let bytes = match env.files.read_file(Path::new(path), FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let known = BUILT_IN.iter().find(|(known, _)| *known == name);
                match known.filter(|_| error.is_not_found()) {
                    Some((_, text)) => text.as_bytes().to_vec(),
                    None => return Err(error.context("a property file")),
                }
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                let message = format!("{path}: '{line}' is no name=value");
                return Err(Error::invalid_argument(message));
            };
            self.set(name, value);
        }
        Ok(())
    }

    /// The value of `name`, if it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of `name`, or `default`.
    pub fn text(&self, name: &str, default: &str) -> String {
        self.get(name).unwrap_or(default).to_owned()
    }

    /// The value of `name` as a number or a truth, or `default`.
    ///
    /// # Errors
    /// `InvalidArgument` when it is none.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.get(name) else {
            return Ok(default);
        };
        text.parse().map_err(|_| {
            let kind = std::any::type_name::<T>();
            Error::invalid_argument(format!("{name}={text}: a {kind} is wanted"))
        })
    }

    /// All of them, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

    use super::*;

    fn env(text: &str) -> Env {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        env.files
            .create_dir_all(Path::new("/p"))
            .expect("a directory");
        let options = CreateOptions::new(FileKind::Other);
        let mut file = env
            .files
            .create(Path::new("/p/own"), options)
            .expect("a file");
        file.append(text.as_bytes()).expect("room");
        file.close().expect("closed");
        env
    }

    #[test]
    fn later_settings_hold() {
        let env = env("# a comment\n\n recordcount = 5\nempty=\nx=a=b\n");
        let mut properties = Properties::default();
        properties
            .add_file("workloads/workloadd", &env)
            .expect("built in");
        assert_eq!(properties.get("requestdistribution"), Some("latest"));
        assert_eq!(properties.number("recordcount", 0).ok(), Some(1000));
        properties.add_file("/p/own", &env).expect("a file");
        assert_eq!(properties.number("recordcount", 0).ok(), Some(5));
        assert_eq!(
            (properties.get("empty"), properties.get("x")),
            (Some(""), Some("a=b"))
        );
        assert_eq!(properties.text("nothing", "else"), "else");
        assert!(properties.number::<u64>("x", 1).is_err());
        assert!(properties.iter().count() > 8);
    }

    #[test]
    fn what_is_no_file_and_no_setting_is_refused() {
        let env = env("nonsense\n");
        let mut properties = Properties::default();
        assert!(properties.add_file("/p/own", &env).is_err());
        assert!(properties.add_file("workloadz", &env).is_err());
    }

    #[test]
    fn the_proportions_of_every_workload_add_up() {
        for (name, _) in BUILT_IN {
            let mut properties = Properties::default();
            properties.add_file(name, &env("")).expect(name);
            let kinds = ["read", "update", "insert", "scan", "readmodifywrite"];
            let shares = kinds.map(|kind| properties.number(&format!("{kind}proportion"), 0.0));
            let sum: f64 = shares
                .into_iter()
                .map(|share| share.expect("a number"))
                .sum();
            assert!((sum - 1.0).abs() < 1e-9, "{name}: {sum}");
        }
    }
}
