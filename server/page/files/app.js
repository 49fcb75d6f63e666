// The page itself: selected model, view, theme, and API key.

import { get, onKey } from './api.js';
import { chat, exported, saveSettings, settings } from './chats.js';
import * as composer from './composer.js';
import { byID, el, icon, toast } from './dom.js';
import { short } from './format.js';
import * as live from './live.js';
import { about, models, nothing, onModels, onLoadChange, onPick, refresh } from './models.js';
import * as options from './settings.js';
import * as talk from './talk.js';

let model = null; // {name, sees, thinks, template}: its capabilities, and whether it has a chat template

// choose selects the model for the next response.
async function choose(name) {
  settings.model = name;
  saveSettings();
  byID('model').value = name;
  if (model?.name !== name) model = null;
  try {
    const info = await about(name);
    if (settings.model !== name) return; // the user has chosen another model meanwhile
    const can = (what) => info.capabilities.includes(what);
    model = { name, sees: can('vision'), thinks: can('thinking'), template: Boolean(info.template) };
    options.adaptTo(info);
  } catch (e) {
    toast(e.message);
  }
  composer.setModel(model);
  greet();
}

// listModels fills the model selection.
function listModels() {
  const names = models.list.map((m) => m.name);
  byID('model').replaceChildren(...names.map((name) => el('option', { value: name }, short(name))));
  byID('model').disabled = names.length === 0;
  const wanted = [settings.model, ...models.loaded.keys(), ...names].find((n) => names.includes(n));
  if (wanted) choose(wanted);
  else composer.setModel(null);
  greet();
}

function greet() {
  const empty = chat.messages.length === 0;
  byID('empty').hidden = !empty;
  byID('clear').disabled = empty;
  byID('export').disabled = empty;
  if (!empty) return;
  byID('empty').replaceChildren(models.read && models.list.length === 0 ? nothing() : el('div', {},
    el('h1', {}, model ? `Chat with ${short(model.name)}` : 'Chat with a model'),
    el('p', {}, 'The conversation is stored in this browser and sent only to this server.')));
}

const views = ['chat', 'models', 'settings'];

function show() {
  const view = location.hash.slice(1);
  if (!views.includes(view) && location.hash !== '') return; // an anchor in the page
  document.body.dataset.view = view || 'chat';
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash.slice(1) === document.body.dataset.view) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  if (view === 'models') update();
}

async function update() {
  try {
    await refresh();
  } catch (e) {
    toast(e.message);
  }
}

const themes = { auto: 'system', light: 'light', dark: 'dark' };

// theme shows the current theme. If next is set, it switches to the next one first.
function theme(next) {
  const names = Object.keys(themes);
  let now = document.documentElement.dataset.theme ?? 'auto';
  if (next) {
    now = names[(names.indexOf(now) + 1) % names.length];
    if (now === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    try {
      localStorage.setItem('ingot.theme', now);
    } catch {
      // Without storage, the theme is lost on reload.
    }
  }
  byID('theme').replaceChildren(icon(now));
  byID('theme').setAttribute('aria-label', `Theme: ${themes[now]}`);
  byID('theme').title = `Theme: ${themes[now]}`;
}

// askKey asks the user for the API key. It resolves to the key, or to null if the user cancels.
function askKey(wrong) {
  const box = byID('key');
  byID('key-why').textContent = wrong ? 'The server rejected this key.'
    : 'This server requires an API key. It is kept until you close this tab.';
  byID('key-value').value = '';
  box.returnValue = '';
  box.showModal();
  return new Promise((done) => {
    box.addEventListener('close', () => done(box.returnValue === 'use' ? byID('key-value').value.trim() : null), { once: true });
  });
}

function download() {
  const a = el('a', { href: URL.createObjectURL(new Blob([exported()], { type: 'application/json' })), download: `ingot-chat-${new Date().toISOString().slice(0, 10)}.json` });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

async function version() {
  try {
    byID('version').textContent = `ingot ${(await get('/api/version', { background: true })).ingot}`;
  } catch {
    // Other requests report that the server does not respond.
  }
}

async function start() {
  theme(false);
  byID('theme').addEventListener('click', () => theme(true));
  byID('key-cancel').addEventListener('click', () => byID('key').close(''));
  onKey(askKey);
  options.init();
  composer.init();
  talk.init();
  talk.onChoose(() => model);
  talk.onChange(greet);
  byID('model').addEventListener('change', (e) => choose(e.target.value));
  byID('clear').addEventListener('click', () => {
    talk.clear();
    byID('message').focus();
  });
  byID('export').addEventListener('click', download);
  onModels(listModels);
  onLoadChange(live.poll);
  onPick((name) => {
    location.hash = '#chat';
    show(); // now, since a hidden element cannot get the focus
    choose(name);
    byID('message').focus();
  });
  addEventListener('hashchange', show);
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible' && !talk.busy()) update(); });
  show();
  greet();
  if (document.body.dataset.view !== 'models') await update();
  version();
  live.init();
  if (document.body.dataset.view === 'chat' && document.activeElement === document.body) byID('message').focus();
}

start();
