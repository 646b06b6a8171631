// Where the page reads the language's own types a little more loosely than TypeScript does.

interface Array<T> {
  /** As an index: whoever asks for a place of a list knows that it is there. */
  at(index: number): T;
}

// Everything that the page looks for in its document is an element of HTML.

interface ParentNode {
  querySelector(selectors: string): HTMLElement | null;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}

interface Element {
  closest(selectors: string): HTMLElement | null;
}

// What js/worker.js uses of a service worker, whose types would get in the way of those of a page.

interface WorkerPage {
  postMessage(said: unknown): void;
  focus(): Promise<unknown>;
}

interface WorkerScope {
  addEventListener(
    kind: "notificationclick",
    heard: (event: { notification: Notification; waitUntil(work: Promise<unknown>): void }) => void,
  ): void;
  clients: {
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<WorkerPage[]>;
    openWindow(address: string): Promise<unknown>;
  };
}
