// bytes prints three digits in the largest unit reached, as memdiag does.
function bytes(v) {
  "use strict";
  if (v === null || v === undefined) { return "?"; }
  var units = ["B", "KiB", "MiB", "GiB", "TiB"], i = 0, abs = Math.abs(v);
  while (i < units.length - 1 && abs / 1024 >= 0.9995) { v /= 1024; abs /= 1024; i++; }
  var digits = i === 0 && v % 1 === 0 || abs >= 99.95 ? 0 : abs >= 9.995 ? 1 : 2;
  return rounded(v, digits) + " " + units[i];
}

// rounded rounds a tie to the even digit, as memdiag's own texts do; toFixed
// rounds it up. Sixty digits are all that a figure of bytes has.
function rounded(v, digits) {
  "use strict";
  var scale = Math.pow(10, digits);
  if (!/^50*$/.test((v.toFixed(60).split(".")[1] || "").slice(digits))) { return v.toFixed(digits); }
  return (2 * Math.round(v * scale / 2) / scale).toFixed(digits);
}

// Zoom, search, hover and keyboard for one flamegraph, and the sandwich of a function. ui holds what stands
// around it: details (told of a box), input (a search field), reset (a button),
// size, which gives the width to draw in, foot, the height of details below it
// where they are part of the picture, and address, true where the page's address keeps what is selected. It returns what takes its listeners off again.
function flamegraph(svg, ui) {
  "use strict";
  var all = svg.querySelectorAll(".box");
  if (all.length === 0) { return null; }
  var boxes = Array.prototype.map.call(all, function (g) {
    var title = g.querySelector("title").textContent;
    return {
      g: g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, title: title,
      fold: g.classList.contains("fold"), label: g.dataset.l || title.split("\n")[0], rect: g.querySelector("rect"), text: g.querySelector("text")
    };
  });
  var margin = +svg.dataset.margin, glyph = 6.65;
  var root = boxes[0], zoomed = root, at = root, words = "", found = ""; // what the search found, in words
  var middle = "", layer = null; // the call whose sandwich is shown, and what that is drawn in
  var hint = "Point at a call for its figures; click or Enter zooms, Shift+click or S shows a function's callers and callees, arrow keys walk, / searches, Escape resets.";
  var metadata = svg.querySelector(".hidden"), hidden = metadata ? JSON.parse(metadata.textContent) : { names: [], boxes: [] };

  // size is a width in bytes, or in bytes a step.
  function size(w) { return svg.dataset.per ? bytes(w / +svg.dataset.scale) + "/" + svg.dataset.per : bytes(w); }

  function say(text) { ui.details.textContent = text || found || hint; }

  function shown(b) { return !b.g.classList.contains("away"); }

  // fit sets the picture's height for so many rows.
  function fit(rows) {
    var height = +svg.dataset.top + rows * 17 + (+svg.dataset.foot) + (ui.foot || 0);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", "0 0 " + ui.size() + " " + height);
    if (ui.foot) { ui.details.setAttribute("y", height - 12); }
  }

  function label(b, w) {
    var room = Math.floor((w - 6) / glyph), runes = Array.from(b.label);
    if (runes.length > room && b.g.classList.contains("leak")) {
      runes = Array.from(b.label.replace(/^leak: /, ""));
    }
    if (runes.length <= room) { return runes.join(""); }
    return room < 3 ? "" : runes.slice(0, room - 1).join("") + "…";
  }

  function draw() {
    if (layer) { layer.remove(); layer = null; }
    root.g.parentNode.classList.toggle("away", middle !== "");
    ui.reset.classList.toggle("away", zoomed === root && words === "" && middle === "");
    if (middle !== "") { drawSandwich(); return; }
    var width = ui.size() - 2 * margin, scale = width / zoomed.w, deepest = 0;
    boxes.forEach(function (b) {
      var above = b.d < zoomed.d && b.x <= zoomed.x && b.x + b.w >= zoomed.x + zoomed.w;
      var below = b.d >= zoomed.d && b.x >= zoomed.x && b.x + b.w <= zoomed.x + zoomed.w;
      b.g.classList.toggle("away", !above && !below);
      if (!above && !below) { return; }
      if (b.w * scale >= 1) { deepest = Math.max(deepest, b.d); }
      var x = above ? margin : margin + (b.x - zoomed.x) * scale, w = above ? width : b.w * scale;
      b.rect.setAttribute("x", x);
      b.rect.setAttribute("width", Math.max(w - 0.5, 0.1));
      b.g.setAttribute("opacity", above ? 0.55 : 1);
      var text = label(b, w);
      if (text && !b.text) {
        b.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        b.text.setAttribute("y", +b.rect.getAttribute("y") + 12);
        b.g.appendChild(b.text);
      }
      if (b.text) {
        b.text.setAttribute("x", x + 3);
        b.text.textContent = text;
      }
    });
    // Rows in which nothing can be seen are no part of the picture.
    fit(deepest + 1);
    boxes.forEach(function (b) { b.g.setAttribute("visibility", b.d > deepest ? "hidden" : "visible"); });
  }

  // drawSandwich draws the callers of a function above it, and what it calls below.
  function drawSandwich() {
    var NS = "http://www.w3.org/2000/svg", all = sandwich(boxes, hidden, middle), width = ui.size() - 2 * margin, scale = width / Math.max(1, all.w);
    var seen = all.boxes.filter(function (b) { return b.w * scale >= 1; }), rows = seen.map(function (b) { return b.d; }), first = Math.min.apply(null, rows);
    layer = document.createElementNS(NS, "g");
    layer.setAttribute("class", "sandwich");
    seen.forEach(function (b) {
      var g = document.createElementNS(NS, "g"), rect = document.createElementNS(NS, "rect"), text = document.createElementNS(NS, "text"), title = document.createElementNS(NS, "title");
      var x = margin + b.x * scale, w = b.w * scale, y = +svg.dataset.top + (b.d - first) * 17;
      title.textContent = b.name + "\n" + size(b.w) + ", " + rounded(100 * b.w / all.w, 1) + " % of " + all.name;
      g.setAttribute("class", b.middle ? "box middle" : "box");
      [["x", x], ["y", y], ["width", Math.max(w - 0.5, 0.1)], ["height", 16], ["rx", 1], ["fill", b.fill || "#dfe1e4"]].forEach(function (a) { rect.setAttribute(a[0], a[1]); });
      text.setAttribute("x", x + 3); text.setAttribute("y", y + 12);
      text.textContent = label({ label: short(b.name), g: g }, w);
      g.appendChild(title); g.appendChild(rect); g.appendChild(text); layer.appendChild(g);
      g.addEventListener("click", function () { turn(b.name); });
      g.addEventListener("mouseenter", function () { say(title.textContent.replace("\n", ": ")); });
      g.addEventListener("mouseleave", function () { say(""); });
    });
    root.g.parentNode.parentNode.insertBefore(layer, root.g.parentNode);
    fit(Math.max.apply(null, rows) - first + 1);
    found = all.name + ": " + size(all.w) + ", " + rounded(100 * all.w / root.w, 1) + " % of all; callers above, callees below" + (hidden.more ? "; some calls too small to draw are left out" : "");
    say("");
  }

  // short is how the flamegraph labels a call of this name.
  function short(name) {
    var drawn = boxes.filter(function (b) { return b.title.split("\n")[0] === name; })[0];
    return drawn ? drawn.label.replace(/^(leak: |− )/, "") : name;
  }

  function turn(name) {
    if (name === root.title.split("\n")[0]) { return; } // what all calls are below
    middle = name;
    draw();
    remember();
  }

  // The address keeps what is selected: a box by its number, which is the same in each browser.
  function remember() {
    var parts = [], box = boxes.filter(function (b) { return b.title.split("\n")[0] === middle; })[0];
    if (!ui.address) { return; }
    if (zoomed !== root) { parts.push("zoom=" + boxes.indexOf(zoomed)); }
    if (middle !== "" && box) { parts.push("function=" + boxes.indexOf(box)); }
    if (words !== "") { parts.push("find=" + encodeURIComponent(words)); }
    if (parts.length === 0 && !/^#(zoom|function|find)=/.test(location.hash)) { return; } // it leads to a part of the page
    try { history.replaceState(null, "", location.href.split("#")[0] + (parts.length ? "#" + parts.join("&") : "")); } catch (notHere) { /* a page within another may not */ }
  }
  function recall() {
    if (!ui.address || !/^#(zoom|function|find)=/.test(location.hash)) { return; }
    var asked = new URLSearchParams(location.hash.slice(1)), zoomTo = boxes[asked.get("zoom") || 0], of = boxes[asked.get("function")];
    zoomed = zoomTo && !zoomTo.fold ? zoomTo : root;
    middle = of && of !== root && !of.fold ? of.title.split("\n")[0] : "";
    ui.input.value = asked.get("find") || "";
    mark(ui.input.value);
    draw();
  }

  function zoom(to) {
    zoomed = to;
    draw();
    remember();
  }

  function tell(b) { say(b.title.replace("\n", ": ")); }

  function mark(wanted) {
    var test;
    words = wanted;
    try {
      var pattern = new RegExp(words, "i");
      test = function (s) { return pattern.test(s); };
    } catch (notAPattern) {
      test = function (s) { return s.indexOf(words) >= 0; };
    }
    // A hit below another hit is counted once: hits are merged along the axis.
    var hits = [];
    boxes.forEach(function (b) {
      var hit = words !== "" && b !== root && !b.fold && test(b.title.split("\n")[0]);
      b.g.classList.toggle("hit", hit);
      b.g.classList.remove("within");
      if (hit) { hits.push(b); }
    });
    hits.sort(function (a, b) { return a.x - b.x; });
    var end = 0, sum = 0;
    hits.forEach(function (b) {
      sum += Math.max(0, b.x + b.w - Math.max(end, b.x));
      end = Math.max(end, b.x + b.w);
    });
    var small = words === "" ? { hits: 0, sum: 0 } : undrawn(test, hits), n = hits.length + small.hits;
    sum += small.sum;
    found = words === "" ? "" : (hidden.more ? "at least " : "") + n + (n === 1 ? " call matches “" : " calls match “") + words + "”: " + size(sum) + ", " +
      (100 * sum / root.w).toFixed(1) + " % of all" + (small.hits > 0 ? "; " + small.hits + " too small to draw" : "");
    say("");
    ui.reset.classList.toggle("away", zoomed === root && words === "" && middle === "");
  }

  // undrawn adds up what matches among the calls that are too small to draw, and is not below
  // a call that matches.
  function undrawn(test, hits) {
    var named = hidden.names.map(test), covered = [], out = { hits: 0, sum: 0 };
    var under = boxes.map(function (b) { return hits.some(function (h) { return h.d <= b.d && within(h, b); }); });
    hidden.boxes.forEach(function (b, i) {
      var parent = b[1], above = parent >= 0 ? under[parent] : covered[-1 - parent];
      covered[i] = above || named[b[0]];
      if (!named[b[0]]) { return; }
      out.hits++;
      if (!above) { out.sum += b[2]; }
      while (parent < 0) { parent = hidden.boxes[-1 - parent][1]; }
      var p = boxes[parent];
      boxes.forEach(function (f) { if (f.fold && f.d === p.d + 1 && within(p, f)) { f.g.classList.add("within"); } });
    });
    return out;
  }

  function clear() {
    ui.input.value = "";
    middle = "";
    mark("");
    zoom(root);
    point(root);
    svg.classList.add("still"); // what lies under a resting pointer is not outlined until it moves
  }

  // point moves the keyboard's place in the graph.
  function point(b) {
    at.g.classList.remove("at");
    at = b;
    at.g.classList.add("at");
  }

  function within(outer, inner) { return outer.x <= inner.x && outer.x + outer.w >= inner.x + inner.w; }

  // neighbour is the box that an arrow key leads to from where one stands.
  function neighbour(key) {
    var best = null;
    boxes.forEach(function (b) {
      if (!shown(b)) { return; }
      switch (key) {
      case "ArrowUp": // the caller
        if (b.d === at.d - 1 && within(b, at)) { best = b; }
        break;
      case "ArrowDown": // the widest call below
        if (b.d === at.d + 1 && within(at, b) && (!best || b.w > best.w)) { best = b; }
        break;
      case "ArrowLeft":
        if (b.d === at.d && b.x < at.x && (!best || b.x > best.x)) { best = b; }
        break;
      case "ArrowRight":
        if (b.d === at.d && b.x > at.x && (!best || b.x < best.x)) { best = b; }
        break;
      }
    });
    return best;
  }

  boxes.forEach(function (b) {
    b.g.addEventListener("click", function (event) {
      point(b);
      if (event.shiftKey && !b.fold) { turn(b.title.split("\n")[0]); } else { zoom(b); }
    });
    b.g.addEventListener("mouseenter", function () { tell(b); });
    b.g.addEventListener("mouseleave", function () { say(""); });
  });
  svg.addEventListener("mousemove", function () { svg.classList.remove("still"); });
  svg.addEventListener("focus", function () { point(at); tell(at); });
  svg.addEventListener("blur", function () { at.g.classList.remove("at"); });
  svg.addEventListener("keydown", function (event) {
    if (event.target !== svg) { return; }
    if (middle === "" && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      zoom(at);
      return;
    }
    if (middle !== "") { return; }
    if (event.key.toLowerCase() === "s" && !event.ctrlKey && !event.metaKey && !event.altKey && !at.fold) {
      turn(at.title.split("\n")[0]);
      return;
    }
    var to = event.key.indexOf("Arrow") === 0 && neighbour(event.key);
    if (to) {
      event.preventDefault();
      point(to);
      tell(to);
    }
  });
  var gone = new AbortController();
  ui.input.addEventListener("input", function () {
    if (middle !== "") { middle = ""; draw(); }
    mark(ui.input.value);
    remember();
  }, { signal: gone.signal });
  ui.reset.addEventListener("click", clear, { signal: gone.signal });
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { clear(); }
    if (event.key === "/" && !/^(input|textarea)$/i.test(event.target.tagName)) {
      event.preventDefault();
      ui.input.focus();
    }
  }, { signal: gone.signal });
  window.addEventListener("resize", draw, { signal: gone.signal });
  window.addEventListener("hashchange", recall, { signal: gone.signal });
  say("");
  draw();
  recall();
  return function () { gone.abort(); };
}
