/** Returns the query string of an object, without the question mark. */
export function buildQuery(values) {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}`)
    .join('&');
}
