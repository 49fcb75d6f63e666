"""Writes vision/testdata: pictures as Pillow and transformers' Qwen2VLImageProcessor read them.

  resize.json     hashes of noise resized with Pillow's bicubic filter
  processor.json  grids, and hashes of the processor's pixel values for noise
  files/          small files of every kind; NAME.expected.png is Pillow's picture of a lossy one
  files.json      size and hash of Pillow's picture of each: upright, RGB on white
"""

import hashlib
import io
import json
import pathlib
import shutil

import numpy as np
import PIL
from PIL import Image, ImageOps
from transformers.image_transforms import convert_to_rgb
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

OUT = pathlib.Path(__file__).resolve().parents[3] / "vision" / "testdata"


def noise(width, height, seed=1):
    """Returns bytes of a generator that the test has too: x = x * 1664525 + 1013904223 mod 2^32, upper byte."""
    n = 3 * width * height
    out = np.empty(n, np.uint8)
    x = seed
    for i in range(n):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = x >> 24
    return out.reshape(height, width, 3)


def lines(cases):
    return "[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def resize():
    sizes = [
        ((96, 64), (64, 96)), ((96, 64), (96, 32)), ((96, 64), (32, 64)), ((7, 5), (32, 32)), ((1, 1), (32, 64)),
        ((1, 200), (32, 192)), ((33, 31), (32, 32)), ((31, 33), (32, 32)), ((640, 3), (64, 64)), ((300, 200), (224, 160)),
        ((127, 251), (96, 192)), ((50, 40), (352, 288)), ((255, 254), (32, 32)), ((64, 64), (65, 63)), ((2, 3), (3, 2)),
        ((500, 333), (512, 320)), ((97, 89), (89, 97)), ((400, 2), (384, 32)), ((13, 200), (32, 320)), ((199, 1), (96, 32)),
        ((100, 300), (90, 279)), ((100, 300), (90, 280)), ((600, 700), (512, 512)), ((700, 600), (512, 512)), ((30, 900), (32, 864)),
    ]
    cases = []
    for (w, h), (tw, th) in sizes:
        out = Image.fromarray(noise(w, h)).resize((tw, th), Image.Resampling.BICUBIC)
        cases.append({"from": [w, h], "to": [tw, th], "sha256": sha(out.tobytes())})
    return cases


def processor():
    half = [0.5, 0.5, 0.5]
    clip = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    cases = []
    for (w, h), low, high, patch, merge, (mean, std) in [
        ((96, 64), 1024, 16384, 16, 2, (half, half)), ((150, 90), 1024, 8192, 16, 2, (half, half)),
        ((20, 10), 16384, 65536, 16, 2, (half, half)), ((100, 100), 1024, 4096, 14, 2, clip),
        ((70, 40), 512, 4096, 8, 1, clip), ((61, 47), 65536, 2097152, 16, 2, (half, half)), ((64, 90), 1024, 65536, 8, 3, clip),
    ]:
        p = Qwen2VLImageProcessorPil(
            size={"shortest_edge": low, "longest_edge": high}, patch_size=patch, merge_size=merge, temporal_patch_size=2,
            image_mean=mean, image_std=std)
        out = p(images=[Image.fromarray(noise(w, h))], return_tensors="np")
        values = out["pixel_values"]
        assert values.dtype == np.float32
        _, rows, cols = (int(x) for x in out["image_grid_thw"][0])
        cases.append({
            "from": [w, h], "min": low, "max": high, "patch": patch, "merge": merge, "mean": mean, "std": std,
            "rows": rows, "cols": cols, "sha256": sha(values.astype("<f4").tobytes())})
    return cases


def smooth(width=37, height=23):
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([x * 6, y * 10, 128 + 100 * np.sin(x / 5) * np.cos(y / 4)], -1)
    a[5:9, 20:30] = [250, 10, 30]
    return np.clip(a, 0, 255).astype(np.uint8)


