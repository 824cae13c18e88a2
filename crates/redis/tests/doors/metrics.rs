//! Goal: `/metrics` is Prometheus's text, tells what INFO tells, and no scraper keeps the server. Method: a check of the format's
//! grammar, counters beside INFO, and clients that send too much or nothing.

use std::collections::BTreeMap;

use drumlin_fs::net::Address;
use drumlin_testkit::redis::Link;

use crate::ours::{Ours, free_address, port};

fn server() -> (Ours, Address) {
    let address = free_address();
    let ours = Ours::start(&[("metrics-port", &port(&address))]);
    (ours, address)
}

/// The answer to a request.
fn answer(address: &Address, request: &str) -> String {
    let mut link = Link::to(address);
    assert!(link.send(request.as_bytes()), "it is taken");
    let mut answer = Vec::new();
    while let Some(bytes) = link.receive() {
        answer.extend(bytes);
    }
    String::from_utf8(answer).expect("UTF-8")
}

fn body(address: &Address) -> String {
    let answer = answer(address, "GET /metrics HTTP/1.1\r\nHost: it\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let length = format!("Content-Length: {}\r\n", body.len());
    assert!(head.contains(&length), "{head}");
    body.to_owned()
}

fn is_name(text: &str) -> bool {
    let letter = |it: char| it.is_ascii_alphabetic() || it == '_';
    text.starts_with(letter) && text.chars().all(|it| letter(it) || it.is_ascii_digit())
}

/// The labels between the braces, and what is after them.
fn labels(text: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("a closed label") {
                (_, '\\') => match letters.next().expect("an escape").1 {
                    'n' => value.push('\n'),
                    other => {
                        assert!("\\\"".contains(other), "{text}");
                        value.push(other);
                    }
                },
                (at, '"') => break at + 1,
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &after[end..];
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (labels, more),
            _ => panic!("{text}"),
        }
    }
}

/// The samples by their names and labels. Checks the text line by line: each family once, with a help and a type, only
/// samples of its between, no sample twice, counters called so, and histograms that grow to their count.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with('\n'));
    let mut samples = BTreeMap::new();
    let mut families = BTreeMap::new();
    let (mut family, mut kind, mut helped) = (String::new(), String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(is_name(name) && name.starts_with("drumlin_") && !help.is_empty());
            helped = name.to_owned();
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of_kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, helped, "a help comes first");
            (family, kind) = (name.to_owned(), of_kind.to_owned());
            assert!(
                ["counter", "gauge", "histogram"].contains(&of_kind),
                "{line}"
            );
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
            assert!(
                families.insert(family.clone(), kind.clone()).is_none(),
                "{line} twice"
            );
            continue;
        }
        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        let suffix = name.strip_prefix(&family).expect("a sample of its family");
        let suffixes: &[&str] = match kind.as_str() {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(suffixes.contains(&suffix), "{line}");
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (Vec::new(), rest),
        };
        let value: f64 = value
            .strip_prefix(' ')
            .expect("a space")
            .parse()
            .expect("a number");
        let shown: Vec<String> = labels
            .iter()
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        let shown = format!("{name}{{{}}}", shown.join(","));
        assert!(samples.insert(shown, value).is_none(), "{line} twice");
    }
    for (name, _) in families.iter().filter(|(_, kind)| *kind == "histogram") {
        check_histogram(text, name, &samples);
    }
    samples
}

/// In the text's order the buckets of a series grow, and the last is the count.
fn check_histogram(text: &str, name: &str, samples: &BTreeMap<String, f64>) {
    let mut last: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(&format!("{name}_bucket{{")) else {
            continue;
        };
        let (mut labels, value) = labels(rest);
        let (le, end) = labels.pop().expect("an end");
        assert_eq!(le, "le");
        let end: f64 = end.parse().expect("a number");
        let seen: f64 = value.trim().parse().expect("a number");
        let shown: Vec<String> = labels
            .iter()
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        let of = shown.join(",");
        let before = last.insert(of, (end, seen));
        assert!(before.is_none_or(|it| it.0 < end && it.1 <= seen), "{line}");
    }
    for (of, (end, seen)) in last {
        assert_eq!(end, f64::INFINITY);
        assert_eq!(samples.get(&format!("{name}_count{{{of}}}")), Some(&seen));
    }
}

/// The number of a field in INFO.
fn field(info: &str, name: &str) -> f64 {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|it| it.parse().ok())
        .unwrap_or_else(|| panic!("{name} in {info}"))
}

