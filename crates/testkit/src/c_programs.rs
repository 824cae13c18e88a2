//! C programs over a library of ours and over the system's library whose place it takes.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// SIGABRT.
const ABORTED: i32 = 6;

/// A library of ours, and the one of the system with the same interface.
#[derive(Clone, Copy, Debug)]
pub struct Libraries {
    /// The name that programs are linked by, and that functions begin with.
    pub name: &'static str,
    /// The file that the build of our tests makes.
    pub file: &'static str,
    /// The names under which programs look for it.
    pub links: &'static [&'static str],
    /// The crate, with our header in `include` and the programs in `tests/programs`.
    pub root: &'static str,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The crate's.
    Ours,
    /// The system's.
    Theirs,
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Programs in a folder of their own, which must outlive them. What a program does wrong fails the test.
#[derive(Debug)]
pub struct Programs<'a> {
    libraries: Libraries,
    dir: &'a Path,
}

impl<'a> Programs<'a> {
    /// None yet, in `dir`.
    ///
    /// # Panics
    /// When `dir` takes no links.
    pub fn new(libraries: Libraries, dir: &'a Path) -> Self {
        let programs = Self { libraries, dir };
        let links = programs.library_dir();
        std::fs::create_dir_all(&links).expect("the folder takes a folder");
        for name in libraries.links {
            let link = links.join(name);
            std::os::unix::fs::symlink(libraries.shared_library(), link).expect("and links");
        }
        programs
    }

    /// The folder in which programs find our library under the names that it says it has.
    fn library_dir(&self) -> PathBuf {
        self.dir.join("lib")
    }

    /// A path in the folder, as an argument.
    pub fn place(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Compiles one of the crate's programs.
    ///
    /// # Panics
    /// When it does not compile without a warning.
    pub fn compile(&self, name: &str, library: Library) -> Program<'_> {
        let programs = Path::new(self.libraries.root).join("tests/programs");
        self.compile_file(&programs.join(format!("{name}.c")), library)
    }

    /// Compiles `source`.
    ///
    /// # Panics
    /// As [`Programs::compile`].
    pub fn compile_file(&self, source: &Path, library: Library) -> Program<'_> {
        let name = source.file_stem().unwrap_or_default().display();
        let path = self.dir.join(format!("{name}-{library:?}"));
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
        compiler.arg(&path).arg(source);
        // Of a checker, as `make capi-asan` has them.
        let flags = std::env::var("CAPI_CFLAGS").unwrap_or_default();
        compiler.args(flags.split_whitespace());
        if library == Library::Ours {
            let header = Path::new(self.libraries.root).join("include");
            compiler.arg("-I").arg(header);
            compiler.arg("-L").arg(self.library_dir());
        }
        let compiled = run(compiler.arg(format!("-l{}", self.libraries.name)));
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        let programs = self;
        Program {
            programs,
            path,
            library,
        }
    }

    /// Runs a program over both libraries with each list of arguments, a directory of its own before them.
    ///
    /// # Panics
    /// When the answers differ.
    pub fn compare(&self, name: &str, rounds: &[Vec<String>]) {
        let programs = [Library::Ours, Library::Theirs].map(|library| self.compile(name, library));
        for (round, arguments) in rounds.iter().enumerate() {
            let [told, wanted] = programs.each_ref().map(|program| {
                let place = self.place(&format!("{:?}-{round}", program.library));
                let mut all = vec![place.as_str()];
                all.extend(arguments.iter().map(String::as_str));
                program.answers(&all)
            });
            same_lines(&format!("{name} {arguments:?}"), &told, &wanted);
        }
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Program<'a> {
    programs: &'a Programs<'a>,
    path: PathBuf,
    library: Library,
}

