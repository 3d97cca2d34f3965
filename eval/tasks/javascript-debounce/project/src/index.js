/** Returns a function that calls `fn` once after `wait` milliseconds without a call. */
export function debounce(fn, wait, timers = globalThis) {
  let timer;
  let pending;
  return (...args) => {
    pending ??= args;
    timers.clearTimeout(timer);
    timer = timers.setTimeout(() => {
      fn(...pending);
      pending = undefined;
    }, wait);
  };
}
