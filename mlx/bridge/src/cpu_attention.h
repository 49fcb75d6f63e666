// Attention on the CPU: what is computed, apart from MLX's arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu_types.h"

namespace ingot::cpu {

constexpr int kMaxRuns = 3;        // a ring is at most two runs, and new rows may lie apart
constexpr int kMaxHeadDim = 2048;  // of keys or values
constexpr int kMaxParts = 64;      // that the keys of some rows are cut into

// Keys and values may be kept in 8 or 4 bits. A packed row of dim channels, a multiple of 4, is their codes, then a
// bfloat16 scale of each group of kPackedGroup channels, then a bias of each: a channel is code*scale + bias. The last
// group may be smaller. Of 4 bits the first half of a group lies in the lower halves of its bytes.
//
// Static: kernels of all instruction sets use these, and the linker would keep one set's copy for all.
constexpr int kPackedGroup = 32;

static constexpr int packed_groups(int dim) { return (dim + kPackedGroup - 1) / kPackedGroup; }
static constexpr int packed_codes(int dim, int bits) { return int(int64_t(dim) * bits / 8); }  // bytes of codes
static constexpr int packed_bytes(int dim, int bits) { return packed_codes(dim, bits) + 4 * packed_groups(dim); }

// The channels of packed rows of so many bytes; 0 where there are no such rows.
static constexpr int packed_dim(int bytes, int bits) {
  if (bytes < 0 || bytes > 1 << 24) {
    return 0;
  }
  const int group = packed_bytes(kPackedGroup, bits), groups = (bytes + group - 1) / group;
  const int dim = int(int64_t(bytes - 4 * groups) * 8 / bits);
  return dim > 0 && dim % 4 == 0 && packed_bytes(dim, bits) == bytes ? dim : 0;
}

// Packs rows of dim channels that lie one after the other. What is not finite makes its group not a number.
void pack_rows(Type type, const void* from, int64_t rows, int dim, int bits, void* to);

// Keys and values of count consecutive positions, one head after the other. Strides are in elements, of packed rows in
// bytes.
struct KeyRun {
  const void* k;
  const void* v;
  int64_t k_head, k_row, v_head, v_row;
  int64_t position, count;
};

// What is added to the scores, or where bools are false, takes their place. A stride is 0 where it repeats.
struct AttentionMask {
  const void* data = nullptr;  // nullptr is none
  bool additive = false;       // float32; else bool
  int64_t head = 0, row = 0, key = 0;
};

// Rows of one sequence, at consecutive positions. A row sees the positions up to its own where causal, and of those the
// last window. Runs are in order of position.
struct AttentionRows {
  const void* q;
  void* out;
  int64_t q_head, q_row, out_head, out_row;
  int64_t position, count;
  KeyRun runs[kMaxRuns];
  int run_count = 0;
  AttentionMask mask;
};

struct AttentionShape {
  Type q_type, kv_type;
  int heads, kv_heads, dim, value_dim;
  float scale;
  float softcap = 0;   // 0 is none
  int64_t window = 0;  // 0 is none
  bool causal = true;
  int bits = 0;  // 8 or 4: keys and values are packed rows, whatever kv_type says
  bool fast = false;  // weights of many rows' values may be of bfloat16
};

// Computes all rows of all sequences; sinks are heads scores that take part in the sums only, or nullptr. The result
// does not depend on the number of threads.
void attention(const AttentionShape& shape, const std::vector<AttentionRows>& sequences, const float* sinks);

// A piece of it: vectors = rows x heads queries of one key head, over the keys of [begin, end).
struct AttentionTask {
  const AttentionShape* shape;
  const void* q;  // of the first row and head
  int64_t q_head, q_row;
  int rows, heads;
  int64_t position;  // of the first row
  KeyRun runs[kMaxRuns];
  int run_count;
  AttentionMask mask;  // of the first row and head, at position 0
  int64_t begin, end;
  int block;  // keys at a time
  // Of vector row*heads + head: the sum of the values weighted with e^(score - highest), the sum of these weights, and
  // the highest score. Without keys 0, 0 and -inf.
  float *sums, *weights, *highest;
  void* scratch;
};

// Joins the results over parts of the keys, which lie part_vectors vectors apart.
struct AttentionJoin {
  const AttentionShape* shape;
  const float *sums, *weights, *highest;
  int parts;
  int64_t part_vectors;
  const float* sinks;  // of the first head, or nullptr
  void* out;           // of the first row and head
  int64_t out_head, out_row;
  int rows, heads;
};

struct AttentionKernels {
  int panel;  // vectors that a tile takes at once
  int chunk;  // head sizes that few takes are multiples of it
  void (*tile)(const AttentionTask&);  // many vectors: matrix products of tiles
  void (*small_batch)(const AttentionTask&);   // a few: each key is read once for all of them
  void (*join)(const AttentionJoin&);
  void (*pack)(Type type, const void* from, int64_t rows, int dim, int bits, uint8_t* to);
};

extern const AttentionKernels attention_portable, attention_avx2, attention_avx512, attention_avx512bf16, attention_neon;

}  // namespace ingot::cpu
