"use strict";
(function () {
  // Names are only ever read and written as text.
  var svg = document.documentElement;
  var NS = "http://www.w3.org/2000/svg";
  var WIDTH = 1180, EDGE = 10, LETTER = 6.65, EPSILON = 1e-3;
  var details = document.getElementById("details");
  var matched = document.getElementById("matched");
  var frames = Array.prototype.map.call(document.querySelectorAll(".f"), function (group) {
    var rect = group.querySelector("rect");
    var title = group.querySelector("title").textContent;
    return {
      group: group, rect: rect, text: group.querySelector("text"), title: title,
      name: title.split("\n")[0],
      x: +rect.getAttribute("x"), w: +rect.getAttribute("width"), y: +rect.getAttribute("y")
    };
  });

  function place(frame, x, w) {
    frame.rect.setAttribute("x", x);
    frame.rect.setAttribute("width", w);
    var room = Math.floor((w - 6) / LETTER);
    var name = frame.name;
    var shown = room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 2) + "..";
    if (!frame.text && shown) {
      frame.text = document.createElementNS(NS, "text");
      frame.text.setAttribute("y", frame.y + 12);
      frame.group.appendChild(frame.text);
    }
    if (frame.text) {
      frame.text.setAttribute("x", x + 3);
      frame.text.textContent = shown;
    }
  }

  function zoom(chosen) {
    var left = chosen ? chosen.x : EDGE, width = chosen ? chosen.w : WIDTH;
    frames.forEach(function (frame) {
      var above = chosen && frame.y < chosen.y;
      var holds = frame.x <= left + EPSILON && frame.x + frame.w >= left + width - EPSILON;
      var inside = frame.x >= left - EPSILON && frame.x + frame.w <= left + width + EPSILON;
      var shown = above ? holds : inside && !(chosen && frame.y === chosen.y && frame !== chosen);
      frame.group.classList.toggle("gone", !shown);
      frame.group.classList.toggle("above", Boolean(above && holds));
      if (above && holds) {
        place(frame, EDGE, WIDTH);
      } else if (shown) {
        place(frame, EDGE + (frame.x - left) / width * WIDTH, frame.w / width * WIDTH);
      }
    });
  }

  function search() {
    var words = window.prompt("Names that contain:", "");
    if (words === null) { return; }
    var wanted = words.toLowerCase(), reached = -1, sum = 0;
    var found = frames.filter(function (frame) {
      var is = wanted !== "" && frame.name.toLowerCase().indexOf(wanted) >= 0;
      frame.group.classList.toggle("found", is);
      return is;
    });
    found.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
    found.forEach(function (frame) {
      var from = Math.max(frame.x, reached), to = frame.x + frame.w;
      if (to > from) { sum += to - from; reached = to; }
    });
    matched.textContent = wanted === "" ? "" :
      found.length + " frames, " + (100 * sum / WIDTH).toFixed(1) + " % of the width";
  }

  frames.forEach(function (frame) {
    frame.group.addEventListener("click", function () { zoom(frame); });
    frame.group.addEventListener("mouseenter", function () {
      details.textContent = frame.title.split("\n").join("  ·  ");
    });
    frame.group.addEventListener("mouseleave", function () { details.textContent = ""; });
  });
  document.getElementById("reset").addEventListener("click", function () { zoom(null); });
  document.getElementById("search").addEventListener("click", search);
  svg.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { zoom(null); }
    if (event.key === "/") { event.preventDefault(); search(); }
  });
  svg.classList.add("live");
}());
