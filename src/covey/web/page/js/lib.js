// Preact, its hooks, and htm for markup without a build step; every other module imports them from here.
import { Fragment, h, render } from "/vendor/preact.js";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/vendor/hooks.js";
import htm from "/vendor/htm.js";

export const html = htm.bind(h);
export { Fragment, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };
