// Turns, tokens and cost of each wakeup, drawn by uPlot in the colours of the page.
"use strict";
(() => {
  const whole = document.querySelector("[data-series]");
  const places = [...whole.querySelectorAll("[data-curve]")];
  const plots = new Map();
  const numbers = new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: 6 });
  const short = new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 3 });
  const steps = [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6].map((power) => n * 10 ** power)).sort((a, b) => a - b);
  let shown = "";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const options = (place, curve) => {
    const said = place.parentElement.querySelector("output");
    const axis = { stroke: colour("--faint"), font: "12px system-ui", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    return {
      width: place.clientWidth,
      height: place.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: (plot, low, high) => [low - 0.6, high + 0.6] },
        y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, incrs: steps, size: 26, values: (plot, marks) => marks.map((n) => (plot.data[0].includes(n) ? n : "")) },
        { ...axis, size: 48, values: (plot, marks) => marks.map((n) => short.format(n)) },
      ],
      series: [
        {},
        {
          stroke: colour("--accent"),
          fill: colour("--accent-soft"),
          width: 1,
          points: { show: false },
          paths: uPlot.paths.bars({ size: [0.7, 48] }),
        },
      ],
      hooks: {
        setCursor: [(plot) => {
          const at = plot.cursor.idx;
          said.textContent = at == null ? "" : `${whole.dataset.wakeup} ${plot.data[0][at]}: ${numbers.format(plot.data[1][at])}`;
        }],
      },
    };
  };

  const draw = (series) => {
    whole.parentElement.hidden = !series.wakeup.length;
    for (const place of places) {
      const curve = series[place.dataset.curve];
      // What nobody has a price for has no curve.
      place.parentElement.hidden = !curve.length || (place.dataset.curve === "dollars" && !curve.some((n) => n > 0));
      plots.get(place)?.destroy();
      plots.delete(place);
      if (!place.parentElement.hidden) plots.set(place, new uPlot(options(place, curve), [series.wakeup, curve], place));
    }
  };

  let latest = null;
  const load = async () => {
    const response = await fetch(whole.dataset.series, { cache: "no-store" }).catch(() => null);
    if (!response || !response.ok) return;
    const text = await response.text();
    if (text === shown) return;
    shown = text;
    latest = JSON.parse(text);
    draw(latest);
  };

  new ResizeObserver(() => {
    for (const [place, plot] of plots) if (place.clientWidth) plot.setSize({ width: place.clientWidth, height: plot.height });
  }).observe(whole);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => latest && draw(latest));
  document.addEventListener("goalmode:fresh", load);
  load();
})();
