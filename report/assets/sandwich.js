// sandwich lays out a function's callers above it and what it calls below it, all its calls together. boxes are a flamegraph's, and
// hidden what is too small to draw in it. It returns the width of the function, and its boxes: x and w in the flamegraph's unit, d
// the row, name, and fill, undefined where the flamegraph drew no box of the name.
function sandwich(boxes, hidden, title) {
  "use strict";
  // A call's line differs from call to call of one function.
  function functionOf(name) { return name.replace(/:\d+\)$/, ")"); }
  var fills = new Map(), nodes = [], byRow = [], ofBox = new Map();
  function node(name, w, parent) {
    var made = { name: name, w: w, parent: parent, below: [] };
    nodes.push(made);
    if (parent) { parent.below.push(made); }
    return made;
  }
  boxes.forEach(function (b) {
    if (b.fold) { return; }
    var name = b.title.split("\n")[0], above = (byRow[b.d - 1] || []).filter(function (p) { return p.x <= b.x && p.x + p.w >= b.x + b.w; })[0];
    if (!fills.has(name)) { fills.set(name, b.rect.getAttribute("fill")); }
    ofBox.set(b, node(name, b.w, above ? ofBox.get(above) : null));
    (byRow[b.d] = byRow[b.d] || []).push(b);
  });
  var small = [];
  hidden.boxes.forEach(function (b) {
    small.push(node(hidden.names[b[0]], b[2], b[1] >= 0 ? ofBox.get(boxes[b[1]]) : small[-1 - b[1]]));
  });

  // A call within another of the same function is one of its callees.
  var wanted = functionOf(title), found = nodes.filter(function (n) {
    if (functionOf(n.name) !== wanted) { return false; }
    for (var p = n.parent; p; p = p.parent) { if (functionOf(p.name) === wanted) { return false; } }
    return true;
  });
  var sum = 0, out = [], callers = { w: 0, next: new Map() }, callees = { w: 0, next: new Map() };
  function into(tree, name, w) {
    var at = tree.next.get(name);
    if (!at) { tree.next.set(name, at = { w: 0, next: new Map() }); }
    at.w += w;
    return at;
  }
  function gather(tree, n) { n.below.forEach(function (c) { gather(into(tree, c.name, c.w), c); }); }
  found.forEach(function (n) {
    sum += n.w;
    for (var at = callers, p = n.parent; p && p.parent; p = p.parent) { at = into(at, p.name, n.w); } // the root is no call
    gather(callees, n);
  });
  function place(tree, x, row, step) {
    Array.from(tree.next.entries()).sort(function (a, b) { return b[1].w - a[1].w || (a[0] < b[0] ? -1 : 1); }).forEach(function (e) {
      out.push({ x: x, w: e[1].w, d: row, name: e[0], fill: fills.get(e[0]) });
      place(e[1], x, row + step, step);
      x += e[1].w;
    });
  }
  out.push({ x: 0, w: sum, d: 0, name: title, fill: fills.get(title), middle: true });
  place(callers, 0, -1, -1);
  place(callees, 0, 1, 1);
  return { w: sum, name: wanted, boxes: out };
}
