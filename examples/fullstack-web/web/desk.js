// Fills the table of loans.

const loans = await (await fetch("/api/loans")).json();
const rows = loans.map((loan) => {
  const row = document.createElement("tr");
  for (const text of [loan.tool, loan.member, loan.overdue ? "overdue" : loan.daysLeft]) {
    row.append(Object.assign(document.createElement("td"), { textContent: text }));
  }
  return row;
});
document.getElementById("loans").replaceChildren(...rows);
