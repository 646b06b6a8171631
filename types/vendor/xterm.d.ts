// What the page uses of xterm.js.

interface Parser {
  registerCsiHandler(id: { prefix?: string; intermediates?: string; final: string }, handle: () => boolean): void;
  registerDcsHandler(id: { prefix?: string; intermediates?: string; final: string }, handle: () => boolean): void;
  registerOscHandler(id: number, handle: () => boolean): void;
}

interface Line {
  translateToString(trim: boolean): string;
}

/** What a terminal can be told to be. */
export interface Options {
  disableStdin: boolean;
  scrollback: number;
  fontSize: number;
  fontFamily: string;
  theme: Record<string, string>;
  minimumContrastRatio: number;
  cursorBlink: boolean;
  cursorInactiveStyle: string;
  allowProposedApi: boolean;
  rightClickSelectsWord: boolean;
  linkHandler: { activate(event: MouseEvent, address: string): void; allowNonHttpProtocols: boolean };
  logLevel: string;
}

/** A part of xterm.js that is not public: what makes the elements of a row. */
interface Core {
  _renderService?: { _renderer?: { value?: { _rowFactory?: { _document: object } } } };
}

export class Terminal {
  constructor(options: Options);
  readonly parser: Parser;
  readonly options: Options;
  readonly textarea: HTMLTextAreaElement;
  readonly rows: number;
  readonly buffer: { active: { cursorY: number; viewportY: number; getLine(at: number): Line | undefined } };
  readonly _core?: Core;
  open(element: HTMLElement): void;
  write(data: Uint8Array): void;
  reset(): void;
  resize(columns: number, rows: number): void;
  focus(): void;
  blur(): void;
  dispose(): void;
  hasSelection(): boolean;
  onData(heard: (text: string) => void): void;
  onBinary(heard: (text: string) => void): void;
  onWriteParsed(heard: () => void): void;
  attachCustomKeyEventHandler(handle: (event: KeyboardEvent) => boolean): void;
}
