// The conversation: sends messages, shows the responses, stops them.

import { stream, Failure } from './api.js';
import { chat, onOther, request, saveChat } from './chats.js';
import { byID, say, toast } from './dom.js';
import { Response, userMessage } from './message.js';

let running = null; // {abort, view, message, tokens, first, last}
let scrolled = true; // the log is scrolled to its end, and follows new text

const listeners = new Set();

// onChange adds a listener for the start and end of a response.
export const onChange = (fn) => listeners.add(fn);

const changed = () => listeners.forEach((fn) => fn());

export const busy = () => running !== null;

// currentRate returns the speed of the current response in tokens per second, or 0.
export function currentRate() {
  if (!running || running.tokens < 2) return 0;
  return (running.tokens - running.before) / Math.max((running.last - running.first) / 1000, 1e-3);
}

// progress shows what a response without tokens waits for.
export function progress(text) {
  if (running && running.tokens === 0) running.view.waits(text);
}

// waitsFor returns the model of a response without tokens, or null.
export const waitsFor = () => (running && running.tokens === 0 ? running.message.model : null);

function drawAll() {
  byID('log').replaceChildren(...chat.messages.map((m, i) => (m.role === 'user' ? userMessage(m) : new Response(m, () => again(i)).node)));
  toEnd(true);
}

// ask sends a message and shows the response.
export async function ask(model, text, images) {
  chat.messages.push({ role: 'user', text, ...(images.length > 0 ? { images } : {}) });
  byID('log').append(userMessage(chat.messages.at(-1)));
  await answer(model);
}

// choose returns the model for the next response. app.js sets it.
let choose = () => null;
export const onChoose = (fn) => { choose = fn; };

// again regenerates message i. It removes all later messages.
function again(i) {
  const model = choose();
  if (running || !model) return;
  chat.messages.length = i;
  while (byID('log').children.length > i) byID('log').lastChild.remove();
  byID('message').focus(); // the focused button has been removed
  answer(model);
}

async function answer(model) {
  const body = request(model);
  const message = { role: 'assistant', model: model.name, text: '', state: 'busy' };
  const i = chat.messages.push(message) - 1;
  const view = new Response(message, () => again(i));
  byID('log').append(view.node);
  toEnd(true);
  const now = { view, abort: new AbortController(), message, tokens: 0, before: 0, first: 0, last: 0 };
  running = now;
  view.waits('Waiting for the model');
  say('The model is responding.');
  changed();
  keep();
  const saving = setInterval(keep, 2000); // so that closing the page loses little
  const blind = !model.sees && chat.messages.some((m) => m.images?.length > 0);
  if (blind) toast(`${model.name} does not support pictures; only the text is sent.`);
  try {
    await listen(now, body);
  } catch (e) {
    fail(now, e);
  }
  clearInterval(saving);
  running = null;
  if (message.state !== 'done' && message.state !== 'length') setMeasured(now);
  now.view.draw();
  toEnd();
  keep();
  say(message.error ?? (message.state === 'stopped' ? 'Stopped.' : message.text.slice(0, 3000)));
  changed();
}

// keep saves the conversation. If its pictures do not fit, it warns the user once.
let warned = false;
function keep() {
  if (saveChat() || warned) return;
  warned = true;
  toast('The pictures are too large for this browser\'s storage; they are lost when you close the page.');
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
        now.before = part.ids.length; // the time before the first ones belongs to the prompt
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
  throw new Failure(0, 'The response was cut off.');
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

// setMeasured stores the page's own counts, for a response without statistics from the server.
function setMeasured(now) {
  now.message.counted = now.tokens;
  now.message.rate = now.tokens > now.before ? (now.tokens - now.before) / Math.max((now.last - now.first) / 1000, 1e-3) : 0;
}

let drawing = 0;

// redraw draws new text, at most once per frame.
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

// clear starts a new conversation. The user can undo this for a few seconds.
export function clear() {
  stop();
  const old = chat.messages;
  if (old.length === 0) return;
  chat.messages = [];
  changedAll();
  toast('Conversation cleared.', 'Undo', () => {
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
