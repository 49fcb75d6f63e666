// Renders Markdown as DOM nodes, never from markup, so that a model's output cannot inject any. Pictures become links:
// fetching one would tell its server that it was shown. Links show their address.

import { blocks, inline } from './markdown.js';
import { el, icon, toast } from './dom.js';

// show renders a text into a node. It redraws only the blocks that changed, so that a selection survives.
export function show(node, text) {
  const list = blocks(text);
  const old = node.sources ?? [];
  let same = 0;
  while (same < list.length && same < old.length && list[same].source === old[same]) same++;
  while (node.childNodes.length > same) node.lastChild.remove();
  node.append(...list.slice(same).map(draw));
  node.sources = list.map((b) => b.source);
}

function draw(block) {
  switch (block.kind) {
    case 'heading':
      return el(`h${Math.min(block.level + 2, 6)}`, { class: `h${block.level}` }, spans(block.text)); // the page itself uses the first two levels
    case 'code':
      return code(block);
    case 'rule':
      return el('hr');
    case 'quote':
      return el('blockquote', {}, block.blocks.map(draw));
    case 'list':
      return el(block.ordered ? 'ol' : 'ul', { start: block.ordered && block.start !== 1 ? block.start : undefined }, block.items.map((i) => item(i, block.loose)));
    case 'table':
      return table(block);
    default:
      return el('p', {}, spans(block.text));
  }
}

function item(entry, loose) {
  const parts = entry.blocks.map((b) => (b.kind === 'paragraph' && !loose ? spans(b.text) : draw(b)));
  if (entry.done === null) return el('li', {}, ...parts);
  return el('li', { class: 'task' }, el('span', { class: 'tick', role: 'img', 'aria-label': entry.done ? 'done' : 'to do' }, entry.done ? '☑' : '☐'), ' ', ...parts);
}

function code(block) {
  const copied = el('button', { type: 'button', class: 'quiet icon', 'aria-label': 'Copy code', onclick: () => copy(block.text) }, icon('copy'));
  return el('figure', { class: 'code' },
    el('figcaption', {}, el('span', {}, block.language || 'text'), navigator.clipboard && copied),
    el('pre', { tabindex: 0 }, el('code', {}, block.text)));
}

function table(block) {
  const row = (cells, tag) => el('tr', {}, cells.map((c, i) => el(tag, { class: block.align[i] || undefined, scope: tag === 'th' ? 'col' : undefined }, spans(c))));
  return el('div', { class: 'wide', tabindex: 0 }, el('table', {}, el('thead', {}, row(block.head, 'th')), el('tbody', {}, block.rows.map((r) => row(r, 'td')))));
}

const spans = (text) => inline(text).map((n) => span(n, false));

function span(node, linked) {
  switch (node.kind) {
    case 'break':
      return el('br');
    case 'code':
      return el('code', {}, node.text);
    case 'strong': case 'em': case 'del':
      return el(node.kind, {}, node.children.map((n) => span(n, linked)));
    case 'link':
      return link(node.address, node.children.map((n) => span(n, true)), linked);
    case 'image':
      return link(node.address, [`[picture: ${node.text || 'no name'}]`], linked);
    default:
      return node.text;
  }
}

function link(address, children, linked) {
  const href = linked ? null : outside(address); // links cannot be nested
  if (!href) return el('span', { class: 'inert' }, children);
  return el('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow', referrerpolicy: 'no-referrer', title: href }, children);
}

// outside returns the address of a link if it is safe: absolute, and of a scheme that runs no code. Otherwise null.
export function outside(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied.');
  } catch {
    toast('The browser does not allow copying.');
  }
}
