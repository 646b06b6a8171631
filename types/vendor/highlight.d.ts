// What the page uses of highlight.js.

/** What highlight.js calls while it reads code, instead of making markup. */
export interface Emitter {
  found: [string, string][];
}

declare const hljs: {
  configure(options: { __emitter: new () => Emitter }): void;
  getLanguage(name: string): object | undefined;
  highlight(text: string, options: { language: string; ignoreIllegals: boolean }): { _emitter: Emitter };
};
export default hljs;
