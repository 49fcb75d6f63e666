"""Makes the dense model of the CPU benchmark as an image, quantized, once: model.py INGOT. Prints its store and its name."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cpu"))

import run  # noqa: E402

models = run.Models("dense", sys.argv[1])
shown = subprocess.run([sys.argv[1], "show", models.image], env={**os.environ, "INGOT_HOME": models.store}, capture_output=True)
if shown.returncode:
    shutil.rmtree(models.create("-q", "int4", "--uniform"))
print(models.store, models.image)
