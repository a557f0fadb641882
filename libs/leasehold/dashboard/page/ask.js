// Questions to the dashboard's server, and what users do: always with the token of their connection.

const TIMEOUT_MS = 6000;
const SQL_TIMEOUT_MS = 130000;

export const session = { there: false, user: null, token: null, node: null, default_user: "", login: null };

export class Told extends Error {
  constructor(status, error) {
    super(error.message || `the server answered ${status}`);
    this.status = status;
    this.sqlstate = error.sqlstate || "";
  }
}

export async function ask(path) {
  return answered(await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) }));
}

export async function send(path, fields, timeout) {
  const headers = { "Content-Type": "application/json" };
  if (session.token) headers["X-Leasehold-Token"] = session.token;
  const body = JSON.stringify(fields || {});
  const signal = AbortSignal.timeout(timeout || SQL_TIMEOUT_MS);
  return answered(await fetch(path, { method: "POST", headers, body, signal, cache: "no-store" }));
}

async function answered(answer) {
  if (answer.status === 401 && !answer.url.endsWith("/sign-in")) {
    location.assign("/log-in");
    throw new Told(401, { message: "log in first" });
  }
  let told = {};
  try {
    told = await answer.json();
  } catch (error) {
    if (answer.ok) throw error;
  }
  if (!answer.ok) throw new Told(answer.status, told.error || {});
  return told;
}

export function know(state) {
  Object.assign(session, state.sql, { login: state.user });
}

export const may = () => session.user !== null;
