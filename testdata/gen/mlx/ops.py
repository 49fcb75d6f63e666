"""Writes mlx/testdata/ops.safetensors and ops.json: what each operation of mlx/bridge/ops.txt returns in the official
package.

ops.json has one case per line: the operation, its arguments in the order of ops.txt, and its results. An array is the
name of a tensor in ops.safetensors; equal inputs are stored once. Without "relax" a result must be equal bit for bit;
otherwise "relax" names a rule of mlx/ops_test.go.
"""

import mlx.core as mx

# The order of these imports is the order of the cases and of the random numbers.
import elementwise
import reductions
import shapes
import indexing
import linear
import blocks
import recurrent
import draws
import attention
import layers
import packed
import experts
import decoders
import scans
import streams
import sparse
import caches

import record

assert mx.__version__ == "0.32.4", mx.__version__
record.write()
print(len(record.cases), "cases of", len({c["op"] for c in record.cases}), "operations")
