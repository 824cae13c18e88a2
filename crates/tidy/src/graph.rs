//! The graph of files of a crate that use each other: by the paths a file names anywhere, and by the methods it
//! calls on types whose methods are in several files.
//!
//! The second kind matters because a method needs no `use`: a type with methods in ten files ties all ten together,
//! and no path shows it. Calls of other methods are not looked at: their types are named somewhere, mostly.

use std::collections::{BTreeMap, BTreeSet};

use crate::Source;

/// The files of one crate and the files each uses.
#[derive(Debug)]
pub struct Graph {
    files: BTreeMap<String, String>,
    /// From a file to those it uses, each with a place that shows it.
    edges: BTreeMap<String, BTreeMap<String, String>>,
}

impl Graph {
    /// The graph of the crate whose sources are under `root` (`crates/engine/src/`). Files of tests are left out.
    pub fn of(sources: &[Source], root: &str) -> Self {
        let mut files = BTreeMap::new();
        let mut test_files = BTreeSet::new();
        for source in sources {
            let Some(inside) = source.path.strip_prefix(root) else {
                continue;
            };
            test_files.extend(test_modules(inside, &source.text));
            files.insert(inside.to_owned(), code(&source.text));
        }
        files.retain(|path, _| !test_files.contains(path));
        let mut graph = Self {
            files,
            edges: BTreeMap::new(),
        };
        graph.add_paths();
        graph.add_methods();
        graph
    }

    /// The files, by their paths under the root.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(|file| &**file)
    }

    /// Each file with one that it uses, and the text that shows it.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let edges = self.edges.iter();
        edges.flat_map(|(from, used)| used.iter().map(move |(to, why)| (&**from, &**to, &**why)))
    }

    /// Circles of more than `most` files, each with the edges that close it.
    pub fn circles(&self, most: usize) -> Vec<String> {
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .files
            .keys()
            .map(|file| (&**file, self.reach(file)))
            .collect();
        let mut told = BTreeSet::new();
        let mut circles = Vec::new();
        for file in self.files.keys() {
            let both = |other: &&str| reach[other].contains(&**file);
            let circle: BTreeSet<&str> = reach[&**file].iter().copied().filter(both).collect();
            if circle.len() <= most || !told.insert(circle.clone()) {
                continue;
            }
            let mut lines = vec![format!("{} files in a circle:", circle.len())];
            for from in &circle {
                for (to, why) in self.edges.get(*from).into_iter().flatten() {
                    if circle.contains(&**to) {
                        lines.push(format!("  {from} -> {to} ({why})"));
                    }
                }
            }
            circles.push(lines.join("\n"));
        }
        circles
    }

    /// Every file that `file` uses, directly or not.
    fn reach(&self, file: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next = vec![file];
        while let Some(file) = next.pop() {
            for to in self.edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if found.insert(&**to) {
                    next.push(to);
                }
            }
        }
        found
    }

    fn add(&mut self, from: &str, to: &str, why: &str) {
        if from != to && !is_door(to) {
            let edges = self.edges.entry(from.to_owned()).or_default();
            edges.entry(to.to_owned()).or_insert_with(|| why.to_owned());
        }
    }

    fn add_paths(&mut self) {
        let mut found = Vec::new();
        for (file, text) in &self.files {
            for path in paths(file, text) {
                if let Some(to) = self.resolve(&path) {
                    found.push((file.clone(), to, path.join("::")));
                }
            }
        }
        for (from, to, why) in found {
            self.add(&from, &to, &why);
        }
    }

    /// The file that has the item `path`.
    fn resolve(&self, path: &[String]) -> Option<String> {
        let mut path = path.to_vec();
        // A door may name an item that another door exports.
        for _ in 0..4 {
            let (file, rest) = self.longest(&path)?;
            let Some(name) = rest.first().filter(|_| is_door(&file)) else {
                return Some(file);
            };
            let exported = exports(&file, &self.files[&file]);
            match exported.into_iter().find(|path| path.last() == Some(name)) {
                Some(next) => path = next,
                None => return Some(file),
            }
        }
        None
    }

    fn longest(&self, path: &[String]) -> Option<(String, Vec<String>)> {
        (1..=path.len()).rev().find_map(|count| {
            let (module, rest) = path.split_at(count);
            let module = module.join("/");
            let names = [format!("{module}.rs"), format!("{module}/mod.rs")];
            let file = names
                .into_iter()
                .find(|name| self.files.contains_key(name))?;
            Some((file, rest.to_vec()))
        })
    }

    fn add_methods(&mut self) {
        // By type: each method with its file.
        let mut types: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for (file, text) in &self.files {
            for (name, body) in impls(text) {
                let methods = types.entry(name).or_default();
                methods.extend(methods_of(body).map(|method| (method, &**file)));
            }
        }
        let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (method, file) in types.values().flatten() {
            homes.entry(method).or_default().insert(file);
        }
        types.retain(|_, methods| methods.values().collect::<BTreeSet<_>>().len() > 1);
        let of_spread: BTreeSet<&str> = types.values().flat_map(|it| it.keys().copied()).collect();
        let of_traits: BTreeSet<&str> = self
            .files
            .values()
            .flat_map(|text| trait_methods(text))
            .collect();
        homes.retain(|method, files| {
            let is_telling = method.contains('_') && *method != "is_empty";
            files.len() == 1
                && is_telling
                && of_spread.contains(method)
                && !of_traits.contains(method)
        });
        let mut found = Vec::new();
        for (file, text) in &self.files {
            for (name, body) in impls(text) {
                let own = types.get(name);
                for (_, method) in calls(body).filter(|(receiver, _)| *receiver == "self") {
                    if let Some(to) = own.and_then(|methods| methods.get(method)) {
                        found.push((file.clone(), (*to).to_owned(), format!("self.{method}()")));
                    }
                }
            }
            for (receiver, method) in calls(text).filter(|(receiver, _)| *receiver != "self") {
                if let Some(to) = homes.get(method).and_then(BTreeSet::first) {
                    found.push((
                        file.clone(),
                        (*to).to_owned(),
                        format!("{receiver}.{method}()"),
                    ));
                }
            }
        }
        for (from, to, why) in found {
            self.add(&from, &to, &why);
        }
    }
}

