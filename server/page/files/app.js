// The page: which model, which view, which theme, and the key that the server may want.

import { get, onKey } from './api.js';
import { chat, exported, saveSettings, settings } from './chats.js';
import * as composer from './composer.js';
import { byID, el, icon, toast } from './dom.js';
import { short } from './format.js';
import * as live from './live.js';
import { about, models, nothing, onModels, onMove, onPick, refresh } from './models.js';
import * as options from './settings.js';
import * as talk from './talk.js';

let model = null; // {name, sees, thinks, template}: what it takes, and whether it has a chat template

// choose makes a model the one that answers next.
async function choose(name) {
  settings.model = name;
  saveSettings();
  byID('model').value = name;
  if (model?.name !== name) model = null;
  try {
    const info = await about(name);
    if (settings.model !== name) return; // another one was chosen meanwhile
    const can = (what) => info.capabilities.includes(what);
    model = { name, sees: can('vision'), thinks: can('thinking'), template: Boolean(info.template) };
    options.suit(info);
  } catch (e) {
    toast(e.message);
  }
  composer.setModel(model);
  greet();
}

// list fills the box of models.
function list() {
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
    el('h1', {}, model ? `Talk to ${short(model.name)}` : 'Talk to a model'),
    el('p', {}, 'The conversation is kept in this browser, and goes to nobody but this server.')));
}

const views = ['chat', 'models', 'settings'];

function show() {
  const view = location.hash.slice(1);
  if (!views.includes(view) && location.hash !== '') return; // a place on the page
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

const themes = { auto: 'as the system', light: 'light', dark: 'dark' };

// theme shows which theme holds, and goes on to the next one where it is asked to.
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
      // It holds until the page is left.
    }
  }
  byID('theme').replaceChildren(icon(now));
  byID('theme').setAttribute('aria-label', `Theme: ${themes[now]}`);
  byID('theme').title = `Theme: ${themes[now]}`;
}

// askKey shows the question for a key, and gives what was typed, null where it was declined.
function askKey(wrong) {
  const box = byID('key');
  byID('key-why').textContent = wrong ? 'The server does not take this key.' : 'This server wants a key. It is kept until you close this tab.';
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
    byID('version').textContent = `ingot ${(await get('/api/version', { background: true })).version}`;
  } catch {
    // It is said elsewhere that the server does not answer.
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
  onModels(list);
  onMove(live.look);
  onPick((name) => {
    location.hash = '#chat';
    show(); // at once: what is hidden takes no focus
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
