// Inbox items that were decided here but are still on the daemon's list: hidden at once, back if it failed.
/** @import { InboxItem } from "types/page.js" */

const HOLD = 6000;

/**
 * Return what makes an item of the inbox itself: each thing that a decision is sent to.
 * @param {InboxItem} item
 */
export const marksOf = (item) => (item.ids.length ? item.ids : [item.key]).map((id) => `${item.kind} ${id}`);

/** The items that a person has settled. */
export class Settled {
  constructor(hold = HOLD) {
    this.hold = hold;
    this.until = new Map();
  }

  /**
   * Take what of an item nobody is settling yet; empty if it is being settled already.
   * @param {InboxItem} item
   */
  take(item) {
    const marks = marksOf(item).filter((mark) => !this.until.has(mark));
    for (const mark of marks) this.until.set(mark, Infinity);
    return marks;
  }

  /**
   * Note how it ended: what went well stays away until the daemon's list shows so, what failed is back.
   * @param {string[]} marks
   * @param {boolean} isDone
   * @param {number} now
   */
  end(marks, isDone, now) {
    for (const mark of marks) {
      if (isDone) this.until.set(mark, now + this.hold);
      else this.until.delete(mark);
    }
  }

  /**
   * Return the items that still wait; of those that stand for several, what is left of them.
   * @param {InboxItem[]} items
   * @param {number} now
   */
  shown(items, now) {
    if (!this.until.size) return items;
    this.forget(items, now);
    return items.flatMap((item) => {
      const marks = marksOf(item);
      const open = marks.filter((mark) => !this.until.has(mark));
      if (open.length === marks.length) return [item];
      return open.length ? [{ ...item, ids: item.ids.filter((_id, place) => !this.until.has(marks[place])) }] : [];
    });
  }

  /**
   * Forget what is gone from the daemon's list, or is still there after a while: then it was not settled.
   * @param {InboxItem[]} items
   * @param {number} now
   */
  forget(items, now) {
    const there = new Set(items.flatMap(marksOf));
    for (const [mark, until] of this.until)
      if (until < now || (until !== Infinity && !there.has(mark))) this.until.delete(mark);
  }
}