fn is_door(file: &str) -> bool {
    file.ends_with("mod.rs") || file == "lib.rs"
}

/// The files that `mod` lines of a door name under `#[cfg(test)]`.
fn test_modules(file: &str, text: &str) -> Vec<String> {
    let folder = file
        .strip_suffix("mod.rs")
        .or_else(|| file.strip_suffix("lib.rs"));
    let own = file.strip_suffix(".rs").map(|name| format!("{name}/"));
    let folder = folder.map(str::to_owned).or(own).unwrap_or_default();
    let pieces = text.split("#[cfg(test)]").skip(1);
    let named = pieces.filter_map(|piece| {
        let line = piece.trim_start().lines().next()?;
        let name = line.split("mod ").nth(1)?.strip_suffix(';')?;
        Some(format!("{folder}{name}.rs"))
    });
    named.collect()
}

/// The text without its module of tests and without comments.
fn code(text: &str) -> String {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(all(test"];
    let text = tests
        .iter()
        .fold(text, |text, begin| text.split(begin).next().unwrap_or(text));
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The module of a file, as a path.
fn module(file: &str) -> Vec<String> {
    let name = file
        .strip_suffix("/mod.rs")
        .or_else(|| file.strip_suffix(".rs"));
    let parts = name
        .unwrap_or(file)
        .split('/')
        .filter(|part| *part != "lib");
    parts.map(str::to_owned).collect()
}

/// Every path in `text` that begins at the crate's root or at the parent of `file`.
fn paths(file: &str, text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|letter| is_word(letter) || letter == ':') {
                continue;
            }
            let mut base = match root {
                "crate::" => Vec::new(),
                _ => module(file),
            };
            let mut rest = &text[at..];
            while let Some(up) = rest.strip_prefix("super::") {
                base.pop();
                rest = up;
            }
            let rest = rest.strip_prefix("crate::").unwrap_or(rest);
            tree(&base, rest, &mut found);
        }
    }
    found
}

