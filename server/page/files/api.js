// Requests to the server's API, with the API key if the server requires one.

const keyName = 'ingot.key';

// Failure is an error from the server, or a lost connection (status 0).
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let askUser = null; // returns a promise of a key, or of null
let asking = null; // the promise of the open dialog: only one is shown at a time
let declined = false; // the user has cancelled the dialog

// onKey sets the function that asks the user for a key.
export function onKey(ask) {
  askUser = ask;
}

function key() {
  try {
    return sessionStorage.getItem(keyName);
  } catch {
    return remembered;
  }
}

let remembered = null;

function keep(value) {
  remembered = value;
  try {
    sessionStorage.setItem(keyName, value);
  } catch {
    // Without storage, the user is asked again after a reload.
  }
}

// newKey asks the user for a key. Concurrent requests share one dialog.
async function newKey(wrong) {
  asking ??= askUser(wrong).finally(() => { asking = null; });
  const given = await asking;
  if (given === null) {
    declined = true;
    throw new Failure(401, 'The server requires an API key.');
  }
  keep(given);
}

// request sends a request. A background request does not ask for a key again after the user cancelled the dialog.
async function request(path, { background = false, ...options } = {}) {
  for (;;) {
    const used = key();
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    let response;
    try {
      response = await fetch(path, { cache: 'no-store', ...options, headers });
    } catch (e) {
      if (e.name === 'AbortError') throw e;
      throw new Failure(0, 'The server does not respond.');
    }
    if (response.ok) return response;
    if (response.status !== 401 || (background && declined)) throw await failure(response);
    if (!background) declined = false;
    if (key() === used) await newKey(used !== null);
  }
}

async function failure(response) {
  let message = `The server responded with status ${response.status}.`;
  try {
    const { error } = await response.json();
    if (error) message = typeof error === 'string' ? error : error.message;
  } catch {
    // The body is not JSON: report only the status.
  }
  return new Failure(response.status, message);
}

export async function get(path, options) {
  return (await request(path, options)).json();
}

export async function text(path, options) {
  return (await request(path, options)).text();
}

const posted = (body, signal) => ({ method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' }, signal });

export async function post(path, body, signal) {
  return (await request(path, posted(body, signal))).json();
}

// stream sends a request and yields the messages of its response, a stream of JSON lines. It throws if one is an error.
export async function* stream(path, body, signal) {
  const response = await request(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((e) => {
        if (e.name === 'AbortError') throw e;
        throw new Failure(0, 'The connection to the server was lost.');
      });
      if (done) break;
      rest += value;
      const lines = rest.split('\n');
      rest = lines.pop();
      for (const line of lines) if (line.trim() !== '') yield message(line);
    }
    if (rest.trim() !== '') yield message(rest);
  } finally {
    reader.cancel().catch(() => {});
  }
}

function message(line) {
  let m;
  try {
    m = JSON.parse(line);
  } catch {
    throw new Failure(0, 'The response was cut off.');
  }
  if (m.error) throw new Failure(0, typeof m.error === 'string' ? m.error : m.error.message);
  return m;
}
