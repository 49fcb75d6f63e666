// A parser for Markdown as models write it: CommonMark 0.31 with GitHub's tables, task lists and strikethrough, without
// HTML, reference links, indented code and setext headings. Every line break is kept. Unparsed text stays text.
//
// It runs in linear time and limits nesting for any input.

const maxDepth = 12; // of nested blocks
const maxInlineDepth = 24;

// blocks splits a text into blocks: paragraph, heading, code, quote, list, table, rule. Each has its source, so that a
// growing text can be shown without redrawing the blocks that did not change.
export function blocks(text, depth = 0) {
  const lines = text.replace(/\r\n?/g, '\n').split('\n').map((l) => l.replace(/^[ \t]*/, (s) => s.replaceAll('\t', '    ')));
  const out = [];
  for (let i = 0; i < lines.length;) {
    if (blank(lines[i])) {
      i++;
      continue;
    }
    const block = depth >= maxDepth ? { kind: 'paragraph', text: lines.slice(i).join('\n'), next: lines.length } : read(lines, i, depth);
    block.source = lines.slice(i, block.next).join('\n');
    i = block.next;
    out.push(block);
  }
  return out;
}

function read(lines, i, depth) {
  return code(lines, i) ?? heading(lines, i) ?? rule(lines, i) ?? quote(lines, i, depth) ?? list(lines, i, depth) ?? table(lines, i) ?? paragraph(lines, i);
}

const blank = (line) => line.trim() === '';
const indent = (line) => line.length - line.trimStart().length;

const fence = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;

function code(lines, i) {
  const open = fence.exec(lines[i]);
  if (!open) return null;
  const [, space, mark, info] = open;
  const content = [];
  let next = i + 1;
  for (; next < lines.length; next++) {
    const line = lines[next].trim();
    if (line.length >= mark.length && line === mark[0].repeat(line.length) && indent(lines[next]) < 4) break;
    content.push(lines[next].slice(Math.min(indent(lines[next]), space.length)));
  }
  return { kind: 'code', language: info.trim().split(/\s/)[0], text: content.join('\n'), next: Math.min(next + 1, lines.length) };
}

function heading(lines, i) {
  const open = /^ {0,3}(#{1,6})(?= |$)/.exec(lines[i]);
  if (!open) return null;
  let text = lines[i].slice(open[0].length).trim();
  let end = text.length;
  while (text[end - 1] === '#') end--;
  if (end === 0 || text[end - 1] === ' ') text = text.slice(0, end).trim();
  return { kind: 'heading', level: open[1].length, text, next: i + 1 };
}

function isRule(line) {
  const marks = line.replaceAll(' ', '');
  return indent(line) < 4 && marks.length >= 3 && '-*_'.includes(marks[0]) && marks === marks[0].repeat(marks.length);
}

function rule(lines, i) {
  return isRule(lines[i]) ? { kind: 'rule', next: i + 1 } : null;
}

const quoted = /^ {0,3}> ?/;

function quote(lines, i, depth) {
  const content = [];
  let next = i;
  for (; next < lines.length && quoted.test(lines[next]); next++) content.push(lines[next].replace(quoted, ''));
  return next > i ? { kind: 'quote', blocks: blocks(content.join('\n'), depth + 1), next } : null;
}

const bullet = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;

// marker parses a list item's marker: its column, the column of its text, and the kind of list.
function marker(line) {
  const m = bullet.exec(line);
  if (!m || isRule(line)) return null;
  const space = m[3].length > 4 || m[3] === '' ? 1 : m[3].length;
  const ordered = m[2].length > 1;
  return { at: m[1].length, text: m[1].length + m[2].length + space, ordered, kind: m[2].at(-1), number: ordered ? parseInt(m[2], 10) : 0 };
}

function list(lines, i, depth) {
  const first = marker(lines[i]);
  if (!first || first.at > 3) return null;
  const items = [];
  let loose = false;
  let next = i;
  for (let m = first; m;) {
    const content = [lines[next].slice(m.text)];
    const item = m;
    m = null;
    let gap = false; // preceded by blank lines
    let strip = item.text;
    for (next++; next < lines.length; next++) {
      const line = lines[next];
      if (blank(line)) {
        gap = true;
        continue;
      }
      const other = marker(line);
      const inside = indent(line) >= item.text || (other && other.at >= item.at + 2); // models indent by two under numbers too
      if (!inside) {
        if (other && other.at < item.at + 2 && other.kind === first.kind) {
          m = other;
          loose ||= gap;
          break;
        }
        if (gap || begins(lines, next)) break;
      }
      if (gap) {
        content.push('');
        loose = true;
      }
      gap = false;
      if (other) strip = Math.min(strip, other.at);
      content.push(line.slice(Math.min(indent(line), strip)));
    }
    items.push(entry(content.join('\n'), depth));
    if (!m && gap) while (blank(lines[next - 1])) next--;
  }
  return { kind: 'list', ordered: first.ordered, start: first.number, loose, items, next };
}

// entry parses a list item, which may be a task.
function entry(text, depth) {
  const task = /^\[([ xX])\] /.exec(text);
  return { done: task ? task[1] !== ' ' : null, blocks: blocks(task ? text.slice(4) : text, depth + 1) };
}

function cells(line) {
  const list = [''];
  const text = line.trim().replace(/^\|/, '');
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && text[i + 1] === '|') list[list.length - 1] += text[++i];
    else if (text[i] === '|') list.push('');
    else list[list.length - 1] += text[i];
  }
  if (list.length > 1 && list.at(-1).trim() === '') list.pop();
  return list.map((c) => c.trim());
}

