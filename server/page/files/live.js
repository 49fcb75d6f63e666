// What goes on now: memory by model, tokens per second, what drafts and the cache of past prompts save. It asks only while somebody looks.

import { get, text } from './api.js';
import { byID, el } from './dom.js';
import { bytes, count, percent, perSecond, plural, until } from './format.js';
import { setLoaded } from './models.js';
import { busy, onChange, pace, progress, waitsFor } from './talk.js';

const pause = 2000; // milliseconds between two looks
const quick = 300; // while an answer waits for its model
const kept = 60; // rates in the line of the last minutes

let before = null; // {at, tokens}
const rates = [];
let timer = 0;
let looking = false;

// seen tells whether anybody would notice.
const seen = () => document.visibilityState === 'visible' && (byID('live').offsetParent !== null || byID('models').offsetParent !== null || waitsFor() !== null);

export function init() {
  document.addEventListener('visibilitychange', look);
  addEventListener('hashchange', look);
  addEventListener('resize', () => { if (timer === 0) look(); });
  onChange(look);
  look();
}

// look asks once and, while there is somebody to see it, again and again.
export async function look() {
  clearTimeout(timer);
  timer = 0;
  if (looking || !seen()) return;
  looking = true;
  let refused = false;
  try {
    const [ps, metrics] = await Promise.all([get('/api/ps?verbose=true', { background: true }), text('/metrics', { background: true })]);
    setLoaded(ps.models);
    tell(ps.models);
    draw(ps, totals(metrics));
  } catch (e) {
    before = null;
    byID('live-body').replaceChildren(el('p', { class: 'note' }, e.message));
    refused = e.status === 401; // until something is done
  }
  looking = false;
  if (seen() && !refused) timer = setTimeout(look, waitsFor() === null ? pause : quick);
}

// tell says what an answer waits for.
function tell(list) {
  const name = waitsFor();
  if (name === null) return;
  const model = list.find((m) => m.name === name);
  if (!model || model.loaded < 1) progress(model?.loaded > 0 ? `Loading the model, ${Math.floor(100 * model.loaded)}%` : 'Loading the model');
  else progress(model.usage?.waiting > 0 ? 'Waiting for other requests' : 'Reading the prompt');
}

// totals sums a metric over all models; see /metrics.
export function totals(metrics) {
  const sums = {};
  for (const line of metrics.split('\n')) {
    const m = /^ingot_(\w+)_tokens_total(?:\{[^}]*\})? (\S+)/.exec(line);
    if (m) sums[m[1]] = (sums[m[1]] ?? 0) + Number(m[2]);
  }
  return sums;
}

function draw(ps, sums) {
  const at = performance.now();
  const tokens = sums.generated ?? 0;
  const now = before && tokens >= before.tokens ? (tokens - before.tokens) / ((at - before.at) / 1000) : 0;
  before = { at, tokens };
  rates.push(now);
  if (rates.length > kept) rates.shift();
  byID('live-body').replaceChildren(memory(ps), ...ps.models.map(model), speed(busy() ? Math.max(now, pace()) : now), savings(sums) || '');
}

const used = (m) => (m.usage ? m.usage.weights + m.usage.state + (m.usage.prefix?.bytes ?? 0) : 0);

function memory(ps) {
  const sum = ps.models.reduce((s, m) => s + m.size, 0);
  const text = ps.models.length === 0 ? `No model is loaded. ${bytes(ps.memory)} may be used.` : `${bytes(ps.models.reduce((s, m) => s + used(m), 0))} in use, ${bytes(sum)} set aside of ${bytes(ps.memory)}`;
  return el('div', { class: 'fact' }, el('h3', {}, 'Memory'), el('p', { class: 'note' }, text), ps.models.length > 0 && bar(ps.models.map((m, i) => [`m${i % 3}`, m.size]), ps.memory, text));
}

// bar shows parts of a whole; what it says is in its label.
function bar(parts, whole, label) {
  const node = el('div', { class: 'meter', role: 'img', 'aria-label': label });
  for (const [name, size] of parts) {
    const part = el('span', { class: name });
    part.style.width = `${Math.min(100, (100 * size) / Math.max(whole, 1))}%`;
    node.append(part);
  }
  return node;
}

function model(m) {
  const u = m.usage;
  const parts = u ? [['weights', u.weights], ['state', u.state], ['past', u.prefix?.bytes ?? 0]] : [];
  const text = u ? `weights ${bytes(u.weights)}, running ${bytes(u.state)}, past prompts ${bytes(u.prefix?.bytes ?? 0)}` : `loading ${Math.floor(100 * m.loaded)}%`;
  const work = [u?.running > 0 && `${count(u.running)} running`, u?.waiting > 0 && `${count(u.waiting)} waiting`].filter(Boolean).join(', ');
  return el('div', { class: 'fact' },
    el('h4', {}, el('span', {}, m.name), el('span', { class: 'note' }, bytes(m.size))),
    bar(parts, m.size, `${m.name}: ${text}`),
    el('p', { class: 'note' }, text),
    el('p', { class: 'note' }, work || (m.requests > 0 ? `${plural(m.requests, 'request')}` : until(Date.parse(m.expires_at), Date.now()))));
}

function speed(now) {
  return el('div', { class: 'fact' },
    el('h3', {}, 'Speed', el('span', { class: 'value' }, now > 0 ? perSecond(now) : 'idle')),
    rates.length > 1 && rates.some((r) => r > 0) && line());
}

// line is the rates of the last minutes.
function line() {
  const most = Math.max(...rates, 1);
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const points = rates.map((r, i) => `${((kept - rates.length + i) * 100) / (kept - 1)},${(23 - (22 * r) / most).toFixed(1)}`);
  for (const [k, v] of Object.entries({ viewBox: '0 0 100 24', preserveAspectRatio: 'none', class: 'line', role: 'img', 'aria-label': `tokens per second in the last minutes, at most ${perSecond(most)}` })) svg.setAttribute(k, v);
  const path = document.createElementNS(space, 'polyline');
  path.setAttribute('points', points.join(' '));
  svg.append(path);
  return svg;
}

function savings(sums) {
  const rows = [];
  if (sums.generated > 0) rows.push(['Tokens said', count(sums.generated)]);
  if (sums.prompt > 0) rows.push(['Prompts found in the cache', percent(sums.cached_prompt ?? 0, sums.prompt)]);
  if (sums.drafted > 0) rows.push(['Drafts accepted', percent(sums.accepted ?? 0, sums.drafted)]);
  return rows.length > 0 && el('dl', { class: 'rows' }, rows.map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]).flat());
}
