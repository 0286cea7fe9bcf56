"use strict";
// Appended to a page by tests/pages.rs: looks for what a reader would stumble over, drives a suite, and leaves what it found in
// <pre id="found">, as JSON. `window.errors` is filled from the start of the page (see tests/pages.rs).
(() => {
  const found = { problems: [], values: {}, texts: 0 };
  const problem = (words) => found.problems.length < 40 && found.problems.push(words);
  const named = (element) => `${element.tagName.toLowerCase()}${element.className && element.className.baseVal === undefined ? `.${element.className}` : ""} "${element.textContent.trim().slice(0, 40)}"`;

  function rgb(words) {
    const numbers = words.match(/[\d.]+/g)?.map(Number) || [0, 0, 0, 0];
    const scale = words.startsWith("color(") ? 255 : 1;
    return { c: numbers.slice(0, 3).map((n) => n * scale), a: numbers.length > 3 ? numbers[3] : 1 };
  }
  const over = (top, below) => top.c.map((n, i) => n * top.a + below[i] * (1 - top.a));
  function behind(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      if (at.tagName === "svg" && at.classList.contains("nf")) layers.push(rgb(getComputedStyle(at.querySelector(".paper")).fill));
      else layers.push(rgb(getComputedStyle(at).backgroundColor));
      if (layers.at(-1).a === 1) break;
    }
    const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    return layers.reverse().reduce((below, layer) => over(layer, below), scheme);
  }
  const light = (c) => {
    const [r, g, b] = c.map((n) => n / 255).map((n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };

  /** What is left of boxes inside of all that scrolls down; sideways is `scroller`'s. */
  function seen(element, boxes) {
    let [top, bottom] = [-Infinity, Infinity];
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (!["auto", "scroll"].includes(getComputedStyle(at).overflowY)) continue;
      const frame = at.getBoundingClientRect();
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    return boxes.filter((box) => box.width > 0 && box.height > 0 && box.bottom > top && box.top < bottom);
  }

  /** Elements that hold text of their own and can be seen. */
  function texts() {
    const all = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(element.tagName) || element.closest("#found")) continue;
      if (element.classList.contains("halo") || !element.checkVisibility({ visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const boxes = seen(element, [...range.getClientRects()]);
      if (boxes.length) all.push({ element, node, boxes });
    }
    return all;
  }
  /** The nearest ancestor that scrolls sideways. */
  const scroller = (element) => { for (let at = element; at && at !== document.body; at = at.parentElement) if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return at; return null; };

  /** Corners of the letters of a box of text; those of charts may be turned. */
  function corners(element, box) {
    const own = element.closest("svg") && element.getBBox ? element.getBBox() : box;
    const matrix = own === box ? new DOMMatrix() : element.getScreenCTM();
    const [top, bottom] = [own.y + own.height * 0.2, own.y + own.height * 0.8];
    return [[own.x, top], [own.x + own.width, top], [own.x + own.width, bottom], [own.x, bottom]]
      .map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix));
  }
  /** Whether a straight line can be drawn between two boxes. */
  function apart(a, b) {
    const sides = [a, b].flatMap((box) => [[box[0], box[1]], [box[1], box[2]]]);
    return sides.some(([from, to]) => {
      const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
      const along = (point) => ((point.y - from.y) * (to.x - from.x) - (point.x - from.x) * (to.y - from.y)) / length;
      const [one, other] = [a.map(along), b.map(along)];
      return Math.min(Math.max(...one), Math.max(...other)) - Math.max(Math.min(...one), Math.min(...other)) < 1.5;
    });
  }

  function look(stage) {
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) problem(`${stage}: the page is ${page.scrollWidth} wide, ${page.clientWidth} can be seen`);
    const all = texts();
    found.texts = Math.max(found.texts, all.length);
    for (const { element, boxes } of all) {
      const style = getComputedStyle(element), inSvg = element.closest("svg");
      const scale = inSvg ? Math.hypot(element.getScreenCTM().a, element.getScreenCTM().b) : 1;
      const size = parseFloat(style.fontSize) * scale;
      if (size < 11.9) problem(`${stage}: ${size.toFixed(1)} px: ${named(element)}`);
      const ratio = contrast(over(rgb(inSvg ? style.fill : style.color), behind(element)), behind(element));
      if (ratio < 4.5) problem(`${stage}: contrast ${ratio.toFixed(2)}: ${named(element)}`);
      const own = scroller(element);
      for (const box of boxes) if (!own && (box.right > innerWidth + 1 || box.left < -1)) problem(`${stage}: out of the page: ${named(element)}`);
      if (style.overflow === "hidden" && element.scrollWidth > element.clientWidth + 1) problem(`${stage}: cut: ${named(element)}`);
    }
    // Boxes of words that lie on each other, in a grid of cells so that large pages do not take long.
    const cells = new Map(), told = new Set();
    all.forEach((text, number) => {
      // What follows the pointer covers what is below it.
      if (text.element.closest(".tip")) return;
      for (const box of text.boxes) {
        // The line's box is higher than its letters.
        const [top, bottom] = [box.top + box.height * 0.2, box.bottom - box.height * 0.2];
        for (let y = Math.floor(top / 64); y <= bottom / 64; y++) {
          for (let x = Math.floor(box.left / 64); x <= box.right / 64; x++) {
            const key = `${x} ${y}`;
            for (const other of cells.get(key) || []) {
              if (other.number === number || told.has(`${other.number} ${number}`)) continue;
              const sideways = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
              const touch = sideways > 1.5 && Math.min(bottom, other.bottom) - Math.max(top, other.top) > 1.5;
              if (touch && !apart(corners(text.element, box), corners(all[other.number].element, other.box))) {
                told.add(`${other.number} ${number}`);
                problem(`${stage}: overlap: ${named(all[other.number].element)} and ${named(text.element)}`);
              }
            }
            cells.set(key, (cells.get(key) || []).concat({ number, box, top, bottom }));
          }
        }
      }
    });
  }

  const root = document.querySelector(".suite");
  const pick = (name, words) => {
    const input = [...root.querySelectorAll("input")].find((one) => one.name.endsWith(`-${name}`) && one.nextSibling.textContent === words);
    if (!input) return problem(`nothing to choose: ${name} ${words}`);
    input.click();
  };
  /** What the strip says of the first work at a third. */
  const cell = () => root.querySelector(".strip:not([hidden]) tr[data-work='0'] td[data-ratio='3']").textContent;
  // uPlot draws in microtasks; timers would run after the page is read.
  const drawn = async () => { for (let turn = 0; turn < 8; turn++) await null; };
  async function drive() {
    const values = found.values;
    values.start = cell();
    pick("unit", "GB/s"); await drawn(); values.rate = cell(); look("GB/s");
    pick("unit", "Seconds"); await drawn(); values.seconds = cell(); look("seconds");
    pick("unit", "Speed kept"); pick("threads", "1"); values.one_thread = cell();
    pick("far", root.textContent.includes("emulated far") ? "emulated far" : "flat by plan"); values.emulated = cell();
    pick("ratio", "8"); values.heading = root.querySelector(".dots h3").textContent;
    values.before = root.querySelector(".work h3").textContent;
    const name = [...root.querySelectorAll(".names button")].find((one) => one.textContent === "lu");
    // A page that is not in front gets no focus.
    name.dispatchEvent(new FocusEvent("focus"));
    await drawn();
    values.tip = root.querySelector(".dots .tip").hidden ? "" : root.querySelector(".dots .tip").innerText;
    look("tip");
    name.click();
    await drawn();
    values.work = root.querySelector(".work h3").textContent;
    values.current = root.querySelector(".names [aria-current]").textContent;
    values.command = root.querySelector(".command pre").textContent;
    values.split = root.querySelector(".split tbody tr.now").innerText.replace(/\s+/g, " ");
    const plot = root.querySelector(".work .plot");
    plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
    await drawn();
    values.arrow = root.querySelector(".work .tip").innerText;
    look("arrow");
    plot.dispatchEvent(new FocusEvent("blur"));
    root.querySelector(".strip:not([hidden]) tr[data-work='0'] a").click();
    await drawn();
    values.by_strip = root.querySelector(".work h3").textContent;
    root.querySelector(".links a").click();
    values.unfolded = document.querySelector("details[id]")?.open;
    for (const details of [...document.querySelectorAll("details")].slice(0, 3)) details.open = true;
    look("unfolded");
    const canvas = [...root.querySelectorAll("canvas")];
    values.drawn = canvas.map((one) => {
      const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
      return data.some((n) => n > 0);
    });
    const unreachable = [...root.querySelectorAll("button, input, a, summary, [role=img]")].filter((one) => one.checkVisibility() && one.tabIndex < 0);
    unreachable.forEach((one) => problem(`not reached by Tab: ${named(one)}`));
    [...root.querySelectorAll("button, [role=img]")].filter((one) => !one.textContent.trim() && !one.getAttribute("aria-label")).forEach((one) => problem(`no name: ${one.outerHTML.slice(0, 60)}`));
  }
  async function run() {
    try {
      found.ready_ms = performance.now();
      await drawn();
      look("start");
      if (root) await drive();
    } catch (error) {
      problem(`the check: ${error.stack}`);
    }
    window.errors.forEach((error) => problem(`error: ${error}`));
    performance.getEntriesByType("resource").forEach((entry) => problem(`request: ${entry.name}`));
    found.width = innerWidth;
    found.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const pre = document.createElement("pre");
    pre.id = "found";
    pre.textContent = JSON.stringify(found);
    document.body.append(pre);
  }
  addEventListener("load", run);
})();
