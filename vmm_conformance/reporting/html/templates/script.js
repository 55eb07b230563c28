"use strict";
(() => {
  const all = (selector, under = document) => Array.from(under.querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);
  const texts = JSON.parse(byId("texts").textContent);

  /* what is linked to is shown, whatever it is folded into */
  let showRow = () => {};
  const reveal = (target) => {
    if (target.closest("tr[hidden]")) showRow();
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const own = target.querySelector(":scope > details");
    if (own && target.classList.contains("failure")) own.open = true;
  };
  const follow = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    reveal(target);
    if (target.dataset.w) open(target);
    else target.scrollIntoView();
  };

  /* where a screen is narrow, rows are stacked: each value says which column it is of */
  for (const table of all("table.wide")) {
    const heads = Array.from(table.tHead.rows[0].cells, (head) => head.textContent);
    for (const row of table.tBodies[0].rows) for (const cell of row.cells) if (cell.tagName === "TD") cell.dataset.head = heads[cell.cellIndex];
  }

  /* copying */
  const say = (text) => { byId("said").textContent = text; };
  const copyAside = (text) => {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "unseen";
    (document.querySelector("dialog[open]") || document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  const copy = async (text, button) => {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      done = copyAside(text);
    }
    const before = button.dataset.name || button.textContent;
    button.dataset.name = before;
    button.textContent = done ? "Copied" : "Select and copy it";
    say(done ? "Copied" : "Could not copy");
    setTimeout(() => { button.textContent = before; }, 1500);
    button.focus();
  };

  /* a cell */
  const verdictOf = (cell) => cell.querySelector(".u").textContent;
  const dialog = byId("cell");
  let opener = null;
  const fact = (name, value) => {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    byId("cell-facts").append(term, text);
  };
  const heads = all(".matrix thead th").slice(1);
  const open = (cell) => {
    const row = cell.closest("tr"), column = cell.closest("td").cellIndex - 1;
    const name = heads[column].querySelector("a").textContent;
    const about = Array.from(heads[column].querySelectorAll("span"), (span) => span.textContent).join(", ");
    byId("cell-title").textContent = row.id + ", " + name;
    byId("cell-verdict").textContent = verdictOf(cell);
    byId("cell-verdict").className = cell.closest("td").className;
    byId("cell-statement").textContent = row.querySelector(".short").textContent;
    byId("cell-facts").replaceChildren();
    fact("over", about);
    fact("kind", row.dataset.level + ", " + row.dataset.evidence);
    fact("put to the test", cell.dataset.w + " times");
    if (cell.dataset.r) fact("reason", texts[cell.dataset.r]);
    if (cell.dataset.i) {
      const items = cell.dataset.i.split(" "), more = Number(cell.dataset.n || 0);
      const named = items.map((index) => texts[index]).join(", ");
      fact("by", named + (more > 0 ? " and " + more + " more" : ""));
    }
    const article = byId("cell-article");
    article.hidden = !("f" in cell.dataset);
    article.href = "#f" + column + "-" + row.id;
    opener = cell;
    if (!dialog.open) dialog.showModal();
    byId("cell-close").focus(); /* not by autofocus, of which a browser complains where the address names a place */
  };
  dialog.addEventListener("close", () => { if (opener) opener.focus(); });
  byId("cell-article").addEventListener("click", () => { opener = null; dialog.close(); });
  byId("cell-link").addEventListener("click", (event) => {
    copy(location.href.split("#")[0] + "#" + opener.id, event.currentTarget);
  });

  /* the matrix by keyboard: one stop, then arrows */
  const rows = all(".matrix tbody tr[id]");
  const links = (row) => all("td a", row);
  let stop = null;
  const stopAt = (link) => {
    if (stop) stop.tabIndex = -1;
    stop = link;
    if (link) link.tabIndex = 0;
  };
  const nextRow = (row, step) => {
    const shown = rows.filter((each) => !each.hidden);
    return shown[shown.indexOf(row) + step];
  };
  const matrix = document.querySelector(".matrix");
  if (matrix) {
    for (const link of all("td a", matrix)) link.tabIndex = -1;
    stopAt(matrix.querySelector("td a"));
    matrix.addEventListener("focusin", (event) => { if (event.target.matches("td a")) stopAt(event.target); });
    matrix.addEventListener("click", (event) => {
      const link = event.target.closest("td a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.replaceState(null, "", "#" + link.id);
      open(link);
    });
    matrix.addEventListener("keydown", (event) => {
      const link = event.target.closest("td a");
      if (!link) return;
      const row = link.closest("tr"), column = link.closest("td").cellIndex;
      const to = {
        ArrowRight: () => row.cells[column + 1],
        ArrowLeft: () => column > 1 && row.cells[column - 1],
        ArrowDown: () => (nextRow(row, 1) || row).cells[column],
        ArrowUp: () => (nextRow(row, -1) || row).cells[column],
        Home: () => row.cells[1],
        End: () => row.cells[row.cells.length - 1],
      }[event.key];
      const cell = to && to();
      const other = cell && cell.querySelector("a");
      if (to) event.preventDefault();
      if (other) other.focus();
    });
  }

  /* filters */
  const filters = byId("filters");
  if (filters) {
    filters.hidden = false;
    const boxes = all('input[name="verdict"]', filters);
    const field = (name) => filters.querySelector('[name="' + name + '"]');
    const known = rows.map((row) => ({
      row,
      verdicts: new Set(links(row).map(verdictOf)),
      text: (row.id + " " + row.closest("tbody").dataset.contract + " " + row.querySelector(".short").textContent).toLowerCase(),
    }));
    const apply = () => {
      const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
      const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
      const level = field("level").value, evidence = field("evidence").value;
      let shown = 0;
      for (const each of known) {
        const data = each.row.dataset;
        const fits = (!level || data.level === level) && (!evidence || data.evidence === evidence)
          && words.every((word) => each.text.includes(word)) && [...each.verdicts].some((verdict) => wanted.has(verdict));
        each.row.hidden = !fits;
        shown += fits;
      }
      for (const group of all("tbody", matrix)) {
        group.firstElementChild.hidden = !all("tr[id]", group).some((row) => !row.hidden);
      }
      byId("shown").textContent = shown + " of " + known.length + " rows";
      const first = known.find((each) => !each.row.hidden);
      if (!stop || stop.closest("tr").hidden) stopAt(first ? links(first.row)[0] : null);
    };
    filters.addEventListener("input", apply);
    byId("only-broken").addEventListener("click", () => {
      for (const box of boxes) box.checked = !["pass", "not applicable"].includes(box.value);
      apply();
    });
    showRow = () => {
      for (const box of boxes) box.checked = true;
      for (const name of ["level", "evidence", "text"]) field(name).value = "";
      apply();
    };
    byId("all-rows").addEventListener("click", () => showRow());
    apply();
  }

  /* an operation lights up wherever it is drawn */
  const own = (article, selector) => all(selector, article).filter((each) => each.closest(".failure") === article);
  const light = (article, op) => {
    for (const each of own(article, "[data-op]")) each.classList.toggle("lit", each.dataset.op === op);
  };
  const pinned = (article) => {
    const button = own(article, '.op[aria-pressed="true"]')[0];
    return button ? button.closest("[data-op]").dataset.op : undefined;
  };
  const under = (event) => {
    for (const each of document.elementsFromPoint(event.clientX, event.clientY)) {
      const found = each.closest("[data-op]");
      if (found) return found.dataset.op;
    }
    return undefined;
  };
  const articleOf = (event) => event.target.closest && event.target.closest(".failure");
  document.addEventListener("pointermove", (event) => {
    const article = articleOf(event);
    if (!article || !event.target.closest(".program, .pictures, .calls")) return;
    const op = under(event);
    light(article, op === undefined ? pinned(article) : op);
  }, { passive: true });
  document.addEventListener("pointerout", (event) => {
    const article = articleOf(event);
    if (article && !event.relatedTarget?.closest?.(".program, .pictures, .calls")) light(article, pinned(article));
  });
  document.addEventListener("focusin", (event) => {
    const button = event.target.closest(".op");
    if (button) light(articleOf(event), button.closest("[data-op]").dataset.op);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.closest(".op")) light(articleOf(event), pinned(articleOf(event)));
  });
  document.addEventListener("keydown", (event) => {
    const button = event.target.closest && event.target.closest(".op");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!button || !step) return;
    const buttons = own(articleOf(event), ".op");
    const next = buttons[buttons.indexOf(button) + step];
    event.preventDefault();
    if (next) next.focus();
  });
  const pin = (article, op) => {
    const before = pinned(article);
    for (const button of own(article, ".op")) {
      const mine = button.closest("[data-op]").dataset.op;
      button.setAttribute("aria-pressed", String(mine === op && before !== op));
    }
    light(article, before === op ? undefined : op);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (button) return void copy(button.dataset.copy, button);
    const article = articleOf(event);
    if (!article) return;
    const op = event.target.closest(".op") ? event.target.closest("[data-op]").dataset.op
      : event.target.closest(".picture") ? under(event) : undefined;
    if (op !== undefined) pin(article, op);
  });

  /* paper shows everything */
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])").filter((each) => !each.closest(".matrix"));
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; });

  addEventListener("hashchange", follow);
  follow();
})();
