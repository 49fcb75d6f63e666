// The conversation and the settings. They are stored only in this browser.

import { load, save } from './dom.js';

const conversationName = 'ingot.conversation';
const settingsName = 'ingot.settings';

// A message is {role: "user", text, images: [data URLs]} or {role: "assistant", model, text, thinking, thought (seconds),
// calls, stats, state, error}; state is "busy", "done", "length", "stopped" or "failed".
export const chat = { messages: read() };

export const settings = { model: '', system: '', options: {}, think: '', ...object(load(settingsName)) };
settings.options = object(settings.options);

function object(v) {
  return v && typeof v === 'object' && !Array.isArray(v) ? v : {};
}

function read() {
  const list = load(conversationName);
  return isValid(list) ? list.map((m) => (m.state === 'busy' ? { ...m, state: 'stopped' } : m)) : [];
}

function isValid(list) {
  return Array.isArray(list) && list.every((m) => m && typeof m.text === 'string' && (m.role === 'user' || m.role === 'assistant'));
}

export function saveSettings() {
  save(settingsName, settings);
}

// saveChat saves the conversation. If it does not fit, it saves it without pictures and returns false.
export function saveChat() {
  if (save(conversationName, chat.messages)) return true;
  save(conversationName, chat.messages.map(({ images, ...m }) => ({ ...m, lost: images?.length || undefined })));
  return false;
}

// onOther calls changed when another tab has changed the conversation.
export function onOther(changed) {
  addEventListener('storage', (e) => {
    if (e.key !== conversationName) return;
    chat.messages = read();
    changed();
  });
}

// request returns the body of a request for the next message.
export function request(model) {
  const messages = chat.messages.filter((m) => m.text !== '' || m.images?.length > 0).map((m) => {
    const message = { role: m.role, content: m.text };
    if (model.sees && m.images?.length > 0) message.images = m.images.map((url) => url.slice(url.indexOf(',') + 1));
    return message;
  });
  if (model.template && settings.system.trim() !== '') messages.unshift({ role: 'system', content: settings.system });
  const body = { model: model.name, messages, stream: true, ids: true, options: { ...settings.options } };
  if (model.thinks && settings.think !== '') body.think = settings.think === 'on' ? true : settings.think === 'off' ? false : settings.think;
  return body;
}

// exported returns the conversation as a JSON file.
export function exported() {
  const { system, options, think } = settings;
  return JSON.stringify({ exported: new Date().toISOString(), system, options, think, messages: chat.messages }, null, 2);
}
