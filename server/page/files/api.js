// The server's API, and the key that it may want.

const keyName = 'ingot.key';

// Failure is an error that the server told of, or that it does not answer.
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let asks = null; // gives a key, or null when there is none
let asking = null; // one question at a time
let declined = false;

// onKey says who is asked for a key.
export function onKey(ask) {
  asks = ask;
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
    // It is asked for again after a reload.
  }
}

// newKey asks for a key, once for all requests that want one.
async function newKey(wrong) {
  asking ??= asks(wrong).finally(() => { asking = null; });
  const given = await asking;
  if (given === null) {
    declined = true;
    throw new Failure(401, 'The server wants an API key.');
  }
  keep(given);
}

// request sends one. Those of the background do not ask for a key again that the user did not give.
async function request(path, { background = false, ...options } = {}) {
  for (;;) {
    const used = key();
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    let answer;
    try {
      answer = await fetch(path, { cache: 'no-store', ...options, headers });
    } catch (e) {
      if (e.name === 'AbortError') throw e;
      throw new Failure(0, 'The server does not answer.');
    }
    if (answer.ok) return answer;
    if (answer.status !== 401 || (background && declined)) throw await failure(answer);
    if (!background) declined = false;
    if (key() === used) await newKey(used !== null);
  }
}

async function failure(answer) {
  let message = `The server answers with status ${answer.status}.`;
  try {
    const { error } = await answer.json();
    if (error) message = typeof error === 'string' ? error : error.message;
  } catch {
    // The status has to do.
  }
  return new Failure(answer.status, message);
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

// stream sends a request and gives the messages of its answer, which is lines of JSON. A message with an error ends it.
export async function* stream(path, body, signal) {
  const answer = await request(path, posted(body, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
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
    throw new Failure(0, 'The answer was cut off.');
  }
  if (m.error) throw new Failure(0, typeof m.error === 'string' ? m.error : m.error.message);
  return m;
}
