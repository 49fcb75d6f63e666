// The live statistics: memory by model, tokens per second, acceptance rate and prefix cache. They are polled only while
// they are visible.

import { get, text } from './api.js';
import { byID, el } from './dom.js';
import { bytes, count, percent, perSecond, plural, ranks, until } from './format.js';
import { setLoaded } from './models.js';
import { busy, currentRate, onChange, progress, waitsFor } from './talk.js';

const pollMs = 2000; // interval between polls
const fastPollMs = 300; // interval while a response waits for its model
const maxRates = 60; // number of points of the chart

let before = null; // {at, tokens}
const rates = [];
let timer = 0;
let polling = false;

// isVisible reports whether the page shows any of the statistics.
const isVisible = () => document.visibilityState === 'visible' && (byID('live').offsetParent !== null || byID('models').offsetParent !== null || waitsFor() !== null);

export function init() {
  document.addEventListener('visibilitychange', poll);
  addEventListener('hashchange', poll);
  addEventListener('resize', () => { if (timer === 0) poll(); });
  onChange(poll);
  poll();
}

// poll updates the statistics, now and at intervals while they are visible.
export async function poll() {
  clearTimeout(timer);
  timer = 0;
  if (polling || !isVisible()) return;
  polling = true;
  let refused = false;
  try {
    const [ps, metrics] = await Promise.all([get('/api/ps?verbose=true', { background: true }), text('/metrics', { background: true })]);
    setLoaded(ps.models);
    showProgress(ps.models);
    draw(ps, totals(metrics));
  } catch (e) {
    before = null;
    byID('live-body').replaceChildren(el('p', { class: 'note' }, e.message));
    refused = e.status === 401; // polling stops until the next event
  }
  polling = false;
  if (isVisible() && !refused) timer = setTimeout(poll, waitsFor() === null ? pollMs : fastPollMs);
}

// showProgress shows what a response waits for.
function showProgress(list) {
  const name = waitsFor();
  if (name === null) return;
  const model = list.find((m) => m.name === name);
  if (!model || model.loaded < 1) progress(model?.loaded > 0 ? `Loading the model, ${Math.floor(100 * model.loaded)}%` : 'Loading the model');
  else progress(model.usage?.waiting > 0 ? 'Waiting for other requests' : 'Processing the prompt');
}

// totals sums the token counters of /metrics over all models.
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
  if (rates.length > maxRates) rates.shift();
  byID('live-body').replaceChildren(memory(ps), ...ps.models.map(model), speed(busy() ? Math.max(now, currentRate()) : now), savings(sums) || '');
}

const used = (m) => (m.usage ? m.usage.weights + m.usage.state + (m.usage.prefix?.bytes ?? 0) : 0);

function memory(ps) {
  const sum = ps.models.reduce((s, m) => s + m.size, 0);
  const text = ps.models.length === 0 ? `No model is loaded. ${bytes(ps.memory)} available.` : `${bytes(ps.models.reduce((s, m) => s + used(m), 0))} in use, ${bytes(sum)} reserved of ${bytes(ps.memory)}`;
  return el('div', { class: 'fact' }, el('h3', {}, 'Memory'), el('p', { class: 'note' }, text), ps.models.length > 0 && bar(ps.models.map((m, i) => [`m${i % 3}`, m.size]), ps.memory, text));
}

// bar shows parts of a whole. Its label says the same in words.
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
  const parts = u ? [['weights', u.weights], ['state', u.state], ['prefix', u.prefix?.bytes ?? 0]] : [];
  const text = u ? `weights ${bytes(u.weights)}, KV cache ${bytes(u.state)}, prefix cache ${bytes(u.prefix?.bytes ?? 0)}` : `loading ${Math.floor(100 * m.loaded)}%`;
  const work = [u?.running > 0 && `${count(u.running)} running`, u?.waiting > 0 && `${count(u.waiting)} waiting`].filter(Boolean).join(', ');
  return el('div', { class: 'fact' },
    el('h4', {}, el('span', {}, m.name), el('span', { class: 'note' }, bytes(m.size))),
    bar(parts, m.size, `${m.name}: ${text}`),
    el('p', { class: 'note' }, text),
    ranks(u) && el('p', { class: 'note' }, ranks(u)),
    el('p', { class: 'note' }, work || (m.requests > 0 ? `${plural(m.requests, 'request')}` : until(Date.parse(m.expires_at), Date.now()))));
}

function speed(now) {
  return el('div', { class: 'fact' },
    el('h3', {}, 'Speed', el('span', { class: 'value' }, now > 0 ? perSecond(now) : 'idle')),
    rates.length > 1 && rates.some((r) => r > 0) && chart());
}

// chart draws the rates of the last minutes.
function chart() {
  const most = Math.max(...rates, 1);
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const points = rates.map((r, i) => `${((maxRates - rates.length + i) * 100) / (maxRates - 1)},${(23 - (22 * r) / most).toFixed(1)}`);
  for (const [k, v] of Object.entries({ viewBox: '0 0 100 24', preserveAspectRatio: 'none', class: 'line', role: 'img', 'aria-label': `tokens per second in the last minutes, at most ${perSecond(most)}` })) svg.setAttribute(k, v);
  const path = document.createElementNS(space, 'polyline');
  path.setAttribute('points', points.join(' '));
  svg.append(path);
  return svg;
}

function savings(sums) {
  const rows = [];
  if (sums.generated > 0) rows.push(['Tokens generated', count(sums.generated)]);
  if (sums.prompt > 0) rows.push(['Prompt tokens from cache', percent(sums.cached_prompt ?? 0, sums.prompt)]);
  if (sums.drafted > 0) rows.push(['Draft acceptance rate', percent(sums.accepted ?? 0, sums.drafted)]);
  return rows.length > 0 && el('dl', { class: 'rows' }, rows.map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]).flat());
}
