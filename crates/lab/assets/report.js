"use strict";
// Draws the outcome that stands in the page. Colours after Okabe and Ito, which stay apart for the
// colour-blind; the first engine gets the first.
(() => {
  const outcome = JSON.parse(document.getElementById("outcome").textContent);
  const root = document.getElementById("report");
  const colours = ["#0f7fc4", "#d55e00", "#009e73", "#cc79a7", "#c68b00", "#56b4e9", "#8a8a8a"];
  const colour = (index) => colours[index % colours.length];
  const make = (tag, parent, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    parent.appendChild(element);
    return element;
  };
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (number) => {
    if (number === null || number === undefined) return "";
    const size = Math.abs(number);
    for (const [unit, scale] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
      if (size >= scale) return trim(number / scale) + unit;
    }
    return trim(number);
  };
  const trim = (number) => {
    const size = Math.abs(number);
    return number.toFixed(size >= 100 || Number.isInteger(number) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  };
  const key = (parent, names) => {
    const box = make("div", parent, undefined, "key");
    names.forEach((name, index) => {
      const entry = make("span", box);
      make("i", entry).style.background = colour(index);
      entry.appendChild(document.createTextNode(name));
    });
  };

  // The table of figures.
  const ratios = () => {
    make("h2", root, "Figures");
    make("p", root, "Median of the rounds, least and greatest below; behind a peer how many times better " +
      outcome.engines[0] + " is (below 1: worse; grey: the rounds cannot tell).", "open");
    const table = make("table", make("div", root, undefined, "wide"));
    const head = make("tr", make("thead", table));
    ["", ...outcome.engines].forEach((name) => make("th", head, name));
    const body = make("tbody", table);
    let stage = null;
    for (const figure of outcome.figures) {
      if (figure.stage !== stage) {
        stage = figure.stage;
        make("td", make("tr", body, undefined, "stage"), stage).colSpan = outcome.engines.length + 1;
      }
      const row = make("tr", body);
      make("td", row, figure.name);
      for (const cell of figure.cells) {
        const place = make("td", row);
        if (!cell.summary) {
          place.textContent = "–";
          continue;
        }
        place.appendChild(document.createTextNode(short(cell.summary.median) + " "));
        if (cell.ratio) {
          const name = cell.ratio.is_undecided ? "open" : cell.ratio.median >= 1 ? "better" : "worse";
          make("span", place, trim(cell.ratio.median) + "x", name);
        }
        if (cell.summary.rounds > 1) {
          make("small", place, short(cell.summary.min) + " – " + short(cell.summary.max));
        }
      }
    }
  };

  // Charts are drawn again when the page's width or its colours change.
  const drawn = [];
  const chart = (parent, title, series, options) => {
    if (!series.some((line) => line.ys.some((y) => y !== null && y !== undefined))) return;
    const box = make("div", parent, undefined, "chart");
    make("h3", box, title);
    const place = make("div", box);
    const times = [...new Set(series.flatMap((line) => line.xs))].sort((a, b) => a - b);
    const data = [times, ...series.map((line) => {
      const at = new Map(line.xs.map((x, index) => [x, line.ys[index]]));
      return times.map((time) => (at.has(time) ? at.get(time) : undefined));
    })];
    const draw = () => {
      place.replaceChildren();
      const axis = { stroke: ink("--quiet"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 } };
      new uPlot({
        width: Math.max(260, box.clientWidth - 18),
        height: 190,
        cursor: { drag: { x: true, y: false } },
        scales: {
          x: { time: false, distr: options.logX ? 3 : 1, range: options.logX ? [times[0] / 1.3, times[times.length - 1] * 1.3] : undefined },
          y: { distr: options.logY ? 3 : 1, range: options.logY ? undefined : (u, low, high) => [0, high > 0 ? high * 1.08 : 1] },
        },
        axes: [
          { ...axis, values: (u, marks) => marks.map((mark) => (mark === null ? "" : short(mark))), splits: options.logX ? () => times : undefined },
          { ...axis, size: 52, values: (u, marks) => marks.map((mark) => (mark === null ? "" : short(mark))) },
        ],
        series: [{}, ...series.map((line) => ({
          label: line.name, stroke: line.colour, width: 1.6, spanGaps: true, dash: line.dash,
          points: { show: times.length < 12, size: 5, fill: line.colour },
        }))],
      }, data, place);
    };
    drawn.push(draw);
    draw();
  };
  const each = (stage, value) => stage.engines.flatMap((rounds, engine) => rounds.map((round, number) => ({
    name: outcome.engines[engine] + " " + (number + 1),
    colour: colour(engine),
    dash: number === 0 ? undefined : [6, 3],
    xs: round.points.map((point) => point.t),
    ys: round.points.map(value),
  })));

  const overTime = () => {
    const stages = outcome.stages.filter((stage) => stage.engines.some((rounds) => rounds.some((round) => round.points.length > 2)));
    for (const stage of stages) {
      make("h2", root, stage.label);
      key(root, outcome.engines);
      const grid = make("div", root, undefined, "charts");
      stage.roles.forEach((role, index) => {
        chart(grid, role + " a second", each(stage, (point) => point.rates[index]), {});
        chart(grid, role + ": 99th percentile, µs", each(stage, (point) => point.times[index][1] || null), { logY: true });
      });
      chart(grid, "resident memory, MB", each(stage, (point) => point.memory_mb[0]), {});
      chart(grid, "page cache, MB", each(stage, (point) => point.memory_mb[2]), {});
      // What grows is known from the second second on.
      chart(grid, "processors used", each(stage, (point) => (point.cpu.length ? point.cpu.reduce((sum, [, share]) => sum + share, 0) : null)), {});
      chart(grid, "read from the disk, MB/s", each(stage, (point) => (point.cpu.length ? point.disk_mb[0] : null)), {});
      chart(grid, "written to the disk, MB/s", each(stage, (point) => (point.cpu.length ? point.disk_mb[1] : null)), {});
      chart(grid, "size of the store, MB", each(stage, (point) => point.size_mb), {});
      chart(grid, "compactions owe, MB", each(stage, (point) => point.debt_mb), {});
      chart(grid, "tables", each(stage, (point) => (point.levels.length ? point.levels.reduce((sum, files) => sum + files, 0) : null)), {});
      threads(stage);
    }
  };

  // Processor time of the first round by thread.
  const threads = (stage) => {
    const names = new Map();
    stage.engines.forEach((rounds, engine) => {
      for (const point of rounds.length ? rounds[0].points : []) {
        for (const [name, share] of point.cpu) {
          if (!names.has(name)) names.set(name, outcome.engines.map(() => 0));
          names.get(name)[engine] += share;
        }
      }
    });
    const rows = [...names].sort((a, b) => Math.max(...b[1]) - Math.max(...a[1])).slice(0, 10);
    if (!rows.length) return;
    const box = make("details", root);
    make("summary", box, "Processor seconds by thread, first round");
    const table = make("table", make("div", box, undefined, "wide"));
    const head = make("tr", make("thead", table));
    ["thread", ...outcome.engines].forEach((name) => make("th", head, name));
    const body = make("tbody", table);
    for (const [name, seconds] of rows) {
      const row = make("tr", body);
      make("td", row, name);
      seconds.forEach((used) => make("td", row, used ? trim(used) : "–"));
    }
  };

  // Cost against size: stages of the same name at several numbers of entries.
  const curves = () => {
    const lines = new Map();
    for (const stage of outcome.stages) {
      if (!stage.entries) continue;
      const name = stage.label.split(",")[0];
      if (!lines.has(name)) lines.set(name, []);
      lines.get(name).push(stage);
    }
    const several = [...lines].filter(([, stages]) => new Set(stages.map((stage) => stage.entries)).size > 1);
    if (!several.length) return;
    make("h2", root, "Cost against size: microseconds an operation over entries");
    key(root, outcome.engines);
    const grid = make("div", root, undefined, "charts");
    for (const [name, stages] of several) {
      const median = (rounds) => {
        const costs = rounds.filter((round) => round.done.roles[0] && round.done.roles[0].operations)
          .map((round) => round.done.roles[0].thread_seconds * 1e6 / round.done.roles[0].operations).sort((a, b) => a - b);
        return costs.length ? (costs[costs.length >> 1] + costs[(costs.length - 1) >> 1]) / 2 : null;
      };
      chart(grid, name, outcome.engines.map((engine, index) => ({
        name: engine, colour: colour(index), dash: undefined,
        xs: stages.map((stage) => stage.entries), ys: stages.map((stage) => median(stage.engines[index])),
      })), { logX: true });
    }
  };

  ratios();
  curves();
  overTime();
  let waiting;
  const again = () => { clearTimeout(waiting); waiting = setTimeout(() => drawn.forEach((draw) => draw()), 80); };
  window.addEventListener("resize", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
