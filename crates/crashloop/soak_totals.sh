#!/usr/bin/env bash
# soak_totals.sh md|html RESULTS: adds up the lines of JSON of soak.sh, a row for each campaign: runs, what
# they did, and failures. The page stands alone: no script, light or dark as the reader's device is.
set -euo pipefail
form=${1:?usage: soak_totals.sh md|html RESULTS}
results=${2:?usage: soak_totals.sh md|html RESULTS}

# Campaign, runs, operations, deaths, power cuts, failures; fields apart by tabs, sorted.
rows() {
  awk '
    function text(key) { return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "" }
    function number(key) { return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
    /^\{"campaign":"/ {
      name = text("campaign")
      if (/"disk":true/) name = name ", disk"
      if (/"power":true/) name = name ", power cuts"
      runs[name]++
      operations[name] += number("operations") + number("steps")
      deaths[name] += number("cycles")
      cuts[name] += number("cuts") + number("images")
      # A number of failures, or the case that failed.
      failures[name] += text("failed") != "" ? 1 : number("failed")
    }
    END {
      for (name in runs)
        printf "%s\t%d\t%d\t%d\t%d\t%d\n", name, runs[name], operations[name], deaths[name], cuts[name], failures[name]
    }' "$results" | sort
}

md() {
  echo "| campaign | runs | operations | deaths | power cuts | failures |"
  echo "| --- | ---: | ---: | ---: | ---: | ---: |"
  rows | awk -F'\t' '{ printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6 }'
}

html() {
  cat <<'PAGE'
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Soak</title>
<style>
  :root { --text: #1c1e21; --soft: #5f6670; --line: #d9dce1; --bad: #b3261e; --ground: #ffffff }
  @media (prefers-color-scheme: dark) {
    :root { --text: #e6e8eb; --soft: #9aa1ab; --line: #363a40; --bad: #ff897d; --ground: #16181b }
  }
  body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
  h1 { font-size: 1.4rem; margin: 0 }
  p { color: var(--soft); margin: .2rem 0 1.5rem }
  section { border-top: 1px solid var(--line); padding: .8rem 0 }
  h2 { font-size: 1rem; margin: 0 0 .3rem }
  dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: .3rem 1rem; margin: 0 }
  dt { color: var(--soft); font-size: .85rem }
  dd { margin: 0; font-variant-numeric: tabular-nums }
  .bad { color: var(--bad); font-weight: 600 }
</style>
<h1>Soak</h1>
PAGE
  rows | awk -F'\t' '
    function grouped(n,   s) { s = n ""; while (match(s, /[0-9][0-9][0-9][0-9]($|,)/)) s = substr(s, 1, RSTART) "," substr(s, RSTART + 1); return s }
    function count(n, noun) { return grouped(n) " " noun (n == 1 ? "" : "s") }
    function shown(name, n, class) { return "<div><dt>" name "</dt><dd" class ">" grouped(n) "</dd></div>" }
    function some(name, n) { return (n > 0) ? shown(name, n) : "" }
    {
      bad += $6; runs += $2
      body = body "<section><h2>" $1 "</h2><dl>" shown("runs", $2) shown("failures", $6, ($6 > 0) ? " class=\"bad\"" : "") some("operations", $3) some("deaths", $4) some("power cuts", $5) "</dl></section>\n"
    }
    END {
      verdict = (bad > 0) ? "<span class=\"bad\">" count(bad, "failure") "</span>" : "no failure"
      printf "<p>%s, %s</p>\n", count(runs + 0, "run"), verdict
      printf "%s", body
    }'
  echo "</html>"
}

case $form in
  md | html) "$form" ;;
  *) echo "neither md nor html: $form" >&2; exit 2 ;;
esac
