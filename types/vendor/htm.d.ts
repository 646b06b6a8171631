// What the page uses of htm.
import type { VNode } from "./preact.js";

/**
 * An event as a handler in a template sees it. Which kind it is depends on the name of the attribute, which no type
 * can know, so it has what any of them has.
 */
export interface PageEvent
  extends Omit<MouseEvent, "target" | "currentTarget" | "relatedTarget">,
    Omit<PointerEvent, "target" | "currentTarget" | "relatedTarget">,
    Omit<KeyboardEvent, "target" | "currentTarget" | "relatedTarget" | keyof MouseEvent> {
  target: HTMLInputElement;
  currentTarget: HTMLElement;
  relatedTarget: Element | null;
}

/** What may stand in a template: a handler of events, or anything else. */
export type Value = ((event: PageEvent) => unknown) | object | string | number | boolean | null | undefined;

declare const htm: { bind(make: unknown): (parts: TemplateStringsArray, ...values: Value[]) => VNode };
export default htm;