function isTable(lines, i) {
  if (i + 1 >= lines.length || !lines[i].includes('|') || !/^[ |:-]+$/.test(lines[i + 1])) return false;
  const row = cells(lines[i + 1]);
  return row.every((c) => /^:?-+:?$/.test(c)) && row.length === cells(lines[i]).length;
}

function table(lines, i) {
  if (!isTable(lines, i)) return null;
  const head = cells(lines[i]);
  const align = cells(lines[i + 1]).map((c) => (c.endsWith(':') ? (c.startsWith(':') ? 'center' : 'right') : ''));
  const rows = [];
  let next = i + 2;
  for (; next < lines.length && !blank(lines[next]) && lines[next].includes('|'); next++) {
    const row = cells(lines[next]).slice(0, head.length);
    rows.push(row.concat(Array(head.length - row.length).fill('')));
  }
  return { kind: 'table', head, align, rows, next };
}

// begins reports whether a line starts a block that interrupts a paragraph.
function begins(lines, i) {
  const line = lines[i];
  const m = marker(line);
  return fence.test(line) || /^ {0,3}#{1,6}( |$)/.test(line) || isRule(line) || quoted.test(line) ||
    (m && m.at < 4 && line.length > m.text && (!m.ordered || m.number === 1)) || isTable(lines, i);
}

function paragraph(lines, i) {
  let next = i + 1;
  while (next < lines.length && !blank(lines[next]) && !begins(lines, next)) next++;
  return { kind: 'paragraph', text: lines.slice(i, next).map((l) => l.trimStart()).join('\n').trimEnd(), next };
}

// inline parses the text of a paragraph: text, code, strong, em, del, link, image, break.
export function inline(text) {
  return new Inline(text).read();
}

