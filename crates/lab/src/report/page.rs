//! The page: the outcome as data, and a script that draws it.

use crate::outcome::Outcome;
use crate::pairs::conclusion;

/// uPlot 1.6.32 (MIT), the charts.
const CHARTS: &str = include_str!("../../assets/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("../../assets/uPlot.min.css");
const CHARTS_LICENCE: &str = include_str!("../../assets/uPlot.LICENSE");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// `outcome` as one page.
pub fn html(outcome: &Outcome) -> String {
    let data = serde_json::to_string(outcome).expect("an outcome is plain data with text keys");
    // Inside a script, `<` could end it.
    let data = data.replace('<', "\\u003c");
    let title = escape(&outcome.title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{CHARTS_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{head}\
         {equals}<div id=\"report\"></div>\n{setting}<noscript><p>The tables and charts are drawn by a script in this page.</p></noscript>\n\
         </main>\n<!--\nuPlot, the chart library in this page:\n{licence}\n-->\n\
         <script>{CHARTS}</script>\n<script type=\"application/json\" id=\"outcome\">{data}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        head = head(outcome),
        equals = equals(outcome),
        setting = setting(outcome),
        licence = CHARTS_LICENCE.replace("--", "- -"),
    )
}

/// The part above the tables: warnings, notes, the command.
fn head(outcome: &Outcome) -> String {
    format!(
        "{}{}<pre>{}</pre>\n",
        list("warnings", &outcome.warnings),
        list("notes", &outcome.notes),
        escape(&outcome.command),
    )
}

/// The comparison of two engines that should be equal.
fn equals(outcome: &Outcome) -> String {
    let Some(conclusion) = conclusion(&outcome.pairs) else {
        return String::new();
    };
    let [first, second, ..] = outcome.engines.as_slice() else {
        return String::new();
    };
    let rows: String = outcome
        .pairs
        .iter()
        .map(|pair| {
            format!(
                "<tr><th>{}</th><td>{:.2}</td><td>{:.2} to {:.2}</td><td>{:.0}%</td><td>{}</td></tr>\n",
                escape(&pair.stage),
                pair.ratio.median,
                pair.ratio.min,
                pair.ratio.max,
                pair.own_spread * 100.0,
                pair.verdict.words(),
            )
        })
        .collect();
    format!(
        "<h2>{first} over {second}, round by round</h2>\n<p>{conclusion}</p>\n<table>\n\
         <tr><th></th><th>median</th><th>rounds</th><th>{second} over its own rounds</th><th></th></tr>\n{rows}</table>\n",
        first = escape(first),
        second = escape(second),
    )
}

/// The part at the end: machine, versions, options.
fn setting(outcome: &Outcome) -> String {
    format!(
        "<h2>Machine, versions, options</h2>\n{}",
        list("setting", &outcome.setting)
    )
}

fn list(class: &str, lines: &[String]) -> String {
    let items: String = lines
        .iter()
        .map(|line| format!("<li>{}</li>\n", escape(line)))
        .collect();
    if items.is_empty() {
        return items;
    }
    format!("<ul class=\"{class}\">\n{items}</ul>\n")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::terminal::tests::outcome;
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_escapes_what_it_is_given() {
        let mut outcome = outcome();
        outcome.title = "</script><b>bold & brash".to_owned();
        outcome.command = "drumlin lab r3 --scale 0.1 < nothing".to_owned();
        let page = html(&outcome);
        assert!(page.contains("<h1>&lt;/script&gt;&lt;b&gt;bold &amp; brash</h1>"));
        assert!(page.contains("--scale 0.1 &lt; nothing"));
        assert_eq!(page.matches("</script>").count(), 3);
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        let start = page.find("id=\"outcome\">").expect("data") + "id=\"outcome\">".len();
        let end = start + page[start..].find("</script>").expect("its end");
        let data: serde_json::Value = serde_json::from_str(&page[start..end]).expect("JSON");
        assert_eq!(data["title"], "</script><b>bold & brash");
        assert_eq!(
            data["stages"][0]["engines"][0][0]["points"][0]["rates"][0],
            100.0
        );
    }
}
