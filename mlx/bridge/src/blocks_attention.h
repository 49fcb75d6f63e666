// Attention: over arrays, and over caches that it writes.
// On a CPU these are kernels of ours, elsewhere MLX's own operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlx/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// softmax(scale*q@k.T + mask)@v over [B, H, T, D], key heads shared by groups; sinks are [H] scores without a value.
mx::array attention(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                    const std::optional<mx::array>& sinks, float scale, bool causal, mx::StreamOrDevice s);

struct AttendOptions {
  float scale = 1;
  float softcap = 0;  // of the scaled scores; 0 is none
  int window = 0;     // positions that a row sees, its own included; 0 is all
  bool ring = false;  // position p lies in slot p mod capacity
  int values = 0;     // not 0: the values are the first so many channels of the keys
  int bits = 0;       // 8 or 4: stores hold packed rows, uint8
};

// Rows [T, H, D] of several sequences attend to their own keys and values, each row up to its own position.
//
// Segments are {rows, position, seen, stored} one after the other, covering all rows: so many rows from that position
// on, of a sequence whose positions before `seen` are stored once this step's are. Stores are the storage of each
// segment, [1, kv heads, capacity, D] keys and, unless options.values, values of another size, packed where
// options.bits says so.
//
// With k and v [S, kv heads, D], the `stored` rows of each segment, these are written first, to the positions up to
// `seen`, of which the rows' own are the last; on a CPU into the same memory, and then no reader of the older version
// may come after: `after` are arrays to compute first. positions, int32 [T] and the same as the segments say, is where
// a CPU reads them when it computes, so that a tape (cpu_tape.h) can be played at others.
//
// Gives [T, H, value size], then, with k, the new versions of the stores; without, an array that is computed when the
// stores have been read.
std::vector<mx::array> attend(const mx::array& q, const std::optional<mx::array>& k, const std::optional<mx::array>& v,
                              const std::vector<mx::array>& stores, const std::vector<int>& segments,
                              const std::optional<mx::array>& sinks, const std::vector<mx::array>& after,
                              const AttendOptions& options, const std::optional<mx::array>& positions, mx::StreamOrDevice s);

// Rows [..., D] of channels, a multiple of 4, in 8 or 4 bits as caches keep them (see cpu_attention.h), uint8; and
// back.
mx::array pack_rows(const mx::array& x, int bits, mx::StreamOrDevice s);
mx::array unpack_rows(const mx::array& x, int bits, mx::Dtype as, mx::StreamOrDevice s);

}  // namespace ingot