#[test]
fn the_page_is_prometheus_text_and_tells_what_info_tells() {
    let (ours, address) = server();
    let mut lines = vec![
        "SET a 1",
        "SET b 2",
        "EXPIRE b 1000",
        "SELECT 3",
        "SADD s x",
        "GET",
        "NOSUCH \"x\\y",
    ];
    lines.extend(["GET a"; 300]);
    ours.say(&lines);
    let samples = samples(&body(&address));
    let sample = |name: &str| {
        *samples
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {samples:#?}"))
    };
    assert_eq!(sample("drumlin_command_calls_total{command=get}"), 300.0);
    assert_eq!(sample("drumlin_command_rejected_total{command=get}"), 1.0);
    assert_eq!(
        sample("drumlin_command_duration_seconds_count{command=get}"),
        300.0
    );
    assert_eq!(sample("drumlin_errors_total{code=ERR}"), 2.0);
    assert_eq!(sample("drumlin_keys{db=0}"), 2.0);
    assert_eq!(sample("drumlin_expiring_keys{db=0}"), 1.0);
    assert_eq!(sample("drumlin_keys{db=3}"), 1.0);
    assert!(sample("drumlin_engine_number_keys_written_total{}") > 0.0);
    assert!(sample("drumlin_engine_memtable_bytes{family=keys}") > 0.0);
    // All that the engine tells of itself, its histograms among it.
    assert!(sample("drumlin_engine_wal_file_sync_seconds_count{}") >= 0.0);
    assert!(sample("drumlin_engine_memory_limit_bytes{}") > 0.0);
    assert!(sample("drumlin_engine_level_written_bytes_total{level=0}") >= 0.0);
    assert!(sample("drumlin_engine_level_tables{family=keys,level=6}") >= 0.0);
    let rounds = sample("drumlin_round_commands_count{}");
    assert!(rounds > 0.0 && rounds <= sample("drumlin_commands_total{}"));
    let info = ours.say(&["INFO everything"]);
    let told = [
        ("connections_total", "total_connections_received", 1.0),
        ("commands_total", "total_commands_processed", 0.0),
        ("error_replies_total", "total_error_replies", 0.0),
        ("keyspace_hits_total", "keyspace_hits", 0.0),
        ("clients_max", "maxclients", 0.0),
        ("replica", "sync_full", 0.0),
    ];
    for (name, of_info, later) in told {
        let (scraped, info) = (
            sample(&format!("drumlin_{name}{{}}")),
            field(&info, of_info),
        );
        assert!(info == scraped + later, "{name}: {scraped} and {info}");
    }
    let sums = samples
        .iter()
        .filter(|(name, _)| name.starts_with("drumlin_command_seconds_total"));
    let sums: f64 = sums.map(|(_, seconds)| seconds).sum();
    let timed = samples
        .iter()
        .filter(|(name, _)| name.starts_with("drumlin_command_duration_seconds_sum"));
    let timed: f64 = timed.map(|(_, seconds)| seconds).sum();
    assert!((sums - timed).abs() < 1e-9, "{sums} and {timed}");
}

#[test]
fn info_has_the_names_of_kvrocks() {
    let (ours, address) = server();
    ours.say(&["SET a 1"]);
    // The numbers are those of the last scrape, or of a second ago.
    body(&address);
    let info = ours.say(&["INFO rocksdb"]);
    assert!(info.contains("# RocksDB\r\n"), "{info}");
    assert!(field(&info, "all_mem_tables") > 0.0);
    assert!(field(&info, "estimate_keys[keys]") > 0.0);
    assert!(field(&info, "sequence") > 0.0);
    for name in [
        "block_cache_usage",
        "snapshots",
        "num_running_flushes",
        "flush_count",
        "compaction_count",
    ] {
        field(&info, name);
    }
    assert!(info.contains("is_compacting:no"), "{info}");
    assert!(
        !ours.say(&["INFO"]).contains("# RocksDB"),
        "not by default, as it is no section of Redis"
    );
}

#[test]
fn a_scraper_that_asks_for_anything_else_is_told() {
    let (_ours, address) = server();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("PING\r\n\r\n", "400"),
    ] {
        let answer = answer(&address, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let head = answer(&address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let piecemeal = "GET /metrics HTTP/1.0\r\n\r\n";
    let mut link = Link::to(&address);
    assert!(piecemeal.bytes().all(|byte| link.send(&[byte])));
    let first = link.receive().expect("an answer");
    assert!(first.starts_with(b"HTTP/1.1 200 OK"));
}

#[test]
fn endless_slow_and_too_many_scrapers_are_cut() {
    let (ours, address) = server();
    let mut link = Link::to(&address);
    link.send(b"GET /metrics HTTP/1.1\r\n");
    // Until it is told, or the connection is gone.
    let mut sent = 0;
    while link.send(b"X-More: of the same, and so on\r\n") && sent < 10_000_000 {
        sent += 32;
    }
    assert!(sent < 10_000_000, "nobody stopped it");
    let mut slow = Link::to(&address);
    slow.send(b"GET /metr");
    ours.say(&["PING"]);
    ours.pass(11);
    assert!(slow.receive().is_none(), "its time is over");
    let silent: Vec<Link> = (0..40).map(|_| Link::to(&address)).collect();
    let mut turned_away = 0;
    for mut link in silent.into_iter().rev().take(24) {
        turned_away += usize::from(link.receive().is_none());
    }
    assert_eq!(turned_away, 24, "sixteen may wait");
    assert!(ours.say(&["PING"]).starts_with("+PONG"));
    body(&address);
}
