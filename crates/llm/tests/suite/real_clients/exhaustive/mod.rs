//! Every mode of the server with every program: answers, refusals, requests, the user's own login, and hostile input.

mod answers;
mod hostile;
mod refusals;
mod requests;
mod users_login;
