// Sparse attention: attention to keys that an indexer chooses, and to entries of several positions.
#pragma once

#include <optional>
#include <vector>

#include "core/mlx.h"

namespace ingot {

namespace mx = mlx::core;

// Sparse attention over keys of several sequences, whose storage is [1, 1, capacity, size] and packed if bits is set: a
// key for each rate positions, so that a row at position p sees the first (p + 1) / rate. segments is a list of {rows,
// position}, one per sequence, which together cover the rows of q. positions are as in attend. Both operations return a
// second array that is available when the stores have been read.
//
// choose_keys returns the keys, int32 [T, budget], that the rows of an indexer's queries q [T, H, D] attend to: of
// those that a row sees, the budget with the highest sums over heads of weight * max(0, q . key), in ascending order,
// then -1. Of equal sums the first keys are chosen; NaN counts as infinity. weights are [T, H].
//
// attend_chosen returns the attention [T, H, values] of q [T, H, D] over the chosen keys, int32 [T, budget] as above,
// or over all that a row sees, and over a window of other keys. Position p of these is in slot p mod the capacity of
// nears, which is empty if there is no window. Without a window a row must have a key. Sinks are [H] scores without a
// value.
struct ChosenOptions {
  float scale;
  int values;  // the first channels of a key are its value
  int window, rate, bits;
};
std::vector<mx::array> choose_keys(const mx::array& q, const mx::array& weights,
                                   const std::vector<mx::array>& stores, const std::vector<int>& segments,
                                   const std::optional<mx::array>& positions, int budget, int rate, int bits,
                                   mx::StreamOrDevice s);
std::vector<mx::array> attend_chosen(const mx::array& q, const std::optional<mx::array>& chosen,
                                     const std::vector<mx::array>& stores, const std::vector<mx::array>& nears,
                                     const std::vector<int>& segments, const std::optional<mx::array>& sinks,
                                     const std::optional<mx::array>& positions, const ChosenOptions& o,
                                     mx::StreamOrDevice s);

// Compression: the projections x [T, W] of rows are written to rings [1, 1, capacity, W], position p in slot p mod
// capacity, one ring per segment. Of each rate of them, the last of which is a row of the batch, an entry is made for
// each compressor, and written to its storage [1, 1, capacity, dim]: a mean, whose weights in each channel are a
// softmax over gates plus a bias by place, then an RMSNorm, and a rope of the last channels by the entry's first
// position. With overlap, the mean also has the rate positions before, whose first half of channels counts. parts are,
// for each compressor, its bias [rate, width] and its norm's weight [dim], and last the frequencies of the rope, all
// float32. x has the values [width] and the gates [width] of each compressor. entries are those of the first segment,
// in order of the compressors, then of the others. after are computed first. It returns the new versions of rings and
// entries.
struct CompressOptions {
  int rate;
  bool overlap;
  float eps, scale;  // scale: of the rotated channels
};
std::vector<mx::array> compress_rows(const mx::array& x, const std::vector<mx::array>& rings,
                                     const std::vector<mx::array>& entries, const std::vector<mx::array>& parts,
                                     const std::vector<int>& segments, const std::vector<mx::array>& after,
                                     const std::optional<mx::array>& positions, const CompressOptions& o,
                                     mx::StreamOrDevice s);

}  // namespace ingot