/// The paths that a door gives out under its own name.
fn exports(file: &str, text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["pub use ", "pub(crate) use ", "pub(super) use "] {
        for (at, _) in text.match_indices(start) {
            let rest = &text[at + start.len()..];
            let (base, rest) = match rest.strip_prefix("crate::") {
                Some(rest) => (Vec::new(), rest),
                None => (module(file), rest.strip_prefix("self::").unwrap_or(rest)),
            };
            tree(&base, rest, &mut found);
        }
    }
    found
}

/// Adds the paths of the tree that `text` begins with, each behind `base`; returns the rest.
fn tree<'a>(base: &[String], text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = base.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = tree(&path, group, found).trim_start();
                group = match group.strip_prefix(',') {
                    Some(more) => more.trim_start(),
                    None => return group.strip_prefix('}').unwrap_or(group),
                };
                if let Some(end) = group.strip_prefix('}') {
                    return end;
                }
            }
        }
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word != "self" && !word.is_empty() {
            path.push(word.to_owned());
        }
        match after.strip_prefix("::") {
            Some(more) => rest = more,
            None => {
                found.push(path);
                return after;
            }
        }
    }
}

/// The inherent `impl` blocks of `text`: the type's name and the block.
fn impls(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let starts = text.match_indices("\nimpl").map(|(at, _)| &text[at + 1..]);
    starts.filter_map(|block| {
        let (head, _) = block.split_once('{')?;
        if head.contains(" for ") {
            return None;
        }
        let end = block.find("\n}").unwrap_or(block.len());
        let head = head.strip_prefix("impl")?;
        // Behind the parameters, which may be nested.
        let mut depth = 0;
        let name = head.trim_start_matches(|letter| {
            depth += i32::from(letter == '<') - i32::from(letter == '>');
            depth > 0 || letter == '>' || letter == ' '
        });
        let name = name.split(|letter| !is_word(letter)).next()?;
        Some((name, &block[..end]))
    })
}

/// The methods of the traits in `text`, and of those that its types have.
fn trait_methods(text: &str) -> Vec<&str> {
    let starts = ["\nimpl", "\npub trait", "\npub(crate) trait", "\ntrait"];
    let mut found = Vec::new();
    for (at, _) in starts.iter().flat_map(|start| text.match_indices(start)) {
        let block = &text[at + 1..];
        let head = block.split('{').next().unwrap_or_default();
        if head.contains(" for ") || !head.starts_with("impl") {
            let end = block.find("\n}").unwrap_or(block.len());
            found.extend(methods_of(&block[..end]));
        }
    }
    found
}

/// The names of a block's functions.
fn methods_of(block: &str) -> impl Iterator<Item = &str> {
    block.lines().filter_map(|line| {
        let line = line
            .strip_prefix("    ")
            .filter(|line| !line.starts_with(' '))?;
        let (_, name) = line.split_once("fn ")?;
        name.split(|letter| !is_word(letter)).next()
    })
}

/// Method calls in `text`: the word before the dot (empty where there is none) and the method's name.
fn calls(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices('.').filter_map(|(at, _)| {
        let after = text[at + 1..].trim_start();
        let end = after.find(|letter| !is_word(letter))?;
        let (name, rest) = after.split_at(end);
        if name.is_empty() || !rest.starts_with(['(', ':']) {
            return None;
        }
        let before = text[..at].trim_end();
        let begin = before
            .rfind(|letter| !is_word(letter))
            .map_or(0, |at| at + 1);
        Some((&before[begin..], name))
    })
}
