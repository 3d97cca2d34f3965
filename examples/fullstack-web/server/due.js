// When a tool is due, and how far away that is. Instants are milliseconds since 1970, UTC.

const DAY = 24 * 60 * 60 * 1000;

/** The instant at which a loan ends. */
export function dueAt(loan) {
  return loan.lentAt + loan.days * DAY;
}

/** How many whole days are left of a loan; below 0 it is overdue. */
export function daysLeft(loan, now) {
  return Math.round((dueAt(loan) - now) / DAY);
}

/** Whether a loan should have ended. */
export function isOverdue(loan, now) {
  return daysLeft(loan, now) < 0;
}
