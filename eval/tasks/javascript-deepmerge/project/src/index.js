function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Merges two objects; values of `second` win, nested objects are merged. */
export function merge(first, second) {
  const result = first;
  for (const [key, value] of Object.entries(second)) {
    if (isObject(value) && isObject(result[key])) {
      result[key] = merge(result[key], value);
    } else {
      result[key] = value;
    }
  }
  return result;
}
