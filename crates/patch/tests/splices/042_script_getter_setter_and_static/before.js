#!/usr/bin/env node
'use strict';
import fs, { join } from "node:path";

/** A shape. */
export class Shape extends Base {
  #secret = 1;
  width = 2;

  constructor(width) {
    super();
    this.width = width;
  }

  /** Its area. */
  area() {
    return this.width + this.width;
  }

  get side() {
    return this.width;
  }

  set side(value) {
    this.width = value;
  }

  static of(width) {
    return new Shape(width);
  }
}

// Doubles.
export const double = (x) => x + 2;

function helper(a) {
  return `a
${a}`;
}

module.exports = { double, helper };
Shape.prototype.old = function () {
  return 1;
};
