(function () {
  "use strict";
  var svg = document.currentScript.closest("svg");
  var one = function (selector) { return svg.querySelector(selector); };
  var boxes = Array.prototype.map.call(svg.querySelectorAll(".b"), function (g) {
    return {
      g: g, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, label: g.dataset.l,
      rect: g.querySelector("rect"), text: g.querySelector("text"), title: g.querySelector("title").textContent
    };
  });
  if (boxes.length === 0) { return; }
  var margin = 10, width = 1180, glyph = 6.65, root = boxes[0], zoomed = root;
  var details = one(".details"), search = one(".search"), reset = one(".reset");
  search.classList.remove("hidden");

  function label(box, w) {
    var room = Math.floor((w - 6) / glyph), runes = Array.from(box.label);
    if (runes.length > room && box.g.classList.contains("leak")) {
      runes = Array.from(box.label.replace(/^leak: /, ""));
    }
    if (runes.length <= room) { return runes.join(""); }
    return room < 3 ? "" : runes.slice(0, room - 1).join("") + "…";
  }

  function zoom(to) {
    zoomed = to;
    var scale = width / to.w;
    boxes.forEach(function (b) {
      var above = b.d < to.d && b.x <= to.x && b.x + b.w >= to.x + to.w;
      var below = b.d >= to.d && b.x >= to.x && b.x + b.w <= to.x + to.w;
      b.g.classList.toggle("hidden", !above && !below);
      if (!above && !below) { return; }
      var x = above ? margin : margin + (b.x - to.x) * scale, w = above ? width : b.w * scale;
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
    controls();
  }

  function controls() {
    reset.classList.toggle("hidden", zoomed === root && !svg.querySelector(".hit"));
  }

  function mark(words) {
    var test;
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
    details.textContent = words === "" ? " " : hits.length + (hits.length === 1 ? " box matches “" : " boxes match “") + words + "”: " + (100 * sum / root.w).toFixed(1) + " % of the width";
    controls();
  }

  function ask() {
    var words = window.prompt("Mark the calls whose name or file matches (a word or a regular expression):", "");
    mark(words === null ? "" : words); // to cancel clears, too
  }

  // The box under a resting pointer is not outlined again until it moves.
  function clear() {
    mark("");
    zoom(root);
    svg.classList.add("still");
  }

  boxes.forEach(function (b) {
    b.g.addEventListener("click", function () { zoom(b); });
    b.g.addEventListener("mouseenter", function () { details.textContent = b.title.replace("\n", ": "); });
    b.g.addEventListener("mouseleave", function () { details.textContent = " "; });
  });
  search.addEventListener("click", ask);
  reset.addEventListener("click", clear);
  svg.addEventListener("mousemove", function () { svg.classList.remove("still"); });
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { clear(); }
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); ask(); }
  });
})();
