// The desk's server: its page, and the loans as JSON.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { daysLeft, isOverdue } from "./due.js";
import { Loans } from "./loans.js";

const PAGES = { "/": ["index.html", "text/html"], "/desk.js": ["desk.js", "text/javascript"] };

const loans = new Loans();
loans.lend("drill", "Ada", 3, Date.now());
loans.lend("ladder", "Ben", 1, Date.now() - 2 * 24 * 60 * 60 * 1000);

function shown(loan, now) {
  return { ...loan, daysLeft: daysLeft(loan, now), overdue: isOverdue(loan, now) };
}

const server = createServer(async (request, response) => {
  if (request.method === "GET" && request.url === "/api/loans") {
    const now = Date.now();
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify(loans.all().map((loan) => shown(loan, now))));
  }
  const page = PAGES[request.url];
  if (request.method !== "GET" || !page) {
    response.statusCode = 404;
    return response.end();
  }
  response.setHeader("content-type", page[1]);
  return response.end(await readFile(new URL(`../web/${page[0]}`, import.meta.url)));
});

server.listen(8080, "127.0.0.1", () => console.log("http://127.0.0.1:8080/"));
