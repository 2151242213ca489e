/* A scene on the moment curve: the reader drags atoms, takes them in and out of the scene, and sees its polynomial and its score. */
document.addEventListener("DOMContentLoaded", () => {
  const TURN = 2 * Math.PI, SAMPLES = 360, R = 74, NS = "http://www.w3.org/2000/svg";
  const START = [[0, 60, 120, 180, 240, 300], [0, 1], 2];           // degrees, present atoms, k
  const draw = (parent, name, attributes = {}, text = "") => {
    const node = parent.appendChild(document.createElementNS(NS, name));
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const html = (parent, name, properties = {}) => Object.assign(parent.appendChild(document.createElement(name)), properties);

  for (const root of document.querySelectorAll(".binding-polynomial")) {
    let degrees = [...START[0]], present = new Set(START[1]), k = START[2];
    root.textContent = "";
    const bar = html(root, "div", { className: "binding-polynomial-bar" });
    const label = html(bar, "label", { textContent: "largest scene k = " });
    const choice = html(label, "select");
    for (const value of [1, 2, 3, 4]) html(choice, "option", { value, textContent: `${value}, so N = ${2 * value}`, selected: value === k });
    const reset = html(bar, "button", { type: "button", textContent: "Start again" });
    const pictures = html(root, "div", { className: "binding-polynomial-pictures" });
    const circle = draw(pictures, "svg", { viewBox: "-125 -125 250 250", role: "group", "aria-label": "Atoms on the circle and the polynomial p around it" });
    const plot = draw(pictures, "svg", { viewBox: "0 0 320 250", role: "img" });
    const report = html(root, "p", { className: "binding-polynomial-report" });
    report.setAttribute("aria-live", "polite");

    draw(circle, "circle", { r: R, class: "ring" });
    const petal = draw(circle, "path", { class: "p" });
    const handles = degrees.map((_, x) => {
      const handle = draw(circle, "g", { role: "slider", tabindex: 0, "aria-label": `angle of atom ${x + 1}`, "aria-valuemin": 0, "aria-valuemax": 359 });
      draw(handle, "circle", { r: 11 });
      draw(handle, "text", {}, `${x + 1}`);
      return handle;
    });

    const theta = (x) => (degrees[x] * TURN) / 360;
    const p = (t) => [...present].reduce((product, x) => product * (1 - Math.cos(t - theta(x))), 1);

    // p is a trigonometric polynomial of degree below SAMPLES / 4: means over the samples are its exact coefficients.
    const measure = () => {
      const values = Array.from({ length: SAMPLES }, (_, n) => p((n * TURN) / SAMPLES));
      const mean = values.reduce((sum, v) => sum + v, 0) / SAMPLES;
      const square = values.reduce((sum, v) => sum + v * v, 0) / SAMPLES;
      const norm = Math.sqrt(2 * (square - mean * mean));
      return { values, threshold: mean / (Math.sqrt(k) * norm), score: (v) => (mean - v) / (Math.sqrt(k) * norm) };
    };

    const render = () => {
      const { values, threshold, score } = measure(), j = present.size, top = Math.max(...values);
      const absent = degrees.map((_, x) => x).filter((x) => !present.has(x));
      const best = absent.reduce((a, b) => (a === undefined || p(theta(b)) < p(theta(a)) ? b : a), undefined);
      const gap = p(theta(best)) === 0 ? 0 : threshold - score(p(theta(best)));
      const fits = j <= k;

      const petals = values.map((v, n) => {
        const r = R + (44 * v) / top, t = (n * TURN) / SAMPLES;
        return `${(r * Math.cos(t)).toFixed(1)},${(-r * Math.sin(t)).toFixed(1)}`;
      });
      petal.setAttribute("d", `M${petals.join("L")}Z`);
      handles.forEach((handle, x) => {
        const inside = present.has(x);
        handle.setAttribute("transform", `translate(${R * Math.cos(theta(x))} ${-R * Math.sin(theta(x))})`);
        handle.setAttribute("class", inside ? "present" : "absent");
        handle.setAttribute("aria-valuenow", degrees[x]);
        handle.setAttribute("aria-valuetext", `${degrees[x]} degrees, ${inside ? "present" : "absent"}`);
      });

      plot.textContent = "";
      const across = (d) => 34 + (276 * d) / 360, up = (s) => 118 - 96 * s;
      draw(plot, "path", { class: "axis", d: "M34,14V222H310" });
      for (const s of [-1, 0, 1]) draw(plot, "text", { x: 28, y: up(s) + 4, "text-anchor": "end" }, `${s}`.replace("-", "−"));
      for (const d of [0, 90, 180, 270, 360]) draw(plot, "text", { x: across(d), y: 238, "text-anchor": "middle" }, `${d}°`);
      if (fits) {
        draw(plot, "path", { class: "score", d: `M${[...values, values[0]].map((v, n) => `${across(n).toFixed(1)},${up(score(v)).toFixed(1)}`).join("L")}` });
        draw(plot, "path", { class: "threshold", d: `M34,${up(threshold)}H310` });
        degrees.forEach((d, x) => {
          const spot = draw(plot, "g", { class: present.has(x) ? "present" : "absent", transform: `translate(${across(d)} ${up(score(p(theta(x))))})` });
          draw(spot, "circle", { r: 9 });
          draw(spot, "text", {}, `${x + 1}`);
        });
      } else draw(plot, "text", { x: 172, y: 118, "text-anchor": "middle" }, `degree ${j} > k = ${k}: no room`);
      plot.setAttribute("aria-label", fits ? "The score of every point of the curve; the dashed line is the score of the present atoms" : "No score: the scene is larger than k");

      const names = [...present].sort().map((x) => x + 1).join(", ");
      root.dataset.gap = fits ? gap : "";
      root.dataset.threshold = fits ? threshold : "";
      report.textContent = !fits
        ? `The scene {${names}} has ${j} atoms, so p has degree ${j}, and its coefficients need ${2 * j} numbers. With k = ${k} there are ${2 * k}. Raise k, or take an atom out.`
        : `Scene {${names}}: each present atom scores ${threshold.toFixed(3)}, the best absent atom, ${best + 1}, ${gap < 0.0005 && gap > 0 ? "a hair less" : score(p(theta(best))).toFixed(3)}. ` +
          (gap === 0 ? "Gap 0: two atoms in one place cannot be told apart." : `Gap ${gap.toPrecision(3)}.`);
    };

    const move = (x, value) => { degrees[x] = (Math.round(value) + 720) % 360; render(); };
    const toggle = (x) => {
      if (!present.delete(x)) present.add(x);
      if (present.size === 0 || present.size === degrees.length) present.has(x) ? present.delete(x) : present.add(x);
      render();
    };
    handles.forEach((handle, x) => {
      let moved = false;
      handle.addEventListener("pointerdown", (event) => { moved = false; handle.setPointerCapture(event.pointerId); });
      handle.addEventListener("pointermove", (event) => {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const box = circle.getBoundingClientRect();
        const angle = Math.atan2(box.top + box.height / 2 - event.clientY, event.clientX - box.left - box.width / 2);
        const value = (angle * 360) / TURN;
        if (moved || Math.abs(Math.sin(angle - theta(x))) > 0.05) { moved = true; move(x, value); }
      });
      handle.addEventListener("pointerup", () => { if (!moved) toggle(x); });
      handle.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 2, ArrowUp: 2, ArrowLeft: -2, ArrowDown: -2, PageUp: 30, PageDown: -30 }[event.key];
        if (step) move(x, degrees[x] + step);
        else if (event.key === "Home") move(x, 0);
        else if (event.key === "End") move(x, 359);
        else if (event.key === " " || event.key === "Enter") toggle(x);
        else return;
        event.preventDefault();
      });
    });
    choice.addEventListener("change", () => { k = Number(choice.value); render(); });
    reset.addEventListener("click", () => { degrees = [...START[0]]; present = new Set(START[1]); choice.value = k = START[2]; render(); });
    render();
  }
});
