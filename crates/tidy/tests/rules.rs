//! Goal: the rules a reviewer would otherwise have to remember. Method: each rule reads the sources
//! and lists every place that breaks it; the lists of exceptions may only shrink.

use drumlin_tidy::graph::Graph;
use drumlin_tidy::{Source, root, sources, without_tests};

fn rust() -> Vec<Source> {
    sources(&[".rs"])
}

fn none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

/// Files longer than 800 lines ask to be split.
#[test]
fn files_stay_below_800_lines() {
    let broken: Vec<_> = rust()
        .iter()
        .filter(|file| file.text.lines().count() > 800)
        .map(|file| format!("{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    none(&broken, "split these files");
}

/// Files, clocks, threads and randomness come in through the fs crate.
#[test]
fn only_the_door_touches_the_system() {
    let doors = [
        "std::fs",
        "Instant::now",
        "SystemTime::now",
        "thread::spawn",
        "thread::sleep",
    ];
    let mut broken = Vec::new();
    for file in rust() {
        let engine_side = [
            "base",
            "doc",
            "doc-store",
            "memtable",
            "mongo",
            "object-store",
            "rdb",
            "redis",
            "redis-store",
            "resp",
            "succinct",
            "table",
            "engine",
        ]
        .iter()
        .any(|name| file.path.starts_with(&format!("crates/{name}/src/")));
        if !engine_side {
            continue;
        }
        for (number, line) in without_tests(&file.text).lines().enumerate() {
            if !line.trim_start().starts_with("//") && doors.iter().any(|door| line.contains(door))
            {
                broken.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    none(&broken, "go through drumlin_fs");
}

/// Sockets come in through the fs crate, everywhere: a server is simulated whole, its clients too. Addresses are plain
/// data and come from `core::net`.
#[test]
fn only_the_door_touches_sockets() {
    let sockets = [
        "std::net",
        "os::unix::net",
        "mio::",
        "socket2::",
        "tokio::net",
        "rustix::net",
        "libc::socket",
    ];
    let mut broken = Vec::new();
    for file in rust() {
        if ["crates/fs/", "crates/tidy/"]
            .iter()
            .any(|own| file.path.starts_with(own))
        {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if sockets.iter().any(|socket| code.contains(socket)) {
                broken.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    none(&broken, "go through drumlin_fs::net");
}

/// `unsafe` stands only where it is walled in, and every use says why it is sound.
#[test]
fn unsafe_is_walled_in_and_explained() {
    let allowed = [
        "crates/base/src/bytes/",
        "crates/fs/",
        "crates/memtable/",
        "crates/interop/",
        // C programs call it.
        "crates/capi-leveldb/src/",
        "crates/capi/src/",
        "crates/ffi/src/",
        "crates/bench-peers/src/engines/",
        // Python's buffers are pointers.
        "crates/python/src/bytes.rs",
        // The allocator that counts, in a test's own binary.
        "crates/fuzz-targets/tests/counted/",
    ];
    let mut broken = Vec::new();
    for file in rust() {
        let lines: Vec<_> = file.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if !(code.contains("unsafe {") || code.contains("unsafe impl")) || code.contains('"') {
                continue;
            }
            let place = format!("{}:{}", file.path, number + 1);
            if !allowed.iter().any(|prefix| file.path.starts_with(prefix)) {
                broken.push(format!("{place}: unsafe is not allowed in this crate"));
            }
            let above = &lines[number.saturating_sub(12)..number];
            if !above.iter().any(|line| line.contains("SAFETY:")) {
                broken.push(format!("{place}: no SAFETY note above"));
            }
        }
    }
    none(&broken, "unsafe");
}

/// Inside the engine, a file uses only files of its own row and of lower ones. A file belongs to the longest name that
/// its path begins with.
#[test]
fn the_engine_points_one_way() {
    const ROWS: [&[&str]; 16] = [
        &[
            "db/foreign",
            "family/merge_operators",
            "family/ttl",
            "files/disk_watch",
            "files/names",
            "iter/range_tombstone",
            "options/vintage",
            "watch",
        ],
        &[
            "family/snapshot",
            "watch/notices",
            "write/batch",
            "write/batch_view",
        ],
        &["wal/record"],
        &[
            "options/added",
            "options/file",
            "version",
            "wal/preallocator",
        ],
        &["read/resident/layout", "wal/log"],
        &[
            "caches",
            "family/moment",
            "family/super_version",
            "files",
            "wal",
        ],
        &["iter"],
        &["compaction", "options", "read"],
        &["family", "options/by_name"],
        &["watch/pressure"],
        &[
            "background/manual_queue",
            "write/commit",
            "write/published",
            "write/queue",
            "write/two_phase",
        ],
        &["options/stored", "store"],
        &["background"],
        &["write"],
        &[
            "db",
            "maintenance",
            "watch/counting",
            "watch/explain",
            "watch/live_files",
            "watch/metrics",
            "watch/properties",
            "watch/sizes",
        ],
        &["txn"],
    ];
    // The longest name in the table that `path` begins with.
    let row = |path: &str| {
        let path = path.trim_end_matches(".rs");
        let named = ROWS.iter().enumerate();
        let named = named.flat_map(|(row, names)| names.iter().map(move |name| (row, *name)));
        let fits = named.filter(|(_, name)| {
            let rest = path.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        fits.max_by_key(|(_, name)| name.len())
    };
    let mut broken = Vec::new();
    let mut met = std::collections::BTreeSet::new();
    let graph = Graph::of(&rust(), "crates/engine/src/");
    for file in graph.files() {
        match row(file) {
            Some((_, name)) => {
                met.insert(name);
            }
            None if file == "lib.rs" => {}
            None => broken.push(format!("{file}: it has no row in this test")),
        }
    }
    for (from, to, why) in graph.edges() {
        if let (Some((own, _)), Some((used, name))) = (row(from), row(to))
            && used > own
        {
            broken.push(format!("{from}: uses {name}: {why}"));
        }
    }
    for name in ROWS.iter().flat_map(|row| row.iter()) {
        if !met.contains(name) {
            broken.push(format!("{name}: a row names it, and no file is there"));
        }
    }
    none(&broken, "the engine's edges");
}

/// No file uses, by a path or by a method, a file that uses it, be it by way of others.
#[test]
fn files_use_each_other_in_no_circle() {
    // How many files may use each other.
    let most = [
        ("base", 2),
        ("doc", 1),
        ("doc-store", 1),
        ("engine", 1),
        ("fs", 1),
        ("memtable", 2),
        ("mongo", 1),
        ("object-store", 1),
        ("rdb", 1),
        ("resp", 1),
        ("redis", 1),
        ("redis-store", 1),
        ("succinct", 2),
        ("table", 2),
    ];
    let sources = rust();
    let mut broken = Vec::new();
    for (name, most) in most {
        let graph = Graph::of(&sources, &format!("crates/{name}/src/"));
        let circles = graph.circles(most);
        broken.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    none(&broken, "files that use each other");
}

/// Crates depend only on crates below them.
#[test]
fn crates_point_one_way() {
    let allowed: [(&str, &[&str]); 22] = [
        ("async", &["drumlin", "drumlin-base"]),
        (
            "capi",
            &[
                "drumlin",
                "drumlin-base",
                "drumlin-ffi",
                "drumlin-fs",
                "drumlin-table",
            ],
        ),
        ("ffi", &["drumlin-base"]),
        ("capi-leveldb", &["drumlin", "drumlin-base", "drumlin-ffi"]),
        ("ycsb", &["drumlin-base", "drumlin-bench", "drumlin-fs"]),
        (
            "lab",
            &[
                "drumlin-base",
                "drumlin-bench",
                "drumlin-fs",
                "drumlin-ycsb",
            ],
        ),
        ("base", &[]),
        ("doc", &["drumlin-base"]),
        ("doc-store", &["drumlin", "drumlin-base", "drumlin-doc"]),
        (
            "mongo",
            &[
                "drumlin",
                "drumlin-base",
                "drumlin-doc",
                "drumlin-doc-store",
                "drumlin-fs",
                "drumlin-scrape",
                "drumlin-tls",
            ],
        ),
        ("rdb", &["drumlin-base"]),
        ("resp", &["drumlin-base"]),
        ("redis-store", &["drumlin", "drumlin-base"]),
        (
            "redis",
            &[
                "drumlin",
                "drumlin-base",
                "drumlin-fs",
                "drumlin-rdb",
                "drumlin-redis-store",
                "drumlin-resp",
                "drumlin-scrape",
                "drumlin-tls",
            ],
        ),
        ("succinct", &["drumlin-base"]),
        ("fs", &["drumlin-base"]),
        ("object-store", &["drumlin-base", "drumlin-fs"]),
        ("scrape", &["drumlin-base", "drumlin-fs"]),
        ("tls", &["drumlin-base", "drumlin-fs"]),
        ("memtable", &["drumlin-base"]),
        ("table", &["drumlin-base", "drumlin-fs", "drumlin-succinct"]),
        (
            "engine",
            &[
                "drumlin-base",
                "drumlin-fs",
                "drumlin-memtable",
                "drumlin-table",
            ],
        ),
    ];
    let mut broken = Vec::new();
    for manifest in sources(&["Cargo.toml"]) {
        for (name, below) in &allowed {
            if manifest.path != format!("crates/{name}/Cargo.toml") {
                continue;
            }
            let normal = manifest
                .text
                .split("[dev-dependencies]")
                .next()
                .unwrap_or_default();
            let used = normal.lines().filter(|line| line.starts_with("drumlin"));
            for line in used {
                let crate_name = line.split(['.', ' ', '=']).next().unwrap_or(line);
                if !below.contains(&crate_name) {
                    broken.push(format!("{}: {crate_name}", manifest.path));
                }
            }
        }
    }
    none(&broken, "crate edges");
}

/// Nothing unfinished lands.
#[test]
fn nothing_is_left_undone() {
    let marks = ["todo!(", "unimplemented!(", "#[ignore", "dbg!("];
    let mut broken = Vec::new();
    for file in rust()
        .iter()
        .filter(|file| !file.path.starts_with("crates/tidy/"))
    {
        for (number, line) in file.text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                broken.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    none(&broken, "finish or remove");
}

/// Links between documents lead somewhere.
#[test]
fn links_in_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for file in sources(&[".md"]) {
        let dir = root()
            .join(&file.path)
            .parent()
            .map(ToOwned::to_owned)
            .unwrap_or_default();
        for piece in file.text.split("](").skip(1) {
            let target = piece.split([')', '#']).next().unwrap_or_default();
            let external = target.contains("://") || target.is_empty();
            if !external && !dir.join(target).exists() {
                broken.push(format!("{}: {target}", file.path));
            }
        }
    }
    none(&broken, "dead links");
}

/// Every foreign crate is named with the reason for taking it.
#[test]
fn dependencies_have_a_reason() {
    let page = "docs/design/0001-dependencies.md";
    let reasons = sources(&["0001-dependencies.md"]);
    let reasons = reasons.iter().find(|file| file.path == page);
    let reasons = reasons.map(|file| file.text.as_str()).unwrap_or_default();
    let mut broken = Vec::new();
    for manifest in sources(&["Cargo.toml"]) {
        for line in dependency_lines(&manifest.text) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or(line);
            if !name.starts_with("drumlin") && !reasons.contains(&format!("| `{name}` |")) {
                broken.push(format!("{}: {name}", manifest.path));
            }
        }
    }
    none(&broken, &format!("give a reason in {page}"));
}

/// The lines of `manifest` that name a dependency.
fn dependency_lines(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            found.push(line);
        }
    }
    found
}
