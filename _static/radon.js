/* Four atoms on a circle, moved by the reader: Radon partition, Radon point, and whether the chosen pair separates. */
(() => {
  const TURN = 2 * Math.PI, R = 96, GAP = 4;
  const on = (degrees) => [Math.cos((degrees * TURN) / 360), Math.sin((degrees * TURN) / 360)];
  const plus = (points, weights) => [0, 1].map((d) => points.reduce((sum, x, i) => sum + weights[i] * x[d], 0));

  // Null vector of Σλ = 0, Σλx = 0: areas of the triangles of the other three; the positive ones sum to 1.
  const radonCircle = (angles) => {
    const x = angles.map(on);
    const area = ([a, b, c]) => (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);
    let weights = x.map((_, i) => (i % 2 ? -1 : 1) * area(x.filter((_, j) => j !== i)));
    const total = weights.reduce((sum, w) => sum + Math.max(w, 0), 0) * (weights[0] < 0 ? -1 : 1);
    weights = weights.map((w) => w / total);
    const indices = [0, 1, 2, 3];
    return {
      weights,
      point: plus(x, weights.map((w) => Math.max(w, 0))),
      left: indices.filter((i) => weights[i] > 0),
      right: indices.filter((i) => weights[i] <= 0),
    };
  };
  window.bindingLive = Object.assign(window.bindingLive || {}, { radonCircle });

  const node = (parent, name, attrs = {}, text = "") => {
    const made = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
    for (const key in attrs) made.setAttribute(key, attrs[key]);
    made.textContent = text;
    return made;
  };
  const place = (element, attrs) => { for (const key in attrs) element.setAttribute(key, attrs[key]); };
  const NAMES = ["x₁", "x₂", "x₃", "x₄"], two = (value) => (Math.abs(value) < 0.005 ? 0 : value).toFixed(2).replace("-", "−");
  const named = (set) => `{${set.map((i) => NAMES[i]).join(", ")}}`;

  const start = (root) => {
    const first = root.dataset.angles.split(",").map(Number);
    let angles = [...first];
    root.textContent = "";
    const bar = root.appendChild(document.createElement("div"));
    const label = bar.appendChild(document.createElement("label"));
    label.textContent = "present pair ";
    const choice = label.appendChild(document.createElement("select"));
    const pairs = [[0, 2], [0, 1], [0, 3], [1, 2], [1, 3], [2, 3]];
    pairs.forEach((pair, value) => Object.assign(choice.appendChild(document.createElement("option")), { value, textContent: named(pair) }));
    const again = Object.assign(bar.appendChild(document.createElement("button")), { type: "button", textContent: "Start again" });
    const svg = node(root, "svg", { viewBox: "-130 -125 260 250", role: "group", "aria-label": "Four atoms on a circle" });
    const report = root.appendChild(document.createElement("div"));
    report.setAttribute("aria-live", "polite");

    node(svg, "circle", { r: R, class: "ring" });
    const side = node(svg, "polygon", { class: "side" }), line = node(svg, "line", { class: "line" });
    const chords = ["left", "right"].map((name) => node(svg, "line", { class: "chord " + name }));
    const star = node(svg, "path", { class: "star", d: "M0-9 9 0 0 9-9 0Z" });
    const handles = NAMES.map((name, i) => {
      const handle = node(svg, "g", { role: "slider", tabindex: 0, "aria-label": `angle of atom ${i + 1}`, "aria-valuemin": 0, "aria-valuemax": 359 });
      node(handle, "circle", { r: 22, class: "reach" });
      node(handle, "circle", { r: 12, class: "disc" });
      node(handle, "rect", { x: -11, y: -11, width: 22, height: 22, class: "box" });
      node(handle, "text", { dy: "0.35em" }, name);
      const move = (degrees, step) => {
        let value = ((Math.round(degrees) % 360) + 360) % 360;
        const near = (other, j) => j !== i && Math.min((value - other + 360) % 360, (other - value + 360) % 360) < GAP;
        while (angles.some(near)) value = (value + step + 360) % 360;
        angles[i] = value;
        show();
      };
      handle.addEventListener("keydown", (event) => {
        const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 15, PageDown: -15 }[event.key];
        if (step) move(angles[i] + step, Math.sign(step));
        else if (event.key === "Home" || event.key === "End") move(event.key === "Home" ? 0 : 359, event.key === "Home" ? 1 : -1);
        else return;
        event.preventDefault();
      });
      handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); handle.focus(); event.preventDefault(); });
      handle.addEventListener("pointermove", (event) => {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        move((Math.atan2(-at.y, at.x) * 360) / TURN, 1);
      });
      return handle;
    });

    const show = () => {
      const { weights, point, left, right } = radonCircle(angles), x = angles.map(on);
      const present = pairs[choice.value], absent = [0, 1, 2, 3].filter((i) => !present.includes(i));
      const separable = !["" + left, "" + right].includes("" + present);
      const at = ([a, b]) => [R * a, -R * b];
      handles.forEach((handle, i) => {
        place(handle, { transform: `translate(${at(x[i])})`, class: present.includes(i) ? "present" : "absent", "aria-valuenow": angles[i],
          "aria-valuetext": `${angles[i]} degrees, ${present.includes(i) ? "present" : "absent"}` });
      });
      [left, right].forEach((set, k) => {
        const [[x1, y1], [x2, y2]] = set.map((i) => at(x[i]));
        place(chords[k], { x1, y1, x2, y2 });
      });
      place(star, { transform: `translate(${at(point)})` });
      let verdict = `No line has ${named(present)} on one side and ${named(absent)} on the other: their chords cross.`, gap = "";
      line.style.display = side.style.display = separable ? "" : "none";
      if (separable) {
        // The line through the middles of the two gaps between the pairs keeps the pairs apart.
        const order = [0, 1, 2, 3].sort((i, j) => angles[i] - angles[j]);
        const cuts = order.map((i, r) => [i, order[(r + 1) % 4]]).filter(([i, j]) => present.includes(i) !== present.includes(j));
        const [a, b] = cuts.map(([i, j]) => on(angles[i] + ((angles[j] - angles[i] + 360) % 360) / 2));
        let w = [b[1] - a[1], a[0] - b[0]];
        const length = Math.hypot(...w);
        w = w.map((value) => value / length);
        const score = (i) => w[0] * x[i][0] + w[1] * x[i][1];
        if (score(present[0]) < score(absent[0])) w = w.map((value) => -value);
        gap = Math.min(...present.map(score)) - Math.max(...absent.map(score));
        const [p, q] = [a, b].map((end, k) => at([0, 1].map((d) => end[d] + 0.22 * (k ? b[d] - a[d] : a[d] - b[d]) / length)));
        const out = at([0.3 * w[0], 0.3 * w[1]]);
        place(line, { x1: p[0], y1: p[1], x2: q[0], y2: q[1] });
        place(side, { points: [p, q, [q[0] + out[0], q[1] + out[1]], [p[0] + out[0], p[1] + out[1]]].join(" ") });
        verdict = `A line separates ${named(present)} from ${named(absent)}, with a gap of ${two(gap)}.`;
      }
      const sum = (set) => set.map((i) => `${two(Math.abs(weights[i]))} ${NAMES[i]}`).join(" + ");
      report.textContent = "";
      for (const text of [`Radon partition: ${named(left)} and ${named(right)}.`,
        `Radon point (${two(point[0])}, ${two(point[1])}) = ${sum(left)} = ${sum(right)}.`, verdict])
        report.appendChild(document.createElement("p")).textContent = text;
      Object.assign(root.dataset, { angles: angles.join(), point: point.join(), weights: weights.join(), left: left.join(),
        right: right.join(), present: present.join(), separable, gap });
    };
    choice.addEventListener("change", show);
    again.addEventListener("click", () => { angles = [...first]; choice.value = 0; show(); });
    show();
  };
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll('[data-live="radon-circle"]').forEach(start));
})();
