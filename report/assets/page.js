(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var plots = [];

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

  // bytes prints three digits in the largest unit reached, as memdiag does.
  function bytes(v) {
    if (v === null || v === undefined) { return "?"; }
    var units = ["B", "KiB", "MiB", "GiB", "TiB"], i = 0, abs = Math.abs(v);
    while (i < units.length - 1 && abs / 1024 >= 0.9995) { v /= 1024; abs /= 1024; i++; }
    var digits = i === 0 || abs >= 99.95 ? 0 : abs >= 9.995 ? 1 : 2;
    return v.toFixed(digits) + " " + units[i];
  }

  function grouped(v) { return Math.round(v).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ","); }

  // ticks are round in binary units.
  function ticks(u, axis, low, high) {
    var unit = 1;
    while (unit < 1099511627776 && high >= unit * 1024) { unit *= 1024; }
    var rough = (high - low) / 5 / unit || 1, power = Math.pow(10, Math.floor(Math.log10(rough)));
    var step = [1, 2, 5, 10].filter(function (m) { return m * power >= rough * 0.999; })[0] * power * unit;
    var out = [];
    for (var v = Math.ceil(low / step) * step; v <= high && out.length < 20; v += step) { out.push(v); }
    return out;
  }

  function faded(hex, alpha) { return hex + Math.round(alpha * 255).toString(16).padStart(2, "0"); }

  // names writes each band's name at its right end, where there is room.
  function names(data) {
    return function (u) {
      var ctx = u.ctx, ratio = window.devicePixelRatio || 1, last = data.x.length - 1;
      while (last > 0 && data.x[last] > u.scales.x.max) { last--; }
      var under = 0;
      ctx.save();
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      ctx.lineJoin = "round";
      data.bands.forEach(function (band) {
        var over = under + band.y[last];
        var top = u.valToPos(over, "y", true), bottom = u.valToPos(under, "y", true);
        under = over;
        if (bottom - top < 13 * ratio) { return; }
        ctx.font = (band.leak ? "bold " : "") + 12 * ratio + "px system-ui, 'Liberation Sans', Arial, sans-serif";
        ctx.strokeStyle = colour("paper");
        ctx.lineWidth = 3 * ratio;
        ctx.fillStyle = colour("ink");
        var text = band.name + (band.note ? "  " + band.note : ""), x = u.bbox.left + u.bbox.width - 6 * ratio, y = (top + bottom) / 2;
        ctx.strokeText(text, x, y);
        ctx.fillText(text, x, y);
      });
      ctx.restore();
    };
  }

  // warmUp shades what was not judged.
  function warmUp(data) {
    return function (u) {
      if (data.warm <= u.scales.x.min) { return; }
      var end = u.valToPos(Math.min(data.warm, u.scales.x.max), "x", true);
      u.ctx.save();
      u.ctx.fillStyle = faded(colour("quiet"), 0.1);
      u.ctx.fillRect(u.bbox.left, u.bbox.top, end - u.bbox.left, u.bbox.height);
      u.ctx.fillStyle = colour("quiet");
      u.ctx.font = 11 * (window.devicePixelRatio || 1) + "px system-ui, 'Liberation Sans', Arial, sans-serif";
      u.ctx.textBaseline = "top";
      if (u.ctx.measureText("warm-up").width < end - u.bbox.left) { u.ctx.fillText("warm-up", u.bbox.left + 4, u.bbox.top + 4); }
      u.ctx.restore();
    };
  }

  function draw(box) {
    var data = charts[+box.dataset.chart], columns = [data.x], series = [{ label: data.axis, value: function (u, v) { return grouped(v === null || v === undefined ? data.x[data.x.length - 1] : v); } }], fills = [];
    var sum = data.x.map(function () { return 0; });
    data.bands.forEach(function (band, i) {
      sum = sum.map(function (v, j) { return v + band.y[j]; });
      columns.push(sum);
      var stroke = band.colour || colour("restline"), fill = band.colour ? faded(band.colour, band.leak ? 0.6 : 0.35) : colour("rest");
      series.push({
        label: band.name, stroke: stroke, width: 1.5, fill: i === 0 ? fill : undefined,
        points: { show: data.x.length <= 40 }, value: function (u, v, s, at) { return bytes(band.y[at === null ? band.y.length - 1 : at]); }
      });
      if (i > 0) { fills.push({ series: [i + 1, i], fill: fill }); }
    });
    data.lines.forEach(function (line) {
      columns.push(line.y);
      series.push({
        label: line.name, stroke: colour(line.class), width: 1.5, dash: line.class === "reserved" ? undefined : [6, 4],
        spanGaps: true, points: { show: false }, value: function (u, v, s, at) { return bytes(line.y[at === null ? line.y.length - 1 : at]); }
      });
    });
    var axis = { stroke: colour("quiet"), grid: { stroke: faded(colour("quiet"), 0.2), width: 1 }, ticks: { stroke: colour("rule") } };
    box.textContent = "";
    var plot = new uPlot({
      width: box.clientWidth, height: box.clientWidth < 600 ? 260 : 340,
      scales: { x: { time: false }, y: { range: function () { return [0, data.top]; } } },
      axes: [
        Object.assign({ label: data.axis, labelSize: 20, values: function (u, v) { return v.map(function (x) { return x % 1 ? "" : grouped(x); }); } }, axis),
        Object.assign({ size: 72, splits: ticks, values: function (u, v) { return v.map(bytes); } }, axis)
      ],
      series: series, bands: fills, cursor: { drag: { x: true, y: false } },
      hooks: { drawClear: [warmUp(data)], draw: [names(data)] }
    }, columns, box);
    plots.push({ plot: plot, box: box });
    var readout = box.parentNode.querySelector(".readout");
    function read(at) {
      plot.setCursor({ left: plot.valToPos(data.x[at], "x"), top: plot.over.clientHeight / 2 });
      readout.textContent = data.axis + " " + grouped(data.x[at]) + ": " + data.bands.map(function (b) { return b.name + " " + bytes(b.y[at]); })
        .concat(data.lines.map(function (l) { return l.name + " " + bytes(l.y[at]); })).join(", ");
    }
    function zoom(factor) {
      var low = plot.scales.x.min, high = plot.scales.x.max, all = [data.x[0], data.x[data.x.length - 1]];
      var middle = data.x[plot.cursor.idx === null || plot.cursor.idx === undefined ? data.x.length - 1 : plot.cursor.idx];
      plot.setScale("x", { min: Math.max(all[0], middle - (middle - low) * factor), max: Math.min(all[1], middle + (high - middle) * factor) });
    }
    box.onkeydown = function (event) {
      var last = data.x.length - 1, at = plot.cursor.idx === null || plot.cursor.idx === undefined ? last : plot.cursor.idx;
      switch (event.key) {
      case "ArrowLeft": read(Math.max(0, at - 1)); break;
      case "ArrowRight": read(Math.min(last, at + 1)); break;
      case "Home": read(0); break;
      case "End": read(last); break;
      case "+": case "=": zoom(0.5); break;
      case "-": zoom(2); break;
      case "Escape": plot.setScale("x", { min: data.x[0], max: data.x[last] }); break;
      default: return;
      }
      event.preventDefault();
    };
  }

  function drawAll() {
    plots.forEach(function (p) { p.plot.destroy(); });
    plots = [];
    Array.prototype.forEach.call(document.querySelectorAll(".chart"), draw);
  }

  drawAll();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  var width = window.innerWidth;
  window.addEventListener("resize", function () {
    if (window.innerWidth === width) { return; } // a phone's address bar came or went
    width = window.innerWidth;
    plots.forEach(function (p) { p.plot.setSize({ width: p.box.clientWidth, height: p.plot.height }); });
  });

  var flame = document.querySelector(".flame"), room = document.getElementById("flamebox");
  function fit() { flame.setAttribute("width", room.clientWidth); flame.setAttribute("viewBox", "0 0 " + room.clientWidth + " " + flame.getAttribute("height")); }
  fit();
  window.addEventListener("resize", fit);
  flame.setAttribute("aria-label", "Flamegraph: " + document.querySelector("#flame .about").textContent);
  flamegraph(flame, {
    details: document.getElementById("details"), input: document.getElementById("search"), reset: document.getElementById("reset"),
    size: function () { return room.clientWidth; }
  });
})();
