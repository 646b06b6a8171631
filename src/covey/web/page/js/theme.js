// Sets the theme before anything is drawn, so that the wrong one never flashes up.
(() => {
  const known = localStorage.getItem("covey.theme");
  const dark = known ? known === "dark" : !matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
