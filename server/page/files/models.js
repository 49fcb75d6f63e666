// The models on this machine: their properties and layers, and which are loaded.

import { get, post } from './api.js';
import { byID, el, toast } from './dom.js';
import { bytes, count, plural, until, when } from './format.js';

export const models = { list: [], loaded: new Map(), read: false };

const facts = new Map(); // digest -> response of /api/show

const listeners = new Set();
export const onModels = (fn) => listeners.add(fn);

// refresh updates the list of models.
export async function refresh() {
  const { models: list } = await get('/api/tags');
  if (models.read && JSON.stringify(list) === JSON.stringify(models.list)) return; // unchanged: redrawing could lose the focus
  models.read = true;
  models.list = list;
  draw();
  listeners.forEach((fn) => fn());
}

// about returns the properties of a model.
export async function about(name) {
  const digest = models.list.find((m) => m.name === name)?.digest;
  if (!facts.has(digest)) facts.set(digest, await post('/api/show', { model: name }));
  return facts.get(digest);
}

// setLoaded updates which models are loaded, from /api/ps.
export function setLoaded(list) {
  models.loaded = new Map(list.map((m) => [m.name, m]));
  for (const row of document.querySelectorAll('details.model')) row.update();
}

let choose = () => {};
export const onPick = (fn) => { choose = fn; };

function draw() {
  const total = models.list.reduce((sum, m) => sum + m.size, 0);
  byID('models-sum').textContent = models.list.length > 0
    ? `${plural(models.list.length, 'model')}, ${bytes(total)}. Layers shared by models are stored once.`
    : '';
  const open = new Set([...document.querySelectorAll('details.model[open]')].map((d) => d.dataset.digest));
  const rows = models.list.map((m) => row(m, open.has(m.digest)));
  byID('models-list').replaceChildren(...(rows.length > 0 ? rows : [nothing()]));
}

export function nothing() {
  return el('div', { class: 'none' },
    el('p', {}, 'No models yet.'),
    el('p', {}, el('code', {}, 'ingot pull NAME'), ' downloads one, ', el('code', {}, 'ingot create NAME ./checkpoint'), ' creates one.'));
}

function row(m, open) {
  const state = el('span', { class: 'badge' });
  const kind = [m.details.family, m.details.parameter_size, m.details.quantization_level].filter(Boolean).join(' · ');
  const body = el('div', { class: 'body' });
  const node = el('details', { class: 'model', data: { digest: m.digest, name: m.name } },
    el('summary', {},
      el('span', { class: 'name' }, m.name), state,
      el('span', { class: 'kind' }, kind),
      el('span', { class: 'age' }, when(Date.parse(m.modified_at), Date.now())),
      el('span', { class: 'size' }, bytes(m.size))),
    body);
  const load = el('button', { type: 'button', class: 'plain', onclick: () => toggleLoaded(m.name, load) });
  const pick = el('button', { type: 'button', class: 'plain', onclick: () => choose(m.name) }, 'Chat with it');
  node.update = () => {
    const l = models.loaded.get(m.name);
    state.textContent = !l ? '' : l.loaded < 1 ? `loading ${Math.floor(100 * l.loaded)}%` : 'loaded';
    state.hidden = !l;
    load.textContent = l ? 'Unload' : 'Load';
    load.title = l ? until(Date.parse(l.expires_at), Date.now()) : '';
  };
  node.update();
  node.addEventListener('toggle', () => {
    if (node.open && body.childNodes.length === 0) fill(body, m, [pick, load]);
  });
  node.open = open;
  return node;
}

// toggleLoaded loads a model, or unloads it.
async function toggleLoaded(name, button) {
  const unload = models.loaded.has(name);
  if (button.ariaBusy === 'true') return; // not disabled, which would lose the focus
  button.ariaBusy = 'true';
  try {
    await post('/api/generate', unload ? { model: name, keep_alive: 0 } : { model: name });
    toast(unload ? `${name} unloads when it is idle.` : `${name} is loaded.`);
    loadChanged();
  } catch (e) {
    toast(e.message);
  }
  button.ariaBusy = null;
}

let loadChanged = () => {};
export const onLoadChange = (fn) => { loadChanged = fn; };

async function fill(body, m, buttons) {
  body.replaceChildren(el('p', { class: 'note' }, 'Reading the image'));
  try {
    const [info, image] = await Promise.all([about(m.name), get(`/api/layers?model=${encodeURIComponent(m.name)}`)]);
    body.replaceChildren(el('div', { class: 'row' }, buttons), properties(info, image), ...texts(info), layers(image.layers));
  } catch (e) {
    body.replaceChildren(el('p', { class: 'error' }, e.message));
  }
}

function properties(info, image) {
  const context = Object.entries(info.model_info).find(([k]) => k.endsWith('.context_length'))?.[1];
  const parameters = info.model_info['general.parameter_count'];
  const list = [
    ['Digest', el('code', {}, image.digest)],
    ['Capabilities', info.capabilities.join(', ')],
    ['Context', context && plural(context, 'token')],
    ['Parameters', parameters && count(parameters)],
    ['Defaults', info.parameters && el('code', { class: 'lines' }, info.parameters.trim())],
  ];
  return el('dl', {}, list.filter(([, v]) => v).map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]).flat());
}

function texts(info) {
  return [['System prompt', info.system], ['Chat template', info.template], ['License', info.license]].filter(([, v]) => v)
    .map(([title, text]) => el('details', { class: 'text' }, el('summary', {}, title), el('pre', { tabindex: 0 }, text)));
}

// layers returns the table of a model's layers, with totals by kind.
function layers(list) {
  const sizes = Map.groupBy ? [...Map.groupBy(list, (l) => l.kind)].map(([kind, of]) => `${plural(of.length, kind, kind.endsWith('s') ? kind : `${kind}s`)} ${bytes(of.reduce((s, l) => s + l.size, 0))}`) : [];
  return el('details', { class: 'text' },
    el('summary', {}, plural(list.length, 'layer'), el('span', { class: 'note' }, ` ${sizes.join(', ')}`)),
    el('div', { class: 'wide', tabindex: 0 }, el('table', { class: 'layers' },
      el('thead', {}, el('tr', {}, ['Name', 'Kind', 'Size', 'Digest', 'Type'].map((t) => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, list.map((l) => el('tr', {},
        el('td', {}, l.name), el('td', {}, l.kind), el('td', {}, bytes(l.size)),
        el('td', {}, el('code', { title: l.digest }, l.digest.replace(/^sha256:/, '').slice(0, 12))), el('td', {}, l.media_type)))))));
}
