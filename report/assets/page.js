(function () {
  "use strict";
  var charts = JSON.parse(document.getElementById("charts").textContent);
  var plots = [];

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

  function grouped(v) { return Math.round(v).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ","); }

  // unitOf is the largest that an axis reaches.
  function unitOf(high) {
    var unit = 1;
    while (unit < 1099511627776 && high >= unit * 1024) { unit *= 1024; }
    return unit;
  }

  // tick labels a height in the axis's unit.
  function tick(v, high) {
    var unit = unitOf(high), names = ["B", "KiB", "MiB", "GiB", "TiB"];
    return v === 0 ? "0" : +(v / unit).toFixed(9) + " " + names[Math.round(Math.log2(unit) / 10)];
  }

  // ticks are round in binary units.
  function ticks(u, axis, low, high) {
    var unit = unitOf(high);
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
      var right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(data.x[last], "x", true)) - 6 * ratio;
      if (right - u.bbox.left < 200 * ratio) { return; } // beside a far forecast the run is a strip
      var under = 0;
      ctx.save();
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      data.bands.forEach(function (band) {
        var over = under + band.y[last];
        var top = u.valToPos(over, "y", true), bottom = u.valToPos(under, "y", true);
        under = over;
        if (bottom - top < 20 * ratio) { return; }
        ctx.font = (band.leak ? "bold " : "") + 12 * ratio + "px system-ui, 'Liberation Sans', Arial, sans-serif";
        var text = band.name + (u.bbox.width > 480 * ratio ? "  " + band.note : ""), y = (top + bottom) / 2;
        var wide = ctx.measureText(text).width;
        ctx.fillStyle = faded(colour("paper"), 0.85);
        ctx.beginPath();
        ctx.roundRect(right - wide - 10 * ratio, y - 9 * ratio, wide + 12 * ratio, 18 * ratio, 3 * ratio);
        ctx.fill();
        ctx.fillStyle = colour("ink");
        ctx.fillText(text, right - 4 * ratio, y + ratio);
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

  // moments marks epochs, and at the foot where the run did something else.
  function moments(data) {
    return function (u) {
      var ctx = u.ctx, ratio = window.devicePixelRatio || 1, free = u.bbox.left, named = {};
      ctx.save();
      ctx.font = 11 * ratio + "px system-ui, 'Liberation Sans', Arial, sans-serif";
      ctx.lineWidth = ratio;
      if (data.warm > u.scales.x.min) { free = Math.max(free, u.valToPos(Math.min(data.warm, u.scales.x.max), "x", true) - 1); }
      function seen(m) { return m.x >= u.scales.x.min && m.x <= u.scales.x.max; }
      ctx.strokeStyle = faded(colour("quiet"), 0.5);
      ctx.fillStyle = colour("quiet");
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      data.epochs.filter(seen).forEach(function (m) {
        var x = u.valToPos(m.x, "x", true);
        stroke(ctx, [[x, u.bbox.top], [x, u.bbox.top + u.bbox.height]]);
        if (x >= free && x + ctx.measureText(m.name).width < u.bbox.left + u.bbox.width) {
          ctx.fillText(m.name, x + 3 * ratio, u.bbox.top + 4 * ratio);
          free = x + ctx.measureText(m.name).width + 8 * ratio;
        }
      });
      ctx.setLineDash([]);
      ctx.strokeStyle = ctx.fillStyle = colour("ink");
      ctx.textBaseline = "bottom";
      var foot = u.bbox.top + u.bbox.height;
      data.aside.filter(seen).forEach(function (m) {
        var x = u.valToPos(m.x, "x", true);
        stroke(ctx, [[x, foot], [x, foot - 7 * ratio]]);
        if (!named[m.name]) { ctx.fillText(m.name, x + 2 * ratio, foot - 8 * ratio); }
        named[m.name] = true;
      });
      ctx.restore();
    };
  }

  function stroke(ctx, points) {
    ctx.beginPath();
    points.forEach(function (p, i) { if (i === 0) { ctx.moveTo(p[0], p[1]); } else { ctx.lineTo(p[0], p[1]); } });
    ctx.stroke();
  }

  // forecast draws reserved memory onward to the limit, with its interval.
  function forecast(data) {
    return function (u) {
      var at = data.ahead, ctx = u.ctx, ratio = window.devicePixelRatio || 1, box = u.bbox;
      function x(v) { return u.valToPos(v, "x", true); }
      var last = data.x[data.x.length - 1], limit = u.valToPos(at.limit, "y", true);
      var from = [x(last), u.valToPos(at.reserved, "y", true)];
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.left, box.top, box.width, box.height);
      ctx.clip();
      ctx.strokeStyle = ctx.fillStyle = colour("limit");
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash([8 * ratio, 4 * ratio, 2 * ratio, 4 * ratio]);
      stroke(ctx, [[at.near ? from[0] : box.left, limit], [box.left + box.width, limit]]);
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      stroke(ctx, [from, [x(at.x), limit]]);
      ctx.globalAlpha = 0.15;
      ctx.beginPath();
      [from, [x(at.low), limit], [x(at.high), limit], [from[0], u.valToPos(at.allocated, "y", true)]].forEach(function (p) { ctx.lineTo(p[0], p[1]); });
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.font = "bold " + 12 * ratio + "px system-ui, 'Liberation Sans', Arial, sans-serif";
      ctx.textAlign = "right";
      ctx.textBaseline = "bottom";
      ctx.fillText(at.label, Math.max(Math.min(x(at.x), box.left + box.width - 4 * ratio), box.left + ctx.measureText(at.label).width), limit - 4 * ratio);
      ctx.restore();
    };
  }

  function draw(box) {
    var data = charts[+box.dataset.chart], ahead = data.ahead && (data.ahead.near || box.dataset.ahead === "true") && data.ahead,
      end = ahead ? ahead.end : data.x[data.x.length - 1], high = ahead ? Math.max(data.top, 1.1 * ahead.limit) : data.top, columns = [data.x], series = [{ label: data.axis, value: function (u, v) { return grouped(v === null || v === undefined ? data.x[data.x.length - 1] : v); } }], fills = [];
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
    var whole = []; // steps are: no line of the grid is between two
    for (var power = 1; power < 1e15; power *= 10) { whole.push(power, 2 * power, 5 * power); }
    var axis = { stroke: colour("quiet"), grid: { stroke: faded(colour("quiet"), 0.2), width: 1 }, ticks: { stroke: colour("rule") } };
    box.textContent = "";
    var plot = new uPlot({
      width: box.clientWidth, height: box.clientWidth < 600 ? 260 : 340,
      scales: {
        x: { time: false, range: function (u, low, top) { return [low, top === data.x[data.x.length - 1] && low === data.x[0] ? Math.max(end, low + 1) : top]; } },
        y: { range: function () { return [0, high]; } }
      },
      axes: [
        Object.assign({ label: data.axis, labelSize: 20, incrs: whole, values: function (u, v) { return v.map(grouped); } }, axis),
        Object.assign({ size: 72, splits: ticks, values: function (u, v) { return v.map(function (y) { return tick(y, high); }); } }, axis)
      ],
      series: series, bands: fills, cursor: { drag: { x: true, y: false } },
      hooks: { drawClear: [warmUp(data)], draw: [moments(data), names(data)].concat(ahead ? [forecast(data)] : []) }
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

  Array.prototype.forEach.call(document.querySelectorAll("button.ahead"), function (button) {
    button.onclick = function () {
      var box = button.closest("figure").querySelector(".chart");
      box.dataset.ahead = box.dataset.ahead !== "true";
      button.setAttribute("aria-pressed", box.dataset.ahead);
      drawAll();
    };
  });

  // What is wider than its room is scrolled by keyboard too.
  function reachable() {
    Array.prototype.forEach.call(document.querySelectorAll(".scroll"), function (room) {
      var wide = room.scrollWidth > room.clientWidth + 1;
      ["tabindex", "role", "aria-label"].forEach(function (name, i) {
        if (wide) { room.setAttribute(name, ["0", "region", "A table wider than the page"][i]); } else { room.removeAttribute(name); }
      });
    });
  }
  reachable();
  window.addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);

  drawAll();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  var width = window.innerWidth;
  window.addEventListener("resize", function () {
    if (window.innerWidth === width) { return; } // a phone's address bar came or went
    width = window.innerWidth;
    plots.forEach(function (p) { p.plot.setSize({ width: p.box.clientWidth, height: p.plot.height }); });
  });

  var flame = document.querySelector(".flame"), room = document.getElementById("flamebox");
  if (!flame) { return; } // nothing has a stack, or nothing grew
  function fit() { flame.setAttribute("width", room.clientWidth); }
  fit();
  window.addEventListener("resize", fit);
  flame.setAttribute("aria-label", "Flamegraph: " + document.querySelector("#flame .about").textContent);
  flamegraph(flame, {
    details: document.getElementById("details"), input: document.getElementById("search"), reset: document.getElementById("reset"),
    address: true, size: function () { return room.clientWidth; }
  });
})();
