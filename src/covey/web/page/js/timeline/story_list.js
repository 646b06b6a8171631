// The list of stories: a line for each task, which opens to show its steps.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Flow } from "../widgets/virtual_list.js";
import { hear, useRows } from "../widgets/view_hooks.js";
import { to } from "../data/routes.js";
import { countsInWords, crowdInWords, sentenceOf, stepInWords, storiesOf, wanted, withDays } from "../rules/stories.js";
import { state, useTopics } from "../data/store.js";
import { dayOf, span } from "../rules/text.js";
import { useTrail } from "./event_log.js";
import { Empty, State, Words } from "../widgets/ui.js";
/** @import { LogFilter, Notice, StoryCrowd, StoryDay, TaskStory } from "types/page.js" */
/** @import { Child } from "types/vendor/preact.js" */

const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const NEAR = 900;
const NAMED = 3;
const PAGE = 1000;

/**
 * The stories that fit, day by day, the newest first.
 * @param {{ asked: LogFilter, outcome: string, text: string, hint: Child }} props
 */
export function Stories({ asked, outcome, text, hint }) {
  useTopics("tasks");
  const { rows, whole, problem, begun, older, forget } = useTrail(asked, PAGE);
  const [open, setOpen] = useState(() => new Set(asked.task ? [asked.task] : []));
  const entries = useMemo(
    () => wanted(storiesOf(rows, state.tasks), { outcome, text }),
    [rows, outcome, text, state.tasks.size],
  );
  const lines = useMemo(() => withDays(entries, !outcome && !text.trim()), [entries]);
  const items = useMemo(
    () => lines.map((line) => ({ key: line.key, line, size: line.day ? 40 : line.news ? 36 : 56 })),
    [lines],
  );
  const place = useRef(null);
  useEffect(() => {
    const list = place.current?.querySelector(".flow");
    if (!list) return undefined;
    const see = () => {
      if (list.scrollTop + list.clientHeight > list.scrollHeight - NEAR) older();
      if (list.scrollTop === 0 && list.scrollHeight > 3 * list.clientHeight) forget(); // what fills no screen is needed whole
    };
    see();
    return hear(list, { scroll: see }, { passive: true });
  }, [items.length, rows.length, begun]); // a page may bring nothing that fits
  useRows(".story-head", "story");
  /** @param {string} key */
  const toggle = (key) =>
    setOpen((before) => {
      const next = new Set(before);
      return next.delete(key) ? next : next.add(key);
    });
  if (begun && !entries.length && whole)
    return html`<${Empty} title=${rows.length ? "No story fits." : "Nothing has happened yet."}><p>${hint}</p><//>`;
  const stories = entries.filter(({ task }) => task).length;
  /** @param {{ key: string, line: StoryDay | TaskStory | Notice | StoryCrowd }} props */
  const draw = ({ key, line }) =>
    html`<div class="story-item" key=${key} data-key=${key}>${line.day ? html`<${Day} line=${line} />` : line.news ? html`<${News} line=${line} />` : line.crowd !== undefined ? html`<${Crowd} line=${line} isOpen=${open.has(key)} onToggle=${() => toggle(key)} />` : html`<${Story} story=${line} isOpen=${open.has(key)} onToggle=${() => toggle(key)} />`}</div>`;
  return html`<div class="trail stories" ref=${place}>
    ${problem && html`<p class="trail-problem soft">${problem.message}</p>`}
    <${Flow} items=${items} draw=${draw} label="How the work on each task went, the newest first" class="story-list" />
    <p class="trail-foot faint" role="status">${stories === 1 ? "1 story" : `${stories} stories`}${whole ? ", all that there are" : ", older ones follow as you scroll"}</p>
  </div>`;
}

/** @param {{ line: StoryDay }} props */
function Day({ line }) {
  return html`<h3 class="story-day"><span>${dayOf(line.at)}</span> <span class="faint">${countsInWords(line.counts)}</span></h3>`;
}

/** @param {{ line: Notice }} props */
function News({ line }) {
  return html`<p class="story-news"><time>${TIME.format(line.at * 1000)}</time><span aria-hidden="true">·</span><span><${Words} text=${line.text} most=${300} /></span></p>`;
}

/**
 * Many tasks of which the same is to be said, as one line.
 * @param {{ line: StoryCrowd, isOpen: boolean, onToggle: () => void }} props
 */
function Crowd({ line, isOpen, onToggle }) {
  const titles = line.tasks.map(({ task, title }) => title || task);
  const more = titles.length > NAMED ? ` and ${titles.length - NAMED} more` : "";
  return html`<article class="story is-planned"><button type="button" class="story-head row-button" aria-expanded=${isOpen} onClick=${onToggle}>
      <time>${TIME.format(line.at * 1000)}</time><${State} name=${line.tasks[0].state} /><span class="story-title one-line">${crowdInWords(line)}</span>
      <span class="story-said one-line"><${Words} text=${`${titles.slice(0, NAMED).join(" · ")}${more}`} most=${300} /></span></button>
    ${isOpen && html`<ol class="story-steps">${line.tasks.map(({ task, title, who, at }) => html`<li key=${task}><time>${TIME.format(at * 1000)}</time><span>${who && html`<${Words} text=${who} most=${40} />: `}<${Words} text=${title} most=${200} /> <a class="mono" href=${to("board", task)}>${task}</a></span></li>`)}</ol>`}
  </article>`;
}

/** @param {{ story: TaskStory, isOpen: boolean, onToggle: () => void }} props */
function Story({ story, isOpen, onToggle }) {
  return html`<article class=${`story is-${story.outcome}`}>
    <button type="button" class="story-head row-button" aria-expanded=${isOpen} onClick=${onToggle}>
      <time>${TIME.format(story.at * 1000)}</time>
      <${State} name=${story.state} />
      <span class="story-title one-line"><${Words} text=${story.title || story.task} most=${200} /> <span class="story-id mono">${story.task}</span></span>
      <span class="story-said one-line"><${Words} text=${sentenceOf(story)} most=${300} /></span>
      <span class="story-took" title="From the first claim to main">${story.took === null ? "" : span(story.took)}</span>
    </button>
    ${
      isOpen &&
      html`<div class="story-whole"><ol class="story-steps">${story.steps.map((each) => html`<li key=${each.seq}><time>${TIME.format(each.time * 1000)}</time><span><${Words} text=${stepInWords(each)} most=${600} /></span></li>`)}</ol>
      <p class="buttons"><a class="button" href=${to("review", story.task)}>${story.outcome === "landed" ? "What it changed" : "Review"}</a><a class="button" href=${to("board", story.task)}>On the board</a><a class="button" href=${to("timeline", `task=${story.task}&events=1`)}>Every event</a></p></div>`
    }
  </article>`;
}
