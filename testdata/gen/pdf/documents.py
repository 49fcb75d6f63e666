"""Writes server/pdf/testdata: files as reportlab writes them, their copies by qpdf in other forms, and the text that was
painted.

  report.pdf    two pages: paragraphs, a table, signs beyond ASCII; report-FORM.pdf has the same objects
  form.pdf      a form that was filled in, and Japanese text in a font that is not embedded

The files with AES differ from run to run: their salts are random.
"""

import pathlib

import pikepdf
from reportlab.lib.pagesizes import A5
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

OUT = pathlib.Path(__file__).resolve().parents[3] / "server" / "pdf" / "testdata"

TITLE = "Häfen & Schiffe – 2026"
PARAGRAPHS = [
    "The harbour “Nord” handled 4,210 ships – 3 % more than in 2025.",
    "Efficient offices find flaws; naïve ones don’t. Price: €12·50 a day.",
]
ROWS = [("Ship", "Tons", "Berth"), ("Anna", "1,200", "A 4"), ("Björk", "87", "C 11")]


def report(path):
    c = canvas.Canvas(str(path), pagesize=A5, invariant=1)
    c.setTitle(TITLE)
    c.setFont("Times-Roman", 16)
    c.drawString(50, 500, TITLE)
    text = c.beginText(50, 460)
    text.setFont("Helvetica", 10)
    for line in PARAGRAPHS:
        text.textLine(line)
    c.drawText(text)
    c.showPage()
    c.setFont("Courier", 9)
    for i, row in enumerate(ROWS):
        for x, cell in zip((50, 140, 220), row):
            c.drawString(x, 500 - 14 * i, cell)
    c.save()
    table = "\n".join("\t".join(row) for row in ROWS)
    path.with_suffix(".txt").write_text(f"# {TITLE}\n{TITLE}\n\n" + "\n".join(PARAGRAPHS) + f"\n\f\n{table}\n")


def form(path):
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    c = canvas.Canvas(str(path), pagesize=A5, invariant=1)
    c.setTitle("申込書")
    c.setFont("HeiseiMin-W3", 12)
    c.drawString(50, 500, "お名前とご住所")
    c.setFont("Helvetica", 10)
    c.drawString(50, 460, "Name")
    c.acroForm.textfield(name="name", value="Ada Lovelace", x=100, y=450, width=200, height=24, borderStyle="inset")
    c.save()
    path.with_suffix(".txt").write_text("# 申込書\nお名前とご住所\n\nName\tAda Lovelace\n")


def main():
    OUT.mkdir(exist_ok=True)
    report(OUT / "report.pdf")
    form(OUT / "form.pdf")
    forms = {
        "packed": {"object_stream_mode": pikepdf.ObjectStreamMode.generate},
        "linear": {"linearize": True},
        "rc4-40": {"encryption": pikepdf.Encryption(owner="o", user="", R=2, metadata=False, aes=False)},
        "rc4": {"encryption": pikepdf.Encryption(owner="o", user="", R=3, metadata=False, aes=False)},
        "aes": {"encryption": pikepdf.Encryption(owner="o", user="", R=4)},
        "aes256": {
            "encryption": pikepdf.Encryption(owner="o", user="", R=6),
            "object_stream_mode": pikepdf.ObjectStreamMode.generate,
        },
        "password": {"encryption": pikepdf.Encryption(owner="o", user="secret", R=6)},
    }
    for name, options in forms.items():
        with pikepdf.open(OUT / "report.pdf") as file:
            file.save(OUT / f"report-{name}.pdf", deterministic_id="encryption" not in options, **options)


if __name__ == "__main__":
    main()
