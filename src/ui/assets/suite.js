"use strict";
// The board of a suite: chooses, formats and draws (with uPlot). Every figure comes computed from the page's data (src/report/suite/view.rs);
// texts of the data become text nodes and attributes, never markup.
(() => {
  const UNITS = {
    e: { pick: "Speed kept", title: "speed kept, % of that in all-DRAM" },
    g: { pick: "GB/s", title: "GB/s between data and work" },
    s: { pick: "Seconds", title: "seconds of a repetition" },
  };
  // A system is told by colour, marker and dashes alike. Marks are paths around 0, in pixels.
  const LOOKS = {
    dram: { mark: "", dash: [2, 2] },
    disk: { mark: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z", dash: [] },
    emulated: { mark: "M-4.5,-4.5h9v9h-9z", dash: [9, 4] },
    swap: { mark: "M0,-6L6,0L0,6L-6,0z", dash: [2, 4] },
    mmap: { mark: "M0,-5.5L5.5,4.5L-5.5,4.5z", dash: [9, 3, 2, 3] },
    all_far: { mark: "M-5.5,-4.5h11L0,5.5z", dash: [2, 4] },
    cache: { mark: "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z", dash: [] },
    flat_in_order: { mark: "M-4.5,-4.5h9v9h-9z", dash: [9, 4] },
    flat_by_plan: { mark: "M0,-6L6,0L0,6L-6,0z", dash: [9, 3, 2, 3] },
    hybrid25: { mark: "M0,-5.5L5.5,4.5L-5.5,4.5z", dash: [5, 4] },
    hybrid50: { mark: "M-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z", dash: [14, 3] },
    hybrid75: { mark: "M-6,0l3,-5h6l3,5l-3,5h-6z", dash: [3, 3] },
    bound: { mark: "M-1.5,-8h3v16h-3z", dash: [5, 4] },
  };
  const ROW = 26, AXIS = 30, FONT = "12px system-ui, 'Helvetica Neue', Arial, sans-serif";
  const SPLIT = [["rest", "computing and all else", "rest"], ["far", "waiting for far", "far"], ["pager", "waiting for the pager", "pager"]];

  /** An element; `on...` attributes are listeners. */
  function h(tag, attributes = {}, ...children) {
    const svg = tag === "svg" || tag === "path";
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null));
    return element;
  }
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const digits = (value) => value.toFixed(Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);
  const percent = (share) => `${(share * 100).toFixed(share !== 0 && share < 0.0995 ? 1 : 0)} %`;
  const seconds = (value) => (value >= 0.0995 ? `${digits(value)} s` : `${digits(value * 1e3)} ms`);
  const show = (unit, value) => (unit === "e" ? percent(value) : unit === "g" ? `${digits(value)} GB/s` : seconds(value));
  const limit = (unit, point) => (point.stopped ? (unit === "s" ? "≥ " : "≤ ") : "");
  const threadWords = (count) => (count === 1 ? "1 thread" : `${count} threads`);
  const swatch = (look, line) =>
    h("svg", { viewBox: "-16 -9 32 18", width: 32, height: 18, class: `swatch ${look}`, "aria-hidden": "true" },
      line ? h("path", { d: "M-16,0H16", class: "stroke", "stroke-dasharray": LOOKS[look].dash.join(" ") }) : null,
      look === "bound" && line ? null : h("path", { d: LOOKS[look].mark || "M0,0", class: "fill" }));

  function start(root) {
    const view = JSON.parse(document.getElementById(`${root.id}-data`).textContent);
    const systems = Object.fromEntries(view.systems.map((system) => [system.key, system]));
    const fars = view.systems.filter((system) => system.nearfar);
    const state = { far: view.start.far || fars[0]?.key, threads: view.start.threads, ratio: view.start.ratio, unit: "e", work: 0 };
    const plots = {};
    const part = (name) => root.querySelector(`.${name}`);
    const index = new Map();
    view.works.forEach((work, number) => work.points.forEach((point) =>
      index.set(`${number} ${point.system} ${point.threads} ${point.system === "dram" ? 0 : point.ratio}`, point)));
    const at = (work, system, ratio = state.ratio) => index.get(`${work} ${system} ${state.threads} ${system === "dram" ? 0 : ratio}`);
    const middle = (point, unit = state.unit) => point?.[unit]?.[0] ?? null;
    const bound = (point, unit = state.unit) => point?.bound?.[unit] ?? null;
    // Modes are seen side by side; of fars one at a time, beside all rivals.
    const beside = (key) => key === state.far || (key !== "dram" && (!systems[key].nearfar || (systems[key].mode && systems[state.far]?.mode)));
    const rivals = () => view.systems.map((system) => system.key).filter(beside);

    /** A point in words: value, spread, runs; then its bound and notes. */
    function told(system, point) {
      if (!point) return [`${systems[system].name}: not measured`];
      const [value, low, high] = point[state.unit] || [];
      if (value === undefined) return [`${systems[system].name}: no figure`, ...(point.notes || [])];
      const spread = high > low ? `${show(state.unit, low)} – ${show(state.unit, high)}, ` : "";
      const lines = [`${systems[system].name}: ${limit(state.unit, point)}${show(state.unit, value)} (${spread}${point.runs === 1 ? "1 run" : `${point.runs} runs`})`];
      if (bound(point) !== null) lines.push(`bound: ${show(state.unit, bound(point))}`);
      return lines.concat(point.notes || []);
    }

    // Choices: radio buttons, so that Tab and arrow keys work as everywhere.
    function choice(name, legend, options) {
      if (options.length < 2) return null;
      const radio = ([value, words]) => h("label", {},
        h("input", { type: "radio", name: `${root.id}-${name}`, value, checked: value === state[name], onchange: () => { state[name] = value; render(); } }),
        h("span", {}, words));
      return h("fieldset", {}, h("legend", {}, legend), h("div", { class: "pick" }, options.map(radio)));
    }
    part("controls").append(...[
      choice("far", fars.every((far) => far.mode) ? "Mode" : "Far memory", fars.map((far) => [far.key, far.name.replace("nearfar, ", "")])),
      choice("ratio", "Data ÷ near", view.ratios.map((ratio) => [ratio, `${ratio}`])),
      choice("threads", "Threads", view.threads.map((count) => [count, `${count}`])),
      choice("unit", "Show", Object.entries(UNITS).map(([key, unit]) => [key, unit.pick])),
    ].filter(Boolean));

    function legend(looks, line) {
      const name = (look) => (look === "bound" ? "bound of the medium under far" : systems[look].name);
      return h("ul", { class: "legend" }, looks.map((look) => h("li", {}, swatch(look, line), name(look))));
    }
    /** Words that follow the pointer inside of `plot`. */
    function tip(plot, lines, left, top) {
      const box = plot.querySelector(".tip");
      box.hidden = lines === null;
      if (lines === null) return;
      box.replaceChildren(...lines.map((line, number) => h(number ? "div" : "b", {}, line)));
      const width = plot.clientWidth;
      box.style.left = `${Math.max(0, Math.min(left + 14, width - box.offsetWidth))}px`;
      box.style.top = `${top + 14}px`;
    }
    /** Calls `tell` with the row under the pointer, and with null when it leaves; what the keyboard shows stays. */
    function pointer(tell) {
      let before = null;
      return (u) => {
        const row = u.cursor.left < 0 ? null : u.cursor.idx ?? null;
        if (row !== before) tell(row);
        before = row;
      };
    }
    function mark(u, look, x, y, hollow) {
      const { ctx } = u, scale = devicePixelRatio;
      ctx.save();
      ctx.translate(x, y);
      ctx.scale(scale, scale);
      const path = new Path2D(LOOKS[look].mark);
      ctx.fillStyle = hollow ? colour("paper") : colour(look);
      ctx.strokeStyle = hollow ? colour(look) : colour("paper");
      ctx.lineWidth = hollow ? 2 : 1;
      ctx.fill(path);
      ctx.stroke(path);
      ctx.restore();
    }
    function stroke(u, look, width, from, to, dash = []) {
      const { ctx } = u;
      ctx.save();
      ctx.strokeStyle = colour(look);
      ctx.lineWidth = width * devicePixelRatio;
      ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.lineTo(...to);
      ctx.stroke();
      ctx.restore();
    }
    /** Replaces the plot called `name` in `place`; its width follows the page. */
    function plot(name, place, options, data) {
      plots[name]?.destroy();
      const width = () => Math.max(160, place.clientWidth);
      const u = (plots[name] = new uPlot({
        ...options, width: width(), legend: { show: false },
        cursor: { x: false, y: name === "dots" ? false : undefined, points: { show: false }, drag: { x: false, y: false, setScale: false }, ...options.cursor },
      }, data, place));
      new ResizeObserver(() => { if (u === plots[name] && width() !== u.width) u.setSize({ width: width(), height: u.height }); }).observe(place);
      return u;
    }
    // On a logarithmic axis 1, 2, 5, 10 ... have words.
    const labelled = (u, splits) => splits.map((value) => (state.unit !== "s" || /^[125]e/.test(value.toExponential(1).replace(".0", "")) ? value : null));
    const axis = (more) => ({ font: FONT, stroke: colour("faint"), grid: { stroke: colour("rule"), width: 1 }, ticks: { show: false }, filter: labelled, ...more });
    const axisWords = (u, splits) => splits.map((value) => (value === null ? "" : state.unit === "e" ? percent(value) : value >= 1 ? `${+value.toPrecision(3)}` : `${+value.toPrecision(2)}`));
    const nice = (value) => [1, 2, 5, 10].map((step) => step * 10 ** Math.floor(Math.log10(value))).find((step) => step >= value);
    function range(values) {
      const top = Math.max(...values, state.unit === "e" ? 1 : 0), least = Math.min(...values.filter((value) => value > 0));
      if (state.unit !== "s" || !Number.isFinite(least)) return { distr: 1, range: [0, (top || 1) * 1.06] };
      const steps = [-1, 0, 1].flatMap((more) => [1, 2, 5].map((step) => step * 10 ** (Math.floor(Math.log10(least)) + more)));
      return { distr: 3, range: [steps.findLast((step) => step < least * 0.98), nice(top * 1.02)] };
    }
    const numbers = (lists) => lists.flat().filter((value) => value !== null);

    /** All works at one ratio: a row each, the best first. */
    function drawDots() {
      const rank = (work) => middle(at(work, state.far), "e") ?? -1;
      const rows = view.works.map((_, number) => number).sort((a, b) => rank(b) - rank(a));
      const shown = rivals();
      const data = [rows.map((_, row) => row), ...shown.map((system) => rows.map((work) => middle(at(work, system)))), rows.map((work) => bound(at(work, state.far)))];
      const words = (work) => shown.flatMap((system) => told(system, at(work, system)));
      const button = (work) => h("button", {
        type: "button", "aria-current": work === state.work ? "true" : false, title: view.works[work].title, "aria-label": `${view.works[work].name}. ${words(work).join("; ")}`,
        onclick: () => select(work), onfocus: () => hover(rows.indexOf(work)), onblur: () => hover(null),
      }, view.works[work].name);
      const place = h("div", { class: "plot" }, h("div", { class: "tip", "aria-hidden": "true", hidden: true }));
      const focused = document.activeElement?.closest?.(".names") ? document.activeElement.textContent : null;
      part("dots").replaceChildren(
        h("h3", {}, `With data ${state.ratio} times near: ${UNITS[state.unit].title}`),
        h("p", { class: "method" }, `${systems[state.far].name}, ${threadWords(state.threads)}; the works that keep most are on top. Lines reach from the slowest to the fastest run; hollow: stopped at the time limit.`),
        legend([...shown, "bound"], false),
        h("div", { class: "rows" }, h("ol", { class: "names", style: `padding-top:${AXIS}px` }, rows.map((work) => h("li", {}, button(work)))), place));
      const scale = range(numbers(data.slice(1)));
      let hovered = null;
      const cell = (u, row) => u.valToPos(row, "x", true);
      function rowsBehind(u) {
        const { ctx, bbox } = u, height = ROW * devicePixelRatio;
        for (const [row, name] of [[rows.indexOf(state.work), "chosen"], [hovered, "head"]]) {
          if (row === null) continue;
          ctx.fillStyle = colour(name);
          ctx.fillRect(bbox.left, cell(u, row) - height / 2, bbox.width, height);
        }
      }
      function marks(u) {
        if (state.unit === "e") stroke(u, "faint", 1, [u.valToPos(0.7, "y", true), u.bbox.top], [u.valToPos(0.7, "y", true), u.bbox.top + u.bbox.height], [1, 4]);
        rows.forEach((work, row) => {
          const place = (value) => u.valToPos(value, "y", true), y = cell(u, row);
          if (bound(at(work, state.far)) !== null) mark(u, "bound", place(bound(at(work, state.far))), y);
          for (const system of [...shown].reverse()) {
            const point = at(work, system), range = point?.[state.unit];
            if (!range) continue;
            stroke(u, system, 2, [place(range[1]), y], [place(range[2]), y]);
            mark(u, system, place(range[0]), y, point.stopped);
          }
        });
      }
      const u = plot("dots", place, {
        height: rows.length * ROW + AXIS + 4, padding: [0, 22, 4, 12],
        scales: { x: { time: false, ori: 1, dir: -1, range: [-0.5, rows.length - 0.5] }, y: { ori: 0, dir: 1, ...scale } },
        axes: [{ show: false, side: 3 }, axis({ scale: "y", side: 0, size: AXIS, space: 56, values: axisWords })],
        series: [{}, ...data.slice(1).map(() => ({ paths: () => null, points: { show: false } }))],
        hooks: {
          drawClear: [rowsBehind], draw: [marks],
          setCursor: [pointer(hover)],
        },
      }, data);
      u.over.addEventListener("click", () => { if (u.cursor.idx !== null) select(rows[u.cursor.idx]); });
      function hover(row) {
        hovered = row;
        u.redraw(false);
        if (row === null) return tip(place, null);
        tip(place, [view.works[rows[row]].name, ...words(rows[row])], Math.max(u.cursor.left, 40), row * ROW + AXIS + 6);
      }
      if (focused) [...part("names").querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
    }

    /** The chosen work: its curve, where its time went, what repeats it. */
    function drawWork() {
      const work = view.works[state.work];
      const shown = view.systems.map((system) => system.key).filter((key) => key !== "dram" && view.ratios.some((ratio) => middle(at(state.work, key, ratio)) !== null));
      const place = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": `${work.name}: ${UNITS[state.unit].title}, by data ÷ near. Arrow keys go from ratio to ratio; the figures are in the table below.` },
        h("div", { class: "tip", role: "status", hidden: true }));
      const access = work.access ? `${work.access[0].toUpperCase()}${work.access.slice(1)}.` : "";
      part("work").replaceChildren(
        h("h3", { tabindex: -1 }, work.title ? `${work.name}: ${work.title}` : work.name),
        h("p", {}, access),
        h("p", { class: "method" }, `${UNITS[state.unit].title[0].toUpperCase()}${UNITS[state.unit].title.slice(1)}, by data ÷ near, with ${threadWords(state.threads)}.`),
        legend([...shown, "bound"], true), place, ...splitTable(), ...commands(),
        h("p", { class: "links" }, h("a", { href: `#${root.id}-figures${state.work}`, onclick: unfold }, `All figures of ${work.name}`), " ", h("a", { href: `#${root.id}-works` }, "All works")));
      const curve = (system) => view.ratios.map((ratio) => middle(at(state.work, system, ratio)));
      const whiskers = shown.flatMap((system) => view.ratios.flatMap((ratio) => at(state.work, system, ratio)?.[state.unit] || []));
      const dram = middle(at(state.work, "dram"));
      const limits = view.ratios.map((ratio) => bound(at(state.work, state.far, ratio)));
      const data = [view.ratios, ...shown.map(curve), limits];
      const look = (key, width) => ({ stroke: colour(key), width, dash: LOOKS[key].dash, points: { show: false } });
      function marks(u) {
        if (dram !== null) stroke(u, "faint", 1, [u.bbox.left, u.valToPos(dram, "y", true)], [u.bbox.left + u.bbox.width, u.valToPos(dram, "y", true)], LOOKS.dram.dash);
        for (const system of [...shown].reverse()) view.ratios.forEach((ratio) => {
          const point = at(state.work, system, ratio), range = point?.[state.unit];
          if (!range) return;
          const x = u.valToPos(ratio, "x", true), y = (value) => u.valToPos(value, "y", true);
          stroke(u, system, 2, [x, y(range[1])], [x, y(range[2])]);
          mark(u, system, x, y(range[0]), point.stopped);
        });
      }
      const ticks = (u) => {
        let last = -Infinity;
        return view.ratios.filter((ratio) => { const far = u.valToPos(ratio, "x") - last > 22; if (far) last = u.valToPos(ratio, "x"); return far; });
      };
      const u = plot("work", place, {
        height: 300, padding: [10, 14, 0, 0],
        scales: { x: { time: false, distr: 3, log: 2, range: [view.ratios[0] * 0.93, view.ratios.at(-1) * 1.07] }, y: range(numbers([whiskers, limits, [dram]])) },
        axes: [
          axis({ splits: ticks, filter: (u, splits) => splits, values: (u, splits) => splits.map((ratio) => `${ratio}`), label: "data ÷ near", labelFont: FONT, labelSize: 20, size: 28 }),
          axis({ size: 56, values: axisWords }),
        ],
        series: [{}, ...shown.map((key) => look(key, 2)), look("bound", 1.5)],
        hooks: { draw: [marks], setCursor: [pointer(point)] },
      }, data);
      function point(row) {
        if (row === null || row === undefined) return tip(place, null);
        const ratio = view.ratios[row];
        tip(place, [`data ${ratio} times near`, ...shown.flatMap((system) => told(system, at(state.work, system, ratio)))], u.valToPos(ratio, "x") + 56, 24);
      }
      let row = view.ratios.indexOf(state.ratio);
      place.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        row = Math.max(0, Math.min(view.ratios.length - 1, row + step));
        point(row);
      });
      place.addEventListener("blur", () => tip(place, null));
    }

    function splitTable() {
      const known = view.ratios.filter((ratio) => at(state.work, state.far, ratio)?.split);
      if (!known.length) return [];
      const bar = (split) => h("div", { class: "bar", "aria-hidden": "true" }, SPLIT.map(([name], number) => h("i", { class: name, style: `width:${split[number] * 100}%` })));
      const row = (ratio) => {
        const { split } = at(state.work, state.far, ratio);
        return h("tr", { class: ratio === state.ratio ? "now" : false }, h("th", { scope: "row", class: "n" }, `${ratio}`), h("td", { class: "bars" }, bar(split)), split.map((share) => h("td", { class: "n" }, percent(share))));
      };
      const head = ["data ÷ near", "share of the threads' time", ...SPLIT.map(([, , words]) => words)];
      return [
        h("h4", {}, `Where the time of its threads went: ${systems[state.far].name}`),
        h("ul", { class: "legend" }, SPLIT.map(([name, words]) => h("li", {}, h("i", { class: `key ${name}` }), words))),
        h("table", { class: "split" },
          h("thead", {}, h("tr", {}, head.map((words, number) => h("th", { scope: "col", class: number === 1 ? "bars" : "n" }, words)))),
          h("tbody", {}, known.map(row))),
      ];
    }
    function commands() {
      const one = (system) => {
        const text = at(state.work, system)?.command;
        if (!text) return null;
        const copy = (event) => navigator.clipboard.writeText(text).then(() => { event.target.textContent = "Copied"; }, () => getSelection().selectAllChildren(event.target.previousSibling));
        return h("div", { class: "command" }, h("span", {}, systems[system].name), h("pre", {}, text), h("button", { type: "button", "aria-label": `Copy the command for ${systems[system].name}`, onclick: copy }, "Copy"));
      };
      const others = ["dram", ...rivals().filter((key) => key !== state.far)].map(one).filter(Boolean);
      return [
        h("h4", {}, `To repeat it, with data ${state.ratio} times near`), one(state.far),
        others.length ? h("details", {}, h("summary", {}, "The same elsewhere"), others) : null,
      ].filter(Boolean);
    }

    /** Strips: the chosen one is shown, in the chosen unit. */
    function fillStrips() {
      for (const strip of root.querySelectorAll(".strip")) {
        strip.hidden = strip.dataset.system !== state.far || +strip.dataset.threads !== state.threads;
        if (strip.hidden) continue;
        strip.querySelector("h3").textContent = `${systems[state.far].name}, ${threadWords(state.threads)}: ${UNITS[state.unit].title}, by data ÷ near`;
        for (const cell of strip.querySelectorAll("td[data-ratio]")) {
          const work = +cell.parentElement.dataset.work, point = at(work, state.far, +cell.dataset.ratio);
          const words = middle(point) === null ? "–" : limit(state.unit, point) + (state.unit === "g" ? digits(middle(point)) : show(state.unit, middle(point)));
          cell.replaceChildren(words.replace(" %", ""), h("span", { class: "sign" }, words.endsWith(" %") ? " %" : ""));
          cell.title = told(state.far, point).join("; ");
          cell.classList.toggle("now", +cell.dataset.ratio === state.ratio);
          cell.parentElement.classList.toggle("chosen", work === state.work);
        }
      }
    }
    for (const row of root.querySelectorAll(".strip tr[data-work]")) {
      row.addEventListener("click", (event) => { event.preventDefault(); select(+row.dataset.work); });
    }
    /** Opens what a link leads to. */
    function unfold(event) {
      document.querySelector(event.target.getAttribute("href")).open = true;
    }
    function select(work) {
      state.work = work;
      render();
      const box = part("work").getBoundingClientRect();
      // Where it lies below, the reader is taken there.
      if (box.top > innerHeight * 0.8 || box.bottom < 80) {
        part("work").scrollIntoView();
        part("work").querySelector("h3").focus({ preventScroll: true });
      }
    }
    function render() {
      if (!state.far) return;
      drawDots();
      drawWork();
      fillStrips();
    }
    // The work that suffers most is what one asks about first.
    const worth = (number) => middle(at(number, state.far), "e") ?? Infinity;
    state.work = view.works.reduce((worst, _, number) => (worth(number) < worth(worst) ? number : worst), 0);
    root.classList.add("live");
    render();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  }

  for (const root of document.querySelectorAll(".suite")) start(root);
})();
