// The page of one device's record: what was live after each event, drawn as one band a block.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("timeline").textContent);
  function element(id) { return document.getElementById(id); }

  // The lives, in the order of their births.
  var n = data.count, born = new Float64Array(n), died = new Float64Array(n), size = new Float64Array(n), site = new Int32Array(n);
  (function () {
    var raw = atob(data.lives), at = 0, last = 0;
    function varint() {
      var v = 0, m = 1, b;
      do { b = raw.charCodeAt(at++); v += (b & 127) * m; m *= 128; } while (b > 127);
      return v;
    }
    for (var i = 0; i < n; i++) {
      last += varint();
      var lived = varint();
      born[i] = last;
      died[i] = lived > 0 ? last + lived : Infinity;
      size[i] = varint();
      site[i] = varint();
    }
  })();

  // What happens, in the order of the record: life i begins, or -1-i ends. total is what is live after it.
  var ops, place, total;
  (function () {
    var ends = Array.prototype.filter.call(Int32Array.from({ length: n }, function (_, i) { return i; }), function (i) { return died[i] < Infinity; });
    ends.sort(function (a, b) { return died[a] - died[b]; });
    ops = new Int32Array(n + ends.length); place = new Float64Array(ops.length); total = new Float64Array(ops.length);
    for (var b = 0, d = 0, k = 0, sum = 0; k < ops.length; k++) {
      if (d < ends.length && (b === n || died[ends[d]] <= born[b])) {
        sum -= size[ends[d]]; place[k] = died[ends[d]]; ops[k] = -1 - ends[d++];
      } else {
        sum += size[b]; place[k] = born[b]; ops[k] = b++;
      }
      total[k] = sum;
    }
  })();

  // after is how many ops there are up to an event.
  function after(event) {
    var low = 0, high = ops.length;
    while (low < high) {
      var middle = low + high >> 1;
      if (place[middle] <= event) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  function binOf(event) { return Math.max(0, Math.min(data.bins.length - 1, Math.ceil(event / data.bin_events) - 1)); }
  function folded(event) { return data.bins[binOf(event)][2]; }
  var anyFolded = data.bins.some(function (b) { return b[2] > 0; }), anyReserved = data.bins.some(function (b) { return b[1] > 0; });

  // Times, in microseconds since the first event, are known of each bin's first event.
  var timed = data.bins.length > 1 && data.bins[data.bins.length - 1][3] > 0;
  function timeAt(event) {
    var i = binOf(Math.max(1, event)), start = data.bins[i][3], end = i + 1 < data.bins.length ? data.bins[i + 1][3] : start;
    return start + (end - start) * Math.max(0, Math.min(1, (event - 1 - i * data.bin_events) / data.bin_events));
  }
  function eventAt(time) {
    var low = 0, high = data.bins.length - 1;
    while (low < high) {
      var middle = low + high + 1 >> 1;
      if (data.bins[middle][3] <= time) { low = middle; } else { high = middle - 1; }
    }
    var start = data.bins[low][3], end = low + 1 < data.bins.length ? data.bins[low + 1][3] : start;
    return Math.min(data.events, (low + (end > start ? Math.min(1, (time - start) / (end - start)) : 0)) * data.bin_events + 1);
  }
  function duration(us) {
    if (us < 1000) { return rounded(us, 0) + " µs"; }
    if (us < 1e6) { return rounded(us / 1000, us < 1e5 ? 1 : 0) + " ms"; }
    return rounded(us / 1e6, us < 1e8 ? 2 : 0) + " s";
  }
  function grouped(v) { return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ","); }
  function when(event) {
    if (event <= 0) { return "before the record"; }
    return "event " + grouped(event) + (timed ? ", " + duration(timeAt(event)) + " after the first" : "");
  }

  // Sites: each has a colour, and its blocks shades of it. Red are leaks, and what may be one.
  var GROUPS = 60; // sites that are told apart where their blocks are too small to draw
  var suspects = data.sites.map(function (s) { return s.leak ? s.leak + ": " : ""; });
  function hue(s) { return suspects[s] ? 0 : 30 + s * 137.508 % 300; }
  function colour(s, shade) {
    var dimmed = view.chosen >= 0 && view.chosen !== s, light = [0.55, 0.62, 0.69][shade % 3];
    var c = dimmed ? 0.12 : suspects[s] ? 0.85 : 0.55, a = c * Math.min(light, 1 - light);
    function channel(k) {
      var t = (k + hue(s) / 30) % 12;
      return Math.round(255 * (light - a * Math.max(-1, Math.min(t - 3, 9 - t, 1))));
    }
    return (255 << 24 | channel(4) << 16 | channel(8) << 8 | channel(0)) >>> 0;
  }
  function css(s) { return "hsl(" + hue(s) + (suspects[s] ? " 85% 62%)" : " 55% 62%)"); }
  var GREY = 0xffaaa49f;

  // view is what is shown: a range of events, the range that is selected, the moment of the table, and how; what is of the table and
  // the flamegraph: what is live at the moment, or of the blocks allocated in the selection all, or those that it does not free.
  var view = { from: 0, to: data.events, left: -1, right: -1, at: data.peak_event, what: "live", chosen: -1, sites: false, time: false };

  // State is what is live after some ops: large blocks in a list by birth, and small ones in sums by site.
  function State(least) {
    this.least = least;
    this.next = new Int32Array(n + 1).fill(-1);
    this.previous = new Int32Array(n + 1).fill(-1);
    this.tail = n; // n is the list's head
    this.sums = new Float64Array(2 * (GROUPS + 1)); // of those from before the record, and of the others
    this.done = 0;
  }
  State.prototype.run = function (upto) {
    for (; this.done < upto; this.done++) {
      var op = ops[this.done], i = op < 0 ? -1 - op : op;
      if (size[i] < this.least) {
        this.sums[Math.min(site[i], GROUPS) + (born[i] > 0 ? GROUPS + 1 : 0)] += op < 0 ? -size[i] : size[i];
      } else if (op >= 0) {
        this.next[this.tail] = i; this.previous[i] = this.tail; this.next[i] = -1; this.tail = i;
      } else {
        var p = this.previous[i], q = this.next[i];
        this.next[p] = q;
        if (q >= 0) { this.previous[q] = p; } else { this.tail = p; }
      }
    }
  };
  // bands calls back for each band from the bottom up: its bytes, its site (-1 for what was folded) and its life, -1 of several.
  State.prototype.bands = function (event, each) {
    var sums = this.sums;
    function small(first) { for (var g = 0; g <= GROUPS; g++) { if (sums[first + g] > 0.5) { each(sums[first + g], g < GROUPS ? g : -1, -1); } } }
    small(0);
    for (var i = this.next[n]; i >= 0; i = this.next[i]) { each(size[i], site[i], i); }
    small(GROUPS + 1);
    if (folded(event) > 0) { each(folded(event), -1, -1); }
  };

  var canvas = element("canvas"), paper = canvas.getContext("2d"), LEFT = 74, TOP = 22, BOTTOM = 24;
  var columns = []; // of the picture: the op after which most is live in each
  var shape = null; // of the picture

  function eventOf(share) {
    if (!view.time) { return view.from + share * (view.to - view.from); }
    var start = timeAt(view.from), end = timeAt(view.to);
    return eventAt(start + share * (end - start));
  }
  function shareOf(event) {
    if (!view.time) { return (event - view.from) / (view.to - view.from); }
    var start = timeAt(view.from), end = timeAt(view.to);
    return (timeAt(event) - start) / Math.max(1e-9, end - start);
  }

  // tops finds the op after which most is live in each column; a peak is never between two.
  function tops(width) {
    columns = new Int32Array(width);
    var k = after(view.from), best = Math.max(0, k - 1);
    for (var x = 0; x < width; x++) {
      var until = after(eventOf((x + 1) / width));
      best = Math.max(0, k - 1);
      for (var j = k; j < until; j++) { if (total[j] > total[best] || j === k && k > 0 && total[j] > total[k - 1]) { best = j; } }
      columns[x] = best;
      k = Math.max(k, until);
    }
  }

  function draw() {
    var ratio = Math.min(window.devicePixelRatio || 1, 2), room = element("room");
    canvas.width = Math.round(room.clientWidth * ratio); canvas.height = Math.round(room.clientHeight * ratio);
    var left = Math.round(LEFT * ratio), top = Math.round(TOP * ratio), width = canvas.width - left, height = canvas.height - top - Math.round(BOTTOM * ratio);
    if (width < 2 || height < 2) { return; }
    tops(width);
    var highest = 1, x;
    var reserved = new Float64Array(width), live = new Float64Array(width);
    for (x = 0; x < width; x++) {
      var a = binOf(eventOf(x / width)), b = Math.max(a, binOf(eventOf((x + 1) / width)));
      for (var i = a; i <= b; i++) {
        live[x] = Math.max(live[x], data.bins[i][0]);
        reserved[x] = Math.max(reserved[x], data.bins[i][1]);
      }
      if (!anyFolded && ops.length > 0) { live[x] = total[columns[x]]; }
      highest = Math.max(highest, live[x], reserved[x]);
    }
    highest *= 1.04;
    var scale = height / highest, state = new State(view.sites ? Infinity : highest / height), style = getComputedStyle(document.body);
    var image = paper.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    shape = { ratio: ratio, left: left, top: top, width: width, height: height, scale: scale, least: state.least };
    for (x = 0; x < width && ops.length > 0; x++) {
      state.run(columns[x] + 1);
      var base = 0, y = 0;
      state.bands(place[columns[x]], function (bytes, s, life) {
        base += bytes;
        var to = Math.min(height, Math.round(base * scale)), c = s < 0 ? GREY : colour(s, Math.max(life, 0));
        for (; y < to; y++) { pixels[(height - 1 - y) * width + x] = c; }
      });
    }
    paper.fillStyle = style.getPropertyValue("--paper"); paper.fillRect(0, 0, canvas.width, canvas.height);
    paper.putImageData(image, left, top);
    frame(style, highest, live, reserved);
  }

  // ticks are the multiples of the smallest round step of which no more than wanted fit in.
  function ticks(low, high, wanted, factors, base) {
    var step = 0, out = [];
    for (var unit = 1; step === 0; unit *= base) {
      factors.forEach(function (f) { if (step === 0 && (high - low) / (f * unit) <= wanted) { step = f * unit; } });
    }
    for (var v = Math.ceil(low / step) * step; v <= high && out.length <= wanted; v += step) { out.push(v); }
    return out;
  }

  function line(values, paint, dash) {
    paper.beginPath();
    for (var x = 0; x < values.length; x++) { paper.lineTo(shape.left + x + 0.5, shape.top + shape.height - values[x] * shape.scale); }
    paper.setLineDash(dash); paper.strokeStyle = paint; paper.lineWidth = 1.5 * shape.ratio; paper.stroke(); paper.setLineDash([]);
  }

  function across(event, paint, dash, text) {
    var share = shareOf(event);
    if (share < 0 || share > 1) { return; }
    var x = shape.left + share * shape.width;
    paper.beginPath(); paper.moveTo(x, shape.top); paper.lineTo(x, shape.top + shape.height);
    paper.setLineDash(dash); paper.strokeStyle = paint; paper.lineWidth = 1.5 * shape.ratio; paper.stroke(); paper.setLineDash([]);
    if (text) { paper.fillStyle = paint; paper.textAlign = share > 0.8 ? "right" : "left"; paper.fillText(text, x + (share > 0.8 ? -4 : 4), shape.top - 12 * shape.ratio + 4); }
  }

  function frame(style, highest, live, reserved) {
    var r = shape.ratio, ink = style.getPropertyValue("--ink"), quiet = style.getPropertyValue("--quiet"), rule = style.getPropertyValue("--rule");
    paper.font = 12 * r + "px system-ui, sans-serif"; paper.textBaseline = "middle"; paper.textAlign = "right";
    ticks(0, highest, 6, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], 1024).forEach(function (v) {
      var y = shape.top + shape.height - v * shape.scale;
      paper.fillStyle = quiet; paper.fillText(bytes(v), shape.left - 6 * r, y);
      paper.fillStyle = rule; paper.globalAlpha = 0.5; paper.fillRect(shape.left, y, shape.width, 1); paper.globalAlpha = 1;
    });
    if (anyReserved) { line(reserved, style.getPropertyValue("--reserved"), [6 * r, 4 * r]); }
    line(live, ink, []);
    paper.textBaseline = "middle"; paper.textAlign = "center"; paper.fillStyle = quiet;
    var low = view.time ? timeAt(view.from) : view.from, high = view.time ? timeAt(view.to) : view.to;
    ticks(low, high, 8, [1, 2, 5], 10).forEach(function (v) {
      var x = shape.left + (v - low) / (high - low) * shape.width;
      paper.fillText(view.time ? duration(v) : grouped(v), Math.min(x, canvas.width - 24 * r), shape.top + shape.height + 13 * r);
    });
    var last = 0; // steps are bands at the foot of the picture
    data.steps.forEach(function (end, i) {
      var a = Math.max(0, shareOf(last)), b = Math.min(1, shareOf(end));
      last = end;
      if (b <= 0 || a >= 1) { return; }
      paper.fillStyle = i % 2 ? quiet : rule;
      paper.fillRect(shape.left + a * shape.width, shape.top + shape.height, Math.max(1, (b - a) * shape.width), 4 * r);
      if ((b - a) * shape.width > 60 * r) { paper.textAlign = "center"; paper.fillStyle = quiet; paper.fillText("step " + (i + 1), shape.left + (a + b) / 2 * shape.width, shape.top - 9 * r); }
    });
    data.refused.forEach(function (o) { across(o[0], style.getPropertyValue("--limit"), [2 * r, 3 * r], "out of memory: " + bytes(o[1])); });
    if (view.left >= 0) {
      var a = Math.max(0, shareOf(view.left)), b = Math.min(1, shareOf(view.right));
      paper.globalAlpha = 0.15; paper.fillStyle = ink;
      if (b > a) { paper.fillRect(shape.left + a * shape.width, shape.top, (b - a) * shape.width, shape.height); }
      paper.globalAlpha = 1;
    }
    across(view.at, ink, [], "");
  }

  function what() { return view.left >= 0 ? view.what : "live"; }

  // What is live at the moment, or was allocated in the selection, by site; and in any case what was allocated in the selection, or the record.
  function tally() {
    var out = data.sites.map(function (s, i) { return { site: i, blocks: 0, bytes: 0, made: 0 }; }), i;
    var from = view.left >= 0 ? view.left : 0, to = view.left >= 0 ? view.right : data.events, of = what();
    for (i = 0; i < n; i++) {
      var s = out[site[i]], made = born[i] > from && born[i] <= to;
      if (of === "live" ? born[i] <= view.at && died[i] > view.at : made && (of === "made" || died[i] > to)) { s.blocks++; s.bytes += size[i]; }
      if (made) { s.made += size[i]; }
    }
    return out;
  }

  function cell(row, text, number) {
    var td = row.insertCell();
    if (number) { td.className = "n"; }
    td.textContent = text;
    return td;
  }

  var ROWS = 30;
  function table() {
    var of = what(), all = tally().filter(function (s) { return s.blocks > 0 || of === "live" && view.left >= 0 && s.made > 0; }), body = element("sites");
    all.sort(function (a, b) { return b.bytes - a.bytes || b.made - a.made; });
    var told = 0, peak = view.at === data.peak_event, rest;
    all.forEach(function (s) { told += s.bytes; });
    rest = of !== "live" ? 0 : peak ? data.peak - told : folded(view.at);
    var sum = told + rest;
    body.textContent = "";
    all.slice(0, ROWS).forEach(function (s) {
      var row = body.insertRow();
      cell(row, grouped(s.blocks), true); cell(row, bytes(s.bytes), true); cell(row, rounded(100 * s.bytes / Math.max(1, sum), 1) + " %", true); cell(row, bytes(s.made), true);
      var td = cell(row, ""), swatch = document.createElement("span"), button = document.createElement("span");
      swatch.className = "swatch"; swatch.style.background = css(s.site);
      button.textContent = suspects[s.site] + data.sites[s.site].label;
      td.appendChild(swatch); td.appendChild(button);
      row.classList.toggle("chosen", view.chosen === s.site);
      row.tabIndex = 0;
      function choose() { view.chosen = view.chosen === s.site ? -1 : s.site; changed(); }
      row.addEventListener("click", choose);
      row.addEventListener("keydown", function (event) { if (event.key === "Enter") { choose(); } });
    });
    element("more").textContent = (all.length > ROWS ? "and " + grouped(all.length - ROWS) + " more sites. " : "") +
      (rest > 0 ? bytes(rest) + " more is of blocks too small or too brief to tell one by one." : of !== "live" && anyFolded ? "Blocks too small or too brief to tell one by one are not counted." : "");
    element("when").textContent = of === "made" ? bytes(sum) + " allocated in the selection, events " + grouped(view.left + 1) + " to " + grouped(view.right) :
      of === "kept" ? bytes(sum) + " allocated in the selection and live at its end, " + when(view.right) : (rest > 0 && !peak ? "about " : "") + bytes(sum) + " live " + (peak ? "at the peak, " : view.at <= 0 ? "" : "after ") + when(view.at);
    if (of === "live" && (view.at < view.from || view.at > view.to)) { element("when").textContent += " (outside the picture)"; }
    element("inrange").textContent = view.left >= 0 ? "allocated in the selection" : "allocated in the record";
    icicle(all);
  }

  // icicle draws what the table has by call, as the flamegraphs of memdiag are.
  var drop = null;
  function icicle(all) {
    var NS = "http://www.w3.org/2000/svg", root = { name: "all", w: 0, library: true, below: new Map() }, deepest = 0, room = element("flameroom"), boxes = 0;
    all.forEach(function (s) {
      if (s.bytes === 0) { return; }
      var at = root;
      root.w += s.bytes;
      data.sites[s.site].frames.forEach(function (f) {
        var next = at.below.get(f);
        if (!next) { at.below.set(f, next = { name: data.names[f][0], label: data.names[f][1], w: 0, library: data.names[f][2], below: new Map() }); }
        next.w += s.bytes;
        at = next;
      });
    });
    if (drop) { drop(); drop = null; }
    room.textContent = "";
    if (root.w === 0) { return; }
    var svg = document.createElementNS(NS, "svg"), group = document.createElementNS(NS, "g");
    svg.setAttribute("class", "flame"); svg.setAttribute("tabindex", "0"); svg.setAttribute("role", "application"); svg.setAttribute("aria-label", "Flamegraph of " + element("when").textContent);
    svg.dataset.margin = 2; svg.dataset.top = 2; svg.dataset.foot = 2;
    svg.appendChild(group);
    function put(node, x, depth) {
      if (boxes++ > 1500 || node.w < root.w / 2000) { return; }
      deepest = Math.max(deepest, depth);
      var g = document.createElementNS(NS, "g"), title = document.createElementNS(NS, "title"), rect = document.createElementNS(NS, "rect");
      g.setAttribute("class", "box"); g.dataset.x = x; g.dataset.w = node.w; g.dataset.d = depth; g.dataset.l = node.label || node.name;
      title.textContent = node.name + "\n" + bytes(node.w) + ", " + rounded(100 * node.w / root.w, 1) + " %";
      rect.setAttribute("y", 2 + depth * 17); rect.setAttribute("height", 16); rect.setAttribute("rx", 1);
      rect.setAttribute("fill", node === root ? "#d9dee3" : node.library ? "#dfe1e4" : "#f0b070");
      g.appendChild(title); g.appendChild(rect); group.appendChild(g);
      Array.from(node.below.values()).sort(function (a, b) { return b.w - a.w; }).forEach(function (c) { put(c, x, depth + 1); x += c.w; });
    }
    put(root, 0, 0);
    room.appendChild(svg);
    function width() { return room.clientWidth; }
    svg.setAttribute("width", width());
    drop = flamegraph(svg, { details: element("details"), input: element("search"), reset: element("reset"), size: width });
  }

  // The block under the pointer.
  function bandAt(x, y) {
    if (!shape || ops.length === 0) { return null; }
    var column = Math.round(x * shape.ratio) - shape.left, height = shape.top + shape.height - y * shape.ratio;
    if (column < 0 || column >= shape.width || height < 0) { return null; }
    var state = new State(shape.least), base = 0, found = null, event = place[columns[column]];
    state.run(columns[column] + 1);
    state.bands(event, function (bytes, s, life) {
      if (!found && height <= (base + bytes) * shape.scale) { found = { bytes: bytes, site: s, life: life, event: event }; }
      base += bytes;
    });
    return found || { event: event, live: base };
  }

  function told(b) {
    if (!b) { return ""; }
    if (b.live !== undefined) { return bytes(b.live) + " live after " + when(b.event) + "; " + bytes(data.bins[binOf(b.event)][1]) + " reserved"; }
    if (b.site < 0) { return bytes(b.bytes) + " of blocks too small or too brief to tell one by one"; }
    if (b.life < 0) { return bytes(b.bytes) + " in blocks of " + data.sites[b.site].label; }
    var i = b.life, text = bytes(size[i]) + ", " + suspects[b.site] + data.sites[b.site].label + "; allocated " + (born[i] > 0 ? "at " : "") + when(born[i]);
    return text + (died[i] < Infinity ? "; freed at " + when(died[i]) : "; live at the end");
  }

  // stack is that of a band's site, innermost first, a call a line.
  function stack(b) {
    if (!b || b.site === undefined || b.site < 0) { return ""; }
    return data.sites[b.site].frames.slice().reverse().map(function (f) { return data.names[f][0]; }).join("\n");
  }

  // The address keeps what is shown.
  function remember() {
    var text = "#from=" + Math.round(view.from) + "&to=" + Math.round(view.to) + "&at=" + view.at + (view.left >= 0 ? "&left=" + view.left + "&right=" + view.right : "") +
      (view.what !== "live" ? "&what=" + view.what : "") + (view.sites ? "&sites" : "") + (view.time ? "&time" : "") + (view.chosen >= 0 ? "&site=" + view.chosen : "");
    try { history.replaceState(null, "", text); } catch (notHere) { /* a page within another may not */ }
  }
  function recall() {
    view.sites = view.time = false; view.what = "live"; view.chosen = view.left = view.right = -1;
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) {
      var v = Math.round(+value);
      if (key === "what" && /^(made|kept)$/.test(value)) { view.what = value; }
      if (key === "sites" || key === "time" && timed) { view[key] = true; }
      if (value === "" || !isFinite(v) || v < 0 || v > data.events) { return; }
      if (/^(from|to|at|left|right)$/.test(key)) { view[key] = v; }
      if (key === "site" && v < data.sites.length) { view.chosen = v; }
    });
    if (view.to - view.from < 2) { view.from = 0; view.to = data.events; }
    if (view.left < 0 || view.right <= view.left) { view.left = view.right = -1; }
  }

  var asked = false;
  function redraw() {
    if (asked) { return; }
    asked = true;
    window.requestAnimationFrame(function () { asked = false; draw(); });
  }
  function changed() {
    element("bysite").checked = view.sites; element("bytime").checked = view.time;
    element("whole").disabled = view.from <= 0 && view.to >= data.events && view.left < 0;
    element("tozoom").disabled = element("what").disabled = view.left < 0;
    element("what").value = what();
    remember(); redraw(); table();
  }
  function show(from, to) {
    if (!isFinite(from) || !isFinite(to)) { return; }
    var least = Math.min(data.events, 8), width = Math.max(least, Math.min(data.events, to - from));
    view.from = Math.max(0, Math.min(data.events - width, from)); view.to = view.from + width;
    changed();
  }
  function zoom(by, share) {
    var event = eventOf(share), width = (view.to - view.from) * by;
    show(event - (event - view.from) * by, event - (event - view.from) * by + width);
  }
  function whole() {
    view.left = view.right = -1; view.at = data.peak_event; view.chosen = -1;
    view.from = 0; view.to = data.events;
    changed();
  }

  // highestIn is the event after which most was live in a range.
  function highestIn(left, right) {
    var k = after(left), until = after(right), best = k;
    for (; k < until; k++) { if (total[k] > total[best]) { best = k; } }
    return best < ops.length ? place[best] : right;
  }

  var down = null;
  function share(event) { return Math.max(0, Math.min(1, ((event.clientX - canvas.getBoundingClientRect().left) - LEFT) / Math.max(1, canvas.clientWidth - LEFT))); }
  canvas.addEventListener("pointerdown", function (event) { if (event.button === 0) { down = share(event); canvas.setPointerCapture(event.pointerId); } });
  canvas.addEventListener("pointermove", function (event) {
    var box = canvas.getBoundingClientRect();
    if (down === null) {
      var band = bandAt(event.clientX - box.left, event.clientY - box.top), calls = stack(band);
      element("readout").textContent = told(band);
      if (canvas.title !== calls) { canvas.title = calls; } // a browser shows it as a tooltip
      return;
    }
    var to = share(event);
    if (Math.abs(to - down) * canvas.clientWidth > 4) {
      view.left = Math.floor(eventOf(Math.min(down, to))); view.right = Math.ceil(eventOf(Math.max(down, to)));
      redraw();
    }
  });
  canvas.addEventListener("pointerup", function (event) {
    if (down === null) { return; }
    var to = share(event), moved = Math.abs(to - down) * canvas.clientWidth > 4;
    if (moved) {
      view.at = highestIn(view.left, view.right);
    } else {
      view.left = view.right = -1;
      if (!shape) { return; }
      var x = Math.min(shape.width - 1, Math.floor(to * shape.width));
      view.at = ops.length > 0 ? place[columns[x]] : 0;
    }
    down = null;
    changed();
  });
  canvas.addEventListener("pointercancel", function () { down = null; });
  canvas.addEventListener("wheel", function (event) {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      var by = (view.to - view.from) * 0.0015 * (event.deltaX || event.deltaY);
      show(view.from + by, view.to + by);
    } else {
      zoom(Math.pow(1.0015, event.deltaY), share(event));
    }
  }, { passive: false });
  canvas.addEventListener("keydown", function (event) {
    var width = view.to - view.from;
    switch (event.key) {
    case "ArrowLeft": show(view.from - width / 8, view.to - width / 8); break;
    case "ArrowRight": show(view.from + width / 8, view.to + width / 8); break;
    case "+": case "=": zoom(0.7, 0.5); break;
    case "-": zoom(1 / 0.7, 0.5); break;
    case "0": whole(); break;
    default: return;
    }
    event.preventDefault();
  });
  element("bysite").addEventListener("change", function () { view.sites = element("bysite").checked; changed(); });
  element("bytime").addEventListener("change", function () { view.time = element("bytime").checked; changed(); });
  element("what").addEventListener("change", function () { view.what = element("what").value; changed(); });
  element("tozoom").addEventListener("click", function () { show(view.left, view.right); });
  element("whole").addEventListener("click", whole);
  element("timed").classList.toggle("away", !timed);
  element("reservedkey").classList.toggle("away", !anyReserved);
  window.addEventListener("resize", redraw);
  window.addEventListener("hashchange", function () { recall(); changed(); });
  recall();
  changed();
})();
