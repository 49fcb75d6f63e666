// The view of a message.

import { el, icon } from './dom.js';
import { copy, show } from './prose.js';
import { describe, perSecond, plural, seconds, short } from './format.js';

export function userMessage(message) {
  const pictures = (message.images ?? []).map((src, i) => el('img', { src, alt: `Picture ${i + 1}` }));
  return el('article', { class: 'user', 'aria-label': 'You' },
    pictures.length > 0 && el('div', { class: 'shown' }, pictures),
    message.lost && el('p', { class: 'note' }, `${plural(message.lost, 'picture')} did not fit into this browser's storage.`),
    message.text !== '' && el('p', { class: 'text' }, message.text));
}

// Response is the view of a response, while it is generated and afterwards.
export class Response {
  // again is called to regenerate the response.
  constructor(message, again) {
    this.message = message;
    this.summary = el('summary');
    this.thoughts = el('div', { class: 'prose' });
    this.thinking = el('details', { class: 'thinking', hidden: true }, this.summary, this.thoughts);
    this.thinking.addEventListener('toggle', () => show(this.thoughts, message.thinking ?? ''));
    this.prose = el('div', { class: 'prose' });
    this.wait = el('p', { class: 'wait', hidden: true });
    this.calls = el('div', { class: 'calls' });
    this.error = el('p', { class: 'error', hidden: true });
    this.facts = el('span', { class: 'facts' });
    this.again = el('button', { type: 'button', class: 'quiet icon again', 'aria-label': 'Regenerate', title: 'Regenerate', onclick: again }, icon('again'));
    this.copy = el('button', { type: 'button', class: 'quiet icon', 'aria-label': 'Copy response', title: 'Copy response', onclick: () => copy(message.text) }, icon('copy'));
    this.foot = el('footer', {}, this.facts, el('span', { class: 'gap' }), navigator.clipboard && this.copy, this.again);
    this.node = el('article', { class: 'answer', 'aria-label': 'Response' },
      el('p', { class: 'who', title: message.model }, short(message.model)), this.thinking, this.prose, this.calls, this.wait, this.error, this.foot);
    this.draw();
  }

  draw() {
    const m = this.message;
    const busy = m.state === 'busy';
    this.node.setAttribute('aria-busy', busy);
    this.thinking.hidden = !m.thinking;
    this.node.classList.toggle('musing', busy && Boolean(m.thinking) && !m.text);
    if (m.thinking) {
      const head = busy && !m.text ? 'Thinking' : m.thought ? `Thought for ${seconds(m.thought)}` : 'Thoughts';
      if (this.summary.textContent !== head) this.summary.textContent = head;
      if (this.thinking.open) show(this.thoughts, m.thinking);
    }
    show(this.prose, m.text);
    if (this.calls.childNodes.length !== (m.calls ?? []).length) this.calls.replaceChildren(...m.calls.map(call));
    this.wait.hidden = !busy || m.text !== '' || Boolean(m.thinking);
    this.error.hidden = !m.error;
    this.error.textContent = m.error ?? '';
    this.foot.hidden = busy;
    this.copy.hidden = m.text === '';
    this.facts.replaceChildren(...facts(m).map((f) => el('span', {}, f)));
  }

  // waits shows what a response without text waits for.
  waits(text) {
    if (this.wait.textContent !== text) this.wait.textContent = text;
  }
}

// facts returns the statistics below a response.
function facts(m) {
  const list = [];
  if (m.state === 'stopped') list.push('stopped');
  if (m.state === 'length') list.push('reached the token limit');
  list.push(...describe(m.stats));
  if (!m.stats && m.counted > 0) list.push(plural(m.counted, 'token'), ...(m.rate > 0 ? [perSecond(m.rate)] : []));
  return list;
}

function call(c) {
  return el('figure', { class: 'code' }, el('figcaption', {}, `calls the tool ${c.function.name}`),
    el('pre', { tabindex: 0 }, el('code', {}, JSON.stringify(c.function.arguments, null, 2))));
}
