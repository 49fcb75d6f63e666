// Attention over arrays, and over KV caches that it updates. On the CPU it uses our kernels, on other devices MLX's
// operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// Returns softmax(scale*q@k.T + mask)@v over [B, H, T, D]. Groups of query heads share a key head. sinks are [H] scores
// without a value.
mx::array attention(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                    const std::optional<mx::array>& sinks, float scale, bool causal, mx::StreamOrDevice s);

struct AttendOptions {
  float scale = 1;
  float softcap = 0;  // of the scaled scores; 0: none
  int window = 0;        // positions that a row sees, including its own; 0: all
  bool chunked = false;  // a row sees the positions from the last multiple of window on
  bool ring = false;     // the storage is a ring: position p is in slot p mod capacity
  int values = 0;        // if not 0, the values are the first `values` channels of the keys
  int bits = 0;          // 8 or 4: stores are uint8 and hold packed rows
};

// Attention of rows q [T, H, D] of several sequences over their own KV caches, causal by position.
//
// segments is a list of {rows, position, seen, stored}, one per sequence, which together cover all rows of q: `rows`
// rows from `position` on, of a sequence whose storage contains the positions before `seen` after this step, of which
// the last `stored` are written by it. stores has the storage of each segment: keys [1, kv heads, capacity, D] and,
// unless options.values is set, values of another size. They are packed if options.bits is set.
//
// The first positions of a sequence may be in memory that it shares with others: shared are keys and, as in stores,
// values, and parts is a list of {segment, begin, end} in order, with the slots that the segment's next positions are
// in. Its own storage has the positions after these, and a ring has none. Shared memory is only read.
//
// k and v [S, kv heads, D] are the `stored` rows of each segment. They are written to the positions up to `seen` before
// attention. On the CPU this happens in place, so nothing may read the older version of a store afterwards; `after` are
// arrays that must be computed first. positions, int32 [T], repeats the positions of the segments. The CPU reads it
// when it computes, so that a recorded step (cpu/tape.h) can be replayed at other positions.
//
// Returns [T, H, value size], followed by the new versions of the stores if k is given, or else by an array that is
// available when the stores have been read.
std::vector<mx::array> attend(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
                              const std::vector<mx::array>& stores, const std::vector<int>& segments,
                              const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                              const AttendOptions& options, const std::optional<mx::array>& positions,
                              const std::vector<mx::array>& shared, const std::vector<int>& parts,
                              mx::StreamOrDevice s);

// Packs rows [..., D], D a multiple of 4, to 8 or 4 bits in the format of quantized caches (see
// cpu/attention/attention.h) as uint8, and unpacks them.
mx::array pack_rows(const mx::array& x, int bits, mx::StreamOrDevice s);
mx::array unpack_rows(const mx::array& x, int bits, mx::Dtype as, mx::StreamOrDevice s);

}  // namespace ingot
