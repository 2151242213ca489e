/* On every page: sliders and folds get names, wide things can be reached by key, widget labels meet MathJax 3, claims link to the ledger. */
document.addEventListener("DOMContentLoaded", () => {
  // The theme names these buttons by other words than the ones that are seen on them.
  document.querySelectorAll(".search-button-field").forEach((button) => button.removeAttribute("aria-label"));
  for (const button of document.querySelectorAll("button.toggle-button"))
    button.setAttribute("aria-label", button.closest(".admonition-title").textContent.trim());

  // What is too wide for the screen scrolls inside its box and can be reached by key; a formula in a line becomes such a box.
  const boxes = document.querySelectorAll("article :is(pre, .pst-scrollable-table-container, .text_html, div.math)");
  const fit = () => {
    for (const formula of document.querySelectorAll("article span.math mjx-container")) {
      formula.classList.remove("wide");
      const box = formula.closest("p, li, td, th, dd, figcaption, h1, h2, h3, div, section");
      if (formula.getBoundingClientRect().right > box.getBoundingClientRect().right + 1) formula.classList.add("wide");
    }
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", () => window.MathJax?.startup?.promise ? window.MathJax.startup.promise.then(fit) : fit());
  addEventListener("resize", fit);

  // The widget manager speaks to MathJax 2.
  const math = window.MathJax;
  if (math && !math.Hub) {
    math.Hub = { Queue: (...calls) => calls.forEach(([, , element]) =>
      math.startup?.promise.then(() => math.typesetPromise([element]))) };
  }

  // A slider's handle carries neither the name nor the value that a reader sees: give it both.
  const spoken = (label) => label.querySelector("mjx-assistive-mml")?.textContent || label.textContent;
  const set = (element, name, value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };
  const nameSlider = (row) => {
    const handle = row.querySelector("[role=slider]"), label = row.querySelector(".widget-label"),
      readout = row.querySelector(".widget-readout");
    if (!handle || !readout) return;
    if (label?.title === "null") label.removeAttribute("title");
    set(readout, "contenteditable", "false");
    set(handle, "aria-label", label ? spoken(label) : "");
    set(handle, "aria-valuetext", readout.textContent);
  };
  new MutationObserver((changes) => {
    const rows = new Set();
    for (const change of changes) {
      const element = change.target.nodeType === 1 ? change.target : change.target.parentElement;
      const row = element?.closest(".widget-slider");
      if (row) rows.add(row);
      else if (change.type === "childList") element?.querySelectorAll?.(".widget-slider").forEach((found) => rows.add(found));
    }
    rows.forEach(nameSlider);
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["aria-valuetext"] });

  for (const claim of document.querySelectorAll(".binding-claim[data-claim]")) {
    const link = document.createElement("a");
    link.href = "ledger.html#claim-" + claim.dataset.claim.replaceAll(".", "-");
    link.textContent = claim.dataset.claim;
    const place = [...claim.childNodes].find((node) => node.nodeType === 3 && node.data.includes(claim.dataset.claim));
    if (!place) continue;
    const rest = place.splitText(place.data.indexOf(claim.dataset.claim));
    rest.data = rest.data.slice(claim.dataset.claim.length);
    claim.insertBefore(link, rest);
  }
});
