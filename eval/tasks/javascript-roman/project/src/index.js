const SIGNS = [
  [1000, 'M'],
  [500, 'D'],
  [100, 'C'],
  [50, 'L'],
  [10, 'X'],
  [5, 'V'],
  [1, 'I'],
];

/** Writes a number from 1 to 3999 in Roman numerals. */
export function toRoman(number) {
  let rest = number;
  let text = '';
  for (const [value, sign] of SIGNS) {
    while (rest >= value) {
      text += sign;
      rest -= value;
    }
  }
  return text;
}
