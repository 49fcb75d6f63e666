// The settings of requests: system prompt, thinking and sampling parameters. Empty fields use the model's defaults.

import { byID, el } from './dom.js';
import { saveSettings, settings } from './chats.js';

const numbers = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 10, step: 0.05, help: '0: always the most likely token' },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.01 },
  { name: 'top_k', label: 'Top k', min: 0, step: 1 },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01 },
  { name: 'repeat_penalty', label: 'Repeat penalty', min: 0, max: 10, step: 0.01 },
  { name: 'num_predict', label: 'Max tokens', min: 1, step: 1, fallback: 'context limit' },
  { name: 'seed', label: 'Seed', step: 1, fallback: 'random' },
];

const own = 'model default';

export function init() {
  const system = el('textarea', { rows: 3, id: 'system', spellcheck: 'true', oninput: (e) => set(() => { settings.system = e.target.value; }) });
  system.value = settings.system;
  byID('options').append(
    el('label', { class: 'field' }, el('span', {}, 'System prompt'), system),
    el('p', { id: 'system-note', class: 'note', hidden: true }, 'Not sent: this model has no chat template.'),
    choice('think', 'Thinking', [['', own], ['on', 'on'], ['off', 'off'], ['low', 'low'], ['medium', 'medium'], ['high', 'high']], () => settings.think, (v) => { settings.think = v; }),
    el('div', { class: 'grid' }, numbers.map(number)),
    choice('draft', 'Draft depth', [['', 'server default'], ['auto', 'auto'], ['off', 'off'], ...[1, 2, 4, 8, 16].map((n) => [`${n}`, `${n}`])],
      () => settings.options.draft ?? '', (v) => option('draft', v)),
    el('div', { class: 'row' }, el('span', { class: 'gap' }), el('button', { type: 'button', class: 'plain', onclick: reset }, 'Reset')));
  byID('options').addEventListener('submit', (e) => e.preventDefault());
}

function set(change) {
  change();
  saveSettings();
}

function option(name, value) {
  if (value === '') delete settings.options[name];
  else settings.options[name] = value;
}

function choice(id, label, list, get, put) {
  const box = el('select', { id, onchange: (e) => set(() => put(e.target.value)) }, list.map(([value, text]) => el('option', { value }, text)));
  box.value = get();
  return el('label', { class: 'field', id: `${id}-field` }, el('span', {}, label), box);
}

function number({ name, label, help, fallback, ...limits }) {
  const input = el('input', { type: 'number', id: name, inputmode: limits.step === 1 ? 'numeric' : 'decimal', placeholder: fallback ?? own, title: help, ...limits });
  input.value = settings.options[name] ?? '';
  input.addEventListener('input', () => {
    const { badInput, rangeUnderflow, rangeOverflow, stepMismatch } = input.validity;
    const good = !badInput && !rangeUnderflow && !rangeOverflow && !(stepMismatch && limits.step === 1);
    input.setAttribute('aria-invalid', !good);
    set(() => option(name, good && input.value !== '' ? input.valueAsNumber : ''));
  });
  return el('label', { class: 'field' }, el('span', {}, label), input);
}

function reset() {
  set(() => Object.assign(settings, { system: '', options: {}, think: '' }));
  for (const field of byID('options').querySelectorAll('input, select, textarea')) {
    field.value = '';
    field.removeAttribute('aria-invalid');
  }
}

// adaptTo shows a model's defaults, and hides settings that it does not support. info is a response of /api/show.
export function adaptTo(info) {
  const values = Object.fromEntries((info.parameters ?? '').split('\n').map((l) => l.split(/\s+(.*)/).slice(0, 2)));
  for (const { name, fallback } of numbers) byID(name).placeholder = values[name] ?? fallback ?? own;
  byID('think-field').hidden = !info.capabilities.includes('thinking');
  byID('system-note').hidden = Boolean(info.template);
  byID('system').placeholder = info.system ?? '';
}
