// Zoom, search, hover and keyboard for one flamegraph. ui holds what stands
// around it: details (told of a box), input (a search field), reset (a button),
// and size, which gives the width to draw in.
function flamegraph(svg, ui) {
  "use strict";
  var all = svg.querySelectorAll(".box");
  if (all.length === 0) { return; }
  var boxes = Array.prototype.map.call(all, function (g) {
    var title = g.querySelector("title").textContent;
    return {
      g: g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, title: title,
      label: g.dataset.l || title.split("\n")[0], rect: g.querySelector("rect"), text: g.querySelector("text")
    };
  });
  var margin = +svg.dataset.margin, glyph = 6.65;
  var root = boxes[0], zoomed = root, at = root, words = "";

  function shown(b) { return !b.g.classList.contains("away"); }

  function label(b, w) {
    var room = Math.floor((w - 6) / glyph), runes = Array.from(b.label);
    if (runes.length > room && b.g.classList.contains("leak")) {
      runes = Array.from(b.label.replace(/^leak: /, ""));
    }
    if (runes.length <= room) { return runes.join(""); }
    return room < 3 ? "" : runes.slice(0, room - 1).join("") + "…";
  }

  function draw() {
    var width = ui.size() - 2 * margin, scale = width / zoomed.w;
    boxes.forEach(function (b) {
      var above = b.d < zoomed.d && b.x <= zoomed.x && b.x + b.w >= zoomed.x + zoomed.w;
      var below = b.d >= zoomed.d && b.x >= zoomed.x && b.x + b.w <= zoomed.x + zoomed.w;
      b.g.classList.toggle("away", !above && !below);
      if (!above && !below) { return; }
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
    ui.reset.classList.toggle("away", zoomed === root && words === "");
  }

  function zoom(to) {
    zoomed = to;
    draw();
  }

  function tell(b) { ui.details.textContent = b.title.replace("\n", ": "); }

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
      var hit = words !== "" && b !== root && test(b.title.split("\n")[0]);
      b.g.classList.toggle("hit", hit);
      if (hit) { hits.push(b); }
    });
    hits.sort(function (a, b) { return a.x - b.x; });
    var end = 0, sum = 0;
    hits.forEach(function (b) {
      sum += Math.max(0, b.x + b.w - Math.max(end, b.x));
      end = Math.max(end, b.x + b.w);
    });
    ui.details.textContent = words === "" ? "\u00a0" : hits.length + (hits.length === 1 ? " box matches “" : " boxes match “") + words + "”: " + (100 * sum / root.w).toFixed(1) + " % of the width";
    ui.reset.classList.toggle("away", zoomed === root && words === "");
  }

  function clear() {
    ui.input.value = "";
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
    b.g.addEventListener("click", function () { zoom(b); point(b); });
    b.g.addEventListener("mouseenter", function () { tell(b); });
    b.g.addEventListener("mouseleave", function () { ui.details.textContent = "\u00a0"; });
  });
  svg.addEventListener("mousemove", function () { svg.classList.remove("still"); });
  svg.addEventListener("focus", function () { point(at); tell(at); });
  svg.addEventListener("blur", function () { at.g.classList.remove("at"); });
  svg.addEventListener("keydown", function (event) {
    if (event.target !== svg) { return; }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      zoom(at);
      return;
    }
    var to = event.key.indexOf("Arrow") === 0 && neighbour(event.key);
    if (to) {
      event.preventDefault();
      point(to);
      tell(to);
    }
  });
  ui.input.addEventListener("input", function () { mark(ui.input.value); });
  ui.reset.addEventListener("click", clear);
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { clear(); }
    if (event.key === "/" && !/^(input|textarea)$/i.test(event.target.tagName)) {
      event.preventDefault();
      ui.input.focus();
    }
  });
  window.addEventListener("resize", draw);
  draw();
}
