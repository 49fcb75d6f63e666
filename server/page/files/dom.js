// Elements, icons, toasts, and local storage.

// el creates an element. A property that starts with "on" adds a listener, "data" sets the dataset, "class" the class,
// and any other an attribute. Children are nodes or strings; strings become text nodes, never markup.
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else if (name === 'data') Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false));
  return node;
}

export const byID = (id) => document.getElementById(id);

// The paths of the icons, in a view box of 20 by 20.
const strokes = {
  send: 'M10 16V4M5 9l5-5 5 5',
  stop: 'M6 6h8v8H6z',
  clip: 'M15 9.5 9.7 14.8a3.3 3.3 0 0 1-4.7-4.7l6-6a2.2 2.2 0 0 1 3.1 3.1l-6 6a1.1 1.1 0 0 1-1.5-1.6l5-5',
  copy: 'M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3',
  again: 'M15.5 10a5.5 5.5 0 1 1-1.7-4M15.5 3.5v3.5h-3.5',
  close: 'M5.5 5.5l9 9M14.5 5.5l-9 9',
  auto: 'M10 3.5a6.5 6.5 0 1 0 0 13zM10 3.5a6.5 6.5 0 0 1 0 13',
  light: 'M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6M10 2.5v1.5M10 16v1.5M2.5 10h1.5M16 10h1.5M4.7 4.7l1 1M14.3 14.3l1 1M15.3 4.7l-1 1M5.7 14.3l-1 1',
  dark: 'M16 11.8A6.5 6.5 0 0 1 8.2 4a6.5 6.5 0 1 0 7.8 7.8z',
};

// icon creates an icon. It is hidden from screen readers: the element around it needs a label.
export function icon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  for (const [key, value] of Object.entries({ viewBox: '0 0 20 20', width: 20, height: 20, 'aria-hidden': 'true', class: `i-${name}` })) svg.setAttribute(key, value);
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', strokes[name]);
  svg.append(path);
  return svg;
}

// load returns a stored value, or null if there is none or it is invalid.
export function load(name) {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null;
  }
}

// save stores a value and reports whether it fit.
export function save(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

let hideTimer = 0;

// toast shows a line for a few seconds, optionally with a button.
export function toast(text, button, act) {
  const box = byID('toast');
  clearTimeout(hideTimer);
  const hide = () => { box.hidden = true; };
  box.replaceChildren(text);
  if (button) box.append(el('button', { type: 'button', class: 'plain', onclick: () => { hide(); act(); } }, button));
  box.hidden = false;
  hideTimer = setTimeout(hide, button ? 10000 : 4000);
}

// say announces a text to screen readers.
export function say(text) {
  byID('said').textContent = text;
}
