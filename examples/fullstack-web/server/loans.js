// The loans, in memory. The table that they will be kept in is in db/schema.sql.

export class Loans {
  #loans = new Map();
  #next = 1;

  /** Lends a tool to a member for some days. */
  lend(tool, member, days, now) {
    const loan = { id: this.#next++, tool, member, days, lentAt: now };
    this.#loans.set(loan.id, loan);
    return loan;
  }

  /** Ends a loan; false where there is none of this id. */
  giveBack(id) {
    return this.#loans.delete(id);
  }

  /** Every loan that has not ended, oldest first. */
  all() {
    return [...this.#loans.values()];
  }
}
