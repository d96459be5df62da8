// A flamegraph that is a file of its own brings its search field. It stands in no
// picture viewer that runs no scripts.
(function () {
  "use strict";
  var svg = document.documentElement;
  var place = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  var input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
  [["x", "1000"], ["y", "6"], ["width", "192"], ["height", "26"]].forEach(function (a) { place.setAttribute(a[0], a[1]); });
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "search (/)");
  input.setAttribute("aria-label", "Mark the calls whose name or file matches a word or a regular expression");
  place.appendChild(input);
  svg.insertBefore(place, svg.querySelector(".details"));
  flamegraph(svg, {
    details: svg.querySelector(".details"), input: input, reset: svg.querySelector(".reset"), size: function () { return 1200; },
    address: true, foot: 20 // of the line of figures, which a picture without a script has not
  });
})();
