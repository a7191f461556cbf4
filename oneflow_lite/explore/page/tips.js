// One tooltip for the whole page. It comes with the pointer or the focus, stays while the pointer
// is over it, and goes with Escape.

import { fill } from "./elements.js";

export function tips(box) {
  const contents = new WeakMap();
  let owner = null;
  let leaving = 0;

  function show(element) {
    clearTimeout(leaving);
    if (owner === element) return;
    owner?.removeAttribute("aria-describedby");
    owner = element;
    element.setAttribute("aria-describedby", "tip");
    open(contents.get(element)(), element.getBoundingClientRect());
  }

  function open(content, by) {
    fill(box, content);
    box.hidden = false;
    place(by);
  }

  // Below what it is about where there is room, else beside it, else above.
  function place(by) {
    const { width, height } = box.getBoundingClientRect();
    let [left, top] = [by.left, by.bottom + 6];
    if (top + height > innerHeight - 8) {
      if (by.right + 8 + width < innerWidth) [left, top] = [by.right + 8, by.top];
      else top = by.top - height - 6;
    }
    box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
  }

  function hide() {
    clearTimeout(leaving);
    owner?.removeAttribute("aria-describedby");
    owner = null;
    box.hidden = true;
  }

  const later = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 150);
  };
  const of = (event) => event.target instanceof Element && event.target.closest("[data-tip]");

  document.addEventListener("pointerover", (event) => {
    if (box.contains(event.target)) clearTimeout(leaving);
    else if (of(event)) show(of(event));
    else if (owner && owner !== document.activeElement) later();
  });
  document.addEventListener("focusin", (event) => (of(event) ? show(of(event)) : hide()));
  document.addEventListener("focusout", later);
  document.addEventListener("click", (event) => of(event) && show(of(event)));
  document.addEventListener("keydown", (event) => event.key === "Escape" && !box.hidden && hide());
  document.addEventListener("scroll", (event) => {
    if (owner && event.target !== box && !box.contains(event.target)) hide();
  }, true);

  // What it is about may go while it is shown.
  new MutationObserver(() => owner && !owner.isConnected && hide())
    .observe(document.getElementById("panels"), { childList: true, subtree: true });

  return {
    // Gives an element a tip, made by `content()` when it is wanted, and returns the element.
    tip(element, content) {
      contents.set(element, content);
      element.dataset.tip = "";
      return element;
    },
    // For what is drawn on a canvas: a tip beside a box of the window, until `hide`.
    tipAt(content, by) {
      hide();
      open(content, by);
    },
    hideTip: later,
  };
}
