// A kiosk at the door takes books back. It knows each book by the number on its label.

/** Books that were put into the kiosk and not yet carried to their shelves. */
export class ReturnShelf {
  #waiting = [];

  /** Takes a book back; false where its label cannot be read. */
  take(label, now) {
    const id = Number(label);
    if (!Number.isInteger(id) || id <= 0) {
      return false;
    }
    this.#waiting.push({ id, at: now });
    return true;
  }

  /** What has to be carried to the shelves, oldest first. */
  waiting() {
    return [...this.#waiting];
  }
}
