// What the page uses of Preact, as far as its types go.

/** What a component returns: an element that is not in the document yet. */
export interface VNode {
  type: unknown;
  props: Record<string, unknown>;
  key: unknown;
}

export type Child = VNode | Child[] | string | number | boolean | null | undefined;

/** A function that draws its properties. */
export type Component<Props = never> = (props: Props) => Child;

export const Fragment: Component<{ children?: Child }>;
export function h(type: unknown, props: Record<string, unknown> | null, ...children: Child[]): VNode;
export function render(what: Child, into: Element): void;
