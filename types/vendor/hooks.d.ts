// What the page uses of Preact's hooks.

/** A place that survives drawing. One that is given to an element is filled as long as the element is shown. */
export interface Ref<T> {
  current: T;
}

export type Inputs = readonly unknown[];
export type SetState<T> = (next: T | ((before: T) => T)) => void;

export function useState<T>(first: T | (() => T)): [T, SetState<T>];
/** One that begins empty is for an element, unless its type says otherwise. */
export function useRef<T = HTMLElement>(first: null): Ref<T>;
export function useRef<T>(first: T): Ref<T>;
export function useMemo<T>(make: () => T, inputs: Inputs | undefined): T;
export function useCallback<T>(call: T, inputs: Inputs): T;
export function useEffect(run: () => unknown, inputs?: Inputs): void;
export function useLayoutEffect(run: () => unknown, inputs?: Inputs): void;
