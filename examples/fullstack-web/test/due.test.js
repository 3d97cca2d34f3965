import assert from "node:assert/strict";
import test from "node:test";
import { daysLeft, dueAt, isOverdue } from "../server/due.js";

const HOUR = 60 * 60 * 1000;
const loan = { lentAt: 0, days: 3 };

test("a loan of three days ends after 72 hours", () => {
  assert.equal(dueAt(loan), 72 * HOUR);
  assert.equal(daysLeft(loan, 0), 3);
});

test("a loan is overdue a day after its end", () => {
  assert.equal(isOverdue(loan, 71 * HOUR), false);
  assert.equal(isOverdue(loan, 96 * HOUR + 1), true);
});