def with_alpha():
    rgb = smooth()
    alpha = (np.mgrid[0:23, 0:37][1] * 7).clip(0, 255).astype(np.uint8)
    return np.dstack([rgb, alpha])


def files():
    rgb, rgba = Image.fromarray(smooth()), Image.fromarray(with_alpha())
    gray, la = rgb.convert("L"), rgba.convert("LA")
    paletted = rgb.quantize(16)
    out = {}

    def add(name, image, **options):
        b = io.BytesIO()
        image.save(b, format={"jpg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP"}[name.split(".")[-1]], **options)
        out[name] = b.getvalue()

    add("rgb.png", rgb)
    add("rgba.png", rgba)
    add("gray.png", gray)
    add("gray_alpha.png", la)
    add("bits.png", gray.point(lambda v: 255 * (v > 100)).convert("1"))
    add("palette.png", paletted)
    add("palette_clear.png", paletted, transparency=3)
    add("gray_clear.png", gray, transparency=int(np.array(gray)[3, 3]))
    add("rgb_clear.png", rgb, transparency=tuple(int(v) for v in np.array(rgb)[6, 25]))
    for sampling, name in [(0, "444"), (1, "422"), (2, "420")]:
        add(f"ycc{name}.jpg", rgb, quality=85, subsampling=sampling)
    # Pillow writes neither 4:4:0 nor 4:1:1, but these have as many blocks: another sampling in the frame header
    # (ITU-T T.81, B.2.2) gives a valid file of a scrambled picture.
    whole = rgb.crop((0, 0, 32, 16))
    for name, sampling, old, new in [("ycc440.jpg", 1, 0x21, 0x12), ("ycc411.jpg", 2, 0x22, 0x41)]:
        add(name, whole, quality=85, subsampling=sampling)
        data = bytearray(out[name])
        at = data.index(b"\xff\xc0") + 11
        assert data[at] == old
        data[at] = new
        out[name] = bytes(data)
    add("progressive.jpg", rgb, quality=85, progressive=True)
    add("narrow.jpg", rgb.crop((0, 0, 3, 23)), quality=85)
    add("gray.jpg", gray, quality=85)
    add("cmyk.jpg", rgb.convert("CMYK"), quality=95)
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        add(f"turn{turn}.jpg", rgb, quality=85, exif=exif)
    exif = Image.Exif()
    exif[0x0112] = 6
    add("turn6.png", rgb, exif=exif)
    add("turn6.webp", rgb, lossless=True, exif=exif)
    add("lossy.webp", rgb, quality=80)
    add("lossy_alpha.webp", rgba, quality=80)
    add("lossless.webp", rgb, lossless=True)
    add("lossless_alpha.webp", rgba, lossless=True, exact=True)
    add("frames.gif", paletted, save_all=True, append_images=[paletted.transpose(Image.Transpose.ROTATE_180)])
    add("clear.gif", paletted, transparency=3)
    add("rgb.bmp", rgb)
    add("gray.bmp", gray)
    return out


def main():
    assert PIL.__version__ == "13.0.0", PIL.__version__
    shutil.rmtree(OUT / "files", ignore_errors=True)
    (OUT / "files").mkdir(parents=True)
    (OUT / "resize.json").write_text(lines(resize()))
    (OUT / "processor.json").write_text(lines(processor()))
    cases = []
    for name, data in files().items():
        (OUT / "files" / name).write_bytes(data)
        image = Image.open(io.BytesIO(data))
        pixels = convert_to_rgb(ImageOps.exif_transpose(image), return_numpy=True)
        lossy = name.endswith(".jpg") or name.startswith("lossy")
        if lossy:
            Image.fromarray(pixels).save(OUT / "files" / f"{name}.expected.png", optimize=True)
        cases.append({"name": name, "width": pixels.shape[1], "height": pixels.shape[0], "sha256": sha(pixels.tobytes()), "lossy": lossy})
    (OUT / "files.json").write_text(lines(cases))


if __name__ == "__main__":
    main()