impl Program<'_> {
    fn start(&self) -> Command {
        let mut command = Command::new(&self.path);
        // Cargo's own folders may have our library under another name; the system's is found without them.
        command.env_remove("LD_LIBRARY_PATH");
        if self.library == Library::Ours {
            command.env("LD_LIBRARY_PATH", self.programs.library_dir());
        }
        command
    }

    /// What it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn answers(&self, arguments: &[&str]) -> String {
        let output = run(self.start().args(arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        let (path, status) = (self.path.display(), output.status);
        assert!(status.success(), "{path} {arguments:?}: {status}: {errors}");
        String::from_utf8(output.stdout).expect("answers are text")
    }

    /// Runs it with a directory and a number from 0 on, of which each ends the process with one of `sentences`.
    ///
    /// # Panics
    /// When it ends in another way.
    pub fn ends_with(&self, sentences: &[&str]) {
        let name = self.programs.libraries.name;
        for (number, sentence) in sentences.iter().enumerate() {
            let mut command = self.start();
            command.arg(self.programs.place(&format!("store-{number}")));
            let output = run(command.arg(number.to_string()));
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(told.trim_end(), format!("{name} (drumlin): {sentence}"));
            let status = output.status;
            assert_eq!(status.signal(), Some(ABORTED), "{sentence}: {status}");
        }
    }

    /// Runs it with a directory and each number, and compares how its answer begins.
    ///
    /// # Panics
    /// When it begins otherwise.
    pub fn begins_with(&self, wanted: &[(u32, &str)]) {
        for (number, answer) in wanted {
            let store = self.programs.place(&format!("store-{number}"));
            let told = self.answers(&[&store, &number.to_string()]);
            assert!(told.starts_with(answer), "{number}: {told}");
        }
    }
}

impl Libraries {
    /// Our shared library, which the tests' own build makes beside them.
    fn shared_library(&self) -> PathBuf {
        let program = std::env::current_exe().expect("this program has a path");
        program.with_file_name(self.file)
    }

    /// The names that our library exports, in order.
    ///
    /// # Panics
    /// When `nm` cannot tell.
    pub fn exported(&self) -> Vec<String> {
        let mut symbols = Command::new("nm");
        symbols.args(["-D", "--defined-only"]);
        let listed = run(symbols.arg(self.shared_library()));
        let listed = String::from_utf8(listed.stdout).expect("names are text");
        let names = listed.lines().filter_map(|line| line.split(' ').nth(2));
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    }

    /// The functions that a header declares, in order of their names: those before a parenthesis, outside comments.
    pub fn declared(&self, header: &str) -> Vec<String> {
        let mut code = String::new();
        for (at, part) in header.split("/*").enumerate() {
            let after = match at {
                0 => Some(part),
                _ => part.split_once("*/").map(|(_, rest)| rest),
            };
            code.push_str(after.unwrap_or_default());
        }
        let lines = code.lines();
        let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
        let code = lines.collect::<Vec<_>>().join("\n");
        let beginning = format!("{}_", self.name);
        let places = code.match_indices(&beginning);
        let mut names: Vec<_> = places
            .filter_map(|(at, _)| {
                let rest = code.get(at..)?;
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
                let (name, behind) = rest.split_at(end);
                behind
                    .trim_start()
                    .starts_with('(')
                    .then(|| name.to_owned())
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Fails at the first line that differs, with the lines around it.
///
/// # Panics
/// See above.
pub fn same_lines(what: &str, ours: &str, theirs: &str) {
    let mut lines = ours.lines().zip(theirs.lines());
    if let Some(line) = lines.position(|(ours, theirs)| ours != theirs) {
        let of = |text: &str| {
            let around = text.lines().skip(line.saturating_sub(3)).take(6);
            around.collect::<Vec<_>>().join("\n")
        };
        let (ours, theirs) = (of(ours), of(theirs));
        panic!("{what}, line {line}, ours:\n{ours}\ntheirs:\n{theirs}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{what}");
}

/// Lists of arguments for random programs: a seed and a number of calls. `CAPI_SEEDS` says how many, or `default`.
///
/// # Panics
/// When `CAPI_SEEDS` is no number.
pub fn seeds(default: u32, calls: u32) -> Vec<Vec<String>> {
    let seeds = std::env::var("CAPI_SEEDS");
    let seeds = seeds.map_or(default, |seeds| seeds.parse().expect("a number"));
    let arguments = |seed: u32| vec![seed.to_string(), calls.to_string()];
    (0..seeds).map(arguments).collect()
}
