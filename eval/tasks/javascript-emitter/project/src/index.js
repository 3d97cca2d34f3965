/** Calls listeners by the name of an event. */
export class Emitter {
  #listeners = new Map();

  on(name, listener) {
    const known = this.#listeners.get(name) ?? [];
    known.push(listener);
    this.#listeners.set(name, known);
  }

  off(name, listener) {
    const known = this.#listeners.get(name) ?? [];
    const at = known.indexOf(listener);
    if (at >= 0) {
      known.splice(at, 1);
    }
  }

  emit(name, ...args) {
    for (const listener of this.#listeners.get(name) ?? []) {
      listener(...args);
    }
  }
}
