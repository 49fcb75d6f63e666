// The message box: keys, pictures, send and stop.

import { byID, el, icon, toast } from './dom.js';
import { short } from './format.js';
import { ask, busy, onChange, stop } from './talk.js';

const kinds = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/bmp']; // that the server supports
const maxPictures = 64;
const maxBytes = 32 << 20; // of a picture

let attached = []; // data URLs
let model = null; // {name, sees...}

export function setModel(next) {
  model = next;
  byID('attach').hidden = !model?.sees;
  byID('message').placeholder = model ? `Message ${short(model.name)}` : 'No model available';
  if (attached.length > 0 && !model?.sees) notice(`${model?.name ?? 'This model'} does not support pictures.`);
  else notice('');
  update();
}

export function init() {
  const box = byID('message');
  byID('attach').append(icon('clip'));
  byID('send').append(icon('send'));
  byID('stop').append(icon('stop'));
  box.addEventListener('input', update);
  box.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing || e.keyCode === 229) return; // 229: Safari composes a character
    e.preventDefault();
    send();
  });
  byID('composer').addEventListener('submit', (e) => {
    e.preventDefault();
    send();
  });
  byID('stop').addEventListener('click', halt);
  addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && busy() && !document.querySelector('dialog[open]')) halt();
  });
  byID('attach').addEventListener('click', () => byID('file').click());
  byID('file').addEventListener('change', (e) => {
    attach(e.target.files);
    e.target.value = '';
  });
  box.addEventListener('paste', (e) => {
    const files = [...e.clipboardData.files];
    if (files.length === 0) return;
    e.preventDefault();
    attach(files);
  });
  acceptDrops(byID('chat'));
  onChange(update);
  update();
}

// acceptDrops attaches files that are dropped on node. Elsewhere it prevents a drop, which would replace the page.
function acceptDrops(node) {
  const files = (e) => e.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (e) => {
    if (!files(e)) return;
    e.preventDefault();
    e.dataTransfer.dropEffect = model?.sees && node.contains(e.target) ? 'copy' : 'none';
    node.classList.toggle('over', e.dataTransfer.dropEffect === 'copy');
  });
  addEventListener('dragleave', (e) => { if (!e.relatedTarget) node.classList.remove('over'); });
  addEventListener('drop', (e) => {
    if (!files(e)) return;
    e.preventDefault();
    node.classList.remove('over');
    if (node.contains(e.target)) attach(e.dataTransfer.files);
  });
}

async function attach(files) {
  if (!model?.sees) {
    notice(`${model?.name ?? 'This model'} does not support pictures.`);
    return;
  }
  notice('');
  for (const file of files) {
    if (!kinds.includes(file.type)) notice(`${file.name} is not a supported picture: use PNG, JPEG, GIF, WebP or BMP.`);
    else if (file.size > maxBytes) notice(`${file.name} is larger than 32 MB.`);
    else if (attached.length >= maxPictures) notice(`A message has at most ${maxPictures} pictures.`);
    else attached.push(await read(file));
  }
  drawPictures();
  update();
  byID('message').focus();
}

const read = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(file);
});

function drawPictures() {
  byID('pictures').hidden = attached.length === 0;
  byID('pictures').replaceChildren(...attached.map((src, i) => el('li', {},
    el('img', { src, alt: `Picture ${i + 1}` }),
    el('button', { type: 'button', class: 'icon', 'aria-label': `Remove picture ${i + 1}`, onclick: () => remove(i) }, icon('close')))));
}

function remove(i) {
  attached.splice(i, 1);
  drawPictures();
  setModel(model);
  byID('message').focus();
}

function notice(text) {
  byID('notice').textContent = text;
  byID('notice').hidden = text === '';
}

const ready = () => model !== null && !busy() && (byID('message').value.trim() !== '' || attached.length > 0) && (attached.length === 0 || model.sees);

function send() {
  if (!ready()) {
    if (!model) toast('No model is available.');
    return;
  }
  const text = byID('message').value.trim();
  const pictures = attached;
  byID('message').value = '';
  attached = [];
  drawPictures();
  ask(model, text, pictures);
  byID('message').focus();
}

function halt() {
  stop();
  byID('message').focus();
}

function update() {
  const box = byID('message');
  box.style.height = 'auto';
  if (box.value !== '') box.style.height = `${box.scrollHeight}px`;
  byID('send').hidden = busy();
  byID('stop').hidden = !busy();
  byID('send').disabled = !ready();
}
