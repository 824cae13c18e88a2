//! Goal: the totals of `make soak` are the sums of its lines, and a failure shows. Method: the script over
//! lines of every kind of campaign.

use std::process::Command;

use drumlin_testkit::temp_dir;

const LINES: &str = r#"{"campaign":"metamorphic","first_seed":1000,"lists":5,"operations":310000,"failed":0}
{"campaign":"metamorphic","first_seed":1100,"lists":5,"operations":253000,"failed":1}
{"campaign":"crash-loop","seed":8,"disk":false,"cycles":120,"stores":10,"batches":4000,"failed":0}
{"campaign":"sim","from":0,"to":9,"runs":9,"cuts":31,"images":0,"steps":1200345,"virtual_seconds":3,"seconds":1.5}
{"campaign":"cuts","from":0,"to":2,"runs":2,"cuts":3,"images":1000,"steps":70,"seconds":2.0,"failed":"--seed 1","why":"a, b: 'c'"}
half a li"#;

/// The script's output for [`LINES`] in one of its two forms.
fn totals(form: &str) -> String {
    let dir = temp_dir();
    let path = dir.path().join("results.jsonl");
    // The shell writes it: files of tests go through programs here, as in a real run.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/soak_totals.sh");
    let mut shell = Command::new("bash");
    shell.args([
        "-c",
        "printf '%s' \"$0\" >\"$1\" && bash \"$2\" \"$3\" \"$1\"",
    ]);
    let output = shell.arg(LINES).arg(&path).arg(script).arg(form).output();
    let output = output.expect("there is a shell");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("the script writes text")
}

#[test]
fn the_table_adds_up_and_counts_failures_told_either_way() {
    let table = totals("md");
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| crash-loop | 1 | 0 | 120 | 0 | 0 |",
            "| cuts | 1 | 70 | 0 | 1003 | 1 |",
            "| metamorphic | 2 | 563000 | 0 | 0 | 1 |",
            "| sim | 1 | 1200345 | 0 | 31 | 0 |",
        ]
    );
}

#[test]
fn the_page_shows_the_same_and_needs_nothing_else() {
    let page = totals("html");
    for part in [
        "<h2>metamorphic</h2>",
        "<dd>1,200,345</dd>",
        "<dd class=\"bad\">1</dd>",
        "5 runs, <span class=\"bad\">2 failures</span>",
        "prefers-color-scheme: dark",
        "width=device-width",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert!(!page.contains("<script") && !page.contains("http"));
}
