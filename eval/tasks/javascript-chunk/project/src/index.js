/** Splits an array into arrays of at most `size` items. */
export function chunk(items, size) {
  const chunks = [];
  for (let at = 0; at < items.length; at += size) {
    chunks.push(items.slice(at, at + size));
  }
  return chunks;
}