const plain = /[^\\`<!\[\]*_~hH\n]+/y;
const bare = /https?:\/\/[^\s<>"`[\]]+/iy;
const angled = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/iy;
const lineBreak = /<br ?\/?>/iy;
const target = /\(\s*(?:<([^<>\n]*)>|((?:[^\s()<>]|\([^\s()<>]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
const maxAddress = 2048; // characters
const punctuation = /[\p{P}\p{S}]/u;

class Inline {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.out = [];
    this.marks = []; // delimiter runs of * _ ~ that may open a span, with their index in out
    this.brackets = []; // open brackets of possible links
    this.ticks = new Map(); // length of a run of ` -> positions of such runs
    for (const run of text.matchAll(/`+/g)) {
      const n = run[0].length;
      if (!this.ticks.has(n)) this.ticks.set(n, { list: [], next: 0 });
      this.ticks.get(n).list.push(run.index);
    }
  }

  // match matches a sticky pattern at the current position, within a limited length.
  match(pattern) {
    const part = this.text.slice(this.at, this.at + maxAddress);
    pattern.lastIndex = 0;
    return pattern.exec(part);
  }

  add(text) {
    const last = this.out.at(-1);
    if (last?.kind === 'text' && !last.mark) last.text += text;
    else this.out.push({ kind: 'text', text, depth: 0 });
  }

  read() {
    while (this.at < this.text.length) {
      plain.lastIndex = this.at;
      const run = plain.exec(this.text);
      if (run) {
        this.add(run[0]);
        this.at = plain.lastIndex;
        continue;
      }
      this.special(this.text[this.at]);
    }
    return this.out;
  }

  special(c) {
    switch (c) {
      case '\\': return this.escape();
      case '\n': return this.take({ kind: 'break' }, 1);
      case '`': return this.code();
      case '<': return this.angle();
      case 'h': case 'H': return this.bare();
      case '!': case '[': return this.bracket(c);
      case ']': return this.close();
      default: return this.run(c);
    }
  }

  take(node, length) {
    this.out.push({ depth: 0, ...node });
    this.at += length;
  }

  literal(length) {
    this.add(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') return this.take({ kind: 'break' }, 2);
    if (next && /[!-/:-@[-`{-~]/.test(next)) this.at++;
    return this.literal(1);
  }

  code() {
    let n = 1;
    while (this.text[this.at + n] === '`') n++;
    const runs = this.ticks.get(n);
    // After a backslash, this run may be shorter than the one that was recorded.
    while (runs && runs.next < runs.list.length && runs.list[runs.next] <= this.at) runs.next++;
    const end = runs?.list[runs.next];
    if (end === undefined) return this.literal(n);
    let text = this.text.slice(this.at + n, end).replaceAll('\n', ' ');
    if (text.startsWith(' ') && text.endsWith(' ') && text.trim() !== '') text = text.slice(1, -1);
    return this.take({ kind: 'code', text }, end + n - this.at);
  }

  angle() {
    const link = this.match(angled);
    if (link) return this.take({ kind: 'link', address: link[1], children: [{ kind: 'text', text: link[1] }] }, link[0].length);
    const ends = this.match(lineBreak);
    return ends ? this.take({ kind: 'break' }, ends[0].length) : this.literal(1);
  }

  bare() {
    const found = /[\p{L}\p{N}]/u.test(this.text[this.at - 1] ?? '') ? null : this.match(bare);
    if (!found) return this.literal(1);
    let address = found[0].replace(/[.,;:!?'*_~]{1,64}$/, '');
    if (address.endsWith(')') && address.split(')').length > address.split('(').length) address = address.slice(0, -1);
    return this.take({ kind: 'link', address, children: [{ kind: 'text', text: address }] }, address.length);
  }

  bracket(c) {
    const image = c === '!';
    if (image && this.text[this.at + 1] !== '[') return this.literal(1);
    this.brackets.push({ place: this.out.length, image });
    return this.take({ kind: 'text', text: image ? '![' : '[', mark: true }, image ? 2 : 1);
  }

  close() {
    const open = this.brackets.pop();
    this.at++;
    const to = open && this.match(target);
    if (!to) {
      this.at--;
      return this.literal(1);
    }
    const children = this.out.splice(open.place).slice(1);
    while (this.marks.length > 0 && this.marks.at(-1).place >= open.place) this.marks.pop();
    const address = to[1] ?? to[2] ?? '';
    if (open.image) return this.take({ kind: 'image', address, text: words(children) }, to[0].length);
    this.brackets.length = 0; // links cannot be nested
    return this.take({ kind: 'link', address, children, depth: depth(children) + 1 }, to[0].length);
  }

  // run handles a delimiter run of * _ or ~. It may close earlier runs and open a span.
  run(c) {
    let n = 1;
    while (this.text[this.at + n] === c) n++;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + n] ?? ' ';
    this.at += n;
    const left = !/\s/.test(after) && (!punctuation.test(after) || /\s/.test(before) || punctuation.test(before));
    const right = !/\s/.test(before) && (!punctuation.test(before) || /\s/.test(after) || punctuation.test(after));
    const word = c === '_'; // _ does not work within words
    const mark = { c, n, whole: n, opens: left && (!word || !right || punctuation.test(before)), closes: right && (!word || !left || punctuation.test(after)) };
    if (mark.closes) while (mark.n > 0 && this.pair(mark));
    if (mark.n === 0) return;
    mark.place = this.out.length;
    if (mark.opens) this.marks.push(mark);
    this.out.push({ kind: 'text', text: c.repeat(mark.n), mark: true, depth: 0 });
  }

  // pair closes the nearest matching delimiter run and reports whether there was one.
  pair(mark) {
    for (let i = this.marks.length - 1; i >= Math.max(0, this.marks.length - 64); i--) {
      const open = this.marks[i];
      if (open.c !== mark.c) continue;
      if (mark.c === '~' ? open.n !== mark.n || mark.n > 2 : (open.closes || mark.opens) && (open.whole + mark.whole) % 3 === 0 && (open.whole % 3 !== 0 || mark.whole % 3 !== 0)) continue;
      const children = this.out.slice(open.place + 1);
      const level = depth(children) + 1;
      if (level > maxInlineDepth) {
        this.marks.length = 0; // enclosing spans would be even deeper
        return false;
      }
      const used = Math.min(open.n, mark.n, 2);
      open.n -= used;
      mark.n -= used;
      this.out.length = open.place + (open.n > 0 ? 1 : 0);
      if (open.n > 0) this.out[open.place].text = open.c.repeat(open.n);
      this.out.push({ kind: mark.c === '~' ? 'del' : used === 2 ? 'strong' : 'em', children, depth: level });
      this.marks.length = open.n > 0 ? i + 1 : i;
      while (this.brackets.length > 0 && this.brackets.at(-1).place > open.place) this.brackets.pop();
      return true;
    }
    return false;
  }
}

const depth = (nodes) => nodes.reduce((most, n) => Math.max(most, n.depth ?? 0), 0);

// words returns the plain text of nodes.
export function words(nodes) {
  return nodes.map((n) => n.text ?? (n.kind === 'break' ? ' ' : words(n.children ?? []))).join('');
}
