// How well a text matches what somebody typed; fast enough for ten thousand texts per key.

/**
 * Return how well a text fits some words, 0 if it does not: each word has to be in it, at best at the beginning of
 * one of its words; letters in order but apart count a little.
 * @param {string} text
 * @param {string[]} words
 */
export function fit(text, words) {
  let sum = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) {
      const loose = scattered(text, word);
      if (!loose) return 0;
      sum += loose;
    } else {
      sum += at === 0 ? 100 : isStart(text, at) ? 80 : 40;
    }
  }
  return sum / words.length - Math.min(text.length, 200) / 100 + 10;
}

/**
 * @param {string} text
 * @param {number} at
 */
const isStart = (text, at) => " -_/.:(".includes(text[at - 1]);

/**
 * Return a little for letters that come in order, more if they begin words.
 * @param {string} text
 * @param {string} word
 */
function scattered(text, word) {
  if (word.length < 2) return 0;
  let at = -1;
  let starts = 0;
  for (const letter of word) {
    at = text.indexOf(letter, at + 1);
    if (at < 0) return 0;
    if (at === 0 || isStart(text, at)) starts++;
  }
  return starts >= word.length / 2 ? 10 + starts : 0;
}
