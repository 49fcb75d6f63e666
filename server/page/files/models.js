// The models on this machine: what they are, what they are made of, which are loaded.

import { get, post } from './api.js';
import { byID, el, toast } from './dom.js';
import { bytes, count, plural, until, when } from './format.js';

export const models = { list: [], loaded: new Map(), read: false };

const facts = new Map(); // digest -> answer of /api/show

const listeners = new Set();
export const onModels = (fn) => listeners.add(fn);

// refresh reads which models there are.
export async function refresh() {
  const { models: list } = await get('/api/tags');
  if (models.read && JSON.stringify(list) === JSON.stringify(models.list)) return; // what is drawn may have the focus
  models.read = true;
  models.list = list;
  draw();
  listeners.forEach((fn) => fn());
}

// about gives what is known of a model.
export async function about(name) {
  const digest = models.list.find((m) => m.name === name)?.digest;
  if (!facts.has(digest)) facts.set(digest, await post('/api/show', { model: name }));
  return facts.get(digest);
}

// setLoaded takes what /api/ps says.
export function setLoaded(list) {
  models.loaded = new Map(list.map((m) => [m.name, m]));
  for (const row of document.querySelectorAll('details.model')) row.update();
}

let choose = () => {};
export const onPick = (fn) => { choose = fn; };

function draw() {
  const total = models.list.reduce((sum, m) => sum + m.size, 0);
  byID('models-sum').textContent = models.list.length > 0
    ? `${plural(models.list.length, 'model')}, ${bytes(total)}. Layers that models share are on the disk once.`
    : '';
  const open = new Set([...document.querySelectorAll('details.model[open]')].map((d) => d.dataset.digest));
  const rows = models.list.map((m) => row(m, open.has(m.digest)));
  byID('models-list').replaceChildren(...(rows.length > 0 ? rows : [nothing()]));
}

export function nothing() {
  return el('div', { class: 'none' },
    el('p', {}, 'There is no model here yet.'),
    el('p', {}, el('code', {}, 'ingot pull NAME'), ' fetches one, ', el('code', {}, 'ingot create NAME ./checkpoint'), ' makes one.'));
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
  const load = el('button', { type: 'button', class: 'plain', onclick: () => move(m.name, load) });
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

// move loads a model, or unloads it.
async function move(name, button) {
  const unload = models.loaded.has(name);
  if (button.ariaBusy === 'true') return; // disabling it would lose the focus
  button.ariaBusy = 'true';
  try {
    await post('/api/generate', unload ? { model: name, keep_alive: 0 } : { model: name });
    toast(unload ? `${name} goes as soon as nobody uses it.` : `${name} is loaded.`);
    moved();
  } catch (e) {
    toast(e.message);
  }
  button.ariaBusy = null;
}

let moved = () => {};
export const onMove = (fn) => { moved = fn; };

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
    ['Takes', info.capabilities.join(', ')],
    ['Context', context && plural(context, 'token')],
    ['Parameters', parameters && count(parameters)],
    ['Defaults', info.parameters && el('code', { class: 'lines' }, info.parameters.trim())],
  ];
  return el('dl', {}, list.filter(([, v]) => v).map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]).flat());
}

function texts(info) {
  return [['System text', info.system], ['Chat template', info.template], ['License', info.license]].filter(([, v]) => v)
    .map(([title, text]) => el('details', { class: 'text' }, el('summary', {}, title), el('pre', { tabindex: 0 }, text)));
}

// layers is the table of a model's layers, tensors and others apart by their kind.
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
