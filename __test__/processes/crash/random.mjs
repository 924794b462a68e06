// Random numbers that come back: everything a crash test does follows from its seed, but for when a
// process happens to be killed.

/** A generator (splitmix32) of numbers that follow from `words`. */
export class Random {
  #state;

  /** @param {...(number | string)} words */
  constructor(...words) {
    this.#state = hash(words.join("/"));
  }

  /** 32 bits. */
  bits() {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return (x ^ (x >>> 15)) >>> 0;
  }

  /** An integer from `low` to `high`, both included. */
  between(low, high) {
    return low + (this.bits() % (high - low + 1));
  }

  /** True once in `n` times. */
  oneIn(n) {
    return this.bits() % n === 0;
  }

  /** One of `choices`. */
  pick(choices) {
    return choices[this.bits() % choices.length];
  }

  /** `length` bytes, made 4 at a time. */
  bytes(length) {
    const words = new Uint32Array((length + 3) >> 2);
    for (let at = 0; at < words.length; at++) words[at] = this.bits();
    return new Uint8Array(words.buffer.slice(0, length));
  }
}

/** FNV-1a. */
function hash(text) {
  let h = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) h = Math.imul(h ^ text.charCodeAt(at), 0x01000193);
  return h | 0;
}
