// Runs before anything is drawn, so that nobody sees the other theme flash by.
(() => {
  const known = localStorage.getItem("covey.theme");
  const dark = known ? known === "dark" : !matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
