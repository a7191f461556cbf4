// The column of contents is the same on all pages of a kind: mark this page in it, unfold its section, and scroll there.

addEventListener("DOMContentLoaded", () => {
  const column = document.querySelector(".sidebar-scroll");
  const here = location.href.replace(/[?#].*/, "");
  const link = [...document.querySelectorAll(".sidebar-tree a")].find((a) => a.href === here);
  if (!link) return;
  document.querySelector(".sidebar-tree .current-page")?.classList.remove("current-page");
  link.parentElement.classList.add("current-page");
  for (let item = link.parentElement; item; item = item.parentElement.closest("li")) {
    const box = item.querySelector(":scope > input");
    if (box) box.checked = true;
  }
  const top = link.getBoundingClientRect().top - column.getBoundingClientRect().top - column.clientHeight / 3;
  column.scrollTo({ top, behavior: "instant" });
});
