// Attention on the CPU over raw memory, independent of MLX's arrays: out = softmax(scale * q k^T + mask) v per head.
//
// A query vector is one row (position) of one head. Grouped-query attention: heads / kv_heads query heads share a head
// of keys and values.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/types.h"

namespace ingot::cpu {

constexpr int kMaxShared = 64;     // runs that a sequence shares with others, before its own
constexpr int kMaxRuns = kMaxShared + 3;  // a ring buffer has at most two, and new rows may be elsewhere
constexpr int kMaxBlockKeys = 128;        // keys that are processed at a time
constexpr int kMaxHeadDim = 2048;  // channels of keys or values
constexpr int kMaxParts = 64;      // the most parts that the keys of some rows are split into

// The quantized KV cache: keys and values in 8 or 4 bits. A packed row of dim channels, a multiple of 4, consists of
// the codes, one bfloat16 scale per group of kPackedGroup channels, and one bfloat16 bias per group: channel = code *
// scale + bias. The last group may be smaller. With 4 bits, the codes of a group's first half are in the low nibbles of
// its bytes, those of the second half in the high nibbles.
//
// These functions are static because units of several instruction sets use them: of inline functions the linker would
// keep one copy, compiled for one instruction set.
constexpr int kPackedGroup = 32;

static constexpr int packed_groups(int dim) { return (dim + kPackedGroup - 1) / kPackedGroup; }
static constexpr int packed_codes(int dim, int bits) { return int(int64_t(dim) * bits / 8); }  // bytes
static constexpr int packed_bytes(int dim, int bits) { return packed_codes(dim, bits) + 4 * packed_groups(dim); }

// Returns the number of channels of packed rows of the given size in bytes, or 0 if no row has this size.
static constexpr int packed_dim(int bytes, int bits) {
  if (bytes < 0 || bytes > 1 << 24) {
    return 0;
  }
  const int group = packed_bytes(kPackedGroup, bits), groups = (bytes + group - 1) / group;
  const int dim = int(int64_t(bytes - 4 * groups) * 8 / bits);
  return dim > 0 && dim % 4 == 0 && packed_bytes(dim, bits) == bytes ? dim : 0;
}

// Packs contiguous rows of dim channels. A group with an infinity or NaN unpacks to NaN.
void pack_rows(Type type, const void* from, int64_t rows, int dim, int bits, void* to);

// Returns the first position that a row at a position sees; 0 without a window. Static, as above.
static inline int64_t first_seen(int64_t window, bool chunked, int64_t position) {
  if (window <= 0) {
    return 0;
  }
  const int64_t first = chunked ? position - position % window : position + 1 - window;
  return first > 0 ? first : 0;
}

// Keys and values of count consecutive positions from `position` on. k and v point at the first head; *_head and *_row
// are the strides of heads and positions, in elements, or in bytes if the rows are packed.
struct KeyRun {
  const void* k;
  const void* v;
  int64_t k_head, k_row, v_head, v_row;
  int64_t position, count;
};

// An additive mask in float32, or a boolean mask that is true where a key is visible. head, row and key are strides in
// elements; a broadcast dimension has stride 0.
struct AttentionMask {
  const void* data = nullptr;  // null: no mask
  bool additive = false;       // float32; otherwise bool
  int64_t head = 0, row = 0, key = 0;
};

// The queries of one sequence at consecutive positions from `position` on, and the runs of keys and values, in order of
// position. If causal, a row sees the keys up to its own position; with a window, only the last `window` of them; in
// chunks, only those since the last multiple of `window`.
struct AttentionRows {
  const void* q;
  void* out;
  int64_t q_head, q_row, out_head, out_row;
  int64_t position, count;
  std::vector<KeyRun> runs;  // at most kMaxRuns
  AttentionMask mask;
};

struct AttentionShape {
  Type q_type, kv_type;
  int heads, kv_heads, dim, value_dim;
  float scale;
  float softcap = 0;   // of the scaled scores; 0: none
  int64_t window = 0;    // 0: none
  bool chunked = false;  // window is the size of chunks
  bool causal = true;
  int bits = 0;       // 8 or 4: keys and values are packed rows; kv_type is ignored
  bool fast = false;  // tiles may round softmax weights to bfloat16
};

// Computes attention for all rows of all sequences. sinks are [heads] scores that enter the softmax denominator without
// a value, or null. The result depends neither on the number of threads nor on how keys are split into runs. Throws
// std::bad_alloc.
void attention(const AttentionShape& shape, const std::vector<AttentionRows>& sequences, const float* sinks);

// A task of one thread: rows x heads query vectors of one key head, over the keys at positions [begin, end).
struct AttentionTask {
  const AttentionShape* shape;
  const void* q;  // the first row and head
  int64_t q_head, q_row;
  int rows, heads;
  int64_t position;  // of the first row
  const KeyRun* runs;
  int run_count;
  AttentionMask mask;  // at the first row and head, for key position 0
  int64_t begin, end;
  int block;   // keys that are processed at a time, at most kMaxBlockKeys
  void* copy;  // for kMaxBlockKeys keys and values of several runs; null with one run
  // The result, for vector row*heads + head: the highest score, weights = sum of e^(score - highest), and sums = sum of
  // e^(score - highest) * value, [vector][value_dim]. Without visible keys these are -inf, 0 and 0.
  float *sums, *weights, *highest;
  void* scratch;
};

// Merges the partial results of the parts of the keys, which are part_vectors vectors apart, and normalizes them
// (split-K attention).
struct AttentionJoin {
  const AttentionShape* shape;
  const float *sums, *weights, *highest;
  int parts;
  int64_t part_vectors;
  const float* sinks;  // of the first head, or null
  void* out;           // the first row and head
  int64_t out_head, out_row;
  int rows, heads;
};

// Rows of one sequence at consecutive positions from `position` on, for which an indexer chooses keys: of the first (p
// + 1) / rate, for a row at position p, the budget with the highest scores. A score is the sum over heads of weight *
// max(0, q . key). With a rate of 1 there is a key for each position.
struct IndexRows {
  const float* q;        // [count][heads][dim]
  const float* weights;  // [count][heads]
  const void* keys;
  int64_t key_row;  // elements
  Type type;        // of the keys
  int heads, dim, budget, rate;
  int64_t position, count;
  int32_t* chosen;  // [count][budget]: ascending indices of keys, then -1
};

// Chooses keys for all rows of all sequences. Of equal scores the first keys are chosen. NaN counts as infinity. The
// result does not depend on the number of threads. Throws std::bad_alloc.
void choose_keys(const std::vector<IndexRows>& sequences);

// A task of one thread: the scores of consecutive keys for some rows.
struct IndexTask {
  const float* q;        // per row: panels [heads / index_panel][dim][index_panel]
  const float* weights;  // per row: heads, rounded up to whole panels
  int64_t q_row;
  int rows, heads, dim;
  const void* keys;
  int64_t key_row;
  Type type;
  int count;      // of the keys
  float* scores;  // [rows][score_row]
  int64_t score_row;
  float* scratch;  // [count][dim]
};

// Rows of one sequence at consecutive positions from `position` on. They attend to chosen keys, and to a window of
// other keys that ends at their own position. A key's value is its first channels. Each row must see a key.
struct ChosenRows {
  const void* q;
  void* out;
  int64_t position, count;
  const void* keys;       // contiguous, of one head
  const int32_t* chosen;  // [count][budget]: indices of keys, then -1; null: a row sees the first (p + 1) / rate keys
  int64_t budget, rate;
  const void* near;  // the keys of a window: position p is in slot p mod near_capacity; null: none
  int64_t near_capacity, window;
};

// Computes the attention of all rows. The shape must not be causal. Sinks are as in attention. Throws std::bad_alloc.
void attend_chosen(const AttentionShape& shape, const std::vector<ChosenRows>& sequences, const float* sinks);

struct AttentionKernels {
  int panel;                                  // query vectors of a tile's panel
  int chunk;                                  // small_batch needs dim and value_dim to be multiples of it
  void (*tile)(const AttentionTask&);         // many vectors: tiled matrix products
  void (*small_batch)(const AttentionTask&);  // few vectors: each key is read once for all of them
  void (*join)(const AttentionJoin&);
  int index_panel;                   // heads of an indexer's panel
  void (*index)(const IndexTask&);  // the scores of an indexer
  void (*pack)(Type type, const void* from, int64_t rows, int dim, int bits, uint8_t* to);
};

const AttentionKernels& attention_kernels();  // the best for this processor

extern const AttentionKernels attention_portable, attention_avx2, attention_avx512, attention_neon;
void attention_tile_avx512bf16(const AttentionTask& t);  // AttentionKernels::tile

}  // namespace ingot::cpu
