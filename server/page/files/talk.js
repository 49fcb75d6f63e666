// The conversation: asks the model, shows what it says, stops it.

import { stream, Failure } from './api.js';
import { chat, onOther, request, saveChat } from './chats.js';
import { byID, say, toast } from './dom.js';
import { Answer, userMessage } from './message.js';

let running = null; // {abort, view, message, tokens, first, last}
let scrolled = true; // the end is in sight, and stays so

const listeners = new Set();

// onChange calls back when an answer begins or ends.
export const onChange = (fn) => listeners.add(fn);

const changed = () => listeners.forEach((fn) => fn());

export const busy = () => running !== null;

// pace is how fast the answer that is coming comes, in tokens per second; 0 when none is.
export function pace() {
  if (!running || running.tokens < 2) return 0;
  return (running.tokens - running.before) / Math.max((running.last - running.first) / 1000, 1e-3);
}

// progress says what an answer that has not begun waits for.
export function progress(text) {
  if (running && running.tokens === 0) running.view.waits(text);
}

// waitsFor is the model whose answer has not begun.
export const waitsFor = () => (running && running.tokens === 0 ? running.message.model : null);

function drawAll() {
  byID('log').replaceChildren(...chat.messages.map((m, i) => (m.role === 'user' ? userMessage(m) : new Answer(m, () => again(i)).node)));
  toEnd(true);
}

// ask sends a message of the user and has it answered.
export async function ask(model, text, images) {
  chat.messages.push({ role: 'user', text, ...(images.length > 0 ? { images } : {}) });
  byID('log').append(userMessage(chat.messages.at(-1)));
  await answer(model);
}

// choose says which model answers next; the page sets it.
let choose = () => null;
export const onChoose = (fn) => { choose = fn; };

// again answers anew from a place on; what came after it is gone.
function again(i) {
  const model = choose();
  if (running || !model) return;
  chat.messages.length = i;
  while (byID('log').children.length > i) byID('log').lastChild.remove();
  byID('message').focus(); // the button is gone
  answer(model);
}

async function answer(model) {
  const body = request(model);
  const message = { role: 'assistant', model: model.name, text: '', state: 'busy' };
  const i = chat.messages.push(message) - 1;
  const view = new Answer(message, () => again(i));
  byID('log').append(view.node);
  toEnd(true);
  const now = { view, abort: new AbortController(), message, tokens: 0, before: 0, first: 0, last: 0 };
  running = now;
  view.waits('Waiting for the model');
  say('The model is answering.');
  changed();
  keep();
  const saving = setInterval(keep, 2000); // a page that is closed has what was said so far
  const blind = !model.sees && chat.messages.some((m) => m.images?.length > 0);
  if (blind) toast(`${model.name} takes no pictures; it gets the texts alone.`);
  try {
    await listen(now, body);
  } catch (e) {
    fail(now, e);
  }
  clearInterval(saving);
  running = null;
  if (message.state !== 'done' && message.state !== 'length') measured(now);
  now.view.draw();
  toEnd();
  keep();
  say(message.error ?? (message.state === 'stopped' ? 'Stopped.' : message.text.slice(0, 3000)));
  changed();
}

// keep saves, and says once when there was no room for pictures.
let told = false;
function keep() {
  if (saveChat() || told) return;
  told = true;
  toast('The pictures are too large for this browser\'s storage; they are gone when the page is closed.');
}

async function listen(now, body) {
  const m = now.message;
  let began = 0;
  for await (const part of stream('/api/chat', body, now.abort.signal)) {
    const at = performance.now();
    const said = part.message ?? {};
    if (part.ids?.length > 0) {
      if (now.tokens === 0) {
        now.first = at;
        now.before = part.ids.length; // the time before them is the prompt's
      }
      now.tokens += part.ids.length;
      now.last = at;
    }
    if (said.thinking) {
      began ||= at;
      m.thinking = (m.thinking ?? '') + said.thinking;
      m.thought = (at - began) / 1000;
    }
    if (said.tool_calls) m.calls = [...(m.calls ?? []), ...said.tool_calls];
    if (said.content) m.text += m.text === '' ? said.content.trimStart() : said.content;
    if (part.done) {
      m.stats = part.stats;
      m.state = part.done_reason === 'length' ? 'length' : 'done';
      return;
    }
    redraw(now);
  }
  throw new Failure(0, 'The answer was cut off.');
}

function fail(now, e) {
  const m = now.message;
  if (e.name === 'AbortError') {
    m.state = 'stopped';
    return;
  }
  m.state = 'failed';
  m.error = e instanceof Failure ? sentence(e.message) : `The page failed: ${e.message}`;
}

const sentence = (s) => s.charAt(0).toUpperCase() + s.slice(1);

// measured puts what the page counted where the server's statistics did not come.
function measured(now) {
  now.message.counted = now.tokens;
  now.message.rate = now.tokens > now.before ? (now.tokens - now.before) / Math.max((now.last - now.first) / 1000, 1e-3) : 0;
}

let drawing = 0;

// redraw draws what has come once per frame.
function redraw(now) {
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    if (running !== now) return;
    now.view.draw();
    toEnd();
  });
}

export function stop() {
  running?.abort.abort();
}

// clear begins a new conversation; the old one can be had back for a while.
export function clear() {
  stop();
  const old = chat.messages;
  if (old.length === 0) return;
  chat.messages = [];
  changedAll();
  toast('The conversation is cleared.', 'Undo', () => {
    chat.messages = [...old, ...chat.messages];
    changedAll();
  });
}

function changedAll() {
  drawAll();
  keep();
  changed();
}

function toEnd(always) {
  const box = byID('scroll');
  if (always) scrolled = true;
  if (scrolled) box.scrollTop = box.scrollHeight;
}

export function init() {
  const box = byID('scroll');
  box.addEventListener('scroll', () => { scrolled = box.scrollHeight - box.scrollTop - box.clientHeight < 48; }, { passive: true });
  addEventListener('pagehide', () => { if (running) keep(); });
  onOther(() => {
    if (running) return;
    drawAll();
    changed();
  });
  drawAll();
}
