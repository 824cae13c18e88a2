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

  // The first figure of each stage as bars, the stage's best as long as the page is wide.
  const overview = () => {
    make("h2", root, "At a glance");
    key(root, outcome.engines);
    const grid = make("div", root, undefined, "glance");
    // Where stages come at several sizes the largest are shown; the others are in the curves below.
    const most = Math.max(...outcome.stages.map((stage) => stage.entries || 0));
    const seen = new Set(outcome.stages.filter((stage) => (stage.entries || most) < most).map((stage) => stage.label));
    for (const figure of outcome.figures) {
      if (seen.has(figure.stage)) continue;
      seen.add(figure.stage);
      const box = make("div", grid, undefined, "bars");
      make("h3", box, figure.stage + ": " + figure.name + (figure.more_is_better ? "" : " (less is better)"));
      const longest = Math.max(...figure.cells.map((cell) => (cell.summary ? cell.summary.median : 0)));
      figure.cells.forEach((cell, index) => {
        if (!cell.summary) return;
        const row = make("div", box, undefined, "bar");
        const bar = make("i", row);
        bar.style.background = colour(index);
        bar.style.width = Math.max(0.4, 62 * cell.summary.median / longest) + "%";
        make("span", row, short(cell.summary.median));
        if (!cell.ratio) return;
        const name = cell.ratio.is_undecided ? "open" : cell.ratio.median >= 1 ? "better" : "worse";
        make("span", row, trim(cell.ratio.median) + "x", name);
      });
    }
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

  // Powers of ten alone on a logarithmic axis; where there are fewer than two, also their doubles and fives.
  const powers = (u, axis, low, high) => {
    const marks = (steps) => {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
        for (const step of steps) {
          const mark = step * 10 ** power;
          if (mark >= low * 0.999 && mark <= high * 1.001) found.push(mark);
        }
      }
      return found;
    };
    const tens = marks([1]);
    return tens.length > 1 ? tens : marks([1, 2, 5]);
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
          {
            ...axis,
            values: (u, marks) => marks.map((mark) => (mark === null ? "" : options.marks ? options.marks[mark] : short(mark))),
            splits: options.logX || options.marks ? () => times : undefined,
            // Of a logarithmic axis only powers of ten would be named.
            ...(options.logX ? { filter: (u, marks) => marks } : {}),
          },
          {
            ...axis,
            size: 52,
            values: (u, marks) => marks.map((mark) => (mark === null ? "" : short(mark))),
            ...(options.logY ? { splits: powers, filter: (u, marks) => marks } : {}),
          },
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
        chart(grid, role + ": median, µs", each(stage, (point) => (point.times[index] || [])[0] || null), { logY: true });
        chart(grid, role + ": 99th percentile, µs", each(stage, (point) => (point.times[index] || [])[1] || null), { logY: true });
        percentiles(grid, role, stage, index);
      });
      chart(grid, "resident memory, MB", each(stage, (point) => point.memory_mb[0]), {});
      chart(grid, "page cache, MB", each(stage, (point) => point.memory_mb[2]), {});
      // What grows is known from the second second on.
      chart(grid, "processors used", each(stage, (point) => (point.cpu.length ? point.cpu.reduce((sum, [, share]) => sum + share, 0) : null)), {});
      chart(grid, "read from the disk, MB/s", each(stage, (point) => (point.cpu.length ? point.disk_mb[0] : null)), {});
      chart(grid, "written to the disk, MB/s", each(stage, (point) => (point.cpu.length ? point.disk_mb[1] : null)), {});
      chart(grid, "size of the store, MB", each(stage, (point) => point.size_mb), {});
      const writes = stage.engines.some((rounds) => rounds.some((round) => round.done.roles.some((role) => role.written_bytes > 0)));
      if (writes) {
        chart(grid, "size / data", each(stage, (point) => (point.held_mb ? point.size_mb / point.held_mb : null)), {});
        chart(grid, "written to the disk / written by the user, so far", amplified(stage), {});
      }
      chart(grid, "compactions owe, MB", each(stage, (point) => point.debt_mb), {});
      chart(grid, "tables", each(stage, (point) => (point.levels.length ? point.levels.reduce((sum, files) => sum + files, 0) : null)), {});
      threads(stage);
      levels(stage);
    }
  };

  // Times of a whole stage over percentiles, which lie evenly.
  const percentiles = (grid, role, stage, index) => {
    const names = [["p50", "50"], ["p95", "95"], ["p99", "99"], ["p999", "99.9"], ["max", "max"]];
    const lines = stage.engines.flatMap((rounds, engine) => rounds.map((round, number) => {
      const times = (round.done.roles[index] || {}).times || {};
      return {
        name: outcome.engines[engine] + " " + (number + 1), colour: colour(engine), dash: number === 0 ? undefined : [6, 3],
        xs: names.map((name, place) => place), ys: names.map(([field]) => times[field] || null),
      };
    }));
    chart(grid, role + ": µs by percentile", lines, { logY: true, marks: names.map(([, text]) => text) });
  };

  // Bytes written to the disk over those of the user's writes, from the beginning of a stage.
  const amplified = (stage) => stage.engines.flatMap((rounds, engine) => rounds.map((round, number) => {
    let [user, disk, before] = [0, 0, 0];
    const ys = round.points.map((point) => {
      const length = point.t - before;
      before = point.t;
      disk += point.disk_mb[1] * length;
      round.done.roles.forEach((role, index) => {
        if (role.operations) user += (point.rates[index] || 0) * length * role.written_bytes / role.operations / 1e6;
      });
      return user > 0 && disk > 0 ? disk / user : null;
    });
    return {
      name: outcome.engines[engine] + " " + (number + 1), colour: colour(engine), dash: number === 0 ? undefined : [6, 3],
      xs: round.points.map((point) => point.t), ys,
    };
  }));

  // Tables by level at the end of the first round.
  const levels = (stage) => {
    const last = stage.engines.map((rounds) => {
      const told = (rounds.length ? rounds[0].points : []).map((point) => point.levels).filter((files) => files.length);
      return told.length ? told[told.length - 1] : null;
    });
    const depth = Math.max(0, ...last.map((files) => (files ? files.length : 0)));
    if (!depth) return;
    const table = tableOf("Tables by level at the end, first round", ["level", ...outcome.engines]);
    for (let level = 0; level < depth; level++) {
      if (!last.some((files) => files && files[level])) continue;
      const row = make("tr", table);
      make("td", row, "L" + level);
      last.forEach((files) => make("td", row, files ? String(files[level] || 0) : "–"));
    }
  };

  // The body of a table below a heading that folds it away.
  const tableOf = (title, names) => {
    const box = make("details", root);
    box.open = true;
    make("summary", box, title);
    const table = make("table", make("div", box, undefined, "wide"));
    const head = make("tr", make("thead", table));
    names.forEach((name) => make("th", head, name));
    return make("tbody", table);
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
    const body = tableOf("Processor seconds by thread, first round", ["thread", ...outcome.engines]);
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

  overview();
  curves();
  ratios();
  overTime();
  const again = () => drawn.forEach((draw) => draw());
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    again();
  }).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
