// How one message looks.

import { el, icon } from './dom.js';
import { copy, show } from './prose.js';
import { describe, perSecond, plural, seconds, short } from './format.js';

export function userMessage(message) {
  const pictures = (message.images ?? []).map((src, i) => el('img', { src, alt: `Picture ${i + 1}` }));
  return el('article', { class: 'user', 'aria-label': 'You' },
    pictures.length > 0 && el('div', { class: 'shown' }, pictures),
    message.lost && el('p', { class: 'note' }, `${plural(message.lost, 'picture')} had no room in this browser's storage.`),
    message.text !== '' && el('p', { class: 'text' }, message.text));
}

// Answer shows an answer while it comes, and afterwards.
export class Answer {
  // again is called when another answer is wanted.
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
    this.again = el('button', { type: 'button', class: 'quiet icon again', 'aria-label': 'Answer again', title: 'Answer again', onclick: again }, icon('again'));
    this.copy = el('button', { type: 'button', class: 'quiet icon', 'aria-label': 'Copy answer', title: 'Copy answer', onclick: () => copy(message.text) }, icon('copy'));
    this.foot = el('footer', {}, this.facts, el('span', { class: 'gap' }), navigator.clipboard && this.copy, this.again);
    this.node = el('article', { class: 'answer', 'aria-label': 'Answer' },
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

  // waits says what an answer that has not begun waits for.
  waits(text) {
    if (this.wait.textContent !== text) this.wait.textContent = text;
  }
}

// facts are what is said below an answer.
function facts(m) {
  const list = [];
  if (m.state === 'stopped') list.push('stopped');
  if (m.state === 'length') list.push('reached the longest answer');
  list.push(...describe(m.stats));
  if (!m.stats && m.counted > 0) list.push(plural(m.counted, 'token'), ...(m.rate > 0 ? [perSecond(m.rate)] : []));
  return list;
}

function call(c) {
  return el('figure', { class: 'code' }, el('figcaption', {}, `wants the tool ${c.function.name}`),
    el('pre', { tabindex: 0 }, el('code', {}, JSON.stringify(c.function.arguments, null, 2))));
}
